"""Signatures and documentation of operators, made from their records when ``inspect`` or ``help`` asks."""

import functools
import keyword
import operator
from inspect import Parameter, Signature
from types import MethodDescriptorType as _METHOD

import rushlight

_TYPES = {
    "Tensor": "Tensor",
    "Tensor[]": "Sequence[Tensor]",
    "Scalar": "Number",
    "int": "int",
    "float": "float",
    "bool": "bool",
    "int[]": "Sequence[int]",
    "float[]": "Sequence[float]",
    "bool[]": "Sequence[bool]",
    "Scalar[]": "Sequence[Number]",
    "str": "str",
    "ScalarType": "dtype",
    "Device": "Device",
    "Layout": "layout",
    "MemoryFormat": "memory_format",
    "Generator": "Generator",
}
_PROMOTION = {
    "float": "Integers and bool are computed in the default floating dtype.",
    "logical": "Operands of any dtype are read as truth values; the result is bool.",
    "not_bool": "Operands are promoted to a common dtype; bool operands are refused.",
    "same": "Operands are promoted to a common dtype.",
}


class _Name:
    """An annotation that shows as it would be written."""

    def __init__(self, text):
        self.text = text

    def __repr__(self):
        return self.text

    def __eq__(self, other):
        return self.text == getattr(other, "text", other)

    def __hash__(self):
        return hash(self.text)


def parameter_type(parameter, outputs=1):
    """The type of a parameter as annotations spell it."""
    if parameter["name"] == "out" and parameter["keyword_only"] and parameter["optional"]:
        return "Tensor | None" if outputs == 1 else f"tuple[{', '.join(['Tensor'] * outputs)}] | None"
    text = _TYPES[parameter["type"]]
    if parameter["elements_optional"]:
        text = text.replace("]", " | None]")
    if parameter["numbers"]:
        text += " | Number"
    if parameter["accepts_one"]:
        text = f"{text[9:-1]} | {text}"
    return text + " | None" if parameter["optional"] and text != "Device" else text


def named_type_of(record):
    """The name of the type of an operator's named results."""
    return f"linalg_{record['name']}" if record["space"] == "linalg" else record["name"]


def return_type(overload):
    """The type of what an overload returns as annotations spell it."""
    if overload["returns_self"]:
        return "Tensor"
    plain = {"Tensor[]": "tuple[Tensor, ...]", "int[]": "Size"}
    types = [plain.get(kind, _TYPES[kind]) for kind, _ in overload["returns"]]
    if len(types) > 1 and any(name for _, name in overload["returns"]):
        return f"return_types.{named_type_of(overload)}"
    return types[0] if len(types) == 1 else f"tuple[{', '.join(types)}]" if types else "None"


def python_name(name):
    return name + "_" if keyword.iskeyword(name) else name


def _parameters(overload):
    """The parameters of one overload; what precedes a name that is no identifier is positional only."""
    facts = overload["parameters"]
    reserved = max((i for i, p in enumerate(facts) if keyword.iskeyword(p["name"])), default=-1)
    for i, p in enumerate(facts):
        kind = Parameter.KEYWORD_ONLY if p["keyword_only"] else Parameter.POSITIONAL_OR_KEYWORD
        yield Parameter(
            python_name(p["name"]),
            Parameter.POSITIONAL_ONLY if i <= reserved else kind,
            default=p.get("default", Parameter.empty),
            annotation=_Name(parameter_type(p, len(overload["returns"]))),
        )


def _spread(overload):
    """The other form of an overload that takes its list as separate arguments, or nothing."""
    if not (overload["var_ints"] or overload["var_tensors"]):
        return []
    parameters = list(_parameters(overload))
    index = next(i for i, p in reversed(list(enumerate(overload["parameters"]))) if not p["keyword_only"])
    element = _Name("int" if overload["var_ints"] else "Tensor")
    parameters[index] = Parameter(parameters[index].name, Parameter.VAR_POSITIONAL, annotation=element)
    before = [p.replace(kind=Parameter.POSITIONAL_ONLY) for p in parameters[:index]]
    return [Signature(before + parameters[index:], return_annotation=_Name(return_type(overload)))]


def overload_signatures(function, schemas=None):
    """One signature for each form of call (of these schemas), in the order in which arguments are matched."""
    found = []
    for overload in function._overloads:
        older = "_first(" in overload["schema"]  # forms of older programs: taken, but shown to nobody
        if not older if schemas is None else overload["schema"] in schemas:
            found.append(Signature(_parameters(overload), return_annotation=_Name(return_type(overload))))
            found += _spread(overload)
    return found


