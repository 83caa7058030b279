"""The types of scripted modules: those of one class share one where their attributes have the same types."""

from rushlight.jit._annotations import value_type
from rushlight.jit._attributes import constants_of
from rushlight.jit._frozen_modules import whole
from rushlight.jit._graph_types import ClassType
from rushlight.jit._inferred import is_convertible
from rushlight.jit._library import library_name
from rushlight.jit._script import ScriptFunction
from rushlight.nn import Module

__all__ = ["ModuleType", "module_type"]

_OWN_STATE = frozenset((*Module().__dict__, "_graphs"))


class ModuleType(ClassType):
    """The type of a module, equal to that of another one by its class and by what its parts are like."""

    def __init__(self, name, parts):
        super().__init__(name)
        self._parts = parts

    def __eq__(self, other):
        return isinstance(other, ModuleType) and (self._parts == other._parts)

    def __hash__(self):
        return hash(self.annotation_str)


def module_type(module, name):
    """The type of a scripted module; `name` is its qualified one."""
    return ModuleType(name, _parts(module))


def _parts(module):
    module = whole(module)
    cls = getattr(type(module), "_python_class", type(module))
    constants, ignored = constants_of(cls), getattr(type(module), "_ignored", ())
    tensors = {n: t is not None for table in (module._parameters, module._buffers) for n, t in table.items()}
    attributes = {
        name: _kind(value, name in constants)
        for name, value in module.__dict__.items()
        if name not in _OWN_STATE and name not in ignored and is_convertible(value)
    }
    children = [(name, child and _parts(child)) for name, child in module._modules.items()]
    own = getattr(type(module), "_own_type", None)  # of a module that shares its type with none
    return cls, own, list(module._parameters), tensors, attributes, children, ignored


def _kind(value, constant):
    if constant:
        return "constant", value
    if isinstance(value, ScriptFunction):
        return "function", value.unit.filename, value.unit.code
    if library_name(value) is not None:
        return "function", library_name(value)
    return "value", str(value_type(value))
