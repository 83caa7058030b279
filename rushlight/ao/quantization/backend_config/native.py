"""What this library's own kernels, and those that engines of PyTorch name, compute with integers."""

import operator

import rushlight
from rushlight import nn
from rushlight.ao.nn import intrinsic as nni
from rushlight.ao.nn import qat as nnqat
from rushlight.ao.nn.intrinsic import qat as nniqat
from rushlight.ao.nn.quantized import reference as nnqr
from rushlight.nn import functional as F

from ..fuser_method_mappings import (
    _fuse_conv_add,
    _fuse_linear_bn_leaky_relu,
    _sequential_wrapper2,
    fuse_conv_bn,
    fuse_conv_bn_relu,
    fuse_convtranspose_bn,
    fuse_linear_bn,
)
from ..utils import MatchAllNode
from .backend_config import (
    BackendConfig,
    BackendPatternConfig,
    DTypeConfig,
    DTypeWithConstraints,
    ObservationType,
)

__all__ = [
    "get_fbgemm_backend_config",
    "get_native_backend_config",
    "get_native_backend_config_dict",
    "get_onednn_backend_config",
    "get_qnnpack_backend_config",
    "get_x86_backend_config",
]

_OWN = ObservationType.OUTPUT_USE_DIFFERENT_OBSERVER_AS_INPUT
_SHARED = ObservationType.OUTPUT_SHARE_OBSERVER_WITH_INPUT
_NONE = ObservationType.INPUT_OUTPUT_NOT_OBSERVED

_t = rushlight
_WEIGHTED = DTypeConfig(_t.quint8, _t.quint8, _t.qint8, _t.float)
_PLAIN = DTypeConfig(_t.quint8, _t.quint8)
_DYNAMIC = DTypeConfig(_t.quint8, _t.float, _t.qint8, _t.float, True)
_HALVES = DTypeConfig(_t.float16, _t.float, _t.float16, _t.float, True)
_LAYER_NORM = DTypeConfig(_t.quint8, _t.quint8, _t.float, _t.float)
_IN_HALVES = DTypeConfig(_t.float16, _t.float16, _t.float16, _t.float16)
# Signed integers whose weights are symmetric, as XNNPACK's kernels want them.
_EIGHT_SIGNED = DTypeWithConstraints(_t.qint8, scale_min_lower_bound=2**-12)
_SIGNED_WEIGHT = DTypeWithConstraints(_t.qint8, -127, 127, scale_min_lower_bound=2**-12)
_SIGNED_WEIGHTED = DTypeConfig(_EIGHT_SIGNED, _EIGHT_SIGNED, _SIGNED_WEIGHT, _t.float)
_SIGNED = DTypeConfig(_EIGHT_SIGNED, _EIGHT_SIGNED)
_TABLES = (DTypeConfig(_t.float, _t.float, _t.quint8), DTypeConfig(_t.float, _t.float, _t.quint4x2))


def _entry(pattern, dtypes, observed=_OWN, **more):
    made = BackendPatternConfig(pattern).set_observation_type(observed)
    for dtype in dtypes:
        made.add_dtype_config(dtype)
    for name, value in more.items():
        setattr(made, name, value)
    return made


def _layer(plain, trained, reference, function, dtypes):
    """A layer with weights and its function."""
    root = {"root_module": plain, "reference_quantized_module": reference}
    yield _entry(plain, dtypes, qat_module=trained, **root)
    yield _entry(trained, dtypes, **root)
    yield _entry(function, dtypes, _input_type_to_index={"weight": 1, "bias": 2})


def _weighted(plain, trained, reference, function, relu, fused_relu, trained_relu, dtypes):
    """The same, alone and before ReLU."""
    yield from _layer(plain, trained, reference, function, dtypes)
    root = {"root_module": plain, "reference_quantized_module": reference}
    for activation in relu:
        fuse = {"fused_module": fused_relu, "fuser_method": _sequential_wrapper2(fused_relu)}
        yield _entry((plain, activation), dtypes, **fuse)
        yield _entry((function, activation), dtypes)
    yield _entry(fused_relu, dtypes, qat_module=trained_relu, **root)
    yield _entry(trained_relu, dtypes, **root)


