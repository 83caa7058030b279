"""What graph capture raises."""

from rushlight._errors.capture import FillsTables as FillsTables
from rushlight._errors.capture import MayPass as MayPass
from rushlight._errors.capture import ProgramRaises as ProgramRaises
from rushlight._errors.capture import TorchDynamoException as TorchDynamoException
from rushlight._errors.capture import Unsupported as Unsupported
from rushlight._errors.capture import UserError as UserError

__all__ = [
    "BackendCompilerFailed",
    "FailOnRecompileLimitHit",
    "FillsTables",
    "InternalTorchDynamoError",
    "InvalidBackend",
    "MayPass",
    "ProgramRaises",
    "TorchDynamoException",
    "TorchRuntimeError",
    "Unsupported",
    "UserError",
]


class InternalTorchDynamoError(TorchDynamoException):
    """A mistake of the capture's own."""


class TorchRuntimeError(TorchDynamoException):
    """An operator of the program failed, on tensors without data and on those of the call."""


class FailOnRecompileLimitHit(Exception):
    """A program that must be one graph was compiled as often as the limit allows."""


class BackendCompilerFailed(TorchDynamoException):
    """The compiler of the graph failed."""


class InvalidBackend(TorchDynamoException):
    """No back end has that name."""