def forms(function, schemas=None):
    """The forms of call without annotations, as documentation shows them."""
    for found in overload_signatures(function, schemas):
        bare = [p.replace(annotation=Parameter.empty) for p in found.parameters.values()]
        if function.__class__ is _METHOD:
            bare = bare[1:]
        yield f"{Signature(bare)} -> {found.return_annotation}"


def _merged(signatures):
    """The parameters of all signatures where each begins as the longest does; None where they part."""
    bare = [[p.replace(annotation=Parameter.empty) for p in s.parameters.values()] for s in signatures]
    if any(p.kind is Parameter.VAR_POSITIONAL for parameters in bare for p in parameters):
        return None
    rows = [[p for p in parameters if p.kind is not Parameter.KEYWORD_ONLY] for parameters in bare]
    longest = max(rows, key=len)
    if any((p.name, p.kind) != (q.name, q.kind) for row in rows for p, q in zip(row, longest)):
        return None
    positional = [_optional(p, [row[i : i + 1] for row in rows]) for i, p in enumerate(longest)]
    taken = {p.name for p in longest}
    keywords = {p.name: p for parameters in bare for p in parameters if p.name not in taken}
    lists = {name: [[p for p in parameters if p.name == name] for parameters in bare] for name in keywords}
    return positional + [_optional(p, lists[name]) for name, p in keywords.items()]


def _optional(parameter, found):
    """The parameter; with a default where some signature can do without it. `found`: it, per signature."""
    given = [p.default for row in found for p in row if p.default is not Parameter.empty]
    if given or not all(found):
        return parameter.replace(default=given[0] if given else None)
    return parameter


def _shared_start(signatures):
    """The first parameter, if all signatures share it."""
    starts = [next(iter(s.parameters.values()), None) for s in signatures]
    if len({p and p.name for p in starts}) > 1 or max(p.kind for p in starts) >= Parameter.VAR_POSITIONAL:
        return []
    return [min(starts, key=lambda p: p.kind)]


def _typed(found):
    """A signature with types in place of their names, for programs that ask for them."""
    types = {"Tensor": rushlight.Tensor, "int": int, "float": float, "bool": bool, "str": str, "None": None}

    def type_of(annotation):
        names = getattr(annotation, "text", "").split(" | ")
        if not set(names) <= set(types):
            return annotation
        return functools.reduce(operator.or_, [types[name] for name in names])

    typed = [p.replace(annotation=type_of(p.annotation)) for p in found.parameters.values()]
    return found.replace(parameters=typed, return_annotation=type_of(found.return_annotation))


def signature(function):
    """The one overload's signature, or one that admits every call that some overload admits."""
    signatures = overload_signatures(function)
    return _typed(signatures[0] if len(signatures) == 1 else _of_all(signatures))


def _of_all(signatures):
    merged = _merged(signatures)
    if merged is None:
        merged = _shared_start(signatures)
        merged += [Parameter("args", Parameter.VAR_POSITIONAL), Parameter("kwargs", Parameter.VAR_KEYWORD)]
    returns = {s.return_annotation.text for s in signatures}
    annotation = _Name(returns.pop()) if len(returns) == 1 else Signature.empty
    return Signature(merged, return_annotation=annotation)


@functools.cache  # decorators ask again and again, functools.wraps above all
def document(function):
    """The forms of call, what they do, arguments, shapes, errors, an example, dtypes, and the schemas."""
    from . import docs as further

    overloads = function._overloads
    docs = dict.fromkeys(o["doc"] for o in overloads if o["doc"])
    bound = function.__class__ is _METHOD
    arguments = further.arguments(overloads, overload_signatures(function), bound)
    example = further.example(overloads)
    record = overloads[0]
    sections = [
        [function.__name__ + form for form in forms(function)],
        list(docs),
        _section("Arguments", arguments),
        *([f"{title}: {text}"] for title, text in further.sections(overloads).items()),
        _section("Example", example),
        notes(overloads),
        ["Schemas:", *(f"  {i}. {o['schema']}" for i, o in enumerate(overloads, 1))],
        [f"Source: the record of `{record['name']}` in src/ops, family {record['family']}."],
    ]
    return "\n\n".join("\n".join(section) for section in sections if section)


def _section(title, lines):
    return [f"{title}:", *(f"    {line}" for line in lines)] if lines else []


def notes(records):
    """Sentences on dtypes."""
    promotion = [_PROMOTION[r["promotion"]] for r in records if r["promotion"] and _promotes(r)]
    computed = [f"Computed for {', '.join(r['dtypes'])}." for r in records if r["dtypes"]]
    return list(dict.fromkeys(promotion + computed))


def _promotes(record):
    return record["operands"] > 1 or record["promotion"] != "same"
