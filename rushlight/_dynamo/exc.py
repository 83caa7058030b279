"""What graph capture raises."""

from rushlight._errors.capture import FillsTables as FillsTables
from rushlight._errors.capture import TorchDynamoException as TorchDynamoException
from rushlight._errors.capture import Unsupported as Unsupported
from rushlight._errors.capture import UserError as UserError

__all__ = [
    "BackendCompilerFailed",
    "FillsTables",
    "InternalTorchDynamoError",
    "InvalidBackend",
    "TorchDynamoException",
    "TorchRuntimeError",
    "Unsupported",
    "UserError",
]


class InternalTorchDynamoError(TorchDynamoException):
    """A mistake of the capture's own."""


class TorchRuntimeError(TorchDynamoException):
    """An operator failed on tensors without data."""


class BackendCompilerFailed(TorchDynamoException):
    """The compiler of the graph failed."""


class InvalidBackend(TorchDynamoException):
    """No back end has that name."""
