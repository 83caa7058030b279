"""What follows a convolution of images becomes a part of it: the scale and shift that an evaluated batch
normalisation comes to, the sum with a residual, bounds from below and above.
"""

import math
import operator

import rushlight as torch
from rushlight.fx import Node

from ._passes import written_by

__all__ = ["bounds_of", "fuse_convolutions"]

aten = torch.ops.aten  # type: ignore[attr-defined]
_DTYPES = (torch.float32, torch.bfloat16)


class _Following:
    """What has been found behind a convolution, as far as its node `last`."""

    def __init__(self, convolution):
        self.nodes = [convolution]
        self.norm = self.residual = None
        self.low, self.high = -math.inf, math.inf

    @property
    def last(self):
        return self.nodes[-1]

    @property
    def bounded(self):
        return self.low != -math.inf or self.high != math.inf

    def take(self):
        """Take the next operator in, if nobody else needs what is there so far."""
        if len(self.last.users) != 1:
            return False
        user = next(iter(self.last.users))
        return self._take_norm(user) or self._take_sum(user) or self._take_bounds(user)

    def _take_norm(self, user):
        if user.target is not aten.native_batch_norm.default or self.norm or self.residual or self.bounded:
            return False
        if user.kwargs or len(user.args) != 8 or user.args[5] or user.args[0] is not self.last:
            return False
        if len(user.users) != 1:
            return False
        image = next(iter(user.users))
        if image.target is not operator.getitem or image.args[1] != 0:
            return False
        self.norm = user
        self.nodes += [user, image]
        return True

    def _take_sum(self, user):
        if user.target is not aten.add.Tensor or self.residual or self.bounded or len(user.args) != 2:
            return False
        if user.kwargs.get("alpha", 1) != 1 or not all(isinstance(a, Node) for a in user.args):
            return False
        other = user.args[1] if user.args[0] is self.last else user.args[0]
        value, more = self.last.meta["val"], other.meta["val"]
        if other is self.last or more.shape != value.shape or more.dtype != value.dtype:
            return False
        self.residual = other
        self.nodes.append(user)
        return True

    def _take_bounds(self, user):
        bounds = bounds_of(user)
        if bounds is None or self.bounded or not bounds[0] <= bounds[1]:
            return False
        self.low, self.high = bounds
        self.nodes.append(user)
        return True


def bounds_of(node):
    """(low, high) of an operator that clamps its only tensor by numbers."""
    name, args = getattr(node.target, "_opname", None), node.args
    if getattr(node.target, "namespace", None) != "aten" or node.target._overloadname != "default":
        return None
    if name == "relu" and len(args) == 1 and not node.kwargs:
        return 0.0, math.inf
    if name == "hardtanh" and not node.kwargs:
        found = *args[1:], *(-1, 1)[len(args) - 1 :]
    elif name == "clamp":
        found = (*args[1:], None, None)[:2]
        found = tuple(node.kwargs.get(k, v) for k, v in zip(("min", "max"), found))
    else:
        return None
    if any(isinstance(v, Node) or v != v for v in found):
        return None
    low, high = (d if v is None else float(v) for v, d in zip(found, (-math.inf, math.inf)))
    return low, high


def fuse_convolutions(graph, first_constant=None):
    """Fuse what can be fused in a graph that records no gradients; returns how many there were.

    Filters among the inputs from a position on do not change between runs: they take the scale of a
    normalisation in, so that only its shift is left, as the bias.
    """
    placeholders = [n for n in graph.nodes if n.op == "placeholder"]
    constant = set() if first_constant is None else set(placeholders[first_constant:])
    position = {node: i for i, node in enumerate(graph.nodes)}
    writes = [position[n] for n in graph.nodes if written_by(n)]
    count = 0
    for node in list(graph.nodes):
        if not _is_convolution(node):
            continue
        found = _Following(node)
        while found.take():
            pass
        if len(found.nodes) > 1 and not any(position[node] < w < position[found.last] for w in writes):
            position[_emit(graph, found, constant)] = position[found.last]
            count += 1
    return count


def _is_convolution(node):
    if node.target is not aten.convolution.default or node.kwargs or node.args[6]:
        return False
    value = node.meta["val"]
    return value.dim() == 4 and value.dtype in _DTYPES and node.args[1].meta["val"].dtype == value.dtype


def _emit(graph, found, constant):
    x, weight, bias, stride, padding, dilation, _, _, groups = found.nodes[0].args
    last = found.last
    with graph.inserting_before(last):
        scale, shift = _constants(graph, found.norm) if found.norm else (None, None)
        if found.norm and _takes_scale(found, constant):
            weight, bias = _scaled(graph, weight, bias, scale, shift)
            scale = shift = None
        arguments = x, weight, bias, stride, padding, dilation
        if scale is None and found.residual is None and not found.bounded:
            made = graph.call_function(aten.convolution.default, (*arguments, False, [0, 0], groups))
        else:
            made = graph.call_function(
                aten._convolution_epilogue.default,
                (*arguments, groups, scale, shift, found.residual, found.low, found.high),
            )
    made.meta["val"] = last.meta["val"]
    last.replace_all_uses_with(made)
    for node in reversed(found.nodes):
        graph.erase_node(node)
    return made


def _takes_scale(found, constant):
    """Whether the filters are constant, in a type that products hardly round, as are the scale's sources."""
    _, weight, bias, *_ = found.nodes[0].args
    sources = [a for a in (weight, bias, *found.norm.args[1:5]) if a is not None]
    return all(a in constant and a.meta["val"].dtype == torch.float32 for a in sources)


def _scaled(graph, weight, bias, scale, shift):
    """Filters and bias that give what a scale and a shift make of the convolution."""

    def call(target, *args, like):
        node = graph.call_function(target, args)
        node.meta["val"] = like
        return node

    def empty(*shape):
        return torch.empty(shape, dtype=torch.float32, device="meta")

    channels = weight.meta["val"].shape[0]
    column = call(aten.view.default, scale, [channels, 1, 1, 1], like=empty(channels, 1, 1, 1))
    filters = call(aten.mul.Tensor, weight, column, like=empty(*weight.meta["val"].shape))
    if bias is not None:
        moved = call(aten.mul.Tensor, bias, scale, like=empty(channels))
        shift = call(aten.add.Tensor, moved, shift, like=empty(channels))
    return filters, shift


def _constants(graph, norm):
    _, weight, bias, mean, variance, _, _, eps = norm.args
    both = graph.call_function(aten._batch_norm_constants.default, (weight, bias, mean, variance, eps))
    parts = [graph.call_function(operator.getitem, (both, i)) for i in range(2)]
    for part in parts:
        part.meta["val"] = torch.empty(mean.meta["val"].shape, dtype=torch.float32, device="meta")
    both.meta["val"] = [part.meta["val"] for part in parts]
    return parts
