"""How sequences of layers become one layer."""

import itertools

from rushlight import nn
from rushlight.ao.nn import intrinsic as nni

from .utils import MatchAllNode, get_combined_dict

__all__ = [
    "fuse_conv_bn",
    "fuse_conv_bn_relu",
    "fuse_convtranspose_bn",
    "fuse_linear_bn",
    "get_fuser_method",
    "get_fuser_method_new",
]


def _same_mode(*parts):
    if len({part.training for part in parts}) > 1:
        raise AssertionError("Conv and BN both must be in the same mode (train or eval).")


def _check_bn(conv, bn):
    if bn.num_features != conv.out_channels:
        raise AssertionError("Output channel of Conv2d must match num_features of BatchNorm2d")
    if not bn.affine:
        raise AssertionError("Only support fusing BatchNorm2d with affine set to True")
    if not bn.track_running_stats:
        raise AssertionError("Only support fusing BatchNorm2d with tracking_running_stats set to True")


def fuse_conv_bn(is_qat, conv, bn):
    """A convolution with normalisation folded in; for training, the pair that will be."""
    _same_mode(conv, bn)
    if not is_qat:
        return nn.utils.fuse_conv_bn_eval(conv, bn)
    _check_bn(conv, bn)
    pairs = {nn.Conv1d: nni.ConvBn1d, nn.Conv2d: nni.ConvBn2d, nn.Conv3d: nni.ConvBn3d}
    if type(conv) not in pairs:
        raise NotImplementedError(f"Cannot fuse train modules: {(conv, bn)}")
    return pairs[type(conv)](conv, bn)


def fuse_conv_bn_relu(is_qat, conv, bn, relu):
    """A convolution with normalisation folded in, and ReLU."""
    if not conv.training == bn.training == relu.training:
        raise AssertionError("Conv and BN both must be in the same mode (train or eval).")
    if is_qat:
        triples = {nn.Conv1d: nni.ConvBnReLU1d, nn.Conv2d: nni.ConvBnReLU2d, nn.Conv3d: nni.ConvBnReLU3d}
        _check_bn(conv, bn)
        if type(conv) not in triples:
            raise NotImplementedError(f"Cannot fuse train modules: {(conv, bn, relu)}")
        return triples[type(conv)](conv, bn, relu)
    pairs = {nn.Conv1d: nni.ConvReLU1d, nn.Conv2d: nni.ConvReLU2d, nn.Conv3d: nni.ConvReLU3d}
    if type(conv) not in pairs:
        raise NotImplementedError(f"Cannot fuse eval modules: {(conv, bn, relu)}")
    return pairs[type(conv)](nn.utils.fuse_conv_bn_eval(conv, bn), relu)


def fuse_linear_bn(is_qat, linear, bn):
    """A linear layer with normalisation folded in; for training, the pair that will be."""
    if linear.training != bn.training:
        raise AssertionError("Linear and BN both must be in the same mode (train or eval).")
    if not is_qat:
        return nn.utils.fusion.fuse_linear_bn_eval(linear, bn)
    if bn.num_features != linear.out_features:
        raise AssertionError("Output features of Linear must match num_features of BatchNorm1d")
    if not bn.affine:
        raise AssertionError("Only support fusing BatchNorm1d with affine set to True")
    if not bn.track_running_stats:
        raise AssertionError("Only support fusing BatchNorm1d with tracking_running_stats set to True")
    return nni.LinearBn1d(linear, bn)


def _fuse_linear_bn_leaky_relu(is_qat, linear, bn, leaky_relu):
    """A linear layer with normalisation folded in, and leaky ReLU; there is no such layer of training."""
    if not linear.training == bn.training == leaky_relu.training:
        raise AssertionError("Linear, BN and LeakyReLU all must be in the same mode (train or eval).")
    if is_qat:
        raise NotImplementedError(
            f"Cannot fuse train modules: {(linear, bn, leaky_relu)}; fuse them in eval mode"
        )
    return nni.LinearLeakyReLU(nn.utils.fusion.fuse_linear_bn_eval(linear, bn), leaky_relu)


