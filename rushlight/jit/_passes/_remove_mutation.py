"""The pass that puts operations which compute new values in place of those that write to one."""

from rushlight.jit._graph_constants import _blocks, _constant
from rushlight.jit._graph_edits import own
from rushlight.jit._passes._aliases import counterpart, is_fresh, uses_between

__all__ = [
    "_jit_pass_functional_to_inplace_activation",
    "_jit_pass_inplace_to_functional_activation",
    "_jit_pass_remove_mutation",
    "remove_tensor_mutation",
]


def _jit_pass_remove_mutation(graph):
    """Compute anew what is written to, where nothing else can see that: the graph's own tensors and lists."""
    own(graph)
    for block in list(_blocks(graph)):
        for node in list(block._nodes):
            if not (_of_list(graph, node) or _of_tensor(graph, node)):
                continue
            node.destroy()


def remove_tensor_mutation(graph, wanted):
    """Compute anew what operators of a choice write to."""
    own(graph)
    for block in list(_blocks(graph)):
        for node in list(block._nodes):
            if wanted(node) and _of_tensor(graph, node):
                node.destroy()


def _jit_pass_inplace_to_functional_activation(graph):
    """Let activations compute new tensors, where nothing else sees the ones that they write to."""
    remove_tensor_mutation(graph, lambda node: node.kind()[:-1] in _ACTIVATIONS)


def _jit_pass_functional_to_inplace_activation(graph):
    """Let activations write to what they are given, where nothing uses that later and types stay the same."""
    own(graph)
    for block in list(_blocks(graph)):
        for node in block._nodes:
            if node.kind() in _ACTIVATIONS and node.kind() not in _CONVERTING and _is_last_use(node):
                node._kind += "_"


def _is_last_use(node):
    given = node._inputs[0]
    same_block = given._node is not None and given._node._block is node._block
    return same_block and is_fresh(given) and len(given.uses()) == 1 and given._node.kind() in _COMPUTING


_ACTIVATIONS = frozenset(
    f"aten::{name}"
    for name in """celu elu hardsigmoid hardswish hardtanh leaky_relu relu relu6 rrelu selu sigmoid silu tanh
    threshold""".split()
)
_CONVERTING = ("aten::sigmoid", "aten::tanh")  # which give floats of whole numbers
_COMPUTING = frozenset(f"aten::{name}" for name in "add sub mul div matmul linear conv2d batch_norm".split())


# --- tensors


def _of_tensor(graph, node):
    """Whether a new operation takes the place of one that writes; it is inserted before it."""
    if not node._inputs or len(node._outputs) > 1 or node._inputs[0]._type != "Tensor":
        return False
    kind, special = counterpart(node.kind()), _SPECIAL.get(node.kind())
    target = node._inputs[0]
    made = target._node
    if kind is None and special is None or made is None or made._block is not node._block:
        return False
    if not is_fresh(target) or uses_between(target, made, node):
        return False
    with graph.insert_point_guard(node):
        new = special(graph, node) if special else graph.create(kind, node._inputs)
        graph.insertNode(new)
    new._line = node._line
    new._outputs[0].copyMetadata(target)
    _use_afterwards(graph, target, new, node)
    return True


def _use_afterwards(graph, old, new, node):
    """What comes after a write, and what the writing operation gave, is the new value."""
    given = new._outputs[0]
    for result in node._outputs:
        result.replaceAllUsesWith(given)
    kept = list(new._inputs)
    before = [use for use in old.uses() if not _is_after(use, node)]
    taken = [(use.user, use.offset) for use in before]
    old.replaceAllUsesWith(given)
    for user, offset in taken:
        if user._kind == "prim::Return":
            user._block._outputs[offset] = old
        elif user is not node:
            user.replaceInput(offset, old)
    for i, value in enumerate(kept):
        if value is old:
            new.replaceInput(i, old)


def _is_after(use, node):
    user = use.user
    if user._kind == "prim::Return":
        outer = user._block._within
        return outer is None or user._block is node._block or outer.isAfter(node)
    return user.isAfter(node)


def _filled(graph, node):
    return graph.create("aten::full_like", [*node._inputs, *[graph.insertConstant(None)] * 5])


def _zeroed(graph, node):
    return graph.create("aten::zeros_like", [node._inputs[0], *[graph.insertConstant(None)] * 5])


def _drawn(graph, node):
    """``x.normal_(mean, std, generator)``: of the size and the type of ``x``."""
    given = [*node._inputs[1:]]
    given += [graph.insertConstant(value) for value in (0.0, 1.0, None)[len(given) :]]
    mean, std, generator = given
    asked = (("aten::size", "int[]"), ("prim::dtype", "int"), ("prim::device", "Device"))
    found = []
    for kind, type_ in asked:
        (value,) = graph.insertNode(graph.create(kind, node._inputs[:1]))._outputs
        value._type = value._annotation = type_
        found.append(value)
    size, dtype, device = found
    nothing = graph.insertConstant(None)
    return graph.create("aten::normal", [mean, std, size, generator, dtype, nothing, device, nothing])


_SPECIAL = {"aten::fill_": _filled, "aten::zero_": _zeroed, "aten::normal_": _drawn}


# --- lists


def _of_list(graph, node):
    """Whether a list that is written out takes the place of one that is changed after it was."""
    change = _CHANGES.get(node.kind())
    made = node._inputs[0]._node if node._inputs else None
    if (
        change is None
        or made is None
        or made._kind != "prim::ListConstruct"
        or made._block is not node._block
    ):
        return False
    if uses_between(node._inputs[0], made, node):
        return False
    items = change(list(made._inputs), node._inputs[1:])
    if items is None:
        return False
    with graph.insert_point_guard(node):
        new = graph.insertNode(graph.create("prim::ListConstruct", items))
    new._line = made._line
    new._outputs[0].copyMetadata(node._inputs[0])
    _use_afterwards(graph, node._inputs[0], new, node)
    return True


def _inserted(items, given):
    place = _constant(given[0])
    if place is None:
        return None
    items.insert(place[0], given[1])
    return items


def _stored(items, given):
    place = _constant(given[0])
    if place is None or not -len(items) <= place[0] < len(items):
        return None
    items[place[0]] = given[1]
    return items


_CHANGES = {
    "aten::append": lambda items, given: [*items, *given],
    "aten::insert": _inserted,
    "aten::_set_item": _stored,
}
