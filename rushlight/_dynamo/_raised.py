"""What a program that could not be captured raises when it runs as it is written."""

import dis
import types

from rushlight.nn import Module

from ._observer import mark_of
from .exc import TorchDynamoException, TorchRuntimeError

__all__ = ["as_written"]

__capture__ = "skip"  # Note [Capture marks]

_RAISE = dis.opmap["RAISE_VARARGS"]


def as_written(function, args, kwargs, name, fullgraph):
    """The result of a call that raised while it was captured, if it does not raise now.

    A RuntimeError or ValueError of an operator becomes a `TorchRuntimeError`, which programs catch where they
    compile. Errors that the program raises itself pass; with `fullgraph` the result is None for them, and the
    caller tells that there is no graph. Wrong arguments are the caller's error in both cases.
    """
    try:
        return function(*args, **kwargs)
    except (RuntimeError, ValueError) as error:
        if isinstance(error, TorchDynamoException) or _is_raised_by_statement(error):
            if fullgraph:
                return None
            raise
        failed = error
    except Exception as error:
        if _is_of_the_call(error, function):
            raise
        if fullgraph and (not isinstance(error, IndexError) or _is_raised_by_statement(error)):
            return None
        raise
    raise TorchRuntimeError(
        f"RuntimeError when making fake tensor call\n  Explanation: Dynamo failed to run {name} with fake "
        f"tensors: got {type(failed).__name__}({str(failed)!r})\n"
        "  Hint: without torch.compile it raises the same"
    ) from failed


def _is_of_the_call(error, function):
    """Whether the arguments do not fit the function, so that no line of it ran."""
    written = isinstance(function, (types.FunctionType, types.MethodType, Module))
    trace = error.__traceback__
    return written and isinstance(error, TypeError) and trace is not None and trace.tb_next is None


def _is_raised_by_statement(error):
    """Whether the program's code raised the error, by `raise` or `assert`."""
    trace = error.__traceback__
    while trace.tb_next is not None:
        trace = trace.tb_next
    raised = trace.tb_frame.f_code.co_code[trace.tb_lasti] == _RAISE
    return raised and mark_of(trace.tb_frame.f_globals) != "through"
