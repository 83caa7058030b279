"""The text of layers of the library in scripts: they run as they are, but have code and a graph to show."""

from __future__ import annotations

from rushlight.jit.frontend import FrontendError, script_function, unit_of_method_text
from rushlight.nn import Sequential

__all__ = ["library_unit"]


def library_unit(module, name):
    """The unit of a method that the library defines; None where scripts have no words for it."""
    if isinstance(module, Sequential) and name == "forward":
        calls = "".join(f'    input = self._modules["{child}"](input)\n' for child in module._modules)
        return unit_of_method_text(
            "Sequential.forward", f"def forward(self, input):\n{calls}    return input\n", {}
        )
    function = getattr(type(module), name, None)
    try:
        return script_function(function, {}, True)
    except (FrontendError, RuntimeError, OSError, TypeError, AttributeError):
        return None
