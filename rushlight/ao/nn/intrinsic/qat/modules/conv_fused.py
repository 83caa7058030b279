"""Convolutions with rounded weights that normalisation is folded into, with and without ReLU."""

import rushlight
from rushlight import nn
from rushlight.ao.nn.intrinsic.modules import fused
from rushlight.ao.nn.qat.modules import conv as _qat
from rushlight.nn import functional as F
from rushlight.nn.utils.fusion import fuse_conv_bn_weights

from ._folded_norm import FoldedNorm, share_statistics

__all__ = [
    "ConvBn1d",
    "ConvBn2d",
    "ConvBn3d",
    "ConvBnReLU1d",
    "ConvBnReLU2d",
    "ConvBnReLU3d",
    "ConvReLU1d",
    "ConvReLU2d",
    "ConvReLU3d",
    "freeze_bn_stats",
    "update_bn_stats",
]

_NAMES = ("in_channels", "out_channels", "kernel_size", "stride", "padding", "dilation", "groups")


class _ConvBnNd(FoldedNorm, nn.modules.conv._ConvNd, fused._FusedModule):
    """What they share: the weight is rounded with normalisation's factor in it, as it will be used."""

    _version = 2
    _FLOAT_MODULE: type

    def _fold_bn(self, bias, eps, momentum, freeze_bn, qconfig):
        if not qconfig:
            raise AssertionError("qconfig must be provided for QAT module")
        self.qconfig = qconfig
        self.freeze_bn = freeze_bn if self.training else True
        self.bn = type(self)._FLOAT_BN_MODULE(self.out_channels, eps, momentum, True, True)
        self.weight_fake_quant = qconfig.weight()
        if bias:
            self.bias = nn.Parameter(rushlight.empty(self.out_channels))
        else:
            self.register_parameter("bias", None)
        self.reset_bn_parameters()
        if self.training and not freeze_bn:
            self.update_bn_stats()
        else:
            self.freeze_bn_stats()
        self._enable_slow_path_for_better_numerical_stability = False

    def reset_bn_parameters(self):
        self.bn.reset_running_stats()
        nn.init.uniform_(self.bn.weight)
        nn.init.zeros_(self.bn.bias)
        if self.bias is not None:
            fan_in, _ = nn.init._calculate_fan_in_and_fan_out(self.weight)
            bound = fan_in**-0.5
            nn.init.uniform_(self.bias, -bound, bound)

    def _forward(self, input):
        if self._enable_slow_path_for_better_numerical_stability:
            return self._forward_slow(input)
        return self._forward_approximate(input)

    def _shapes(self):
        """Shapes that broadcast a number a channel along the weight, and along results."""
        ones = [1] * (self.weight.dim() - 1)
        return [-1, *ones], [1, -1, *ones[1:]]

    def _forward_approximate(self, input):
        """One convolution: the factor of the statistics so far goes into the weight, and is taken back
        after it."""
        bn = self.bn
        if bn.running_var is None:
            raise AssertionError("normalisation without running statistics cannot be folded")
        running = rushlight.sqrt(bn.running_var + bn.eps)
        factor = bn.weight / running
        of_weight, of_result = self._shapes()
        weight = self.weight_fake_quant(self.weight * factor.reshape(of_weight))
        zero = rushlight.zeros_like(bn.bias if self.bias is None else self.bias, dtype=input.dtype)
        result = self._conv_forward(input, weight, zero) / factor.reshape(of_result)
        if self.bias is not None:
            result = result + self.bias.reshape(of_result)
        return bn(result)

    def _forward_slow(self, input):
        """Two convolutions: the batch's own statistics go into the weight, so factors of zero do no harm."""
        bn = self.bn
        of_weight, of_result = self._shapes()
        if bn.training:
            plain = self._conv_forward(
                input, self.weight, rushlight.zeros_like(bn.bias if self.bias is None else self.bias)
            )
            axes = [0] + list(range(2, plain.dim()))
            mean = plain.mean(axes)
            variance = plain.var(axes, unbiased=False)
            with_bias = plain if self.bias is None else plain + self.bias.reshape(of_result)
            with rushlight.no_grad():
                bn(with_bias)
        else:
            mean = bn.running_mean if self.bias is None else bn.running_mean - self.bias
            variance = bn.running_var
        factor = bn.weight / rushlight.sqrt(variance + bn.eps)
        weight = self.weight_fake_quant(self.weight * factor.reshape(of_weight))
        result = self._conv_forward(input, weight, None)
        return result + (bn.bias - mean * factor).reshape(of_result)

    def extra_repr(self):
        return super().extra_repr()

    def forward(self, input):
        return self._forward(input)

    def _load_from_state_dict(self, state_dict, prefix, local_metadata, strict, missing, unexpected, errors):
        """Version 1 had normalisation's numbers beside the weight."""
        if (local_metadata.get("version") or 1) < 2:
            for old, new in (
                ("gamma", "bn.weight"),
                ("beta", "bn.bias"),
                ("running_mean", "bn.running_mean"),
                ("running_var", "bn.running_var"),
                ("num_batches_tracked", "bn.num_batches_tracked"),
            ):
                if prefix + old in state_dict:
                    state_dict[prefix + new] = state_dict.pop(prefix + old)
                elif prefix + new not in state_dict and strict:
                    missing.append(prefix + new)
        super()._load_from_state_dict(state_dict, prefix, local_metadata, strict, missing, unexpected, errors)

    @classmethod
    def from_float(cls, mod, use_precomputed_fake_quant=False):
        """From the fused layer; weights and statistics are shared."""
        if type(mod) is not cls._FLOAT_MODULE:
            raise AssertionError(f"qat.{cls.__name__}.from_float only works for {cls._FLOAT_MODULE.__name__}")
        if not hasattr(mod, "qconfig"):
            raise AssertionError("Input float module must have qconfig defined")
        if not mod.qconfig:
            raise AssertionError("Input float module must have a valid qconfig")
        conv, bn = mod[0], mod[1]
        made = cls(
            *(getattr(conv, name) for name in _NAMES),
            conv.bias is not None,
            conv.padding_mode,
            bn.eps,
            bn.momentum,
            False,
            mod.qconfig,
        )
        made.weight, made.bias = conv.weight, conv.bias
        share_statistics(made.bn, bn)
        return made

    def to_float(self):
        """The convolution with normalisation folded in, fused with ReLU where it was."""
        cls = type(self)
        plain = cls._FLOAT_CONV_MODULE(
            *(getattr(self, name) for name in _NAMES), self.bias is not None, self.padding_mode
        )
        bn = self.bn
        bias = None if self.bias is None else nn.Parameter(self.bias.detach())
        weight, bias = fuse_conv_bn_weights(
            nn.Parameter(self.weight.detach()),
            bias,
            bn.running_mean,
            bn.running_var,
            bn.eps,
            bn.weight,
            bn.bias,
        )
        plain.weight, plain.bias = weight, bias
        if not hasattr(cls, "_FLOAT_RELU_MODULE"):
            plain.train(self.training)
            return plain
        made = cls._FUSED_FLOAT_MODULE(plain, cls._FLOAT_RELU_MODULE())
        made.train(self.training)
        return made


