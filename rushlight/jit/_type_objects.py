"""TorchScript's types as objects: `torch.IntType.get()`, `torch.ListType(...)` and the like."""

from rushlight._command.names import show_public_from
from rushlight.jit._graph_types import JitType

__all__ = [
    "AnyType", "BoolType", "ComplexType", "DeviceObjType", "DictType", "FloatType", "IntType", "ListType",
    "NoneType", "NumberType", "OptionalType", "PyObjectType", "StreamObjType", "StringType", "TupleType",
]  # fmt: skip


class _Single(JitType):
    """A type without parts."""

    text = ""

    def __init__(self):
        super().__init__(self.text)

    @classmethod
    def get(cls):
        return cls()

    def kind(self):
        return type(self).__name__

    def isSubtypeOf(self, other):  # noqa: N802 - PyTorch's names
        return other.annotation_str in ("Any", self.text, f"Optional[{self.text}]")


class AnyType(_Single):
    text = "Any"


class BoolType(_Single):
    text = "bool"


class _Number(_Single):
    def isSubtypeOf(self, other):  # noqa: N802
        return other.annotation_str == "number" or super().isSubtypeOf(other)


class ComplexType(_Number):
    text = "complex"


class DeviceObjType(_Single):
    text = "Device"


class FloatType(_Number):
    text = "float"


class IntType(_Number):
    text = "int"


class NoneType(_Single):
    text = "NoneType"

    def isSubtypeOf(self, other):  # noqa: N802
        return other.annotation_str.startswith("Optional[") or super().isSubtypeOf(other)


class NumberType(_Single):
    text = "number"


class PyObjectType(_Single):
    text = "PyObject"


class StreamObjType(_Single):
    text = "Stream"


class StringType(_Single):
    text = "str"


class _Composite(JitType):
    """A type of other types."""

    def __init__(self, name, *parts):
        if None in parts:
            raise RuntimeError(f"Can not create {type(self).__name__} with None type")
        self._parts = parts
        super().__init__(f"{name}[{', '.join(part.annotation_str for part in parts)}]")

    def kind(self):
        return type(self).__name__


class ListType(_Composite):
    """ListType(element)"""

    def __init__(self, element):
        super().__init__("List", element)

    def getElementType(self):  # noqa: N802
        return self._parts[0]

    @staticmethod
    def ofTensors():  # noqa: N802
        return ListType(JitType("Tensor"))

    @staticmethod
    def ofInts():  # noqa: N802
        return ListType(IntType())

    @staticmethod
    def ofFloats():  # noqa: N802
        return ListType(FloatType())

    @staticmethod
    def ofBools():  # noqa: N802
        return ListType(BoolType())

    @staticmethod
    def ofStrings():  # noqa: N802
        return ListType(StringType())


class OptionalType(_Composite):
    """OptionalType(element)"""

    def __init__(self, element):
        super().__init__("Optional", element)

    def getElementType(self):  # noqa: N802
        return self._parts[0]

    @staticmethod
    def ofTensor():  # noqa: N802
        return OptionalType(JitType("Tensor"))


class DictType(_Composite):
    """DictType(key, value)"""

    def __init__(self, key, value):
        super().__init__("Dict", key, value)

    def getKeyType(self):  # noqa: N802
        return self._parts[0]

    def getValueType(self):  # noqa: N802
        return self._parts[1]


class TupleType(_Composite):
    """TupleType([element, ...])"""

    def __init__(self, elements):
        super().__init__("Tuple", *elements)
        if not elements:
            self.annotation_str = "Tuple[()]"

    def elements(self):
        return list(self._parts)


show_public_from("", globals())
