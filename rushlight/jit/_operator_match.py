"""Whether an operator of the table takes arguments of given types, by its schemas."""

import functools

from rushlight.jit import _types as t

__all__ = ["names_of_results", "operator_schemas", "returned", "schemas_of", "unfit"]


@functools.cache
def operator_schemas(name):
    """The schemas of all overloads of an operator."""
    from rushlight import _ops

    entries = _ops._find("aten", name)
    return [_ops._overload("aten", name, overload)._schema for overload in entries]


def schemas_of(operator):
    """The schemas of an operator of `torch.ops`: of one overload, or of all."""
    if hasattr(operator, "_schema"):
        return [operator._schema]
    return [getattr(operator, name)._schema for name in operator.overloads()]


def unfit(schema, given, by_name):
    """Why a call does not fit a schema, or None. What is not sure fits."""
    plain = [a for a in schema.arguments if not a.kwarg_only]
    bound = dict(zip((a.name for a in plain), given, strict=False))
    unknown = None
    if len(given) > len(plain):
        sizes = plain and str(plain[-1].type).endswith("[]")  # may be given one by one
        if sizes or given[-1] == t.TENSOR or any(a.name == "alpha" for a in schema.arguments):
            return None  # results to write to, and factors, may be given by position too
        unknown = f"Expected at most {len(plain)} arguments but found {len(given)} positional arguments."
    known = {a.name: a for a in schema.arguments}
    for name, kind in by_name.items():
        word = _OTHER_WORDS.get(name, name)
        if name in ("self", "input") and schema.arguments:
            word = schema.arguments[0].name
        if name not in known and (kind == t.TENSOR or name == "correction"):
            return None  # the names of results, which differ
        if word not in known and name not in known:
            unknown = unknown or f"Keyword argument {name} unknown."
            continue
        word = name if name in known else word
        if word in bound:
            return f"Argument {name} specified twice in schema."
        bound[word] = kind
    for argument in schema.arguments:
        kind = bound.get(argument.name)
        if kind is None:
            if not argument.has_default_value():
                return f"Argument {argument.name} not provided."
            continue
        text = str(argument.type)
        if not _fits(kind, text):
            return (
                f"Expected a value of type '{argument.type.annotation_str}' for argument "
                f"'{argument.name}' but "
                f"instead found type '{kind}'."
            )
    return unknown


_OTHER_WORDS = {"axis": "dim", "keepdims": "keepdim", "x": "self", "x1": "self", "x2": "other"}  # NumPy's
_NUMBERS = ("int", "float", "bool", "complex", "number")
_REFUSED = {  # kinds that are surely none of a schema's type
    "Tensor": ("str", "NoneType", "Dict", "Optional", "Device"),
    "Tensor[]": ("str", "NoneType", "Dict", "Optional", *_NUMBERS),
    "int": ("str", "float", "complex", "NoneType", "Dict", "List", "Optional", "Device"),
    "float": ("str", "complex", "NoneType", "Dict", "List", "Optional", "Device"),
    "Scalar": ("str", "NoneType", "Dict", "List", "Optional", "Device", "Tuple"),
    "bool": ("str", "float", "complex", "NoneType", "Dict", "List", "Optional", "Device"),
    "str": ("int", "float", "bool", "complex", "number", "NoneType", "Dict", "List", "Optional", "Tensor"),
    "int[]": ("str", "float", "complex", "NoneType", "Dict", "Optional", "Device"),
    "float[]": ("str", "NoneType", "Dict", "Optional", "Device"),
}


def _fits(kind, text):
    if not kind.known:
        return True
    text = text.replace("SymInt", "int")
    if text.endswith("?"):
        parts = [p for p in t.options(kind) if p != t.NONE]
        return all(_fits(part, text[:-1]) for part in parts)
    return t.plain(kind).kind not in _REFUSED.get(text, ())


def returned(schema):
    """The type that an operator gives; several results are a tuple, whose parts may have names."""
    kinds = [str(r.type) for r in schema.returns]
    if not kinds:
        return t.NONE
    parts = [_RETURNED.get(kind, t.UNKNOWN) for kind in kinds]
    if len(parts) == 1:
        return parts[0]
    names = [r.name for r in schema.returns]
    if not all(names):
        return t.tuple_of(parts)
    written = ", ".join(f"{part.schema()} {name}" for part, name in zip(parts, names, strict=True))
    return t.Type("NamedTuple", parts, f"({written})")


def names_of_results(kind):
    """The names of an operator's several results, in their order."""
    return [part.split()[-1] for part in kind.name.strip("()").split(", ")]


_RETURNED = {
    "Tensor": t.TENSOR,
    "Tensor[]": t.list_of(t.TENSOR),
    "int": t.INT,
    "bool": t.BOOL,
    "float": t.FLOAT,
}
