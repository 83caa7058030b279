"""A GraphModule as a Python package: source, parameters, and submodules by their constructors."""

import re
import warnings

import rushlight as torch
from rushlight._command.names import PACKAGE
from rushlight.nn.modules.module import _addindent

from ._module_source import _format_import_block

# Modules whose repr, evaluated, makes them again.
_REPR_MAKES = [
    torch.nn.Linear,
    torch.nn.Conv1d,
    torch.nn.Conv2d,
    torch.nn.Conv3d,
    torch.nn.BatchNorm1d,
    torch.nn.BatchNorm2d,
    torch.nn.BatchNorm3d,
]

_TEMPLATE = """
{imports}

from {package}.nn import *
class {name}(torch.nn.Module):
    def __init__(self):
        super().__init__()
{members}
{code}
"""


def _module_line(folder, name, child):
    path = folder / f"{name}.pt"
    made_by_repr = type(child) in _REPR_MAKES
    if made_by_repr:
        return f"setattr(self, {name!r}, {child!r})"
    torch.save(child, path)
    return f"setattr(self, {name!r}, torch.load(r'{path}', weights_only=False)) # {child!r}".replace(
        "\n", " "
    )


def _imports(block):
    """Import lines of generated code under this package's name: the alias may be off when they run."""
    others = [line for line in block.splitlines() if line != "import torch"]
    others = [re.sub(r"^(import|from) torch(?=[. ])", rf"\1 {PACKAGE}", line) for line in others]
    return "\n".join([f"import {PACKAGE} as torch", *others])


def write_module(module, folder, module_name):
    """Write `module.py`, `__init__.py` and what they load."""
    folder.mkdir(parents=True, exist_ok=True)
    torch.save(module.state_dict(), folder / "state_dict.pt")
    lines, pickled = [], []
    for name, child in module.named_children():
        lines.append(_module_line(folder, name, child))
        if type(child) not in _REPR_MAKES:
            pickled.append(name)
    for name, buffer in module._buffers.items():
        if buffer is not None:
            lines.append(
                f"self.register_buffer('{name}', torch.empty({list(buffer.shape)}, dtype={buffer.dtype}))"
            )
    for name, param in module._parameters.items():
        if param is not None:
            lines.append(
                f"setattr(self, '{name}', torch.nn.Parameter("
                f"torch.empty({list(param.shape)}, dtype={param.dtype})))"
            )
    lines.append(f"self.load_state_dict(torch.load(r'{folder / 'state_dict.pt'}'))")
    text = _TEMPLATE.format(
        imports=_imports(_format_import_block(module.graph.python_code(root_module="self").globals)),
        package=PACKAGE,
        name=module_name,
        members="\n".join("        " + line for line in lines),
        code=_addindent(module.code, 4),
    )
    (folder / "module.py").write_text(text)
    (folder / "__init__.py").write_text("from .module import *")
    if pickled:
        warnings.warn(
            "Was not able to save the following children modules as reprs -saved as pickled files instead: "
            f"{pickled}",
            stacklevel=3,
        )
