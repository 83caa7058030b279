"""Normalisation of integers by layer, group and instance."""

import rushlight
from rushlight import nn

__all__ = ["GroupNorm", "InstanceNorm1d", "InstanceNorm2d", "InstanceNorm3d", "LayerNorm"]


def _take(layer, weight, bias, scale, zero_point, device=None):
    """The weights of the plain layer, and the scale of results as buffers."""
    layer.weight, layer.bias = weight, bias
    layer.register_buffer("scale", rushlight.tensor(scale, device=device))
    layer.register_buffer("zero_point", rushlight.tensor(zero_point, device=device))


def _qparams(mod):
    scale, zero_point = mod.activation_post_process.calculate_qparams()
    return float(scale), int(zero_point)


class LayerNorm(nn.LayerNorm):
    """LayerNorm of integers."""

    def __init__(
        self,
        normalized_shape,
        weight,
        bias,
        scale,
        zero_point,
        eps=1e-5,
        elementwise_affine=True,
        device=None,
        dtype=None,
    ):
        super().__init__(
            normalized_shape, eps=eps, elementwise_affine=elementwise_affine, device=device, dtype=dtype
        )
        _take(self, weight, bias, scale, zero_point, device)

    def forward(self, input):
        return rushlight.ops.quantized.layer_norm(
            input,
            self.normalized_shape,
            weight=self.weight,
            bias=self.bias,
            eps=self.eps,
            output_scale=float(self.scale),
            output_zero_point=int(self.zero_point),
        )

    def _get_name(self):
        return "QuantizedLayerNorm"

    @classmethod
    def from_float(cls, mod, use_precomputed_fake_quant=False):
        return cls.from_reference(mod, *_qparams(mod))

    @classmethod
    def from_reference(cls, mod, scale, zero_point):
        return cls(
            mod.normalized_shape,
            mod.weight,
            mod.bias,
            float(scale),
            int(zero_point),
            mod.eps,
            mod.elementwise_affine,
        )


class GroupNorm(nn.GroupNorm):
    """GroupNorm of integers."""

    def __init__(
        self,
        num_groups,
        num_channels,
        weight,
        bias,
        scale,
        zero_point,
        eps=1e-5,
        affine=True,
        device=None,
        dtype=None,
    ):
        super().__init__(num_groups, num_channels, eps, affine, device=device, dtype=dtype)
        _take(self, weight, bias, scale, zero_point, device)

    def forward(self, input):
        return rushlight.ops.quantized.group_norm(
            input, self.num_groups, self.weight, self.bias, self.eps, float(self.scale), int(self.zero_point)
        )

    def _get_name(self):
        return "QuantizedGroupNorm"

    @classmethod
    def from_float(cls, mod, use_precomputed_fake_quant=False):
        scale, zero_point = _qparams(mod)
        return cls(
            mod.num_groups, mod.num_channels, mod.weight, mod.bias, scale, zero_point, mod.eps, mod.affine
        )


class _InstanceNorm:
    """What the three share."""

    def __init__(
        self,
        num_features,
        weight,
        bias,
        scale,
        zero_point,
        eps=1e-5,
        momentum=0.1,
        affine=False,
        track_running_stats=False,
        device=None,
        dtype=None,
    ):
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device=device, dtype=dtype)
        _take(self, weight, bias, scale, zero_point, device)

    def forward(self, input):
        return rushlight.ops.quantized.instance_norm(
            input, self.weight, self.bias, self.eps, float(self.scale), int(self.zero_point)
        )

    @classmethod
    def from_float(cls, mod, use_precomputed_fake_quant=False):
        return cls.from_reference(mod, *_qparams(mod))

    @classmethod
    def from_reference(cls, mod, scale, zero_point):
        return cls(mod.num_features, mod.weight, mod.bias, float(scale), int(zero_point), mod.eps, mod.affine)


class InstanceNorm1d(_InstanceNorm, nn.InstanceNorm1d):
    """InstanceNorm1d of integers."""

    def _get_name(self):
        return "QuantizedInstanceNorm1d"


class InstanceNorm2d(_InstanceNorm, nn.InstanceNorm2d):
    """InstanceNorm2d of integers."""

    def _get_name(self):
        return "QuantizedInstanceNorm2d"


class InstanceNorm3d(_InstanceNorm, nn.InstanceNorm3d):
    """InstanceNorm3d of integers."""

    def _get_name(self):
        return "QuantizedInstanceNorm3d"
