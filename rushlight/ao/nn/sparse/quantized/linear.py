"""The linear layer of integers whose weight is zero in blocks."""

import rushlight
from rushlight import nn
from rushlight.ao.nn.quantized.modules.utils import (
    _hide_packed_params_repr,
    _quantize_weight,
    _save_scale,
    _take_scale,
)

__all__ = ["Linear", "LinearPackedParams"]


def _zero_weight(out_features, in_features):
    return rushlight._empty_affine_quantized(
        [out_features, in_features], scale=1, zero_point=0, dtype=rushlight.qint8
    )


def _rounded_weight(weight, observer):
    """The weight in integers whose zero is 0, as a block that is left out has it."""
    observer(weight)
    if observer.dtype != rushlight.qint8:
        raise AssertionError(f"Weight observer must have dtype torch.qint8, got {observer.dtype}")
    zero_point = observer.calculate_qparams()[1]
    if rushlight.as_tensor(zero_point).any():
        raise AssertionError("All weight zero points must map to 0")
    return _quantize_weight(weight.float(), observer)


class LinearPackedParams(nn.Module):
    """A weight and a bias as the kernel wants them, and the shape of the weight's blocks."""

    _version = 1

    def __init__(self, row_block_size=1, col_block_size=4, dtype=rushlight.qint8):
        super().__init__()
        if dtype != rushlight.qint8:
            raise NotImplementedError("Linear prepacking only supports QINT8")
        self.dtype = dtype
        self.set_weight_bias(_zero_weight(1, 1), None, row_block_size, col_block_size)

    def _get_name(self):
        return "SparseQuantizedLinearPackedParams"

    def set_weight_bias(self, weight, bias, row_block_size, col_block_size):
        if row_block_size is None or col_block_size is None:
            raise AssertionError(
                "row_block_size and col_block_size must not be None, got "
                f"row_block_size={row_block_size}, col_block_size={col_block_size}"
            )
        self._packed_params = rushlight.ops.sparse.qlinear_prepack(
            weight, bias, row_block_size, col_block_size
        )

    def _weight_bias(self):
        weight, bias, block = rushlight.ops.sparse.qlinear_unpack(self._packed_params)
        return weight, bias, block[0], block[1]

    def forward(self, x):
        return x

    def _save_to_state_dict(self, destination, prefix, keep_vars):
        super()._save_to_state_dict(destination, prefix, keep_vars)
        destination[prefix + "dtype"] = self.dtype
        destination[prefix + "_packed_params"] = self._weight_bias()

    def _load_from_state_dict(self, state_dict, prefix, local_metadata, strict, missing, unexpected, errors):
        self.dtype = state_dict.pop(prefix + "dtype")
        self.set_weight_bias(*state_dict.pop(prefix + "_packed_params"))
        super()._load_from_state_dict(state_dict, prefix, local_metadata, False, missing, unexpected, errors)

    def __getstate__(self):
        return self._packed_params, self.training, self.dtype

    def __setstate__(self, state):
        nn.Module.__init__(self)
        self._packed_params, self.training, self.dtype = state

    def __repr__(self):
        return repr(self._weight_bias())


class _Linear(nn.Module):
    """What the two linear layers share."""

    _version = 1
    _FLOAT_MODULE = nn.Linear

    def __init__(
        self, in_features, out_features, row_block_size, col_block_size, bias=True, dtype=rushlight.qint8
    ):
        super().__init__()
        if dtype != rushlight.qint8:
            raise NotImplementedError("Only QINT8 is supported for Sparse Quantized Linear")
        self.in_features = in_features
        self.out_features = out_features
        zeros = rushlight.zeros(out_features, dtype=rushlight.float) if bias else None
        self._packed_params = LinearPackedParams(row_block_size, col_block_size, dtype)
        self.set_weight_bias(_zero_weight(out_features, in_features), zeros, row_block_size, col_block_size)

    def __repr__(self):
        return _hide_packed_params_repr(self, LinearPackedParams)

    def _weight_bias(self):
        return self._packed_params._weight_bias()

    def weight(self):
        return self._weight_bias()[0]

    def bias(self):
        return self._weight_bias()[1]

    def set_weight_bias(self, w, b, row_block_size, col_block_size):
        self._packed_params.set_weight_bias(w, b, row_block_size, col_block_size)


class Linear(_Linear):
    """Linear with sparse integer weights; operands and results are integers.

    Args:
        in_features, out_features: sizes of operands and results.
        row_block_size, col_block_size: the shape of the weight's blocks, 1 by 4 or 8 by 1.
        bias: whether there is one.
        dtype: ``torch.qint8``.
    """

    def __init__(
        self, in_features, out_features, row_block_size, col_block_size, bias=True, dtype=rushlight.qint8
    ):
        super().__init__(in_features, out_features, row_block_size, col_block_size, bias, dtype)
        self.scale = 1.0
        self.zero_point = 0

    @classmethod
    def _get_name(cls):
        return "SparseQuantizedLinear"

    def extra_repr(self):
        return (
            f"in_features={self.in_features}, out_features={self.out_features}, scale={self.scale}, "
            f"zero_point={self.zero_point}, qscheme={self.weight().qscheme()}"
        )

    def forward(self, x):
        return rushlight.ops.sparse.qlinear(
            x, self._packed_params._packed_params, self.scale, self.zero_point
        )

    def _save_to_state_dict(self, destination, prefix, keep_vars):
        super()._save_to_state_dict(destination, prefix, keep_vars)
        _save_scale(self, destination, prefix)

    def _load_from_state_dict(self, state_dict, prefix, local_metadata, strict, missing, unexpected, errors):
        _take_scale(self, state_dict, prefix)
        super()._load_from_state_dict(state_dict, prefix, local_metadata, False, missing, unexpected, errors)

    @classmethod
    def from_float(cls, mod, use_precomputed_fake_quant=False):
        """From a calibrated layer whose mask was squashed with ``params_to_keep=("sparse_block_shape",)``."""
        if type(mod) is not cls._FLOAT_MODULE:
            raise AssertionError(f"{cls._get_name()}.from_float only works for {cls._FLOAT_MODULE.__name__}")
        if not hasattr(mod, "sparse_params"):
            raise AssertionError(
                "Expecting the Linear to have `sparse_params`. Make sure you have provided arguments "
                'in the `sparsifier.squash_mask(params_to_save=("sparse_block_shape",))` method.'
            )
        block = mod.sparse_params.get("sparse_block_shape")
        if not isinstance(block, (tuple, list)):
            raise AssertionError(f"sparse_block_shape must be tuple or list, got {type(block)}")
        if len(block) != 2:
            raise AssertionError(f"sparse_block_shape must have length 2, got {len(block)}")
        if not hasattr(mod, "qconfig"):
            raise AssertionError("Input float module must have qconfig defined")
        weight = _rounded_weight(mod.weight, mod.qconfig.weight())
        scale, zero_point = mod.activation_post_process.calculate_qparams()
        made = cls(mod.in_features, mod.out_features, *block)
        made.set_weight_bias(weight, mod.bias, *block)
        made.scale, made.zero_point = float(scale), int(zero_point)
        return made
