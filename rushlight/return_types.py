"""The named tuples that operators return, ``return_types.topk`` for instance."""

from rushlight import _C

__capture__ = "through"  # Note [Capture marks]

_IN_PYTHON = ("histogramdd",)  # functions that are not operators


def __getattr__(name):
    found = None if name.startswith("__") else _C._return_type(name)
    if name in _IN_PYTHON:
        from rushlight._functions import composites

        found = getattr(composites, f"_{name}_type")
    if found is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = found
    return found
