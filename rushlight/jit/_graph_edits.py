"""How programs change graphs: what `_graph_nodes` mixes into its values, nodes, blocks and graphs.

Places are known to the graph alone: what hands out nodes tells each of them its block first."""

from __future__ import annotations

import contextlib
from typing import Any

from rushlight import Tensor
from rushlight._command.names import show_from

__all__ = ["BlockEdits", "GraphEdits", "NodeEdits", "Use", "ValueEdits", "own", "schema_of"]


def own(block: Any) -> None:
    """Tell nodes and the values that come in which block they are in, and blocks the node that has them."""
    for value in block._inputs:
        value._block = block
    for node in block._nodes:
        node._block = block
        for inner in node._blocks:
            inner._within = node
            own(inner)


class Use:
    """That a node takes a value as its input number ``offset``."""

    def __init__(self, user: Any, offset: int, place: tuple[int, ...] = ()) -> None:
        self.user, self.offset, self._place = user, offset, place

    def isAfter(self, other: Use) -> bool:  # noqa: N802
        return self._place > other._place


class ValueEdits:
    """Where a value is used, and other values in its place."""

    _node: Any
    _uses: list[Any]
    _block = None  # of which it is an input

    def _home(self):
        return self._block if self._node is None else getattr(self._node, "_block", None)

    def uses(self) -> list[Use]:
        """Its uses in the order of the graph; what blocks give back is used by the node that says so."""
        home = self._home()
        if home is None:
            users = dict.fromkeys(self._uses)
            return [Use(node, i) for node in users for i, v in enumerate(node._inputs) if v is self]
        return list(_uses_within(home._root(), self, ()))

    def replaceAllUsesWith(self, other: Any) -> None:  # noqa: N802
        home = self._home()
        if home is None:
            raise RuntimeError(f"%{self._name} is in no graph")  # type: ignore[attr-defined]
        _replace(home._root(), self, other)

    def copyMetadata(self, other: Any) -> Any:  # noqa: N802
        """Take another value's type, and its name where that is a word."""
        self._type, self._annotation, self._complete = other._type, other._annotation, other._complete
        return self

    setTypeAs = copyMetadata  # noqa: N815

    def inferTypeFrom(self, tensor: Tensor) -> None:  # noqa: N802
        from rushlight.jit._graph_types import TensorType

        self.setType(TensorType.create_from_tensor(tensor))  # type: ignore[attr-defined]

    def offset(self) -> int:
        """Its place among the results of its node."""
        return self._node._outputs.index(self) if self._node is not None else 0

    def requires_grad(self) -> bool:
        kind = self._complete  # type: ignore[has-type]
        return kind is None or kind.requiresGrad() is not False

    requiresGrad = requires_grad  # noqa: N815


def _uses_within(block, value, place):
    for number, node in enumerate(block._nodes):
        for i, taken in enumerate(node._inputs):
            if taken is value:
                yield Use(node, i, (*place, number))
        for i, inner in enumerate(node._blocks):
            yield from _uses_within(inner, value, (*place, number, i))
    for i, taken in enumerate(block._outputs):
        if taken is value:
            yield Use(block.returnNode(), i, (*place, len(block._nodes)))


def _replace(block, old, new):
    for node in block._nodes:
        for i, value in enumerate(node._inputs):
            if value is old:
                node.replaceInput(i, new)
        for inner in node._blocks:
            _replace(inner, old, new)
    block._outputs[:] = [new if value is old else value for value in block._outputs]


