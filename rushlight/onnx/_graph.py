"""The ONNX graph while it is written: values, nodes and constants."""

import contextlib
import math
from dataclasses import dataclass
from typing import Any

import rushlight as torch

__all__ = ["DTYPES", "Complex", "Graph", "Value", "element_type", "with_bodies"]

# ONNX's numbers of element types.
DTYPES = {
    torch.float32: 1,
    torch.uint8: 2,
    torch.int8: 3,
    torch.uint16: 4,
    torch.int16: 5,
    torch.int32: 6,
    torch.int64: 7,
    torch.bool: 9,
    torch.float16: 10,
    torch.float64: 11,
    torch.uint32: 12,
    torch.uint64: 13,
    torch.bfloat16: 16,
}


def element_type(dtype):
    """ONNX's number of a dtype.

    Raises:
        NotImplementedError: ONNX has none, or no operators for it.
    """
    if dtype not in DTYPES:
        raise NotImplementedError(f"onnx.export: ONNX has no tensors of {dtype}")
    return DTYPES[dtype]


@dataclass(frozen=True, eq=False)
class Value:
    """A result in the ONNX graph. Its shape is the example's; in a rule only its length counts."""

    name: str
    dtype: torch.dtype
    shape: tuple
    quantizer: tuple | None = None  # (scale, zero point) of integers that stand for numbers
    is_number: bool = False  # one of Python's with a fraction: tensors of floats keep their dtype beside it

    @property
    def dim(self):
        return len(self.shape)

    @property
    def is_floating_point(self):
        return self.dtype.is_floating_point


@dataclass(frozen=True, eq=False)
class Complex:
    """Complex numbers in the ONNX graph: two real values."""

    real: Value
    imag: Value
    quantizer = None

    @property
    def dtype(self):
        return self.real.dtype.to_complex()

    @property
    def shape(self):
        return self.real.shape

    @property
    def dim(self):
        return len(self.shape)


def with_bodies(nodes):
    """Nodes, and those of the bodies of branches and loops."""
    for node in nodes:
        yield node
        for attribute in node.attribute:
            if attribute.HasField("g"):
                yield from with_bodies(attribute.g.node)


