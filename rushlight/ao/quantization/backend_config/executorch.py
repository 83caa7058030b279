"""What ExecuTorch's kernels compute with integers."""

import operator

import rushlight
from rushlight import nn
from rushlight.ao.nn import qat as nnqat
from rushlight.ao.nn.quantized import reference as nnqr
from rushlight.nn import functional as F

from .backend_config import BackendConfig, DTypeConfig
from .native import (
    _DYNAMIC,
    _EIGHT_SIGNED,
    _HALVES,
    _OWN,
    _PLAIN,
    _SHARED,
    _SIGNED,
    _SIGNED_WEIGHT,
    _SIGNED_WEIGHTED,
    _TABLES,
    _WEIGHTED,
    _arithmetic,
    _convolution,
    _entry,
    _layer,
    _tables,
)

__all__ = ["get_executorch_backend_config"]

_SIGNED_DYNAMIC = DTypeConfig(_EIGHT_SIGNED, rushlight.float, _SIGNED_WEIGHT, rushlight.float, True)

_ARITHMETIC = (operator.add, rushlight.add, operator.sub, rushlight.sub, operator.mul, rushlight.mul)
_SHARED_SCALE = (
    *(nn.Flatten, nn.AdaptiveAvgPool2d, nn.ConstantPad2d, nn.ELU, nn.MaxPool2d, nn.ReLU6, nn.Hardtanh),
    *(nn.LeakyReLU, F.adaptive_avg_pool2d, F.elu, F.hardtanh, F.max_pool2d, F.pad, F.relu, F.relu6),
    *(F.leaky_relu, F.leaky_relu_, rushlight.clamp, rushlight.flatten, rushlight.mean, rushlight.permute),
    *(rushlight.permute_copy, rushlight.squeeze, "clamp", "mean", "permute", "reshape", "relu", "relu_"),
    *("squeeze", "squeeze_", "leaky_relu"),
    *(rushlight.cat, rushlight.concat, rushlight.concatenate),
)


def _patterns():
    weighted = [_SIGNED_WEIGHTED, _WEIGHTED]
    dynamic = [_DYNAMIC, _SIGNED_DYNAMIC, _HALVES]
    yield from _layer(nn.Linear, nnqat.Linear, nnqr.Linear, F.linear, [*weighted, *dynamic])
    yield from _convolution(2, weighted)
    yield from _arithmetic(_ARITHMETIC, [_SIGNED, _WEIGHTED], of_numbers=_OWN)
    for pattern in _SHARED_SCALE:
        yield _entry(pattern, [_SIGNED, _PLAIN], _SHARED)
    yield _entry(nn.BatchNorm2d, [_SIGNED, _PLAIN])
    bytes_alone = _TABLES[:1]
    yield from _tables(bytes_alone)
    yield _entry(F.embedding, bytes_alone, _input_type_to_index={"weight": 1})


def get_executorch_backend_config():
    return BackendConfig("executorch").set_backend_pattern_configs(_patterns())
