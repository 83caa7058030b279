"""What a trace warns of, at the line of the program that did it."""

import os
import sys
import warnings

from rushlight._command.names import is_own_frame, show_from

_HERE = os.path.dirname(__file__)


class TracerWarning(Warning):
    """What a trace may get wrong: a choice by value, or a number taken out of a tensor."""

    @staticmethod
    def ignore_lib_warnings():
        """Do not warn of what the library itself does while a trace is recorded."""
        warnings.filterwarnings("ignore", category=TracerWarning, module=r"(torch|rushlight)\.(?!jit)")


def calling_frame():
    """The innermost frame that is not the tracer's."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_HERE):
        frame = frame.f_back
    return frame


def warn(message):
    frame = calling_frame()
    told = frame.f_globals.setdefault("__warningregistry__", {})
    module = frame.f_globals.get("__name__", "")
    warnings.warn_explicit(message, TracerWarning, frame.f_code.co_filename, frame.f_lineno, module, told)


def warn_of_value(what):
    """A tensor was made a number, which the trace keeps as it is."""
    warn(
        f"Converting a tensor to a {what} might cause the trace to be incorrect. We can't record the data "
        "flow of Python values, so this value will be treated as a constant in the future. This means that "
        "the trace might not generalize to other inputs!"
    )


def warn_of_size(what):
    """The same of a size. What the library's layers check of sizes is no choice of the program."""
    if not is_own_frame(calling_frame()):
        warn_of_value(what)


def warn_of_iteration():
    """A loop ran over the rows of a tensor: the trace has as many steps as it had."""
    warn(
        "Iterating over a tensor might cause the trace to be incorrect. Passing a tensor of different shape "
        "won't change the number of iterations executed (and might lead to errors or silently give incorrect "
        "results)."
    )


OTHER_VIEWS = (
    "There are other live references to the data region being modified when tracing in-place operator {}. "
    "This might cause the trace to be incorrect, because all other views that also reference this data will "
    "not reflect this change in the trace! On the other hand, if all other views use the same memory chunk, "
    "but are disjoint (e.g. are outputs of torch.split), this might still be safe."
)

LENGTH = (
    "Using len to get tensor shape might cause the trace to be incorrect. Recommended usage would be "
    "tensor.shape[0]. Passing a tensor of different shape might lead to errors or silently give incorrect "
    "results."
)


show_from("jit._trace", TracerWarning)
