"""Layers of an exported graph as one operator each, as programs and passes over graphs know them.

Traces are recorded below autograd, where a linear layer is a transposition and a product. Here each
such group
becomes the operator that the program called; what is computed stays the same to the last bit.
"""

import operator

import rushlight as torch
from rushlight.fx import Node

_aten = torch.ops.aten


def restore_layers(graph):
    """Put groups of operators together again. Values that nothing reads are left out."""
    rules = _rules()
    for node in list(graph.nodes):
        if node.op != "call_function" or node._erased:
            continue
        rule = rules.get(node.target)
        if rule is not None:
            rule(graph, node)
    for node in reversed(list(graph.nodes)):
        idle = node.target in (_aten.detach.default, operator.getitem, _aten.t.default)
        if node.op == "call_function" and idle and not node.users:
            graph.erase_node(node)


def _rules():
    return {
        _aten.addmm.default: _linear,
        _aten.mm.default: _linear,
        _aten.convolution.default: _convolution,
        _aten.native_batch_norm.default: _batch_norm,
        _aten.max_pool2d_with_indices.default: _max_pool,
        _aten._dropout_noise.default: _dropout,
        _aten._adaptive_avg_pool2d.default: _adaptive_pool,
    }


def _put(graph, node, target, args, gone):
    """One operator in place of a node; the nodes that it makes needless are taken out."""
    with graph.inserting_before(node):
        made = graph.create_node("call_function", target, args, name=target._opname)
    made.meta = dict(node.meta)
    node.replace_all_uses_with(made)
    for one in (node, *gone):
        if not one._erased and not one.users:
            graph.erase_node(one)
    return made


def _shape(node):
    value = node.meta.get("val")
    return None if value is None else tuple(value.shape)


def _calls(node, *targets):
    return isinstance(node, Node) and node.op == "call_function" and node.target in targets


def _linear(graph, node):
    *bias, x, transposed = node.args
    if node.kwargs or not _calls(transposed, _aten.t.default):
        return
    weight = transposed.args[0]
    bias_shape = _shape(bias[0]) if bias else None
    if bias and bias_shape is not None and len(bias_shape) != 1:
        return
    args = (x, weight, *bias)
    # More axes than two were joined before the product and are taken apart behind it.
    users = list(node.users)
    behind = (
        users[0]
        if len(users) == 1 and _calls(users[0], _aten.view.default, _aten._unsafe_view.default)
        else None
    )
    if behind is not None and _calls(x, _aten.view.default) and len(x.users) == 1:
        inner = x.args[0]
        before, after, weight_shape = _shape(inner), _shape(behind), _shape(weight)
        known = before is not None and after is not None and weight_shape is not None
        if known and before[:-1] == after[:-1] and (before[-1], after[-1]) == weight_shape[::-1]:
            _put(graph, behind, _aten.linear.default, (inner, weight, *bias), (node, x, transposed))
            return
    _put(graph, node, _aten.linear.default, args, (transposed,))


def _trimmed(args, defaults):
    """Arguments without those at the end that have their default."""
    args = list(args)
    defaults = list(defaults)
    while defaults and args[-1] == defaults[-1]:
        args.pop()
        defaults.pop()
    return tuple(args)


def _convolution(graph, node):
    if node.kwargs or len(node.args) != 9:
        return
    x, weight, bias, stride, padding, dilation, transposed, output_padding, groups = node.args
    dims = len(stride)
    ones, zeros = [1] * dims, [0] * dims
    # Such lists hold one number where all axes have it.
    padding, output_padding = (list(p) * dims if len(p) == 1 else list(p) for p in (padding, output_padding))
    if dims not in (1, 2, 3):
        return
    if transposed:
        packet = getattr(_aten, f"conv_transpose{dims}d")
        target = packet.default if dims == 1 else packet.input
        args: tuple = (x, weight, bias, list(stride), padding, output_padding, groups, list(dilation))
        defaults = [None, ones, zeros, zeros, 1, ones]
    else:
        target = getattr(_aten, f"conv{dims}d").default
        args = (x, weight, bias, list(stride), padding, list(dilation), groups)
        defaults = [None, ones, zeros, ones, 1]
    _put(graph, node, target, _trimmed(args, defaults), ())


def _batch_norm(graph, node):
    parts = {user.args[1]: user for user in node.users if user.target is operator.getitem}
    if node.kwargs or len(parts) != len(node.users) or 0 not in parts:
        return
    for index, part in parts.items():
        if index and not all(_calls(user, _aten.detach.default) and not user.users for user in part.users):
            return
    idle = [user for index, part in parts.items() if index for user in list(part.users)]
    for one in [*idle, *(part for index, part in parts.items() if index)]:
        graph.erase_node(one)
    _put(graph, parts[0], _aten.batch_norm.default, (*node.args, False), (node,))


def _max_pool(graph, node):
    parts = {user.args[1]: user for user in node.users if user.target is operator.getitem}
    if node.kwargs or len(parts) != len(node.users) or 0 not in parts:
        return
    if 1 in parts:
        readers = list(parts[1].users)
        if not all(_calls(user, _aten.detach.default) and not user.users for user in readers):
            return
        for one in (*readers, parts[1]):
            graph.erase_node(one)
    _put(graph, parts[0], _aten.max_pool2d.default, node.args, (node,))


def _dropout(graph, node):
    users = list(node.users)
    if (
        len(users) != 1
        or not _calls(users[0], _aten.mul.Tensor, _aten.mul_.Tensor)
        or users[0].args[1] is not node
    ):
        return
    keep, scaled = node.args[2:4] if len(node.args) == 4 else (None, False)
    if not isinstance(keep, float) or not scaled:
        return
    target = _aten.dropout_.default if users[0].target is _aten.mul_.Tensor else _aten.dropout.default
    _put(graph, users[0], target, (users[0].args[0], round(1 - keep, 12), True), (node,))


def _adaptive_pool(graph, node):
    _put(graph, node, _aten.adaptive_avg_pool2d.default, node.args, ())