def _conv_bn(dims, relu):
    """A class for convolutions of so many axes: they differ in the plain layers that they stand for."""
    plain = getattr(nn, f"Conv{dims}d")
    base = globals().get(f"ConvBn{dims}d") if relu else None
    parents = (base,) if relu else (_ConvBnNd, plain)

    def __init__(
        self,
        in_channels,
        out_channels,
        kernel_size,
        stride=1,
        padding=0,
        dilation=1,
        groups=1,
        bias=None,
        padding_mode="zeros",
        eps=1e-05,
        momentum=0.1,
        freeze_bn=False,
        qconfig=None,
    ):
        plain.__init__(
            self,
            in_channels,
            out_channels,
            kernel_size,
            stride,
            padding,
            dilation,
            groups,
            False,
            padding_mode,
        )
        self._fold_bn(bias, eps, momentum, freeze_bn, qconfig)

    def forward(self, input):
        result = self._forward(input)
        return F.relu(result) if relu else result

    name = f"ConvBn{'ReLU' if relu else ''}{dims}d"
    body = {
        "__init__": __init__,
        "forward": forward,
        "__module__": __name__,
        "__qualname__": name,
        "__doc__": f"A convolution and normalisation by channel{', then ReLU' if relu else ''}, "
        "with rounded weights.",
        "_FLOAT_MODULE": getattr(fused, name),
        "_FLOAT_CONV_MODULE": plain,
        "_FLOAT_BN_MODULE": getattr(nn, f"BatchNorm{dims}d"),
        "_FLOAT_RELU_MODULE": nn.ReLU if relu else None,
    }
    if relu:
        body["_FUSED_FLOAT_MODULE"] = getattr(fused, f"ConvReLU{dims}d")
    else:
        del body["_FLOAT_RELU_MODULE"]
    return type(name, parents, body)


def _conv_relu(dims):
    plain = getattr(_qat, f"Conv{dims}d")
    name = f"ConvReLU{dims}d"

    def __init__(
        self,
        in_channels,
        out_channels,
        kernel_size,
        stride=1,
        padding=0,
        dilation=1,
        groups=1,
        bias=True,
        padding_mode="zeros",
        qconfig=None,
    ):
        plain.__init__(
            self,
            in_channels,
            out_channels,
            kernel_size,
            stride,
            padding,
            dilation,
            groups,
            bias,
            padding_mode,
            qconfig=qconfig,
        )

    def forward(self, input):
        return F.relu(self._conv_forward(input, self.weight_fake_quant(self.weight), self.bias))

    body = {
        "__init__": __init__,
        "forward": forward,
        "__module__": __name__,
        "__qualname__": name,
        "__doc__": "A convolution with rounded weights, then ReLU.",
        "_FLOAT_MODULE": getattr(fused, name),
        "_FLOAT_CONV_MODULE": getattr(nn, f"Conv{dims}d"),
        "_FLOAT_BN_MODULE": None,
        "_FLOAT_RELU_MODULE": nn.ReLU,
    }
    return type(name, (plain, fused._FusedModule), body)


ConvBn1d, ConvBn2d, ConvBn3d = (_conv_bn(dims, False) for dims in (1, 2, 3))
ConvBnReLU1d, ConvBnReLU2d, ConvBnReLU3d = (_conv_bn(dims, True) for dims in (1, 2, 3))
ConvReLU1d, ConvReLU2d, ConvReLU3d = (_conv_relu(dims) for dims in (1, 2, 3))

_BN_CLASSES = (ConvBn1d, ConvBn2d, ConvBn3d, ConvBnReLU1d, ConvBnReLU2d, ConvBnReLU3d)


def update_bn_stats(mod):
    """Let a fused layer's normalisation learn; for ``model.apply``."""
    if type(mod) in _BN_CLASSES or type(mod).__name__ == "LinearBn1d" and hasattr(mod, "freeze_bn"):
        mod.update_bn_stats()


def freeze_bn_stats(mod):
    """Keep a fused layer's statistics as they are; for ``model.apply``."""
    if type(mod) in _BN_CLASSES or type(mod).__name__ == "LinearBn1d" and hasattr(mod, "freeze_bn"):
        mod.freeze_bn_stats()