def _convolution(dims, dtypes):
    """A convolution, alone, before normalisation and before ReLU."""
    conv, bn = getattr(nn, f"Conv{dims}d"), getattr(nn, f"BatchNorm{dims}d")
    reference = getattr(nnqr, f"Conv{dims}d")
    yield from _weighted(
        conv,
        getattr(nnqat, f"Conv{dims}d"),
        reference,
        getattr(F, f"conv{dims}d"),
        (nn.ReLU, F.relu),
        getattr(nni, f"ConvReLU{dims}d"),
        getattr(nniqat, f"ConvReLU{dims}d"),
        dtypes,
    )
    pair, triple = getattr(nni, f"ConvBn{dims}d"), getattr(nni, f"ConvBnReLU{dims}d")
    yield _entry((conv, bn), dtypes, fused_module=pair, fuser_method=fuse_conv_bn)
    for activation in (nn.ReLU, F.relu):
        fuse = {"fused_module": triple, "fuser_method": fuse_conv_bn_relu}
        yield _entry((conv, bn, activation), dtypes, **fuse)
    for fused, name in ((pair, f"ConvBn{dims}d"), (triple, f"ConvBnReLU{dims}d")):
        trained = getattr(nniqat, name)
        yield _entry(fused, dtypes, qat_module=trained)
        yield _entry(trained, dtypes, root_module=conv, reference_quantized_module=reference)


def _transposed_convolution(dims, dtypes):
    transposed, bn = getattr(nn, f"ConvTranspose{dims}d"), getattr(nn, f"BatchNorm{dims}d")
    root = {
        "root_module": transposed,
        "reference_quantized_module": getattr(nnqr, f"ConvTranspose{dims}d"),
    }
    yield _entry(transposed, dtypes, **root)
    yield _entry((transposed, bn), dtypes, fuser_method=fuse_convtranspose_bn, **root)
    function = getattr(F, f"conv_transpose{dims}d")
    yield _entry(function, dtypes, _input_type_to_index={"weight": 1, "bias": 2})


def _convolutions(signed):
    dtypes = [*([_SIGNED_WEIGHTED] if signed else ()), _WEIGHTED]
    for dims in (1, 2, 3):
        yield from _convolution(dims, dtypes)
        yield from _transposed_convolution(dims, dtypes)


def _linear(signed, more=()):
    dtypes = [*([_SIGNED_WEIGHTED] if signed else ()), _WEIGHTED, _DYNAMIC, _HALVES, *more]
    root = {"root_module": nn.Linear, "reference_quantized_module": nnqr.Linear}
    yield from _weighted(
        nn.Linear,
        nnqat.Linear,
        nnqr.Linear,
        F.linear,
        (nn.ReLU, F.relu),
        nni.LinearReLU,
        nniqat.LinearReLU,
        dtypes,
    )
    yield _entry(
        (nn.Linear, nn.BatchNorm1d), dtypes, fused_module=nni.LinearBn1d, fuser_method=fuse_linear_bn
    )
    yield _entry(nni.LinearBn1d, dtypes, qat_module=nniqat.LinearBn1d, **root)
    yield _entry(nniqat.LinearBn1d, dtypes, **root)


def _linear_of_onednn():
    """Activations that only oneDNN computes behind a linear layer."""
    root = {"root_module": nn.Linear, "reference_quantized_module": nnqr.Linear}
    for activation, fused in ((nn.LeakyReLU, nni.LinearLeakyReLU), (nn.Tanh, nni.LinearTanh)):
        fuse = {"fused_module": fused, "fuser_method": _sequential_wrapper2(fused)}
        yield _entry((nn.Linear, activation), [_WEIGHTED], **fuse)
        yield _entry(fused, [_WEIGHTED], **root)
    fuse = {"fused_module": nni.LinearLeakyReLU, "fuser_method": _fuse_linear_bn_leaky_relu}
    yield _entry((nn.Linear, nn.BatchNorm1d, nn.LeakyReLU), [_WEIGHTED], **fuse)


