"""The methods that `dataclasses` makes, as text to compile: they have no source of their own."""

from __future__ import annotations

import dataclasses

__all__ = ["method_sources"]

_ORDER = {"__lt__": "<", "__le__": "<=", "__gt__": ">", "__ge__": ">="}


def method_sources(cls):
    """Name -> (text, names that it uses), of the methods that were made for a data class."""
    import typing

    fields = dataclasses.fields(cls)
    for field in fields:
        if field.default_factory is not dataclasses.MISSING:
            raise NotImplementedError(
                "Default factory initializers are not supported in TorchScript dataclasses"
            )
    try:
        said = typing.get_type_hints(cls)
    except Exception:  # annotations may name what is not there
        said = {}
    made = {}
    passed = [f for f in cls.__dataclass_fields__.values() if isinstance(f.type, dataclasses.InitVar)]
    names = {f"_{f.name}_type": said.get(f.name, f.type) for f in fields}
    names.update((f"_{f.name}_type", f.type.type) for f in passed)
    parts, body = [], []
    for field in cls.__dataclass_fields__.values():
        if not field.init or field not in (*fields, *passed):
            continue
        default = ""
        if field.default is not dataclasses.MISSING:
            names[f"_{field.name}_default"] = field.default
            default = f" = _{field.name}_default"
        parts.append(f"{field.name}: _{field.name}_type{default}")
        if field not in passed:
            body.append(f"    self.{field.name} = {field.name}\n")
    if hasattr(cls, "__post_init__"):
        body.append(f"    self.__post_init__({', '.join(f.name for f in passed)})\n")
    head = ", ".join(("self", *parts))
    made["__init__"] = f"def __init__({head}) -> None:\n{''.join(body) or '    pass'}"
    kind = f"'{cls.__name__}'"
    compared = [f.name for f in fields if f.compare]
    if cls.__dataclass_params__.eq:
        test = " and ".join(f"self.{n} == other.{n}" for n in compared) or "True"
        made["__eq__"] = f"def __eq__(self, other: {kind}) -> bool:\n    return {test}\n"
    if cls.__dataclass_params__.order:
        for name, sign in _ORDER.items():
            made[name] = f"def {name}(self, other: {kind}) -> bool:\n{_ordered(compared, sign)}"
    own = vars(cls)
    return {n: (text, names) for n, text in made.items() if n in own}


def _ordered(compared, sign):
    lines = [
        f"    if self.{n} != other.{n}:\n        return self.{n} {sign[0]} other.{n}\n" for n in compared
    ]
    return f"{''.join(lines)}    return {'=' in sign}\n"
