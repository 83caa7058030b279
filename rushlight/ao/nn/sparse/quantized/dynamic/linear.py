"""The linear layer of sparse integers whose operands get their scale at each call; results are numbers."""

import rushlight
from rushlight.ao.nn.sparse.quantized import linear
from rushlight.ao.nn.sparse.quantized.utils import LinearBlockSparsePattern

__all__ = ["Linear"]


class Linear(linear._Linear):
    """Linear with sparse integer weights; operands and results are numbers.

    Args:
        in_features, out_features: sizes of operands and results.
        row_block_size, col_block_size: the shape of the weight's blocks, 1 by 4 or 8 by 1.
        bias: whether there is one.
        dtype: ``torch.qint8``.
    """

    _op_type = "sparse_dynamic"

    def _get_name(self):
        return "SparseQuantizedDynamicLinear"

    def extra_repr(self):
        return (
            f"in_features={self.in_features}, out_features={self.out_features}, "
            f"qscheme={self.weight().qscheme()}"
        )

    def forward(self, x):
        return rushlight.ops.sparse.qlinear_dynamic(x, self._packed_params._packed_params)

    def _save_to_state_dict(self, destination, prefix, keep_vars):
        super()._save_to_state_dict(destination, prefix, keep_vars)
        destination[prefix + "op_type"] = self._op_type

    def _load_from_state_dict(self, state_dict, prefix, local_metadata, strict, missing, unexpected, errors):
        kind = state_dict.pop(prefix + "op_type")
        if kind != self._op_type:
            raise AssertionError(f"Cannot load from op_type [{kind}], expecting [{self._op_type}]")
        super()._load_from_state_dict(state_dict, prefix, local_metadata, False, missing, unexpected, errors)

    def set_weight_bias(self, w, b, row_block_size, col_block_size):
        self.out_features, self.in_features = w.shape
        super().set_weight_bias(w, b, row_block_size, col_block_size)

    @classmethod
    def from_float(cls, mod, use_precomputed_fake_quant=False):
        """From a plain layer with a configuration, whose ``mask`` is applied; blocks as in the context."""
        if type(mod) is not cls._FLOAT_MODULE:
            raise AssertionError(
                f" nnq.{cls.__name__}.from_float only works for {cls._FLOAT_MODULE.__name__}"
            )
        if not hasattr(mod, "qconfig"):
            raise AssertionError("Input float module must have qconfig defined")
        if mod.qconfig is not None and mod.qconfig.weight is not None:
            observer = mod.qconfig.weight()
        else:
            from rushlight.ao.quantization.qconfig import default_dynamic_qconfig

            observer = default_dynamic_qconfig.weight()
        weight = mod.weight
        if getattr(mod.qconfig, "mask", False):
            weight = mod.qconfig.mask * weight
        weight = linear._rounded_weight(weight, observer)
        block = LinearBlockSparsePattern.block_size()
        made = cls(mod.in_features, mod.out_features, *block)
        made.set_weight_bias(weight, mod.bias, *block)
        return made