def _sums_of_onednn():
    """Sums of a convolution, on either side, and another operand, which oneDNN adds as it stores."""
    root = {"root_module": nn.Conv2d, "reference_quantized_module": nnqr.Conv2d}
    for fused in (nni.ConvAdd2d, nni.ConvAddReLU2d):
        yield _entry(fused, [_WEIGHTED], **root)
    # Of two convolutions the left one is fused: its pattern comes first.
    for side in (0, 1):
        for add in (operator.add, rushlight.add):
            for conv in (nn.Conv2d, (nn.BatchNorm2d, nn.Conv2d)):
                operands = (conv, MatchAllNode) if side == 0 else (MatchAllNode, conv)
                for pattern, fused in (
                    ((add, *operands), nni.ConvAdd2d),
                    ((nn.ReLU, (add, *operands)), nni.ConvAddReLU2d),
                ):
                    yield _entry(
                        None,
                        [_WEIGHTED],
                        _pattern_complex_format=pattern,
                        fused_module=fused,
                        fuser_method=_fuse_conv_add,
                        _root_node_getter=_SumOperands(side).root,
                        _extra_inputs_getter=_SumOperands(side).others,
                    )


class _SumOperands:
    """Which operand of a matched sum is the convolution, and which is added to it."""

    def __init__(self, side):
        self.side = side

    @staticmethod
    def _operands(nodes):
        return nodes[1][1:] if len(nodes) == 2 else nodes[1:]

    def root(self, nodes):
        conv = self._operands(nodes)[self.side]
        return conv[1] if isinstance(conv, tuple) else conv

    def others(self, nodes):
        return [self._operands(nodes)[1 - self.side]]


def _arithmetic(functions, dtypes, of_numbers=_NONE):
    """Functions of two operands, alone and before ReLU; ``of_numbers``: where neither is a tensor."""
    kinds = {0: of_numbers, 1: _SHARED, 2: _OWN}
    for function in functions:
        for pattern in ((function, nn.ReLU), (function, F.relu), (function, rushlight.relu), function):
            yield _entry(pattern, dtypes, _num_tensor_args_to_observation_type=dict(kinds))


def _two_operands(signed, more=()):
    dtypes = [*([_SIGNED] if signed else ()), _PLAIN, *more]
    yield from _arithmetic((operator.add, rushlight.add, operator.mul, rushlight.mul), dtypes)
    yield _entry(rushlight.matmul, dtypes)


# Functions whose results have a scale of their own, and where their weights stand.
_OWN_SCALE = (
    *(nn.ELU, nn.LeakyReLU, nn.Hardswish, nn.InstanceNorm1d, nn.InstanceNorm2d, nn.InstanceNorm3d),
    *(nn.Dropout, nn.PReLU, F.elu, F.hardswish, F.leaky_relu, F.dropout),
)
# Functions whose range is known, by the scale and zero point that results have.
_KNOWN_RANGE = {
    (1 / 256, 0): (
        *(nn.Hardsigmoid, F.hardsigmoid, "hardsigmoid", "hardsigmoid_"),
        *(nn.Sigmoid, rushlight.sigmoid, "sigmoid", "sigmoid_", nn.Softmax),
    ),
    (2 / 256, 128): (nn.Tanh, rushlight.tanh, "tanh", "tanh_"),
}
_SHARED_SCALE = (
    *(nn.AdaptiveAvgPool1d, nn.AdaptiveAvgPool2d, nn.AdaptiveAvgPool3d, nn.AvgPool1d, nn.AvgPool2d),
    *(nn.AvgPool3d, nn.Hardtanh, nn.Identity, nn.MaxPool1d, nn.MaxPool2d, nn.MaxPool3d, nn.PixelShuffle),
    *(nn.PixelUnshuffle, nn.ReLU, nn.ReLU6, F.adaptive_avg_pool1d, F.adaptive_avg_pool2d),
    *(
        F.adaptive_avg_pool3d,
        F.hardtanh,
        F.hardtanh_,
        F.interpolate,
        F.max_pool1d,
        F.max_pool2d,
        F.max_pool3d,
    ),
    *(F.pixel_shuffle, F.pixel_unshuffle, F.relu, F.relu6, F.avg_pool1d, F.avg_pool2d, F.avg_pool3d),
    *(rushlight.clamp, rushlight.flatten, rushlight.mean, rushlight.narrow, rushlight.repeat_interleave),
    *(rushlight.transpose, rushlight.squeeze, rushlight.stack, rushlight.unsqueeze, operator.floordiv),
    *("contiguous", "clamp", "detach", "detach_", "mean", "permute", "repeat", "repeat_interleave"),
    *("reshape", "resize_", "relu", "relu_", "squeeze", "squeeze_", "transpose", "unsqueeze", "unsqueeze_"),
    "view",
)


