"""What graph capture and export raise. Its home for programs is `torch._dynamo.exc`."""

__all__ = [
    "GuardOnDataDependentSymNode",
    "ProgramRaises",
    "TorchDynamoException",
    "Unsupported",
    "UserError",
]

_HOME = "rushlight._dynamo.exc"


class TorchDynamoException(RuntimeError):
    """Base of all."""

    __module__ = _HOME


class Unsupported(TorchDynamoException):
    """Code that no graph can hold."""

    __module__ = _HOME


class ProgramRaises(Unsupported):
    """The program raised, while it was captured, the error that this one comes from."""

    __module__ = _HOME


class MayPass(Unsupported):
    """The program does what a first call may do for good, such as a warning that is given once."""

    __module__ = _HOME


class FillsTables(MayPass):
    """The program adds to dicts: it may find there in its next call what it keeps."""

    __module__ = _HOME


class UserError(Unsupported):
    """The program asks of capture or export what it cannot do; the text says what to change."""

    __module__ = _HOME

    @property
    def msg(self):
        """The text."""
        return str(self.args[0]) if self.args else ""


class GuardOnDataDependentSymNode(RuntimeError):
    """A program that is exported branches on a number that depends on its data."""

    __module__ = "rushlight.fx.experimental.symbolic_shapes"

    def __init__(self, cond="", *args):
        super().__init__(*args)
        self.cond = cond
