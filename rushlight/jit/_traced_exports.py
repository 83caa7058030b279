"""Methods that a class marks with `torch.jit.export` are scripted in a trace: no run goes through them."""

from rushlight.jit._script import _Scripting, describe_methods, library_base
from rushlight.nn import Module

__all__ = ["add_exports"]


def add_exports(made, module):
    """Give a traced module, and those below it, the exported methods of the modules that they come from."""
    _add(_Scripting(), made, module, set())


def _add(scripting, made, module, seen):
    if id(made) in seen or not isinstance(getattr(type(made), "_script_methods", None), dict):
        return
    seen.add(id(made))
    for name, child in module._modules.items():
        if child is not None and isinstance(made._modules.get(name), Module):
            _add(scripting, made._modules[name], child, seen)
    wanted = [name for name in _exported(type(module)) if name not in type(made)._script_methods]
    if not wanted:
        return
    units, methods = {}, {}
    scripting._methods(type(module), library_base(type(module)), units, methods, wanted)
    known = type(made)._script_methods  # what was recorded stays
    units = {name: unit for name, unit in units.items() if name not in known}
    for unit in units.values():
        for name in unit.attributes_of_self:
            if not hasattr(made, name) and hasattr(module, name):
                made.__dict__[name] = getattr(module, name)
    for name, method in methods.items():
        if name not in known:
            setattr(type(made), name, method)
    known.update(units)
    scripting._finish(made, units, module)
    describe_methods(made)


def _exported(cls):
    """Names of the methods that the program's part of a class exports."""
    own = cls.__mro__[: cls.__mro__.index(library_base(cls))]
    defined = {name: member for c in reversed(own) for name, member in vars(c).items()}
    return [n for n, m in defined.items() if getattr(m, "_torchscript_modifier", None) == "export"]
