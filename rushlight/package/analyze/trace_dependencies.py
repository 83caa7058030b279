"""The modules whose code runs."""

import sys

__all__ = ["trace_dependencies"]


def trace_dependencies(callable, inputs):  # noqa: A002 - PyTorch's name
    """Names of the modules whose functions run while ``callable(*args)`` does, for each args of `inputs`."""
    found = set()

    def note(frame, event, argument):
        if event == "call":
            name = frame.f_globals.get("__name__")
            if isinstance(name, str):
                found.add(name)

    before = sys.getprofile()
    try:
        sys.setprofile(note)
        for args in inputs:
            callable(*args)
    finally:
        sys.setprofile(before)
    return list(found)
