"""Interfaces: classes whose name in an annotation stands for whatever has their methods."""

from __future__ import annotations

import types

from rushlight.jit import _types as t
from rushlight.jit._annotations import qualified_name
from rushlight.jit._scripted_class import record_of
from rushlight.nn import Module

__all__ = ["check_interface", "methods_of", "misfit"]


def check_interface(cls):
    """Refuse a class that inherits from more than `object` or Module."""
    if issubclass(cls, Module) and cls.__bases__ != (Module,):
        raise RuntimeError(
            "TorchScript interface does not support inheritance yet. Please directly inherit from 'object' "
            "or 'nn.Module'."
        )
    if not issubclass(cls, Module) and cls.__bases__ != (object,):
        raise RuntimeError(
            "TorchScript interface does not support inheritance yet. Please directly inherit from 'object' "
            "or 'nn.Module'."
        )


def methods_of(interface):
    """Name -> function, of the methods that an interface asks for."""
    return {n: m for n, m in vars(interface).items() if isinstance(m, types.FunctionType)}


def misfit(value, interface):
    """Why a value does not have what an interface asks for; None if it does."""
    from rushlight.jit._script import ScriptModule

    own = type(value)
    shown = getattr(value, "original_name", own.__name__)
    if issubclass(interface, Module) and not isinstance(value, ScriptModule):
        if isinstance(value, Module):
            return (
                f"Assigning the object {value} to an interface fails because the value is not a TorchScript "
                "compatible type, did you forget to turn it into a user defined TorchScript class?"
            )
        return f"'{shown}' is no module: only ScriptModule class can be subtype of module interface"
    units = getattr(own, "_script_methods", None)
    if units is None:
        record = record_of(own)
        if record is None or record.kind != "class" or not record.methods():
            return (
                f"Assigning the object {value!r} to an interface fails because the value is not a "
                "TorchScript compatible type, did you forget to turn it into a user defined "
                "TorchScript class?"
            )
        return misfit_of_type(record.type, interface)
    head = f"'{shown}' is not compatible with interface '{interface.__name__}'"
    for name, method in methods_of(interface).items():
        unit = units.get(name)
        if unit is None:
            return f"{head}: method '{name}' is missing or not compiled; mark it with @torch.jit.export"
        wanted, found = _schema(interface, name, method), unit.schema
        if found is not None and not unit.overloaded and not _serves(found, wanted):
            return f"{head}: method '{name}' is\n{found}\nand should be\n{wanted}"
    return None


def misfit_of_type(kind, interface):
    """Why values of a type do not have what an interface asks for; None if they do."""
    head = f"'{kind}' is not compatible with interface {qualified_name(interface)}"
    if kind.python is interface:
        return None
    other = kind.kind == "Interface"
    record = None if other else record_of(kind.python)
    if record is not None and (record.read_from_file or record.under_way):
        return None
    for name, method in methods_of(interface).items():
        found = None
        if other and name in (theirs := methods_of(kind.python)):
            found = _schema(kind.python, name, theirs[name])
        elif record is not None:
            found = record.schema(name)
        if found is None:
            return f"{head}: it does not have method '{name}'"
        wanted = _schema(interface, name, method)
        if not _serves(found, wanted):
            return f"{head}: method '{name}' is\n{found}\nand should be\n{wanted}"
    return None


def _serves(found, wanted):
    if len(found.arguments) != len(wanted.arguments):
        return False
    pairs = zip(found.arguments, wanted.arguments, strict=True)
    takes = all(t.is_subtype(t.plain(w.type), t.plain(f.type)) for f, w in pairs)
    return takes and t.is_subtype(found.returns, wanted.returns)


def _schema(interface, name, method):
    from rushlight.jit.frontend import schema_of_function

    known = interface.__dict__.get("__script_schemas__")
    if known is None:
        known = interface.__script_schemas__ = {}
    if name not in known:
        known[name] = schema_of_function(method, True)
    return known[name]
