"""Where the program is: its own line, and the module that is running."""

import os
import sys
from types import FrameType

from rushlight._command.names import is_program_frame
from rushlight.utils.module_tracker import ModuleTracker


def program_line():
    """`file:line` of the innermost frame outside of Rushlight and of the standard library."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if is_program_frame(frame):
            name = frame.f_code.co_filename
            return f"{os.path.relpath(name) if os.path.isfile(name) else name}:{frame.f_lineno}"
        frame = frame.f_back
    return "?"


class Modules:
    """Which module is running, forward or backward, while the context lasts."""

    def __init__(self):
        self._tracker = ModuleTracker()

    def __enter__(self):
        self._tracker.__enter__()
        return self

    def __exit__(self, *exc):
        return self._tracker.__exit__(*exc)

    @property
    def is_backward(self):
        return self._tracker.is_bw

    @property
    def path(self):
        """The path of the innermost module that is running, "" outside of modules."""
        return max(self._tracker.parents - {"Global"}, key=lambda path: path.count("."), default="")

    def __str__(self):
        text = f"in module {self.path}, " if self.path else ""
        return text + ("in the backward pass, " if self.is_backward else "") + f"at {program_line()}"
