"""What `GraphTypeChecker` knows of functions and layers: the type of a result from the types of operands.

A rule gets the node (and the module that it calls), sets ``node.type`` and returns it. What the program said
of the result beforehand is kept where it is more precise, and refused where both cannot hold.
"""

from __future__ import annotations

import math
import operator

import rushlight as torch
from rushlight.fx.node import Node
from rushlight.fx.tensor_type import Dyn, TensorType, is_consistent, is_more_precise

__all__ = ["broadcast_types", "calculate_out_dimension", "get_greatest_upper_bound", "get_parameter"]

INFERENCE_RULES: dict = {}


def rule_for(table, target):
    """A decorator that enters a rule in a table, by what it is for."""

    def register(rule):
        table[target] = rule
        return rule

    return register


def register_inference_rule(target):
    """Decorator: the rule of a function, or of the modules of a class."""
    return rule_for(INFERENCE_RULES, target)


def broadcast_types(t1, t2):
    """Both types with the sizes that they take beside each other; sizes that do not fit stay."""
    if not (isinstance(t1, TensorType) and isinstance(t2, TensorType)):
        return t1, t2
    first, second = list(t1.__args__), list(t2.__args__)
    rank = max(len(first), len(second))
    first, second = [1] * (rank - len(first)) + first, [1] * (rank - len(second)) + second
    for i, (a, b) in enumerate(zip(first, second)):
        if a == 1:
            first[i] = b
        elif b == 1:
            second[i] = a
    return TensorType(tuple(first)), TensorType(tuple(second))


def get_greatest_upper_bound(type1, type2):
    """The least precise type that says what both say."""
    if type1 == Dyn or type2 == Dyn:
        return type2 if type1 == Dyn else type1
    if not is_consistent(type1, type2):
        raise TypeError(f"Inconsistent types {type1}, {type2}")
    if not isinstance(type1, TensorType):
        return type1
    pairs = zip(type1.__args__, type2.__args__)
    return TensorType(tuple(a if is_more_precise(a, b) else b for a, b in pairs))


def get_parameter(traced, target: str):
    """The tensor of a module by its dotted name."""
    owner, _, name = target.rpartition(".")
    value = getattr(traced.get_submodule(owner), name)
    if not isinstance(value, torch.Tensor):
        raise AttributeError(f"`{target}` is not a tensor: got {type(value).__name__}")
    return value


