"""The types of values of a graph, which say their text."""

import ast
import weakref

import rushlight
from rushlight._command.names import show_from
from rushlight.jit import _types as t

__all__ = ["ClassType", "JitType", "LateGraph", "TensorType", "assert_is_instance"]


class JitType:
    """The type of a value, by its text."""

    def __init__(self, text):
        self.annotation_str = text

    def kind(self):
        """``TensorType``, ``IntType``, ..."""
        name = self.annotation_str.partition("[")[0]
        return f"{_KINDS.get(name, name[:1].upper() + name[1:])}Type"

    def str(self):
        return self.annotation_str

    def elements(self):
        """The types of a tuple's parts."""
        inside, depth, parts = self.annotation_str.partition("[")[2].removesuffix("]"), 0, [""]
        for letter in inside:
            depth += (letter == "[") - (letter == "]")
            if letter == "," and depth == 0:
                parts.append("")
            else:
                parts[-1] += letter
        return [JitType(part.strip()) for part in parts if part.strip() not in ("", "()")]

    def isSubtypeOf(self, other):  # noqa: N802 - PyTorch's names
        return other.annotation_str in ("Any", self.annotation_str)

    def __eq__(self, other):
        return isinstance(other, JitType) and other.annotation_str == self.annotation_str

    def __hash__(self):
        return hash(self.annotation_str)

    def __repr__(self):
        return self.annotation_str


class ClassType(JitType):
    """The type of a module or of an object of a scripted class."""

    def kind(self):
        return "ClassType"

    def qualified_name(self):
        return self.annotation_str

    def name(self):
        return self.annotation_str.rpartition(".")[2]


class TensorType(JitType):
    """The type of tensors: what is known of their sizes, strides, element type, device and gradient."""

    def __init__(self, sizes=None, strides=None, dtype=None, device=None, requires_grad=None):
        super().__init__("Tensor")
        self._sizes, self._strides, self._dtype = sizes, strides, dtype
        self._device, self._grad = device, requires_grad

    @staticmethod
    def get():
        return TensorType()

    @staticmethod
    def getInferred():  # noqa: N802
        """The type of an argument that has no annotation."""
        return TensorType()

    @staticmethod
    def create_from_tensor(tensor):
        """What a tensor is like."""
        strides = list(tensor.stride()) if tensor.layout is rushlight.strided else []
        return TensorType(
            list(tensor.size()), strides, tensor.dtype, tensor.device, bool(tensor.requires_grad)
        )

    def _with(self, **known):
        made = TensorType(self._sizes, self._strides, self._dtype, self._device, self._grad)
        made.__dict__.update({f"_{name}": value for name, value in known.items()})
        return made

    def with_sizes(self, sizes):
        """Of these sizes; None is one that is not known."""
        return self._with(sizes=None if sizes is None else list(sizes), strides=None)

    def with_dtype(self, dtype):
        return self._with(dtype=dtype)

    def with_device(self, device):
        return self._with(device=device)

    def kind(self):
        return "TensorType"

    def sizes(self):
        """The sizes where all are known, else None."""
        return None if self._sizes is None or None in self._sizes else list(self._sizes)

    def symbolic_sizes(self):
        """The sizes, where one that is not known is a negative number of its own."""
        if self._sizes is None:
            return None
        return [-1 - i if size is None else size for i, size in enumerate(self._sizes)]

    def varyingSizes(self):  # noqa: N802
        return None if self._sizes is None else list(self._sizes)

    def strides(self):
        return None if self._strides is None else list(self._strides)

    def dim(self):
        return None if self._sizes is None else len(self._sizes)

    def dtype(self):
        return self._dtype

    def scalarType(self):  # noqa: N802
        """The name of the element type, ``Float`` say."""
        if self._dtype is None:
            return None
        return rushlight.empty(0, dtype=self._dtype).type().rpartition(".")[2].removesuffix("Tensor")

    def device(self):
        return self._device

    def requiresGrad(self):  # noqa: N802
        return self._grad

    requires_grad = requiresGrad

    def is_complete(self):
        return self.sizes() is not None and self._dtype is not None

    def _known(self):
        return self._sizes, self._strides, self._dtype, self._device, self._grad

    def __eq__(self, other):
        if isinstance(other, TensorType):
            return self._known() == other._known()
        return isinstance(other, JitType) and other.annotation_str == "Tensor" and self == TensorType()

    def __hash__(self):
        return hash("Tensor")

    def __repr__(self):
        parts = ["*" if size is None else str(size) for size in self._sizes or ()]
        parts += [f"strides={self._strides}"] if self._sizes and self._strides else []
        parts += [] if self._grad is None else [f"requires_grad={int(self._grad)}"]
        parts += [] if self._device is None else [f"device={self._device}"]
        name = self.scalarType() or "Tensor"
        return f"{name}({', '.join(parts)})" if parts or self._sizes == [] else name

    __str__ = __repr__


_KINDS = {"str": "String", "bool": "Bool", "int": "Int", "float": "Float", "NoneType": "None", "Dict": "Dict"}


class LateGraph:
    """The graph of a method, made when something is asked of it."""

    def __init__(self, unit, module, inlined=False):
        self._unit, self._graph, self._inlined = unit, None, inlined
        self._module = (lambda: None) if module is None else weakref.ref(module)

    def _made(self):
        module = self._module()
        if module is not None and not self._inlined:
            return module._graph_of(self._unit)
        if self._graph is None:
            from rushlight.jit._graph import graph_of
            from rushlight.jit._graph_inline import inlined_graph_of

            self._graph = (inlined_graph_of if self._inlined else graph_of)(self._unit, module)
            self._graph.module = self._module  # which holds this
        return self._graph

    @property  # type: ignore[misc]
    def __class__(self):  # what `isinstance` asks for
        return type(self._made())

    def __getattr__(self, name):
        if name in ("_unit", "_module", "_graph", "_inlined"):
            raise AttributeError(name)
        return getattr(self._made(), name)

    def __repr__(self):
        return repr(self._made())

    __str__ = __repr__


def assert_is_instance(value, kind):
    """Raise if a value is none of a type; `torch._C._jit_assert_is_instance`."""
    from rushlight.jit._annotations import Annotations
    from rushlight.jit._call_check import converted

    unit = Annotations(None, None)
    try:
        wanted = unit.type_of(ast.parse(kind.annotation_str, mode="eval").body)
    except (SyntaxError, AttributeError):  # a class of the program, which its name does not lead to
        wanted = t.UNKNOWN
    try:
        converted(value, wanted)
    except TypeError:
        raise RuntimeError(f"Expected a value of type {kind}, got {type(value).__name__}") from None


show_from("", TensorType)