class NodeEdits:
    """A node's place, its inputs, results and attributes."""

    _inputs: list[Any]
    _outputs: list[Any]
    _attributes: dict[str, Any]
    _blocks: list[Any]
    _block: Any = None

    def _at(self):
        if self._block is None:
            raise RuntimeError(f"the node {self._kind} is in no graph")  # type: ignore[attr-defined]
        return self._block, self._block._nodes.index(self)

    def owningBlock(self) -> Any:  # noqa: N802
        return self._block

    def _put(self, block, index):
        block._nodes.insert(index, self)
        own(block)
        return self

    def insertBefore(self, node: Any) -> Any:  # noqa: N802
        return self._put(*node._at())

    def insertAfter(self, node: Any) -> Any:  # noqa: N802
        block, index = node._at()
        return self._put(block, index + 1)

    def moveBefore(self, node: Any) -> None:  # noqa: N802
        self._leave()
        self.insertBefore(node)

    def moveAfter(self, node: Any) -> None:  # noqa: N802
        self._leave()
        self.insertAfter(node)

    def _leave(self):
        block, index = self._at()
        del block._nodes[index]

    def next(self) -> Any:
        block, index = self._at()
        return block._nodes[index + 1] if index + 1 < len(block._nodes) else block.returnNode()

    def prev(self) -> Any:
        block, index = self._at()
        return block._nodes[index - 1] if index else block.paramNode()

    def isBefore(self, node: Any) -> bool:  # noqa: N802
        return _path(self) < _path(node)

    def isAfter(self, node: Any) -> bool:  # noqa: N802
        return _path(self) > _path(node)

    def destroy(self) -> None:
        """Remove it; nothing may use its results."""
        for value in self._outputs:
            if value.uses():
                raise RuntimeError(f"%{value.debugName()} is still used")
        self.removeAllInputs()
        self._leave()
        self._block = None

    def replaceAllUsesWith(self, node: Any) -> None:  # noqa: N802
        for old, new in zip(self._outputs, node._outputs, strict=True):
            old.replaceAllUsesWith(new)

    def addInput(self, value: Any) -> Any:  # noqa: N802
        self._inputs.append(value)
        value._uses.append(self)
        return value

    def replaceInput(self, index: int, value: Any) -> Any:  # noqa: N802
        old, self._inputs[index] = self._inputs[index], value
        if self in old._uses:
            old._uses.remove(self)
        value._uses.append(self)
        return old

    def replaceInputWith(self, old: Any, new: Any) -> None:  # noqa: N802
        for i, value in enumerate(self._inputs):
            if value is old:
                self.replaceInput(i, new)

    def removeInput(self, index: int) -> None:  # noqa: N802
        old = self._inputs.pop(index)
        if self in old._uses:
            old._uses.remove(self)

    def removeAllInputs(self) -> None:  # noqa: N802
        while self._inputs:
            self.removeInput(len(self._inputs) - 1)

    def addOutput(self) -> Any:  # noqa: N802
        from rushlight.jit._graph_nodes import Value

        root = None if self._block is None else self._block._root()
        self._outputs.append(Value(_fresh(root, self), node=self))
        return self._outputs[-1]

    def eraseOutput(self, index: int) -> None:  # noqa: N802
        del self._outputs[index]

    def addBlock(self) -> Any:  # noqa: N802
        from rushlight.jit._graph_nodes import Block

        made = Block()
        made._within = self
        self._blocks.append(made)
        return made

    # --- attributes

    def _set(self, name: str, value: Any) -> Any:
        self._attributes[name] = value
        return self

    s_ = i_ = f_ = t_ = ival_ = c_ = ss_ = is_ = fs_ = ts_ = g_ = ty_ = _set

    def removeAttribute(self, name: str) -> Any:  # noqa: N802
        del self._attributes[name]
        return self

    def copyAttributes(self, node: Any) -> Any:  # noqa: N802
        self._attributes.clear()
        self._attributes.update(node._attributes)
        return self

    def hasAttributes(self) -> bool:  # noqa: N802
        return bool(self._attributes)

    def kindOf(self, name: str) -> str:  # noqa: N802
        """The letters of the accessor of an attribute's kind: `i` of a number, `ss` of texts."""
        value = self._attributes[name]
        listed = isinstance(value, list)
        first = value[0] if listed and value else value
        kinds = ((bool, "i"), (int, "i"), (float, "f"), (complex, "c"), (str, "s"), (Tensor, "t"))
        letter = next((letter for kind, letter in kinds if isinstance(first, kind)), "ival")
        return letter * (2 if letter == "s" else 1) + "s" * (letter != "s") if listed else letter

    # --- what operator it is

    def schema(self) -> str:
        """The declaration of the operator that it calls, or ``(no schema)``."""
        found = schema_of(self)
        return "(no schema)" if found is None else str(found)

    def matches(self, schema: str) -> bool:
        """Whether it calls the operator with this declaration; its overload's name may be left out."""
        found = schema_of(self)
        if found is None:
            return False
        told, wanted = str(found).replace(" ", ""), schema.replace(" ", "")
        full, _, rest = told.partition("(")
        return wanted in (told, f"{full.partition('.')[0]}({rest}")

    def hasSideEffects(self) -> bool:  # noqa: N802
        from rushlight.jit._graph_passes import _has_effect

        return _has_effect(self)

    def mustBeNone(self) -> bool:  # noqa: N802
        constant = self._kind == "prim::Constant"  # type: ignore[attr-defined]
        return constant and self._outputs[0]._type == "NoneType"

    def hasMultipleOutputs(self) -> bool:  # noqa: N802
        return len(self._outputs) > 1