def calculate_out_dimension(d_in, module, index):
    """A size after a convolution or pooling in this dimension; an expression of an expression."""
    if d_in == Dyn:
        return Dyn

    def number(name):
        value = getattr(module, name)
        return value[index] if isinstance(value, tuple) else value

    stride = number("stride")
    room = d_in + 2 * number("padding") - number("dilation") * (number("kernel_size") - 1) - 1
    if not isinstance(d_in, int):
        import sympy

        return sympy.floor(room / stride) + 1
    if getattr(module, "ceil_mode", False):
        windows = -(-room // stride)  # a last window has to start within the input or its left padding
        return windows if windows * stride >= d_in + number("padding") else windows + 1
    return room // stride + 1


def argument(node, index, name, default):
    """An argument by position or name."""
    return node.args[index] if len(node.args) > index else node.kwargs.get(name, default)


def refuse(node, why):
    """The error of a node whose operands do not fit."""
    raise TypeError(f"{node.format_node() or node}: {why}")


def _settle(node, inferred):
    node.type = get_greatest_upper_bound(inferred, node.type)
    return node.type


def _of_rank(node, kind, ranks):
    """A type with one of these numbers of dimensions; of unknown tensors the last."""
    if kind == Dyn:
        return TensorType((Dyn,) * ranks[-1])
    if not isinstance(kind, TensorType) or len(kind.__args__) not in ranks:
        refuse(node, f"a tensor of {' or '.join(map(str, ranks))} dimensions is needed, got {kind}")
    return kind


def _same(node, module=None):
    """Pointwise: the operand's type."""
    return _settle(node, node.args[0].type)


register_inference_rule(torch.nn.ReLU)(_same)


@register_inference_rule(torch.add)
@register_inference_rule(operator.add)
def _add(node):
    t1, t2 = (arg.type if isinstance(arg, Node) else type(arg) for arg in node.args[:2])
    numbers = (int, float, bool)
    if t1 in numbers or t2 in numbers:
        return _settle(node, t2 if t1 in numbers else t1)
    wide1, wide2 = broadcast_types(t1, t2)
    node.meta["broadcast"] = (wide1, wide2) != (t1, t2)
    if node.meta["broadcast"]:
        node.meta[str(node.args[0])], node.meta[str(node.args[1])] = wide1, wide2
    if not is_consistent(wide1, wide2):
        refuse(node, f"{t1} and {t2} do not broadcast")
    node.type = wide2 if is_more_precise(wide1, wide2) else wide1
    return node.type


@register_inference_rule(getattr)
def _getattr(node):
    if node.args[1] != "shape":
        refuse(node, f"nothing is known of the attribute {node.args[1]!r}")
    node.type = Dyn
    return Dyn


@register_inference_rule(torch.transpose)
def _transpose(node):
    kind, first, second = node.args[0].type, argument(node, 1, "dim0", None), argument(node, 2, "dim1", None)
    if kind == Dyn:
        return node.type
    sizes = list(kind.__args__)
    if not all(-len(sizes) <= dim < len(sizes) for dim in (first, second)):
        refuse(node, f"cannot transpose {first} and {second} in {kind}")
    sizes[first], sizes[second] = sizes[second], sizes[first]
    return _settle(node, TensorType(tuple(sizes)))


@register_inference_rule(torch.reshape)
def _reshape(node):
    kind, shape = node.args[0].type, argument(node, 1, "shape", None)
    wanted = TensorType(tuple(Dyn if size == -1 else size for size in shape))
    if kind == Dyn:
        return _settle(node, wanted)
    unknown = Dyn in kind.__args__ or Dyn in wanted.__args__
    have, want = (math.prod(s for s in t.__args__ if s != Dyn) for t in (kind, wanted))
    fits = have % want == 0 or want % have == 0 if unknown and have and want else have == want
    if not fits:
        refuse(node, f"cannot reshape {kind} to {wanted}")
    return _settle(node, wanted)


def flattened_range(node, rank):
    """The first and last dimension that `flatten` makes one."""
    start, end = argument(node, 1, "start_dim", 0), argument(node, 2, "end_dim", -1)
    start, end = (dim + rank if dim < 0 else dim for dim in (start, end))
    if not 0 <= start <= end < rank:
        refuse(node, f"cannot flatten dimensions {start} to {end} of {rank}")
    return start, end


@register_inference_rule(torch.flatten)
def _flatten(node):
    kind = node.args[0].type
    if kind == Dyn:
        return node.type
    sizes = tuple(kind.__args__)
    start, end = flattened_range(node, len(sizes))
    joined = sizes[start : end + 1]
    size = Dyn if Dyn in joined else math.prod(joined)
    return _settle(node, TensorType((*sizes[:start], size, *sizes[end + 1 :])))


@register_inference_rule(torch.nn.BatchNorm2d)
def _batch_norm(node, module):
    kind, node.type = _of_rank(node, node.args[0].type, (4,)), _of_rank(node, node.type, (4,))
    node.args[0].type = kind
    for side in (kind, node.type):
        if not is_consistent(side.__args__[1], module.num_features):
            refuse(node, f"{module} does not fit {side}")
    return _settle(node, kind)


@register_inference_rule(torch.nn.Conv2d)
def _conv2d(node, module):
    kind, node.type = _of_rank(node, node.args[0].type, (4,)), _of_rank(node, node.type, (4,))
    node.args[0].type = kind
    batch, channels, *image = kind.__args__
    if not is_consistent(channels, module.in_channels):
        refuse(node, f"{module} does not fit {kind}")
    sizes = (calculate_out_dimension(size, module, i) for i, size in enumerate(image))
    return _settle(node, TensorType((batch, module.out_channels, *sizes)))


@register_inference_rule(torch.nn.MaxPool2d)
def _max_pool2d(node, module):
    kind = _of_rank(node, node.args[0].type, (3, 4))
    *outer, height, width = kind.__args__
    sizes = (calculate_out_dimension(size, module, i) for i, size in enumerate((height, width)))
    return _settle(node, TensorType((*outer, *sizes)))


@register_inference_rule(torch.nn.AdaptiveAvgPool2d)
def _adaptive_avg_pool2d(node, module):
    kind = _of_rank(node, node.args[0].type, (3, 4))
    sizes = module.output_size if isinstance(module.output_size, tuple) else (module.output_size,) * 2
    *outer, height, width = kind.__args__
    given = zip(sizes, (height, width))
    return _settle(node, TensorType((*outer, *(old if size is None else size for size, old in given))))


@register_inference_rule(torch.nn.Linear)
def _linear(node, module):
    kind = node.args[0].type
    if kind == Dyn:
        return node.type
    if not is_consistent(kind.__args__[-1], module.in_features):
        refuse(node, f"{module} does not fit {kind}")
    return _settle(node, TensorType((*kind.__args__[:-1], module.out_features)))
