"""The types of values of a graph, which say their text."""

import ast
import weakref

import rushlight
from rushlight.jit import _types as t

__all__ = ["CompleteTensorType", "JitType", "LateGraph", "TensorType", "assert_is_instance"]


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


class TensorType(JitType):
    """The type of tensors, of which a script knows no more."""

    def __init__(self):
        super().__init__("Tensor")

    @staticmethod
    def get():
        return TensorType()

    def kind(self):
        return "TensorType"

    def sizes(self):
        """None: sizes are known when a script runs."""

    dim = dtype = device = scalarType = strides = sizes  # noqa: N815


class CompleteTensorType(TensorType):
    """The type of a tensor that a run had: what it was like then."""

    def __init__(self, tensor):
        super().__init__()
        self._sizes, self._strides = list(tensor.size()), _strides_of(tensor)
        self._dtype, self._device, self._grad = tensor.dtype, tensor.device, tensor.requires_grad
        self._scalar_type = tensor.type().rpartition(".")[2].removesuffix("Tensor")

    def sizes(self):
        return list(self._sizes)

    def varyingSizes(self):  # noqa: N802
        return self.sizes()

    def strides(self):
        return list(self._strides)

    def dim(self):
        return len(self._sizes)

    def dtype(self):
        return self._dtype

    def scalarType(self):  # noqa: N802
        return self._scalar_type

    def device(self):
        return self._device

    def requiresGrad(self):  # noqa: N802
        return self._grad

    requires_grad = requiresGrad

    def __repr__(self):
        parts = [*map(str, self._sizes)]
        parts += [f"strides={self._strides}"] if self._sizes else []
        parts += [f"requires_grad={int(self._grad)}", f"device={self._device}"]
        return f"{self.scalarType()}({', '.join(parts)})"

    __str__ = __repr__


def _strides_of(tensor):
    return list(tensor.stride()) if tensor.layout is rushlight.strided else []


_KINDS = {"str": "String", "bool": "Bool", "int": "Int", "float": "Float", "NoneType": "None", "Dict": "Dict"}


class LateGraph:
    """The graph of a method, made when something is asked of it."""

    def __init__(self, unit, module):
        self._unit, self._graph = unit, None
        self._module = (lambda: None) if module is None else weakref.ref(module)

    def _made(self):
        if self._graph is None:
            from rushlight.jit._graph import graph_of

            self._graph = graph_of(self._unit, self._module())
        return self._graph

    def __getattr__(self, name):
        if name in ("_unit", "_module", "_graph"):
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
