"""The types of values of a graph, which say their text."""

__all__ = ["JitType", "TensorType"]


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


_KINDS = {"str": "String", "bool": "Bool", "int": "Int", "float": "Float", "NoneType": "None", "Dict": "Dict"}
