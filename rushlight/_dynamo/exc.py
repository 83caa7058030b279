"""What graph capture raises."""

__all__ = [
    "BackendCompilerFailed",
    "InternalTorchDynamoError",
    "InvalidBackend",
    "TorchDynamoException",
    "TorchRuntimeError",
    "Unsupported",
    "UserError",
]


class TorchDynamoException(RuntimeError):
    """Base of all."""


class InternalTorchDynamoError(TorchDynamoException):
    """A mistake of the capture's own."""


class TorchRuntimeError(TorchDynamoException):
    """An operator failed on tensors without data."""


class Unsupported(TorchDynamoException):
    """Code that no graph can hold."""


class UserError(Unsupported):
    """Code that captures no graph by a mistake of the program's."""


class BackendCompilerFailed(TorchDynamoException):
    """The compiler of the graph failed."""


class InvalidBackend(TorchDynamoException):
    """No back end has that name."""
