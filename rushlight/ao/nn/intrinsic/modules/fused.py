"""Sequences of layers that quantisation treats as one: nothing is rounded between them."""

from rushlight import nn
from rushlight.nn.utils.parametrize import type_before_parametrizations

__all__ = [
    "BNReLU2d",
    "BNReLU3d",
    "ConvAdd2d",
    "ConvAddReLU2d",
    "ConvBn1d",
    "ConvBn2d",
    "ConvBn3d",
    "ConvBnReLU1d",
    "ConvBnReLU2d",
    "ConvBnReLU3d",
    "ConvReLU1d",
    "ConvReLU2d",
    "ConvReLU3d",
    "LinearBn1d",
    "LinearLeakyReLU",
    "LinearReLU",
    "LinearTanh",
]


class _FusedModule(nn.Sequential):
    """Base of fused layers, in calibration and in training."""


def _check(expected, *parts):
    """A fused layer is found by its parts' classes, so others are refused."""
    if all(type_before_parametrizations(part) is kind for part, kind in zip(parts, expected)):
        return
    names = [type_before_parametrizations(part).__name__ for part in parts]
    joined = " and ".join(names) if len(names) == 2 else ", ".join(names[:-1]) + ", and " + names[-1]
    raise AssertionError(f"Incorrect types for input modules: {joined}")


class ConvReLU1d(_FusedModule):
    """A convolution, then ReLU."""

    def __init__(self, conv, relu):
        _check((nn.Conv1d, nn.ReLU), conv, relu)
        super().__init__(conv, relu)


class ConvReLU2d(_FusedModule):
    """A convolution, then ReLU."""

    def __init__(self, conv, relu):
        _check((nn.Conv2d, nn.ReLU), conv, relu)
        super().__init__(conv, relu)


class ConvReLU3d(_FusedModule):
    """A convolution, then ReLU."""

    def __init__(self, conv, relu):
        _check((nn.Conv3d, nn.ReLU), conv, relu)
        super().__init__(conv, relu)


class LinearReLU(_FusedModule):
    """A linear layer, then ReLU."""

    def __init__(self, linear, relu):
        _check((nn.Linear, nn.ReLU), linear, relu)
        super().__init__(linear, relu)


class ConvBn1d(_FusedModule):
    """A convolution, then normalisation by channel."""

    def __init__(self, conv, bn):
        _check((nn.Conv1d, nn.BatchNorm1d), conv, bn)
        super().__init__(conv, bn)


class ConvBn2d(_FusedModule):
    """A convolution, then normalisation by channel."""

    def __init__(self, conv, bn):
        _check((nn.Conv2d, nn.BatchNorm2d), conv, bn)
        super().__init__(conv, bn)


class ConvBn3d(_FusedModule):
    """A convolution, then normalisation by channel."""

    def __init__(self, conv, bn):
        _check((nn.Conv3d, nn.BatchNorm3d), conv, bn)
        super().__init__(conv, bn)


class ConvBnReLU1d(_FusedModule):
    """A convolution, normalisation by channel, then ReLU."""

    def __init__(self, conv, bn, relu):
        _check((nn.Conv1d, nn.BatchNorm1d, nn.ReLU), conv, bn, relu)
        super().__init__(conv, bn, relu)


class ConvBnReLU2d(_FusedModule):
    """A convolution, normalisation by channel, then ReLU."""

    def __init__(self, conv, bn, relu):
        _check((nn.Conv2d, nn.BatchNorm2d, nn.ReLU), conv, bn, relu)
        super().__init__(conv, bn, relu)


class ConvBnReLU3d(_FusedModule):
    """A convolution, normalisation by channel, then ReLU."""

    def __init__(self, conv, bn, relu):
        _check((nn.Conv3d, nn.BatchNorm3d, nn.ReLU), conv, bn, relu)
        super().__init__(conv, bn, relu)


class BNReLU2d(_FusedModule):
    """Normalisation by channel, then ReLU."""

    def __init__(self, batch_norm, relu):
        _check((nn.BatchNorm2d, nn.ReLU), batch_norm, relu)
        super().__init__(batch_norm, relu)


class BNReLU3d(_FusedModule):
    """Normalisation by channel, then ReLU."""

    def __init__(self, batch_norm, relu):
        _check((nn.BatchNorm3d, nn.ReLU), batch_norm, relu)
        super().__init__(batch_norm, relu)


class LinearBn1d(_FusedModule):
    """A linear layer, then normalisation by channel."""

    def __init__(self, linear, bn):
        _check((nn.Linear, nn.BatchNorm1d), linear, bn)
        super().__init__(linear, bn)


class LinearLeakyReLU(_FusedModule):
    """A linear layer, then LeakyReLU."""

    def __init__(self, linear, leaky_relu):
        if not (type(linear) is nn.Linear and type(leaky_relu) is nn.LeakyReLU):
            _check((nn.Linear, nn.LeakyReLU), linear, leaky_relu)
        super().__init__(linear, leaky_relu)


class LinearTanh(_FusedModule):
    """A linear layer, then the hyperbolic tangent."""

    def __init__(self, linear, tanh):
        _check((nn.Linear, nn.Tanh), linear, tanh)
        super().__init__(linear, tanh)


class ConvAdd2d(_FusedModule):
    """A convolution, then the sum with another operand, by the function given."""

    def __init__(self, conv, add):
        super().__init__(conv)
        self.add = add

    def forward(self, x1, x2):
        return self.add(self[0](x1), x2)


class ConvAddReLU2d(_FusedModule):
    """A convolution, the sum with another operand, then ReLU."""

    def __init__(self, conv, add, relu):
        super().__init__(conv)
        self.add = add
        self.relu = relu

    def forward(self, x1, x2):
        return self.relu(self.add(self[0](x1), x2))
