"""The text of layers of the library in scripts: they run as they are, but have code and a graph to show."""

from __future__ import annotations

import functools

from rushlight.jit.frontend import FrontendError, script_function, unit_of_method_text
from rushlight.nn import Sequential, functional
from rushlight.nn.modules.conv import _ForwardConv

__all__ = ["library_unit"]


def library_unit(module, name):
    """The unit of a method that the library defines; None where scripts have no words for it."""
    if isinstance(module, Sequential) and name == "forward":
        calls = "".join(f'    input = self._modules["{child}"](input)\n' for child in module._modules)
        return _unit_of_text("Sequential.forward", f"def forward(self, input):\n{calls}    return input\n")
    if isinstance(module, _ForwardConv) and name == "_conv_forward" and module.padding_mode == "zeros":
        given = "input, weight, bias, self.stride, self.padding, self.dilation, self.groups"
        text = f"def _conv_forward(self, input, weight, bias):\n    return F.{module._function}({given})\n"
        return _unit_of_text(f"{module.original_name}._conv_forward", text)
    return _unit_of_function(getattr(type(module), name, None))


@functools.lru_cache(maxsize=1024)
def _unit_of_text(name, text):
    return unit_of_method_text(name, text, {"F": functional})


@functools.lru_cache(maxsize=1024)
def _unit_of_function(function):
    try:
        return script_function(function, {}, True)
    except (FrontendError, RuntimeError, OSError, TypeError, AttributeError):
        return None
