"""Functions of residual and dense networks as modules, so that an observer may sit behind them."""

import rushlight
from rushlight import nn
from rushlight.ao.nn._functional_modules import FloatFunctional, FXFloatFunctional

from .utils import _save_scale, _take_scale

__all__ = ["FXFloatFunctional", "FloatFunctional", "QFunctional"]


class QFunctional(nn.Module):
    """Arithmetic of integers, with one scale of results."""

    def __init__(self):
        super().__init__()
        self.scale = 1.0
        self.zero_point = 0
        self.activation_post_process = nn.Identity()

    def _save_to_state_dict(self, destination, prefix, keep_vars):
        super()._save_to_state_dict(destination, prefix, keep_vars)
        _save_scale(self, destination, prefix)

    def _load_from_state_dict(self, state_dict, prefix, local_metadata, strict, missing, unexpected, errors):
        _take_scale(self, state_dict, prefix)
        super()._load_from_state_dict(state_dict, prefix, local_metadata, False, missing, unexpected, errors)

    def _get_name(self):
        return "QFunctional"

    def extra_repr(self):
        return f"scale={self.scale}, zero_point={self.zero_point}"

    def forward(self, x):
        raise RuntimeError(
            "Functional is not intended to use the forward. Please use the underlying operation"
        )

    def add(self, x, y):
        result = rushlight.ops.quantized.add(x, y, scale=self.scale, zero_point=self.zero_point)
        return self.activation_post_process(result)

    def add_scalar(self, x, y: float):
        return rushlight.ops.quantized.add_scalar(x, y)

    def mul(self, x, y):
        result = rushlight.ops.quantized.mul(x, y, scale=self.scale, zero_point=self.zero_point)
        return self.activation_post_process(result)

    def mul_scalar(self, x, y: float):
        return rushlight.ops.quantized.mul_scalar(x, y)

    def cat(self, x: list[rushlight.Tensor], dim: int = 0):
        result = rushlight.ops.quantized.cat(x, scale=self.scale, zero_point=self.zero_point, dim=dim)
        return self.activation_post_process(result)

    def add_relu(self, x, y):
        result = rushlight.ops.quantized.add_relu(x, y, scale=self.scale, zero_point=self.zero_point)
        return self.activation_post_process(result)

    def matmul(self, x, y):
        return rushlight.ops.quantized.matmul(x, y, scale=self.scale, zero_point=self.zero_point)

    @classmethod
    def from_float(cls, mod, use_precomputed_fake_quant=False):
        if type(mod) is not FloatFunctional:
            raise AssertionError("QFunctional.from_float expects an instance of FloatFunctional")
        scale, zero_point = mod.activation_post_process.calculate_qparams()
        made = cls()
        made.scale, made.zero_point = float(scale), int(zero_point)
        return made
