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
        self._rank = self._dims + 2
        self.register_buffer("scale", rushlight.tensor(1.0, device=device))
        self.register_buffer("zero_point", rushlight.tensor(0, device=device))

    def _get_name(self):
        return f"QuantizedBatchNorm{self._dims}d"

    def _check_input_dim(self, input):
        if input.dim() != self._rank:
            raise ValueError("Input shape must be `(N, C, H, W)`!")

    def _compute(self, input, relu: bool):
        self._check_input_dim(input)
        if relu:
            return rushlight.ops.quantized.batch_norm_relu(
                input,
                self.weight,
                self.bias,
                self.running_mean,
                self.running_var,
                self.eps,
                float(self.scale),
                int(self.zero_point),
            )
        return rushlight.ops.quantized.batch_norm(
            input,
            self.weight,
            self.bias,
            self.running_mean,
            self.running_var,
            self.eps,
            float(self.scale),
            int(self.zero_point),
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
        return self._compute(input, False)


class BatchNorm3d(_BatchNorm):
    """BatchNorm3d of integers."""

    _dims = 3
    _NNI_BN_RELU_MODULE = nni.BNReLU3d

    def forward(self, input):
        return self._compute(input, False)
