"""Graphs read from text, as they are printed: `torch._C.parse_ir`."""

import ast
import re

import rushlight
from rushlight.jit._graph_nodes import Block, Graph, Node, Value
from rushlight.jit._graph_types import TensorType

__all__ = ["parse_ir"]

_TOKEN = re.compile(
    r"""(?P<space>\s+|\#[^\n]*)
    | (?P<value>%[\w.]+)
    | (?P<string>"(?:[^"\\]|\\.)*")
    | (?P<number>-?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?)
    | (?P<word>[A-Za-z_][\w.]*(?:::[\w.]+)*)
    | (?P<mark>->|-inf\b|<[^>]*>|[-()\[\]{},:=*?])""",
    re.VERBOSE,
)
_OPEN, _CLOSE = "([{", ")]}"


def parse_ir(input: str, parse_tensor_constants: bool = False) -> Graph:
    """The graph that a text shows. Tensors among its constants have only their shape there: with
    ``parse_tensor_constants`` they get memory that nothing has written to."""
    return _Reader(input, parse_tensor_constants).graph()


class _Reader:
    """Reads from the front; `values` are those that have a name so far."""

    def __init__(self, text, makes_tensors):
        self.text, self.makes_tensors, self.values = text, makes_tensors, {}
        self.tokens, at = [], 0
        while at < len(text):
            found = _TOKEN.match(text, at)
            if found is None:
                raise self.error(f"cannot read {text[at]!r}", at)
            if found.lastgroup != "space":
                self.tokens.append(found)
            at = found.end()
        self.tokens.reverse()  # the next one is the last

    def error(self, said, at=None):
        at = at if at is not None else self.tokens[-1].start() if self.tokens else len(self.text)
        number, lines = self.text.count("\n", 0, at), self.text.split("\n")
        return RuntimeError(f"parse_ir: {said} in line {number + 1}:\n{lines[number]}")

    def peek(self):
        return self.tokens[-1].group() if self.tokens else ""

    def take(self, wanted=None):
        if not self.tokens or wanted not in (None, self.peek()):
            raise self.error(f"expected {wanted or 'more'} but found {self.peek() or 'the end'}")
        return self.tokens.pop().group()

    def takes(self, wanted):
        return self.peek() == wanted and bool(self.tokens.pop())

    def listed(self, one, close=")"):
        """What stands between an opening mark, which is gone, and the closing one."""
        found = []
        while not self.takes(close):
            found.append(one())
            if self.peek() != close:
                self.take(",")
        return found

    def graph(self):
        graph = Graph()
        self.take("graph")
        self.take("(")
        graph._inputs = self.listed(self.new_value)
        self.take(":")
        self.nodes(graph, "return")
        return graph

    def nodes(self, block, end):
        """Everything up to `end`, and what follows that: the results."""
        while not self.takes(end):
            block._nodes.append(self.node())
        self.take("(")
        block._outputs = self.listed(self.known_value)

    def node(self):
        outputs = []
        if self.peek().startswith("%"):
            outputs.append(self.new_value())
            while self.takes(","):
                outputs.append(self.new_value())
            self.take("=")
        kind, attributes = self.take(), {}
        if self.takes("["):
            attributes = dict(self.listed(lambda: self.attribute(outputs), "]"))
        self.take("(")
        node = Node(kind, self.listed(self.known_value), outputs, attributes)
        while re.fullmatch(r"block\d+", self.peek()):
            node._blocks.append(self.block())
        return node

    def block(self):
        block = Block()
        self.take()
        self.take("(")
        block._inputs = self.listed(self.new_value)
        self.take(":")
        self.nodes(block, "->")
        return block

    def known_value(self):
        name = self.take()[1:]
        if name not in self.values:
            raise self.error(f"nothing gives %{name}")
        return self.values[name]

    def new_value(self):
        name, type_ = self.take(), "Tensor"
        if not name.startswith("%"):
            raise self.error(f"expected a value but found {name}")
        if self.takes(":"):
            type_ = self.words(",)=")
        self.values[name[1:]] = value = Value(name[1:], type_, annotation=_annotation(type_))
        tensor = _tensor_type(type_)
        if tensor is not None:
            value._type = "Tensor"
            value._complete = tensor if tensor != TensorType() else None
        return value

    def words(self, ends):
        """The text up to a mark that stands within no brackets."""
        first, depth, last = self.tokens[-1].start(), 0, None
        while depth or self.peek() not in ends:
            mark = self.take()
            depth += (mark in _OPEN) - (mark in _CLOSE)
            last = mark
        if last is None:
            raise self.error("expected a type or a value")
        end = self.tokens[-1].start() if self.tokens else len(self.text)
        return self.text[first:end].strip()

    def attribute(self, outputs):
        name = self.take()
        self.take("=")
        at, text = self.tokens[-1].start(), self.words(",]")
        if text.startswith(("{", "<")) and outputs:
            if not self.makes_tensors:
                raise self.error("a tensor's values are not in the text: see parse_tensor_constants", at)
            return name, self.tensor(outputs[0]._complete or TensorType(), text, at)
        annotated = re.fullmatch(r"annotate\(.*?,\s*(\[.*\]|\{.*\})\)", text)
        try:
            return name, _constant(annotated[1] if annotated else text)
        except (ValueError, SyntaxError):
            raise self.error(f"{text} is no constant", at) from None

    def tensor(self, kind, text, at):
        """A tensor of a type: of the one number that the text has, or of no certain ones."""
        sizes, dtype = kind.sizes() or [], kind.dtype() or rushlight.float32
        if text.startswith("<"):
            return rushlight.empty(sizes, dtype=dtype, device=kind.device())
        try:
            return rushlight.full(sizes, _constant(text[1:-1]), dtype=dtype, device=kind.device())
        except (ValueError, SyntaxError, TypeError):
            raise self.error(f"{text} is no number", at) from None


