"""`ScriptModule._c`: the module by the names of PyTorch's C++ class, for code that asks that class."""

from __future__ import annotations

__all__ = ["Handle", "freeze_handle", "wrap_cpp_module"]


class Handle:
    """A scripted module; whatever else is asked of it is asked of the module."""

    def __init__(self, module):
        self._module = module

    def __getattr__(self, name):
        if not hasattr(self._module, name):
            raise AttributeError(f"{self.qualified_name} (a script) does not have a field with name '{name}'")
        found = getattr(self._module, name)
        return Handle(found) if name in self._module._modules and found is not None else found

    def __call__(self, *args, **kwargs):
        return self._module(*args, **kwargs)

    def __eq__(self, other):
        return isinstance(other, Handle) and other._module is self._module

    def __repr__(self):
        return f"ScriptObject <{self.qualified_name}>"

    def __hash__(self):
        return hash(id(self._module))

    @property
    def qualified_name(self):
        return (
            getattr(type(self._module), "_qualified_name", None) or f"__torch__.{self._module.original_name}"
        )

    def _type(self):
        from rushlight.jit._module_types import module_type

        return module_type(self._module, self.qualified_name)

    def getattr(self, name):
        found = getattr(self._module, name)
        return Handle(found) if hasattr(type(found), "_script_methods") else found

    def setattr(self, name, value):
        setattr(self._module, name, value)

    def hasattr(self, name):
        from rushlight.jit._frozen_modules import is_frozen

        module = self._module
        if is_frozen(module):
            return name in module._kept or name in module._modules
        return hasattr(module, name)

    def _get_method(self, name):
        unit = self._module._unit(name)
        return Method(self._module, unit)

    def _get_methods(self):
        return [self._get_method(name) for name in self._module._method_names()]

    def _has_method(self, name):
        return name in self._module._method_names()

    def _method_names(self):
        return self._module._method_names()


class Method:
    """A method of a scripted module."""

    def __init__(self, owner, unit):
        self.owner, self._unit, self.name = owner, unit, unit.tree.name

    def __call__(self, *args, **kwargs):
        return getattr(self.owner, self.name)(*args, **kwargs)

    @property
    def code(self):
        return self._unit.code

    @property
    def schema(self):
        return self._unit.schema and self._unit.schema.of_method(self.owner._c.qualified_name)

    @property
    def graph(self):
        return self.owner._graph_of(self._unit)


def wrap_cpp_module(cpp_module):
    """The module of a handle."""
    return cpp_module._module


def freeze_handle(cpp_module, preservedAttrs=(), freezeInterfaces=True, preserveParameters=False):  # noqa: N803
    """The handle of the frozen module."""
    from rushlight.jit._freeze import frozen

    return Handle(frozen(cpp_module._module, [*preservedAttrs], False))
