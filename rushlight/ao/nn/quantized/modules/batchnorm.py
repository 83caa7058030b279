"""Normalisation by channel of integers, with statistics that no longer change."""

import rushlight
from rushlight import nn
from rushlight.ao.nn import intrinsic as nni

__all__ = ["BatchNorm2d", "BatchNorm3d"]


class _BatchNorm(nn.modules.batchnorm._BatchNorm):
    """What the two share."""

    _dims: int
    _NNI_BN_RELU_MODULE: type

    def __init__(self, num_features, eps=1e-5, momentum=0.1, device=None, dtype=None):
        super().__init__(num_features, eps, momentum, True, True, device=device, dtype=dtype)
        self.register_buffer("scale", rushlight.tensor(1.0, device=device))
        self.register_buffer("zero_point", rushlight.tensor(0, device=device))

    def _get_name(self):
        return f"QuantizedBatchNorm{self._dims}d"

    def _check_input_dim(self, input):
        if input.dim() != self._dims + 2:
            shape = {2: "(N, C, H, W)", 3: "(N, C, H, W)"}[self._dims]
            raise ValueError(f"Input shape must be `{shape}`!")

    def _compute(self, operator, input):
        self._check_input_dim(input)
        return operator(
            input,
            self.weight,
            self.bias,
            self.running_mean,
            self.running_var,
            self.eps,
            self.scale,
            self.zero_point,
        )

    @classmethod
    def _with(cls, bn, scale, zero_point):
        made = cls(bn.num_features, bn.eps)
        made.weight, made.bias = bn.weight, bn.bias
        made.running_mean, made.running_var = bn.running_mean, bn.running_var
        made.scale, made.zero_point = scale, zero_point
        return made

    @classmethod
    def from_float(cls, mod, use_precomputed_fake_quant=False):
        scale, zero_point = mod.activation_post_process.calculate_qparams()
        bn = mod[0] if type(mod) is cls._NNI_BN_RELU_MODULE else mod
        return cls._with(bn, scale, zero_point)

    @classmethod
    def from_reference(cls, bn, output_scale, output_zero_point):
        return cls._with(bn, rushlight.tensor(float(output_scale)), rushlight.tensor(int(output_zero_point)))


class BatchNorm2d(_BatchNorm):
    """BatchNorm2d of integers."""

    _dims = 2
    _NNI_BN_RELU_MODULE = nni.BNReLU2d

    def forward(self, input):
        return self._compute(rushlight.ops.quantized.batch_norm2d, input)


class BatchNorm3d(_BatchNorm):
    """BatchNorm3d of integers."""

    _dims = 3
    _NNI_BN_RELU_MODULE = nni.BNReLU3d

    def forward(self, input):
        return self._compute(rushlight.ops.quantized.batch_norm3d, input)
