"""Recurrent layers of reference models: the plain layers, run on rounded weights."""

from rushlight import nn

from .utils import WeightScale, quantized_weight, rounded_weight

__all__ = ["GRU", "LSTM"]


class _Rounded:
    """What the two share: each weight has its own scale, and is rounded at each call."""

    def __init__(self, *args, weight_qparams_dict=None, **kwargs):
        super().__init__(*args, **kwargs)
        given = weight_qparams_dict or {}
        for names in self._all_weights:
            for name in names:
                if name.startswith("weight"):
                    WeightScale(self, name, given.get(name))
        self.is_decomposed = bool(given.get("is_decomposed", False))

    def _get_name(self):
        return f"Quantized{type(self).__name__}(Reference)"

    def get_quantized_weight_bias_dict(self):
        """Integer weights and biases by name."""
        found = {"weight": {}, "bias": {}}
        for names in self._all_weights:
            for name in names:
                kind = "weight" if name.startswith("weight") else "bias"
                found[kind][name] = quantized_weight(self, name) if kind == "weight" else getattr(self, name)
        return found

    def get_flat_weights(self):
        """All weights, rounded, in the order that the plain layer has them."""
        return [
            rounded_weight(self, name) if name.startswith("weight") else getattr(self, name)
            for names in self._all_weights
            for name in names
        ]

    # The plain layers compute with what stands here.
    @property
    def _flat_weights(self):
        return self.get_flat_weights() if "is_decomposed" in self.__dict__ else super()._flat_weights

    @_flat_weights.setter
    def _flat_weights(self, weights):
        nn.RNNBase._flat_weights.fset(self, weights)

    @classmethod
    def from_float(cls, mod, weight_qparams_dict):
        made = cls(
            mod.input_size,
            mod.hidden_size,
            mod.num_layers,
            mod.bias,
            mod.batch_first,
            mod.dropout,
            mod.bidirectional,
            weight_qparams_dict=weight_qparams_dict,
        )
        for names in mod._all_weights:
            for name in names:
                setattr(made, name, getattr(mod, name))
        return made


class LSTM(_Rounded, nn.LSTM):
    """LSTM on rounded weights."""


class GRU(_Rounded, nn.GRU):
    """GRU on rounded weights."""