def _activations(signed, more=()):
    plain = [*([_SIGNED] if signed else ()), _PLAIN]
    for pattern in _OWN_SCALE:
        yield _entry(pattern, plain)
    for (scale, zero), patterns in _KNOWN_RANGE.items():
        known = DTypeWithConstraints(_t.quint8, 0, 255, scale_exact_match=scale, zero_point_exact_match=zero)
        for pattern in patterns:
            yield _entry(pattern, [*plain[:-1], DTypeConfig(known, known), *more])
    yield _entry(F.group_norm, [_PLAIN], _input_type_to_index={"weight": 2, "bias": 3})
    yield _entry(F.instance_norm, [_PLAIN], _input_type_to_index={"weight": 3, "bias": 4})
    yield _entry(rushlight.cat, plain, _SHARED)
    for bn, fused in ((nn.BatchNorm2d, nni.BNReLU2d), (nn.BatchNorm3d, nni.BNReLU3d)):
        for activation in (nn.ReLU, F.relu):
            fuse = {"fused_module": fused, "fuser_method": _sequential_wrapper2(fused)}
            yield _entry((bn, activation), [_PLAIN], **fuse)
        yield _entry(bn, [_PLAIN])
        yield _entry(fused, [_PLAIN])
    for pattern in ("shape", "size"):
        yield _entry(pattern, [_PLAIN], _NONE)
    yield _entry(nn.LayerNorm, [_LAYER_NORM])
    yield _entry(F.layer_norm, [_LAYER_NORM], _input_type_to_index={"weight": 2, "bias": 3})
    for pattern in _SHARED_SCALE:
        yield _entry(pattern, [*plain, *more], _SHARED)


def _tables(dtypes):
    for plain, trained in ((nn.Embedding, nnqat.Embedding), (nn.EmbeddingBag, nnqat.EmbeddingBag)):
        root = {"root_module": plain, "reference_quantized_module": getattr(nnqr, plain.__name__)}
        yield _entry(plain, dtypes, qat_module=trained, **root)
        yield _entry(trained, dtypes, **root)


def _tables_and_recurrent():
    yield from _tables(_TABLES)
    for plain in (nn.GRUCell, nn.LSTMCell, nn.RNNCell, nn.LSTM, nn.GRU):
        root = {"root_module": plain, "reference_quantized_module": getattr(nnqr, plain.__name__)}
        yield _entry(plain, [_DYNAMIC, _HALVES], **root)


def _engine(name, more=(), signed=False):
    made = BackendConfig(name)
    for part in (_linear, _two_operands, _activations):
        made.set_backend_pattern_configs(part(signed, more))
    made.set_backend_pattern_configs(_convolutions(signed))
    made.set_backend_pattern_configs(_tables_and_recurrent())
    return made


def get_test_only_legacy_native_backend_config():
    """Likewise, with operations on halves."""
    return _engine("_native_and_fp16", [_IN_HALVES])


def get_test_only_legacy_native_backend_config_dict():
    return get_test_only_legacy_native_backend_config().to_dict()


def get_native_backend_config():
    """What any engine at hand computes."""
    return _engine("native")


def get_native_backend_config_dict():
    return get_native_backend_config().to_dict()


def get_x86_backend_config():
    return _engine("x86")


def get_fbgemm_backend_config():
    return _engine("fbgemm")


def get_qnnpack_backend_config():
    return _engine("qnnpack", signed=True)


def get_onednn_backend_config():
    made = _engine("onednn").set_backend_pattern_configs(_linear_of_onednn())
    return made.set_backend_pattern_configs(_sums_of_onednn())