class Graph:
    """Collects nodes and constants; ``out`` and ``operands`` are the examples of the result that is
    being translated and of its arguments."""

    def __init__(self, opset):
        from onnx import helper

        self._helper = helper
        self.opset = opset
        self.nodes, self.initializers = [], []
        self.out = None
        self.operands = []
        self.in_function = False  # within a function of an operator, while sizes may change
        self._constants, self._names = {}, set()
        self._given: dict = {}  # value that is a result of the graph -> the result's name
        self.known = {}  # name -> tensor, of constants

    def name(self, wanted):
        """A name that is not taken yet."""
        name, number = wanted, 1
        while name in self._names:
            name, number = f"{wanted}_{number}", number + 1
        self._names.add(name)
        return name

    def op(self, kind, *inputs, dtype=None, shape=None, outputs=1, **attributes):
        """Adds a node; gives its result, or a tuple of several.

        Args:
            inputs: values, numbers (constants of the first value's dtype), or None for what is left out.
            dtype: of the results; the first input's if not given.
            shape: the example's shape; the first input's if not given.
            attributes: None leaves one out.
        """
        like: Any = next((v for v in inputs if isinstance(v, Value)), None)
        values = [self.constant(v, like.dtype) if isinstance(v, (bool, int, float)) else v for v in inputs]
        names = [self.name(kind.lower()) for _ in range(outputs)]
        given = {key: value for key, value in attributes.items() if value is not None}
        while values and values[-1] is None:
            values.pop()
        read = [v.name if v is not None else "" for v in values]
        self.nodes.append(self._helper.make_node(kind, read, names, name=f"node_{names[0]}", **given))
        dtype = dtype or like.dtype
        shape = like.shape if shape is None and like is not None else tuple(shape or ())
        results = tuple(Value(name, dtype, shape) for name in names)
        return results[0] if outputs == 1 else results

    def give(self, value, name):
        """Makes a value a result of the graph by this name: its own where it has not been given before."""
        if not any(value.name in node.output for node in self.nodes):
            # An input, a constant, or renamed before.
            source = self._given.get(value.name, value.name)
            self.nodes.append(self._helper.make_node("Identity", [source], [name]))
            return
        self._given[value.name] = name
        for node in with_bodies(self.nodes):
            for names in (node.input, node.output):
                names[:] = [name if one == value.name else one for one in names]

    @contextlib.contextmanager
    def body(self):
        """Within it, nodes go to the list that is given: those of a branch or of a loop's steps."""
        around, self.nodes = self.nodes, []
        try:
            yield self.nodes
        finally:
            self.nodes = around

    def input(self, name, dtype, shape):
        """A value that a body is given."""
        return Value(self.name(name), dtype, tuple(shape))

    def subgraph(self, name, nodes, inputs, results):
        """A body whose results are values of its own, or from around."""
        described = [
            [self._helper.make_tensor_value_info(v.name, element_type(v.dtype), [None] * v.dim) for v in some]
            for some in (inputs, results)
        ]
        return self._helper.make_graph(nodes, self.name(name), *described)

    def constant(self, data, dtype=None):
        """A value for numbers, lists of numbers or a tensor; equal numbers share one."""
        if isinstance(data, (Value, Complex)):
            return data
        key = None
        if not isinstance(data, torch.Tensor):
            key = (repr(data), dtype)
            if key in self._constants:
                return self._constants[key]
            data = torch.tensor(data, dtype=dtype)
        value = self.initializer("constant", data if dtype is None else data.to(dtype))
        if key:
            self._constants[key] = value
        return value

    def initializer(self, name, tensor):
        """A value whose numbers are kept in the file."""
        if tensor.is_complex():
            parts = torch.view_as_real(tensor.resolve_conj())
            return Complex(*(self.initializer(name, parts[..., at]) for at in (0, 1)))
        tensor = tensor.detach().cpu().contiguous()
        name = self.name(name)
        data = tensor.reshape(-1).view(torch.uint8).numpy().tobytes() if tensor.numel() else b""
        self.initializers.append(
            self._helper.make_tensor(name, element_type(tensor.dtype), list(tensor.shape), data, raw=True)
        )
        self.known[name] = tensor
        return Value(name, tensor.dtype, tuple(tensor.shape))

    # What many rules need.

    def cast(self, value, dtype):
        """The value in another dtype; numbers become constants."""
        if not isinstance(value, Value):
            return self.constant(value, dtype)
        if value.dtype == dtype:
            return value
        return self.op("Cast", value, dtype=dtype, to=element_type(dtype))

    def promote(self, *values):
        """Tensors and numbers in the dtype that PyTorch would compute in."""
        examples = [
            torch.empty(v.shape, dtype=v.dtype, device="meta")
            if isinstance(v, Value) and not v.is_number
            else 1.0
            if isinstance(v, Value)
            else v
            for v in values
        ]
        dtype = None
        for example in examples[1:]:
            first = (
                examples[0]
                if dtype is None
                else torch.empty(self._rank(examples), dtype=dtype, device="meta")
            )
            dtype = torch.result_type(first, example)
        return [self.cast(v, dtype) for v in values]

    @staticmethod
    def _rank(examples):
        return (1,) * max((e.dim() for e in examples if isinstance(e, torch.Tensor)), default=0)

    def ints(self, numbers):
        """A vector of int64 from numbers and scalar values, such as sizes that are not known yet."""
        if not isinstance(numbers, (list, tuple)):
            numbers = [numbers]
        if all(isinstance(n, int) for n in numbers):
            return self.constant(list(numbers), torch.int64)
        parts, axes = [], self.constant([0], torch.int64)
        for n in numbers:
            part = (
                self.op("Unsqueeze", n, axes, shape=(1,))
                if isinstance(n, Value)
                else self.constant([n], torch.int64)
            )
            parts.append(part)
        return self.op("Concat", *parts, axis=0, shape=(len(parts),)) if len(parts) > 1 else parts[0]

    def size(self, value, dim):
        """The size of a dimension, as an int64 scalar."""
        value = value.real if isinstance(value, Complex) else value
        dim %= value.dim
        vector = self.op("Shape", value, dtype=torch.int64, shape=(1,), start=dim, end=dim + 1)
        return self.op("Squeeze", vector, self.constant([0], torch.int64), shape=())

    def changes(self, operand, dim):
        """Whether a dimension of an argument of the operator has a size that may change."""
        example = self.operands[operand]
        if self.in_function:
            return True  # of its operands nobody knows
        return dim % example.dim() in (getattr(example, "size_numbers", None) or {})

    def refuse_changing(self, operand, dims, what):
        """Raise where a rule for fixed sizes meets one that may change."""
        if any(self.changes(operand, dim) for dim in dims):
            raise NotImplementedError(f"onnx.export: {what} a dimension whose size changes")

    def reshape(self, value, shape):
        """The value in another shape of numbers and scalar values."""
        example = [d.shape if isinstance(d, Value) else d for d in shape]
        plain = [d if isinstance(d, int) and d >= 0 else 1 for d in example]
        return self.op(
            "Reshape", value, self.ints(list(shape)), shape=plain, allowzero=1 if 0 in plain else None
        )

    def reshape_as(self, value, other):
        """The value in another one's shape, whatever that is."""
        sizes = self.op("Shape", other, dtype=torch.int64, shape=(other.dim,))
        return self.op("Reshape", value, sizes, shape=other.shape)

    def infinity(self, dtype, sign=1):
        if dtype.is_floating_point:
            return self.constant(sign * math.inf, dtype)
        limits = torch.iinfo(dtype)
        return self.constant(limits.max if sign > 0 else limits.min, dtype)
