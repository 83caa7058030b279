"""The operators as functions, by the name under which PyTorch's own modules call them."""

import sys
import types

from rushlight import _C

__capture__ = "through"  # Note [Capture marks]


class _Operators(types.ModuleType):
    """Every name of the core, also those whose public form is another one."""

    def __getattr__(self, name):
        return getattr(_C._VariableFunctions, name)

    def __dir__(self):
        return dir(_C._VariableFunctions)


sys.modules[__name__].__class__ = _Operators
