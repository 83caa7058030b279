"""Operators of a functional graph write to an operand that nobody looks at again."""

import rushlight as torch
from rushlight._ops import OpOverload
from rushlight.fx.node import Node
from rushlight.fx.passes.fake_tensor_prop import FakeTensorProp

__all__ = ["reinplace"]

aten = torch.ops.aten  # type: ignore[attr-defined]
# Operators that give a tensor with a part of it replaced, by the view that shows the part.
_SCATTERS = {f"{name}_scatter": name for name in ("select", "slice", "diagonal", "as_strided")}


def _value(node):
    value = node.meta.get("val") if isinstance(node, Node) else None
    return value if isinstance(value, torch.Tensor) else None


def _overlaps(value):
    return any(size > 1 and stride == 0 for size, stride in zip(value.shape, value.stride()))


def _part(node):
    """(the view that a scatter operator replaces, its arguments), or None of other nodes."""
    if not isinstance(node.target, OpOverload) or node.target._opname not in _SCATTERS:
        return None
    packet = getattr(aten, _SCATTERS[node.target._opname])
    names = {a.name for a in node.target._schema.arguments if a.name != "src"}
    overloads = [getattr(packet, name) for name in packet.overloads()]
    view = next(o for o in overloads if {a.name for a in o._schema.arguments} == names)
    return view, (node.args[0], *node.args[2:]), dict(node.kwargs)


def _written_form(target):
    """The overload in place of an operator, or None."""
    if not isinstance(target, OpOverload) or target.namespace != "aten" or target.is_view:
        return None
    packet, entry = getattr(aten, f"{target._opname}_", None), target._entry
    for name in packet.overloads() if packet is not None else ():
        found = getattr(packet, name)
        same = found._entry.index == entry.index and found._entry.form == 1 and entry.form == 0
        if same and bool(found._entry.second_name) == bool(entry.second_name):
            return found
    return None


class _Values(FakeTensorProp):
    """Values of all nodes; what the module holds is fake, too, so that views of it are known as such."""

    def get_attr(self, target, args, kwargs):
        held = super().get_attr(target, args, kwargs)
        return self._mode.from_tensor(held) if isinstance(held, torch.Tensor) else held


class _Pass:
    def __init__(self, module):
        self.module, self.graph = module, module.graph
        self.nodes = list(self.graph.nodes)
        self.position = {node: i for i, node in enumerate(self.nodes)}
        # The storage of a result that is written elsewhere -> (the storage there, bytes from its start).
        self.moved: dict = {}
        held = (node for node in self.nodes if node.op in ("placeholder", "get_attr"))
        self.of_caller = {self.storage(node) for node in held}

    def place(self, value):
        """Where the elements of a value lie: (storage, first byte, shape, strides, dtype)."""
        key, first = value.untyped_storage()._cdata, value.storage_offset() * value.itemsize
        while key in self.moved:
            key, further = self.moved[key]
            first += further
        return key, first, value.shape, value.stride(), value.dtype

    def storage(self, node):
        value = _value(node)
        return None if value is None else self.place(value)[0]

    def move(self, node, target):
        """A node's result will lie where another node's does."""
        value, there = _value(node), self.place(_value(target))
        first = there[1] - value.storage_offset() * value.itemsize
        self.moved[value.untyped_storage()._cdata] = there[0], first

    def run(self):
        for node in self.nodes:
            if node.op != "call_function":
                continue
            if (part := _part(node)) is not None:
                self._scatter(node, *part)
            elif (written := _written_form(node.target)) is not None and self._may_write(node):
                node.target = written
                self._replace(node, node.args[0])
        self.graph.lint()
        self.module.recompile()
        return self.module

    def _replace(self, node, target):
        self.move(node, target)
        node.replace_all_uses_with(target)

    def _scatter(self, node, view, args, kwargs):
        whole, source = node.args[:2]
        if self._is_in_place(node):  # the part was written already
            self._replace(node, whole)
            self.graph.erase_node(node)
        elif self._may_be_written(node, whole):
            with self.graph.inserting_before(node):
                part = self.graph.call_function(view, args, kwargs)
                part.meta["val"] = view(_value(whole), *args[1:], **kwargs)
                self.graph.call_function(aten.copy_.default, (part, source)).meta["val"] = part.meta["val"]
            self._replace(node, whole)
            self.graph.erase_node(node)

    def _is_in_place(self, node):
        """Whether what a scatter operator puts into a tensor lies where it puts it."""
        part = _part(node)
        if part is None or _value(node.args[1]) is None:
            return False
        view, args, kwargs = part
        return self.place(view(_value(args[0]), *args[1:], **kwargs)) == self.place(_value(node.args[1]))

    def _may_write(self, node):
        target, result = node.args[0] if node.args else None, _value(node)
        value = _value(target)
        if value is None or result is None or not self._may_be_written(node, target):
            return False
        if result.dtype != value.dtype or (result.shape, result.stride()) != (value.shape, value.stride()):
            return False
        others = [n for n in node.all_input_nodes if self.storage(n) == self.storage(target)]
        return all(self.place(_value(n)) == self.place(value) for n in others)

    def _may_be_written(self, node, target):
        storage = self.storage(target)
        if storage is None or storage in self.of_caller or _overlaps(_value(target)):
            return False
        before = dict(self.moved)
        old = {n for n in self.nodes if self.storage(n) == storage}
        self.move(node, target)
        read = any(self._reads(later, old) for later in self.nodes[self.position[node] + 1 :])
        self.moved = before
        return not read

    def _reads(self, node, old):
        """Whether a node reads memory by its old name: a view does not, nor a scatter that changes nothing,
        whose result is the memory by its new name."""
        if getattr(node.target, "is_view", False):
            return False
        if old.isdisjoint(node.all_input_nodes):
            return False
        if (
            _part(node) is None
            or node.args[0] not in old
            or node.args[1] in old
            or not self._is_in_place(node)
        ):
            return True
        self.move(node, node.args[0])
        return False


def reinplace(gm, *sample_args):
    """Change operators of a functional graph to their forms in place, where that cannot be seen.

    An operator writes to its first operand if the operand is not the caller's, the result has its shape,
    strides and dtype, and nothing later reads its memory. A `select_scatter` and its like becomes a copy to
    the part that it replaces, or nothing where the part was written there already.

    Args:
        gm: a module of `make_fx`, which is changed and returned.
        sample_args: its inputs, for shapes and strides.
    """
    _Values(gm).propagate(*sample_args)
    return _Pass(gm).run()
