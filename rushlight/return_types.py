"""The named tuples that operators return, ``return_types.topk`` for instance."""

from rushlight import _C


def __getattr__(name):
    found = None if name.startswith("__") else _C._return_type(name)
    if found is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = found
    return found