def _path(node):
    """Numbers of the nodes and blocks on the way to a node."""
    block, index = node._at()
    outer = getattr(block, "_within", None)
    return (index,) if outer is None else (*_path(outer), outer._blocks.index(block), index)


def schema_of(node):
    from rushlight.jit._operator_names import names_of

    space, _, name = node._kind.partition("::")
    full = names_of(node)
    if space != "aten" or len(full) != 1:
        return None
    from rushlight import ops

    name, _, overload = full[0].removeprefix("aten::").partition(".")
    found = getattr(getattr(ops.aten, name, None), overload or "default", None)
    return getattr(found, "_schema", None)


def _fresh(root, node):
    """A number that no value of a graph has for its name."""
    taken = {value._name for value in root._values()} if root is not None else set()
    taken.update(value._name for value in node._outputs)
    return next(str(n) for n in range(len(taken) + 1) if str(n) not in taken)


class BlockEdits:
    """What a block takes, has and gives."""

    _inputs: list[Any]
    _nodes: list[Any]
    _outputs: list[Any]
    _within: Any = None  # the node whose block it is

    def _root(self) -> Any:
        return self if self._within is None or self._within._block is None else self._within._block._root()

    def owningNode(self) -> Any:  # noqa: N802
        return self._within

    def paramNode(self) -> Any:  # noqa: N802
        """A node that gives what comes in."""
        return self._edge("prim::Param", (), self._inputs)

    def returnNode(self) -> Any:  # noqa: N802
        """A node that takes what the block gives."""
        return self._edge("prim::Return", self._outputs, ())

    def _edge(self, kind, inputs, outputs):
        from rushlight.jit._graph_nodes import Node

        made = Node.__new__(Node)
        made.__dict__.update(
            _scope="", _kind=kind, _inputs=list(inputs), _outputs=list(outputs), _attributes={}, _blocks=[],
            _line=None, _block=self,
        )  # fmt: skip
        return made

    def addInputToBlock(self) -> Any:  # noqa: N802
        return self.addInput("")

    def addInput(self, name: str = "") -> Any:  # noqa: N802
        return self._added(name, len(self._inputs))

    def _added(self, name, index):
        from rushlight.jit._graph_nodes import Value

        taken = {value._name for value in self._root()._values()}
        made = Value(name or next(str(n) for n in range(len(taken) + 1) if str(n) not in taken))
        self._inputs.insert(index, made)
        own(self)
        return made

    def registerOutput(self, value: Any) -> int:  # noqa: N802
        self._outputs.append(value)
        return len(self._outputs) - 1

    def replaceOutput(self, index: int, value: Any) -> None:  # noqa: N802
        self._outputs[index] = value

    def eraseInput(self, index: int) -> None:  # noqa: N802
        if self._inputs[index].uses():
            raise RuntimeError(f"the input %{self._inputs[index].debugName()} is still used")
        del self._inputs[index]

    def eraseOutput(self, index: int) -> None:  # noqa: N802
        del self._outputs[index]

    def addNode(self, kind: str, inputs: Any = ()) -> Any:  # noqa: N802
        made = self._root()._made(kind, inputs, 1)
        return made._put(self, len(self._nodes))


