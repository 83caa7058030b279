"""Single steps of recurrent layers of reference models."""

import rushlight
from rushlight import nn

from .utils import WeightScale, quantized_weight, rounded_weight

__all__ = ["GRUCell", "LSTMCell", "RNNCell", "RNNCellBase"]


class RNNCellBase(nn.RNNCellBase):
    """What they share: two weights, each with its own scale."""

    def __init__(
        self, input_size, hidden_size, bias, num_chunks, device=None, dtype=None, weight_qparams_dict=None
    ):
        super().__init__(input_size, hidden_size, bias, num_chunks, device=device, dtype=dtype)
        given = weight_qparams_dict or {}
        for name in ("weight_ih", "weight_hh"):
            WeightScale(self, name, given.get(name), device)
        self.is_decomposed = bool(given.get("is_decomposed", False))

    def _get_name(self):
        return f"Quantized{type(self).__name__}(Reference)"

    def get_quantized_weight_ih(self):
        return quantized_weight(self, "weight_ih")

    def get_quantized_weight_hh(self):
        return quantized_weight(self, "weight_hh")

    def get_weight_ih(self):
        return rounded_weight(self, "weight_ih")

    def get_weight_hh(self):
        return rounded_weight(self, "weight_hh")

    @property
    def _weights(self):
        return self.get_weight_ih(), self.get_weight_hh(), self.bias_ih, self.bias_hh

    def _start(self, input):
        return rushlight.zeros(input.size(0), self.hidden_size, dtype=input.dtype, device=input.device)

    @classmethod
    def from_float(cls, mod, weight_qparams_dict, use_precomputed_fake_quant=False):
        more = {"nonlinearity": mod.nonlinearity} if hasattr(mod, "nonlinearity") else {}
        made = cls(
            mod.input_size,
            mod.hidden_size,
            mod.bias,
            device=mod.weight_ih.device,
            dtype=mod.weight_ih.dtype,
            weight_qparams_dict=weight_qparams_dict,
            **more,
        )
        for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"):
            setattr(made, name, getattr(mod, name))
        return made


class RNNCell(RNNCellBase):
    """One step of a plain recurrent layer, on rounded weights."""

    def __init__(
        self,
        input_size,
        hidden_size,
        bias=True,
        nonlinearity="tanh",
        device=None,
        dtype=None,
        weight_qparams_dict=None,
    ):
        super().__init__(input_size, hidden_size, bias, 1, device, dtype, weight_qparams_dict)
        self.nonlinearity = nonlinearity

    def forward(self, input, hx=None):
        hx = self._start(input) if hx is None else hx
        if self.nonlinearity not in ("tanh", "relu"):
            raise RuntimeError(f"Unknown nonlinearity: {self.nonlinearity}")
        step = rushlight.rnn_tanh_cell if self.nonlinearity == "tanh" else rushlight.rnn_relu_cell
        return step(input, hx, *self._weights)


class LSTMCell(RNNCellBase):
    """One step of an LSTM, on rounded weights."""

    def __init__(self, input_size, hidden_size, bias=True, device=None, dtype=None, weight_qparams_dict=None):
        super().__init__(input_size, hidden_size, bias, 4, device, dtype, weight_qparams_dict)

    def forward(self, input, hx=None):
        hx = (self._start(input), self._start(input)) if hx is None else hx
        return rushlight.lstm_cell(input, hx, *self._weights)


class GRUCell(RNNCellBase):
    """One step of a GRU, on rounded weights."""

    def __init__(self, input_size, hidden_size, bias=True, device=None, dtype=None, weight_qparams_dict=None):
        super().__init__(input_size, hidden_size, bias, 3, device, dtype, weight_qparams_dict)

    def forward(self, input, hx=None):
        return rushlight.gru_cell(input, self._start(input) if hx is None else hx, *self._weights)
