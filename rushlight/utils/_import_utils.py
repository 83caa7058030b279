"""Whether a module could be imported, asked without importing it."""

import importlib.util
from functools import lru_cache


def _check_module_exists(name):
    try:
        return importlib.util.find_spec(name) is not None
    except ImportError:
        return False


@lru_cache
def dill_available():
    return _check_module_exists("dill")


def import_dill():
    if not dill_available():
        return None
    import dill

    # Importing dill teaches the standard pickler its own reductions; users of pickle must not notice.
    dill.extend(use_dill=False)
    return dill