class GraphEdits(BlockEdits):
    """New nodes, and the place at which they are inserted: at the end, unless that is said."""

    _point: Any = None  # the node before which they come, or the block at whose end

    def param_node(self) -> Any:
        return self.paramNode()

    def return_node(self) -> Any:
        return self.returnNode()

    def _made(self, kind, inputs, outputs):
        from rushlight.jit._graph_nodes import Node, Value

        if any(not isinstance(value, Value) for value in inputs):
            raise ValueError("cannot create Node with a None input")
        if "::" not in kind:
            raise RuntimeError(f"{kind} has no namespace: expected a name such as aten::{kind}")
        node = Node(kind, inputs, [])
        for _ in range(outputs):
            node._outputs.append(Value(_fresh(self, node), node=node))
        return node

    def create(self, kind: str, inputs: Any = (), outputs: int = 1) -> Any:
        """A node of this kind, which is not yet anywhere."""
        if isinstance(inputs, int):
            inputs, outputs = (), inputs
        return self._made(kind, inputs, outputs)

    def createClone(self, node: Any, fn: Any) -> Any:  # noqa: N802
        """A node like another one, of which ``fn`` gives the value for each that it takes."""
        made = self._made(node._kind, [fn(value) for value in node._inputs], len(node._outputs))
        made._attributes.update(node._attributes)
        made._line, made._scope = node._line, node._scope
        for new, old in zip(made._outputs, node._outputs, strict=True):
            new.copyMetadata(old)
        made._blocks = [_cloned(inner, made, self, {}, fn) for inner in node._blocks]
        return made

    def appendNode(self, node: Any) -> Any:  # noqa: N802
        return node._put(self, len(self._nodes))

    def prependNode(self, node: Any) -> Any:  # noqa: N802
        return node._put(self, 0)

    def insertNode(self, node: Any) -> Any:  # noqa: N802
        point = self._point
        if point is None or not hasattr(point, "_kind"):
            block = self if point is None else point
            return node._put(block, len(block._nodes))
        return node.insertBefore(point)

    def setInsertPoint(self, point: Any) -> None:  # noqa: N802
        self._point = point

    def insertPoint(self) -> Any:  # noqa: N802
        return self._point if hasattr(self._point, "_kind") else (self._point or self).returnNode()

    @contextlib.contextmanager
    def insert_point_guard(self, point: Any) -> Any:
        """Insert before a node, or at the end of a block, until the end of the block of Python."""
        own(self)
        before, self._point = self._point, point
        try:
            yield
        finally:
            self._point = before

    def insertConstant(self, value: Any) -> Any:  # noqa: N802
        from rushlight.jit._annotations import value_type

        node = self._made("prim::Constant", (), 1)
        if value is not None:
            node._attributes["value"] = value
        kind = value_type(value)
        (made,) = node._outputs
        made._type, made._annotation = kind.schema(), str(kind)
        self.insertNode(node)
        return made

    def insertInput(self, index: int, name: str = "") -> Any:  # noqa: N802
        return self._added(name, index)

    def insertGraph(self, graph: Any, inputs: Any) -> list[Any]:  # noqa: N802
        """Insert the nodes of another graph, of which these values are the inputs; what they give for its
        outputs."""
        if len(inputs) != len(graph._inputs):
            raise RuntimeError(f"the graph takes {len(graph._inputs)} inputs, but got {len(inputs)}")
        known = dict(zip(graph._inputs, inputs, strict=True))
        for node in graph._nodes:
            made = self.createClone(node, known.__getitem__)
            self.insertNode(made)
            known.update(zip(node._outputs, made._outputs, strict=True))
        return [known[value] for value in graph._outputs]

    def permuteInputs(self, order: Any) -> None:  # noqa: N802
        if sorted(order) != list(range(len(self._inputs))):
            raise RuntimeError("permuteInputs: expected each number of an input once")
        self._inputs[:] = [self._inputs[i] for i in order]

    def makeMultiOutputIntoTuple(self) -> None:  # noqa: N802
        """Let a graph with several outputs give one tuple of them."""
        if len(self._outputs) == 1:
            return
        node = self._made("prim::TupleConstruct", self._outputs, 1)
        node._outputs[0]._type = f"({', '.join(value._type for value in self._outputs)})"
        self.appendNode(node)
        self._outputs[:] = node._outputs


def _cloned(block, within, graph, known, fn):
    """A copy of a block, in which ``fn`` gives what comes from outside."""
    from rushlight.jit._graph_nodes import Block, Value

    made = Block()
    made._within = within
    known = dict(known)

    def of(value):
        return known[value] if value in known else fn(value)

    for value in block._inputs:
        made._inputs.append(Value(value._name).copyMetadata(value))
        known[value] = made._inputs[-1]
    for node in block._nodes:
        copied = graph.createClone(node, of)
        made._nodes.append(copied)
        known.update(zip(node._outputs, copied._outputs, strict=True))
    made._outputs = list(map(of, block._outputs))
    own(made)
    return made


show_from("", Use)