def _constant(text):
    return float(text) if text in ("inf", "-inf", "nan") else ast.literal_eval(text)


_DTYPES = {
    "Double": rushlight.float64, "Float": rushlight.float32, "Half": rushlight.float16,
    "BFloat16": rushlight.bfloat16, "Long": rushlight.int64, "Int": rushlight.int32,
    "Short": rushlight.int16, "Char": rushlight.int8, "Byte": rushlight.uint8, "Bool": rushlight.bool,
    "ComplexFloat": rushlight.complex64, "ComplexDouble": rushlight.complex128,
}  # fmt: skip


_SAID = {
    "strides": ("strides", ast.literal_eval),
    "requires_grad": ("grad", lambda said: said == "1"),
    "device": ("device", rushlight.device),
}


def _tensor_type(text):
    """What a type says of a tensor, or None: ``Float(2, *, strides=[3, 1], device=cpu)``."""
    found = re.fullmatch(r"(\w+)(?:\((.*)\))?", text, re.DOTALL)
    if found is None or found[1] not in (*_DTYPES, "Tensor"):
        return None
    made = TensorType(dtype=_DTYPES.get(found[1]))
    if found[2] is None:
        return made
    sizes = []
    for part in _parts(found[2]):
        name, equal, said = part.partition("=")
        if equal:
            known, read = _SAID[name]
            made = made._with(**{known: read(said)})
        else:
            sizes.append(None if part == "*" else int(part))
    return made._with(sizes=sizes)


def _parts(text):
    """What commas separate that stand within no brackets."""
    parts, depth = [""], 0
    for letter in text:
        depth += (letter in _OPEN) - (letter in _CLOSE)
        if letter == "," and not depth:
            parts.append("")
        else:
            parts[-1] += letter
    return [part.strip() for part in parts if part.strip()]


def _annotation(text):
    """A type of graphs as annotations write it."""
    if text.endswith("[]"):
        return f"List[{_annotation(text[:-2])}]"
    if text.endswith("?"):
        return f"Optional[{_annotation(text[:-1])}]"
    if text.startswith("("):
        return f"Tuple[{', '.join(map(_annotation, _parts(text[1:-1])))}]"
    if _tensor_type(text) is not None:
        return "Tensor"
    inner = re.fullmatch(r"(Dict|Future|Await|Union)\((.*)\)", text, re.DOTALL)
    return f"{inner[1]}[{', '.join(map(_annotation, _parts(inner[2])))}]" if inner else text
