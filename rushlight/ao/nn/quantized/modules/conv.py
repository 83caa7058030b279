"""Convolutions with integer weights."""

import copy

import rushlight
from rushlight import nn
from rushlight.ao.nn import intrinsic as nni
from rushlight.ao.nn.intrinsic import qat as nniqat
from rushlight.nn import functional as F
from rushlight.nn.utils.fusion import fuse_conv_bn_weights

from .utils import (
    WeightedQuantizedModule,
    _ntuple_from_first,
    _quantize_weight,
    _save_scale,
    _take_scale,
)

__all__ = ["Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d"]

_PADDINGS = {"zeros", "reflect"}


def _with_borders(padding):
    """A padding of each axis as ``F.pad`` takes it: the last axis first, both sides."""
    return [amount for amount in reversed(padding) for _ in range(2)]


class _ConvNd(WeightedQuantizedModule):
    """What they share: weights are packed for the kernel, plain in files."""

    _dims: int
    _transposed = False
    _FLOAT_MODULE: type
    _NNIQAT_CONV_BN_MODULE = None
    _NNI_CONV_RELU_MODULE = None
    _NNI_CONV_ADD_MODULE = None
    _NNI_CONV_ADD_RELU_MODULE = None

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
        device=None,
        dtype=None,
    ):
        super().__init__()
        self._set_up(
            in_channels,
            out_channels,
            kernel_size,
            stride,
            padding,
            dilation,
            0,
            groups,
            bias,
            padding_mode,
            device,
        )

    def _set_up(
        self,
        in_channels,
        out_channels,
        kernel_size,
        stride,
        padding,
        dilation,
        output_padding,
        groups,
        bias,
        padding_mode,
        device,
    ):
        if in_channels % groups:
            raise ValueError("in_channels must be divisible by groups")
        if out_channels % groups:
            raise ValueError("out_channels must be divisible by groups")
        if padding_mode not in _PADDINGS:
            raise ValueError(f"'padding_mode' {padding_mode} is not supported by quantized convolution")
        each = _ntuple_from_first(self._dims)
        self.in_channels, self.out_channels = in_channels, out_channels
        self.kernel_size, self.stride = each(kernel_size), each(stride)
        self.padding = padding if isinstance(padding, str) else each(padding)
        self.dilation = each(dilation)
        self.transposed, self.output_padding = self._transposed, each(output_padding)
        self.groups, self.padding_mode = groups, padding_mode
        self._borders = [] if isinstance(self.padding, str) else _with_borders(self.padding)
        shape = {1: "(N, C, L)", 2: "(N, C, H, W)", 3: "(N, C, D, H, W)"}[self._dims]
        self._wrong_shape = f"Input shape must be `{shape}`!"
        rows = (
            (in_channels, out_channels // groups)
            if self._transposed
            else (out_channels, in_channels // groups)
        )
        weight = rushlight._empty_affine_quantized(
            [*rows, *self.kernel_size], scale=1, zero_point=0, dtype=rushlight.qint8, device=device
        )
        zeros = rushlight.zeros(out_channels, dtype=rushlight.float, device=device) if bias else None
        self.set_weight_bias(weight, zeros)
        self.scale = 1.0
        self.zero_point = 0

    def _get_name(self):
        return f"QuantizedConv{'Transpose' if self._transposed else ''}{self._dims}d"

    def extra_repr(self):
        parts = [
            f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}, "
            f"scale={self.scale}, zero_point={self.zero_point}"
        ]
        if self.padding != (0,) * self._dims:
            parts.append(f"padding={self.padding}")
        if self.dilation != (1,) * self._dims:
            parts.append(f"dilation={self.dilation}")
        if self.output_padding != (0,) * self._dims:
            parts.append(f"output_padding={self.output_padding}")
        if self.groups != 1:
            parts.append(f"groups={self.groups}")
        if self.bias() is None:
            parts.append("bias=False")
        return ", ".join(parts)

    # ---- weights ----

    def _op(self, name):
        kind = f"conv{'_transpose' if self._transposed else ''}{self._dims}d"
        return getattr(rushlight.ops.quantized, f"{kind}{name}")

    def set_weight_bias(self, w, b):
        # The kernel pads with zeros; other borders are laid around the operand before.
        padding = self.padding if self.padding_mode == "zeros" else (0,) * self._dims
        if self._transposed:
            self._packed_params = self._op("_prepack")(
                w, b, self.stride, padding, self.output_padding, self.dilation, self.groups
            )
        else:
            self._packed_params = self._op("_prepack")(w, b, self.stride, padding, self.dilation, self.groups)

    def _weight_bias(self):
        return self._op("_unpack")(self._packed_params)

    def weight(self):
        return self._weight_bias()[0]

    def bias(self):
        return self._weight_bias()[1]

    def _bordered(self, input):
        if input.dim() != len(self.kernel_size) + 2:
            raise ValueError(self._wrong_shape)
        if self.padding_mode == "zeros":
            return input
        return F.pad(input, self._borders, mode=self.padding_mode)

    # ---- state ----

    def _save_to_state_dict(self, destination, prefix, keep_vars):
        super()._save_to_state_dict(destination, prefix, keep_vars)
        weight, bias = self._weight_bias()
        destination[prefix + "weight"] = weight
        destination[prefix + "bias"] = bias
        _save_scale(self, destination, prefix)

    def _load_from_state_dict(self, state_dict, prefix, local_metadata, strict, missing, unexpected, errors):
        self.set_weight_bias(state_dict.pop(prefix + "weight"), state_dict.pop(prefix + "bias"))
        _take_scale(self, state_dict, prefix)
        super()._load_from_state_dict(state_dict, prefix, local_metadata, False, missing, unexpected, errors)

    def __getstate__(self):
        state = self.__dict__.copy()
        state["_packed_params"] = self._weight_bias()
        return state

    def __setstate__(self, state):
        if isinstance(state, tuple):
            return self._take_tuple(*state)
        packed = state.pop("_packed_params")
        super().__setstate__(state)
        self.set_weight_bias(*packed)

    def _take_tuple(self, *state):
        """PyTorch's state: arguments, among them whether it is transposed, the weight, what else was set."""
        *window, transposed, output_padding, groups, padding_mode, weight, bias = state[:-3]
        nn.Module.__init__(self)
        self._set_up(*window, output_padding, groups, bias is not None, padding_mode, None)
        self.set_weight_bias(weight, bias)
        self.scale, self.zero_point, self.training = state[-3:]

    def __deepcopy__(self, memo):
        made = type(self).__new__(type(self))
        memo[id(self)] = made
        made.__setstate__(copy.deepcopy(self.__getstate__(), memo))
        return made

    def __copy__(self):
        return self.__deepcopy__({})

    # ---- from other layers ----

    @classmethod
    def _arguments(cls, mod):
        names = ("in_channels", "out_channels", "kernel_size", "stride", "padding", "dilation", "groups")
        return (*(getattr(mod, name) for name in names), mod.bias is not None, mod.padding_mode)

    @classmethod
    def get_qconv(cls, mod, activation_post_process, weight_post_process=None):
        """The layer with this one's weights, rounded, and the scale that was watched."""
        if weight_post_process is None:
            weight_post_process = mod.qconfig.weight()
        weight_post_process(mod.weight)
        if weight_post_process.dtype != rushlight.qint8:
            raise AssertionError("Weight observer must have a dtype of qint8")
        made = cls(*cls._arguments(mod))
        made.set_weight_bias(_quantize_weight(mod.weight.float(), weight_post_process), mod.bias)
        if activation_post_process is None or activation_post_process.dtype == rushlight.float:
            return made  # what follows is computed with numbers
        scale, zero_point = activation_post_process.calculate_qparams()
        made.scale, made.zero_point = float(scale), int(zero_point)
        return made

    @classmethod
    def from_float(cls, mod, use_precomputed_fake_quant=False):
        """From a calibrated layer, or one of training."""
        if hasattr(mod, "weight_fake_quant"):
            if cls._NNIQAT_CONV_BN_MODULE is not None and type(mod) is cls._NNIQAT_CONV_BN_MODULE:
                bn = mod.bn
                mod.weight, mod.bias = fuse_conv_bn_weights(
                    mod.weight, mod.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias
                )
            if not hasattr(mod, "activation_post_process"):
                raise AssertionError("Input QAT module must have observer attached")
            return cls.get_qconv(mod, mod.activation_post_process, mod.weight_fake_quant)
        if type(mod) is not cls._FLOAT_MODULE:
            raise AssertionError(
                f" nnq.{cls.__name__}.from_float only works for {cls._FLOAT_MODULE.__name__} but "
                f"got:{type(mod)}"
            )
        if not hasattr(mod, "qconfig"):
            raise AssertionError("Input float module must have qconfig defined.")
        activation = getattr(mod, "activation_post_process", None)
        fused = (cls._NNI_CONV_RELU_MODULE, cls._NNI_CONV_ADD_MODULE, cls._NNI_CONV_ADD_RELU_MODULE)
        if type(mod) in fused:
            mod = mod[0]
        return cls.get_qconv(mod, activation)

    @classmethod
    def from_reference(cls, ref_qconv, output_scale, output_zero_point):
        """From a layer of a reference model, which computes with numbers on rounded weights."""
        made = cls(*cls._arguments(ref_qconv))
        made.set_weight_bias(ref_qconv.get_quantized_weight(), ref_qconv.bias)
        made.scale, made.zero_point = float(output_scale), int(output_zero_point)
        return made


class Conv1d(_ConvNd):
    """Conv1d of integers."""

    _dims = 1
    _FLOAT_MODULE = nn.Conv1d
    _NNIQAT_CONV_BN_MODULE = nniqat.ConvBn1d
    _NNI_CONV_RELU_MODULE = nni.ConvReLU1d

    def forward(self, input):
        return rushlight.ops.quantized.conv1d(
            self._bordered(input), self._packed_params, self.scale, self.zero_point
        )


class Conv2d(_ConvNd):
    """Conv2d of integers."""

    _dims = 2
    _FLOAT_MODULE = nn.Conv2d
    _NNIQAT_CONV_BN_MODULE = nniqat.ConvBn2d
    _NNI_CONV_RELU_MODULE = nni.ConvReLU2d
    _NNI_CONV_ADD_MODULE = nni.ConvAdd2d
    _NNI_CONV_ADD_RELU_MODULE = nni.ConvAddReLU2d

    def forward(self, input):
        return rushlight.ops.quantized.conv2d(
            self._bordered(input), self._packed_params, self.scale, self.zero_point
        )


class Conv3d(_ConvNd):
    """Conv3d of integers."""

    _dims = 3
    _FLOAT_MODULE = nn.Conv3d
    _NNIQAT_CONV_BN_MODULE = nniqat.ConvBn3d
    _NNI_CONV_RELU_MODULE = nni.ConvReLU3d

    def forward(self, input):
        return rushlight.ops.quantized.conv3d(
            self._bordered(input), self._packed_params, self.scale, self.zero_point
        )


class _ConvTransposeNd(_ConvNd):
    """What transposed ones share."""

    _transposed = True

    def __init__(
        self,
        in_channels,
        out_channels,
        kernel_size,
        stride=1,
        padding=0,
        output_padding=0,
        groups=1,
        bias=True,
        dilation=1,
        padding_mode="zeros",
        device=None,
        dtype=None,
    ):
        if padding_mode != "zeros":
            raise ValueError(f'Only "zeros" padding mode is supported for {type(self).__name__}')
        nn.Module.__init__(self)
        self._set_up(
            in_channels,
            out_channels,
            kernel_size,
            stride,
            padding,
            dilation,
            output_padding,
            groups,
            bias,
            padding_mode,
            device,
        )

    @classmethod
    def _arguments(cls, mod):
        names = (
            "in_channels",
            "out_channels",
            "kernel_size",
            "stride",
            "padding",
            "output_padding",
            "groups",
        )
        return (*(getattr(mod, name) for name in names), mod.bias is not None, mod.dilation, mod.padding_mode)

    @classmethod
    def from_float(cls, mod, use_precomputed_fake_quant=False):
        if type(mod) is not cls._FLOAT_MODULE:
            raise AssertionError(
                f" nnq.{cls.__name__}.from_float only works for {cls._FLOAT_MODULE.__name__} but "
                f"got:{type(mod)}"
            )
        if not hasattr(mod, "qconfig"):
            raise AssertionError("Input float module must have qconfig defined.")
        return cls.get_qconv(mod, getattr(mod, "activation_post_process", None))


class ConvTranspose1d(_ConvTransposeNd):
    """ConvTranspose1d of integers."""

    _dims = 1
    _FLOAT_MODULE = nn.ConvTranspose1d

    def forward(self, input):
        return rushlight.ops.quantized.conv_transpose1d(
            self._bordered(input), self._packed_params, self.scale, self.zero_point
        )


class ConvTranspose2d(_ConvTransposeNd):
    """ConvTranspose2d of integers."""

    _dims = 2
    _FLOAT_MODULE = nn.ConvTranspose2d

    def forward(self, input):
        return rushlight.ops.quantized.conv_transpose2d(
            self._bordered(input), self._packed_params, self.scale, self.zero_point
        )


class ConvTranspose3d(_ConvTransposeNd):
    """ConvTranspose3d of integers."""

    _dims = 3
    _FLOAT_MODULE = nn.ConvTranspose3d

    def forward(self, input):
        return rushlight.ops.quantized.conv_transpose3d(
            self._bordered(input), self._packed_params, self.scale, self.zero_point
        )
