"""What graphs are made of: values, the nodes that give and take them, blocks of nodes."""

import copy
import enum
import json

from rushlight import Tensor
from rushlight._command.names import show_from
from rushlight.jit._annotations import plain_name
from rushlight.jit._graph_edits import BlockEdits, GraphEdits, NodeEdits, ValueEdits, own
from rushlight.jit._graph_types import ClassType, JitType, TensorType
from rushlight.jit._value_text import text_of

__all__ = ["Block", "Graph", "Node", "Value"]


class Value(ValueEdits):
    """What a node gives or a graph takes."""

    def __init__(self, name, type_="Tensor", node=None, annotation=None):
        self._name, self._type, self._node, self._uses = name, type_, node, []
        self._annotation = annotation or type_  # the type as annotations write it
        self._complete = None  # the type of a tensor of which the sizes are known

    def debugName(self):  # noqa: N802 - PyTorch's names
        return self._name

    def setDebugName(self, name):  # noqa: N802
        self._name = name
        return self

    def type(self):
        if self._complete is not None:
            return self._complete
        if self._type == "Tensor":
            return TensorType()
        return (ClassType if self._type.startswith("__torch__.") else JitType)(self._annotation)

    def setType(self, type_):  # noqa: N802
        """Say more of a tensor, or give a value another type."""
        self._complete = type_ if isinstance(type_, TensorType) else None
        self._annotation = type_.annotation_str
        if self._complete is None:
            self._type = type_.annotation_str
        return self

    def isCompleteTensor(self):  # noqa: N802
        return self._complete is not None and self._complete.is_complete()

    def node(self):
        """What gives it; what the graph or a block takes has a node that says so."""
        if self._node is not None:
            return self._node
        return Node("prim::Param", (), ()) if self._block is None else self._block.paramNode()

    def unique(self):
        return self._name

    def toIValue(self):  # noqa: N802
        """The value of a constant, else None."""
        constant = self._node is not None and self._node.kind() == "prim::Constant"
        return self._node._attributes.get("value") if constant else None

    def _typed(self):
        return f"%{self._name} : {self._complete or self._type}"

    def __repr__(self):
        return f"{self._name} defined in ({self._node!r})"


class Node(NodeEdits):
    """One operation: its kind, what it takes and gives, and the blocks of control flow."""

    def __init__(self, kind, inputs, outputs, attributes=None, blocks=(), line=None, scope=""):
        self._scope, self._kind, self._inputs, self._outputs = scope, kind, list(inputs), outputs
        self._attributes, self._blocks, self._line = dict(attributes or {}), list(blocks), line
        for value in outputs:
            value._node = self
        for value in self._inputs:
            value._uses.append(self)

    def kind(self):
        return self._kind

    def inputs(self):
        return iter(self._inputs)

    def outputs(self):
        return iter(self._outputs)

    def inputsSize(self):  # noqa: N802
        return len(self._inputs)

    def outputsSize(self):  # noqa: N802
        return len(self._outputs)

    def input(self):
        (value,) = self._inputs
        return value

    def output(self):
        (value,) = self._outputs
        return value

    def inputsAt(self, i):  # noqa: N802
        return self._inputs[i]

    def outputsAt(self, i):  # noqa: N802
        return self._outputs[i]

    def blocks(self):
        return iter(self._blocks)

    def attributeNames(self):  # noqa: N802
        return list(self._attributes)

    def hasAttribute(self, name):  # noqa: N802
        return name in self._attributes

    def __getitem__(self, name):
        return self._attributes[name]

    s = i = f = t = ival = __getitem__

    def sourceRange(self):  # noqa: N802
        return f"line {self._line}"

    def scopeName(self):  # noqa: N802
        return self._scope

    def findNode(self, kind, recurse=True):  # noqa: N802
        return next(iter(self.findAllNodes(kind, recurse)), None)

    def findAllNodes(self, kind, recurse=True):  # noqa: N802
        return [n for block in self._blocks for n in block.findAllNodes(kind, recurse)]

    def __repr__(self):
        return self._text("").rstrip("\n")

    __str__ = __repr__

    def _text(self, indent):
        outputs = ", ".join(v._typed() for v in self._outputs)
        attributes = ", ".join(f"{k}={_shown(v)}" for k, v in self._attributes.items())
        attributes = f"[{attributes}]" if attributes else ""
        inputs = ", ".join(f"%{v._name}" for v in self._inputs)
        head = f"{indent}{outputs}{' = ' if outputs else ''}{self._kind}{attributes}({inputs})\n"
        for number, block in enumerate(self._blocks):
            head += f"{indent}  block{number}({', '.join(v._typed() for v in block._inputs)}):\n"
            head += block._body(indent + "    ")
            head += f"{indent}    -> ({', '.join(f'%{v._name}' for v in block._outputs)})\n"
        return head


def _shown(value):
    if isinstance(value, enum.Enum):
        return f"{plain_name(type(value))}.{value.name}"
    if isinstance(value, list):
        return f"[{', '.join(map(_shown, value))}]"
    if isinstance(value, Tensor):
        return f"{{{value.item()}}}" if value.numel() == 1 else "<Tensor>"
    if isinstance(value, bool):
        return str(int(value))
    if type(value) is float:
        return text_of(value)
    return json.dumps(value, ensure_ascii=False) if type(value) is str else repr(value)


class Block(BlockEdits):
    """A sequence of nodes with inputs and outputs."""

    def __init__(self):
        self._inputs, self._nodes, self._outputs = [], [], []

    def inputs(self):
        own(self)
        return iter(list(self._inputs))

    def outputs(self):
        own(self)
        return iter(list(self._outputs))

    def nodes(self):
        own(self)
        return iter(list(self._nodes))

    def findNode(self, kind, recurse=True):  # noqa: N802
        return next(iter(self.findAllNodes(kind, recurse)), None)

    def findAllNodes(self, kind, recurse=True):  # noqa: N802
        found = []
        own(self)
        for node in self._nodes:
            found += [node] if node.kind() == kind else []
            found += node.findAllNodes(kind) if recurse else []
        return found

    def _body(self, indent):
        return "".join(node._text(indent) for node in self._nodes)

    def _values(self):
        """What comes in and what operations give, those of inner blocks included."""
        yield from self._inputs
        for node in self._nodes:
            yield from node._outputs
            for inner in node._blocks:
                yield from inner._values()


class Graph(GraphEdits, Block):
    """All operations of a function."""

    def __init__(self, name="forward", unit=None, module=None):
        super().__init__()
        self.name, self.unit = name, unit  # the script that it shows
        self.module = lambda: module

    @property
    def schema(self):
        arguments = ", ".join(f"{v._type} {v._name}" for v in self._inputs)
        return f"{self.name}({arguments}) -> {self._outputs[0]._type if self._outputs else '()'}"

    def copy(self):
        return copy.deepcopy(self, {id(self.unit): self.unit})

    def lint(self):
        """Nothing to check: the graph is made from a function that compiled."""

    def str(self, print_source_ranges=True):
        """The text; places in sources are no part of it."""
        return repr(self)

    def __repr__(self):
        inputs = (",\n      ").join(v._typed() for v in self._inputs)
        returned = ", ".join(f"%{v._name}" for v in self._outputs)
        return f"graph({inputs}):\n{self._body('  ')}  return ({returned})\n"

    __str__ = __repr__


show_from("", Block, Graph, Node, Value)