def _fuse_conv_add(is_qat, *pattern):
    """A convolution on one side of a sum, with what normalises it folded in, and ReLU behind."""
    relu, (add, *operands) = pattern if len(pattern) == 2 else (None, pattern)
    conv = next(part for part in operands if part is not MatchAllNode)
    layers = list(conv) if isinstance(conv, tuple) else [conv]
    _same_mode(*layers)
    if is_qat:
        raise NotImplementedError(f"Cannot fuse train modules: {tuple(layers)}; fuse them in eval mode")
    conv = nn.utils.fuse_conv_bn_eval(layers[1], layers[0]) if len(layers) == 2 else layers[0]
    return nni.ConvAdd2d(conv, add) if relu is None else nni.ConvAddReLU2d(conv, add, relu)


def fuse_convtranspose_bn(is_qat, convt, bn):
    """A transposed convolution with normalisation folded in."""
    if convt.training != bn.training:
        raise AssertionError("ConvTranspose and BN both must be in the same mode (train or eval).")
    if is_qat:
        raise Exception("Fusing ConvTranspose+BatchNorm not yet supported in QAT.")
    return nn.utils.fusion.fuse_conv_bn_eval(convt, bn, transpose=True)


def _sequential_wrapper2(sequential):
    """A fuser that puts two layers into a fused class."""

    def fuser_method(is_qat, m1, m2):
        return sequential(m1, m2)

    return fuser_method


def _default_fusers():
    found = {}
    for dims in (1, 2, 3):
        conv, bn = getattr(nn, f"Conv{dims}d"), getattr(nn, f"BatchNorm{dims}d")
        found[(conv, bn)] = fuse_conv_bn
        found[(conv, bn, nn.ReLU)] = fuse_conv_bn_relu
    for dims in (1, 2, 3):
        found[(getattr(nn, f"Conv{dims}d"), nn.ReLU)] = _sequential_wrapper2(getattr(nni, f"ConvReLU{dims}d"))
    found[(nn.Linear, nn.BatchNorm1d)] = fuse_linear_bn
    found[(nn.Linear, nn.ReLU)] = _sequential_wrapper2(nni.LinearReLU)
    found[(nn.BatchNorm2d, nn.ReLU)] = _sequential_wrapper2(nni.BNReLU2d)
    found[(nn.BatchNorm3d, nn.ReLU)] = _sequential_wrapper2(nni.BNReLU3d)
    for dims in (1, 2, 3):
        pair = getattr(nn, f"ConvTranspose{dims}d"), getattr(nn, f"BatchNorm{dims}d")
        found[pair] = fuse_convtranspose_bn
    return found


_DEFAULT_OP_LIST_TO_FUSER_METHOD = _default_fusers()


def get_fuser_method(op_list, additional_fuser_method_mapping=None):
    """The function that fuses layers of these classes."""
    known = get_combined_dict(_DEFAULT_OP_LIST_TO_FUSER_METHOD, additional_fuser_method_mapping or {})
    fuser = known.get(op_list)
    if fuser is None:
        raise AssertionError(f"did not find fuser method for: {op_list} ")
    return fuser


def _reverse2(f):
    def reversed(is_qat, x, y):
        return f(is_qat, y, x)

    return reversed


def _reverse3(f):
    def reversed(is_qat, x, w):
        y, z = w
        return f(is_qat, z, y, x)

    return reversed


def _get_valid_patterns(op_pattern):
    """A pattern and all that it is a case of: any part may be any node."""
    if isinstance(op_pattern, (tuple, list)):
        parts = [_get_valid_patterns(part) for part in op_pattern]
        return list(itertools.product(*parts))
    return [op_pattern, MatchAllNode]


def get_fuser_method_new(op_pattern, fuser_method_mapping):
    """The function that fuses a pattern of a graph."""
    for pattern in _get_valid_patterns(op_pattern):
        fuser = fuser_method_mapping.get(pattern)
        if fuser is not None:
            return fuser
    raise AssertionError(f"did not find fuser method for: {op_pattern} ")
