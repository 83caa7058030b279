"""Arguments of a scripted function when Python calls it: bound, checked against the schema and converted.

One function is generated for each schema. It costs a type comparison an argument where the value is of the
type already; everything else is looked at by the converter of the argument's type."""

from __future__ import annotations

import enum
import sys
import types

import rushlight
from rushlight._awaits import _Await
from rushlight.jit import _types as t
from rushlight.jit._run_errors import UNIT, told

__all__ = ["checked", "converted"]

_EXACT = {
    "Tensor": "Tensor",
    "Inferred": "Tensor",
    "int": "int",
    "float": "float",
    "bool": "bool",
    "str": "str",
    "complex": "complex",
}


class _Unfit(Exception):
    """A value that is not of the type; its text says why where there is more to say."""


def converted(value, kind):
    """``value`` as a value of type ``kind``; TypeError if it cannot be one."""
    try:
        return _converter(kind)(value)
    except _Unfit as error:
        raise TypeError(str(error)) from None


def checked(function, schema, skip_self=False):
    """``function``, which refuses and converts arguments as its schema says."""
    space = {"Tensor": rushlight.Tensor, "_function": function, "_none": None}
    names, body, passed = [], [], []
    if skip_self:
        names.append("self")
        passed.append("self")
    starred = False
    for i, argument in enumerate(schema.arguments):
        name = argument.name
        if argument.kwarg_only and not starred:
            names.append("*")
            starred = True
        if argument.default is t.Argument.REQUIRED:
            names.append(name)
        else:
            space[f"_default{i}"] = argument.default
            names.append(f"{name}=_default{i}")
        passed.append(f"{name}={name}" if argument.kwarg_only else name)
        if argument.type.kind not in ("Unknown", "Any"):
            space[f"_convert{i}"] = _refusing(schema, i + skip_self, argument)
            exact = _EXACT.get(argument.type.kind)
            test = f"if type({name}) is not {exact}" if exact else "if True"
            if exact == "int":
                test += f" or not -0x8000000000000000 <= {name} <= 0x7fffffffffffffff"
            body.append(f"    {test}: {name} = _convert{i}({name})\n")
    head = f"def call({', '.join(names)}):\n"
    text = f"{head}{''.join(body)}    return _function({', '.join(passed)})\n"
    exec(compile(text, "<torch_script>", "exec"), space)
    return _named_errors(space["call"], schema, skip_self)


def _named_errors(call, schema, skip_self):
    """``call`` with PyTorch's words for arguments that are missing, unknown or given twice."""

    def bound(*args, **kwargs):
        try:
            result = call(*args, **kwargs)
            return _plain(result) if isinstance(result, tuple) else result
        except Exception as error:
            if isinstance(error, TypeError):
                _check_binding(schema, args, kwargs, skip_self)
            known = told(error, bound.__code__)
            if known is error:
                raise
            raise known from error

    bound.__name__ = bound.__qualname__ = schema.name
    return bound


def _plain(value):
    """The results of an operator, which have names in scripts alone: Python gets a tuple."""
    if hasattr(type(value), "n_sequence_fields"):
        callers: types.FrameType | None = sys._getframe(2)
        for _ in range(_BETWEEN):
            if callers is not None and UNIT in callers.f_globals:
                return value
            callers = callers and callers.f_back
        return tuple(value)
    if type(value) is tuple and any(isinstance(part, tuple) for part in value):
        return tuple(_plain(part) if isinstance(part, tuple) else part for part in value)
    return value


_BETWEEN = 4  # frames there are at most between a script and one that it calls: those of a module's call


def _check_binding(schema, args, kwargs, skip_self):
    arguments, given = schema.arguments, len(args)
    shown = str(schema)
    if skip_self:
        arguments = [t.Argument("self", t.UNKNOWN), *arguments]
        shown = shown.replace("(", f"({self_name(args[0])} self{', ' if schema.arguments else ''}", 1)
    if given + len(kwargs) > len(arguments):
        raise RuntimeError(
            f"{schema.name}() expected at most {len(arguments)} argument(s) but received "
            f"{given + len(kwargs)} argument(s). Declaration: {shown}"
        )
    positional = sum(not a.kwarg_only for a in arguments)
    if given > positional:
        raise RuntimeError(
            f"{schema.name}() takes {positional} positional argument(s) but {given} was/were given.  "
            f"Declaration: {shown}"
        )
    for argument in arguments[given:]:
        if argument.default is t.Argument.REQUIRED and argument.name not in kwargs:
            raise RuntimeError(
                f"{schema.name}() is missing value for argument '{argument.name}'. Declaration: {shown}"
            )
    names = [a.name for a in arguments]
    for name in kwargs:
        if name not in names:
            raise RuntimeError(
                f"Unknown keyword argument '{name}' for operator '{schema.name}'. Schema: {shown}"
            )
        if names.index(name) < given:
            raise RuntimeError(
                f"Argument '{name}' specified both as positional and keyword argument. Schema: {shown}"
            )


def self_name(module):
    return f"__torch__.{getattr(module, 'original_name', type(module).__name__)}"


def _refusing(schema, position, argument):
    """The converter of an argument, whose refusal says where and what."""
    convert = _converter(argument.type)
    if argument.length is not None:
        convert = _repeated(convert, argument.length)
    mutable = any(kind.kind in ("List", "Dict") for kind in t.options(argument.type))

    def run(value):
        try:
            made = convert(value)
            return _copied(made) if mutable and made is value and not _within_scripts() else made
        except _Unfit as error:
            reason = str(error)
        inferred = (
            f"Inferred '{argument.name}' to be of type 'Tensor' because it was not annotated with an "
            "explicit type.\n"
            if argument.type.kind == "Inferred"
            else ""
        )
        more = reason and f"\n{reason}"
        if argument.type.kind == "Union":
            found = value_type(value)
            more = (
                f"\nCast error details: Expected a member of {argument.type} but instead found type {found}"
            )
        raise RuntimeError(
            f"{schema.name}() Expected a value of type '{argument.type}' for argument '{argument.name}' but "
            f"instead found type '{_type_name(value)}'.\n{inferred}Position: {position}\n"
            f"Value: {value!r}\nDeclaration: {schema}{more}"
        )

    return run


def _repeated(convert, length):
    """``convert`` for lists of which one number stands for so many."""
    return lambda value: convert([value] * length if isinstance(value, (int, float)) else value)


def _copied(value):
    """Lists and dictionaries of Python come into a script as copies: it does not change the program's."""
    if type(value) is list:
        return [_copied(v) for v in value] if value and type(value[0]) in (list, dict) else value[:]
    if type(value) is dict:
        return {k: _copied(v) for k, v in value.items()}
    return value


def _within_scripts():
    """Whether the call under way comes from a script, which shares its lists with what it calls."""
    frame: types.FrameType | None = sys._getframe(2)
    while frame is not None and frame.f_code.co_name != "call":
        frame = frame.f_back
    caller = frame and frame.f_back and frame.f_back.f_back
    return caller is not None and UNIT in caller.f_globals


def value_type(value):
    from rushlight.jit._annotations import value_type

    return value_type(value)


def _type_name(value):
    name = type(value).__name__
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return f"{name} (aka NamedTuple({', '.join(value._fields)}))"
    return "Tensor" if isinstance(value, rushlight.Tensor) else name


# --- converters: the value, changed where TorchScript changes it, or _Unfit


def _converter(kind):
    make = _MAKERS.get(kind.kind)
    return make(kind) if make else lambda value: value


def _tensor(_):
    def convert(value):
        if value is None or isinstance(value, rushlight.Tensor) or hasattr(type(value), "__torch_function__"):
            return value
        raise _Unfit

    return convert


def _number(cls, accepts):
    def make(_):
        def convert(value):
            if type(value) is cls:
                return value
            if not accepts(value):
                raise _Unfit
            try:
                return cls(value)
            except (TypeError, ValueError, OverflowError, RuntimeError):
                raise _Unfit from None

        return convert

    return make


def _has_float(value):
    return hasattr(type(value), "__float__") or hasattr(type(value), "__index__")


def _int(_):
    to_int = _number(int, lambda v: not isinstance(v, float) and _has_float(v))(None)

    def convert(value):
        if isinstance(value, t.DTYPE_LIKE):
            return value
        value = to_int(value)
        if not -(1 << 63) <= value < 1 << 63:
            raise _Unfit
        return value

    return convert


def _bool(_):
    def convert(value):
        if type(value) is bool:
            return value
        if value is None or any("__bool__" in vars(c) for c in type(value).__mro__[:-1]):
            try:
                return bool(value)
            except (TypeError, ValueError, RuntimeError):
                pass
        raise _Unfit

    return convert


def _str(_):
    def convert(value):
        if isinstance(value, str):
            return value
        if isinstance(value, bytes):
            return value.decode()
        raise _Unfit

    return convert


def _scalar(_):
    def convert(value):
        if isinstance(value, (bool, int, float, complex, *t.DTYPE_LIKE)):
            return value
        raise _Unfit

    return convert


def _exactly(*classes):
    def make(_):
        def convert(value):
            if isinstance(value, classes):
                return value
            raise _Unfit

        return convert

    return make


def _device(_):
    def convert(value):
        if isinstance(value, rushlight.device):
            return value
        if isinstance(value, (str, bytes)):
            return rushlight.device(value if isinstance(value, str) else value.decode())
        raise _Unfit

    return convert


def _items(value):
    if isinstance(value, rushlight.Tensor):
        raise _Unfit
    try:
        return list(value)
    except TypeError:
        raise _Unfit from None


def _shared(value, kind):
    """Whether it is a `ScriptList` or `ScriptDict` of this type, which its writes keep."""
    return getattr(value, "_script_type", None) == kind


def _list(kind):
    element, exact = _converter(kind.args[0]), _EXACT_TYPES.get(kind.args[0].kind)
    numeric = kind.args[0] in (t.INT, t.FLOAT, t.BOOL, t.COMPLEX, t.TENSOR)

    def convert(value):
        if _shared(value, kind):
            return value
        if type(value) is list and exact and all(type(v) is exact for v in value):
            return value
        if numeric and isinstance(value, (str, bytes, dict)):
            raise _Unfit
        made = [element(v) for v in _items(value)]
        if type(value) is list and all(a is b for a, b in zip(made, value, strict=True)):
            return value
        return made

    return convert


_EXACT_TYPES = {"int": int, "float": float, "bool": bool, "str": str, "Tensor": rushlight.Tensor}


def _dict(kind):
    key, item = map(_converter, kind.args)

    def convert(value):
        if _shared(value, kind):
            return value
        if value is None or isinstance(value, rushlight.Tensor):
            raise _Unfit
        try:
            given = value if isinstance(value, dict) else dict(value)
        except (TypeError, ValueError):
            raise _Unfit from None
        made = {key(k): item(v) for k, v in given.items()}
        if given is value and all(a is b and made[a] is value[b] for a, b in zip(made, value, strict=True)):
            return value
        return made

    return convert


def _tuple(kind):
    parts = [_converter(part) for part in kind.args]

    def convert(value):
        given = _items(value) if not isinstance(value, tuple) else value
        if len(given) != len(parts):
            raise _Unfit
        made = [part(v) for part, v in zip(parts, given, strict=True)]
        wanted = kind.python if kind.kind == "NamedTuple" else tuple
        if type(value) is wanted and all(a is b for a, b in zip(made, value, strict=True)):
            return value
        return kind.python(*made) if kind.kind == "NamedTuple" else tuple(made)

    return convert


def _optional(kind):
    inner = _converter(kind.args[0])
    return lambda value: None if value is None else inner(value)


def _union(kind):
    """A value of one of the types as it is, and only then one that can be made of it."""
    kinds = sorted(kind.args, key=lambda part: part.kind in ("Any", "Unknown"))
    exact = [(part, _converter(part)) for part in kinds]

    def convert(value):
        for part, inner in exact:
            if _is_exactly(value, part):
                return inner(value)
        raise _Unfit

    return convert


def _is_exactly(value, part):
    """Whether a value is of a type without any conversion but inside a container."""
    if part.kind in ("Tensor", "int", "float", "bool", "str", "complex"):
        if part.kind == "int" and isinstance(value, t.DTYPE_LIKE):
            return True
        if part.kind == "str" and isinstance(value, bytes):
            return True
        return isinstance(value, _EXACT_TYPES.get(part.kind, complex)) and (
            part.kind not in ("int", "float") or not isinstance(value, bool)
        )
    if part.kind == "NoneType":
        return value is None
    if part.kind == "List":
        return isinstance(value, list) and all(_is_exactly(v, part.args[0]) for v in value)
    if part.kind == "Dict":
        return isinstance(value, dict) and all(
            _is_exactly(k, part.args[0]) and _is_exactly(v, part.args[1]) for k, v in value.items()
        )
    if part.kind in ("Tuple", "NamedTuple"):
        return (
            isinstance(value, tuple)
            and len(value) == len(part.args)
            and all(map(_is_exactly, value, part.args))
        )
    if part.kind in ("Optional", "Union"):
        return any(_is_exactly(value, o) for o in t.options(part))
    try:
        _converter(part)(value)
    except _Unfit:
        return False
    return True


def _enum(kind):
    return _exactly(kind.python)(kind) if issubclass(kind.python, enum.Enum) else lambda value: value


def _class(kind):
    from rushlight.jit._scripted_class import record_of

    def convert(value):
        if kind.python is not None and not isinstance(value, kind.python):
            record = record_of(kind.python)
            missing = [n for n in (record.attributes if record else ()) if not hasattr(value, n)]
            raise _Unfit(f"missing attribute {missing[0]}" if missing else "")
        return value

    return convert


def _interface(kind):
    from rushlight.jit._interfaces import misfit

    def convert(value):
        reason = misfit(value, kind.python)
        if reason is not None:
            raise _Unfit(reason)
        return value

    return convert


def _none(_):
    def convert(value):
        if value is None:
            return None
        raise _Unfit

    return convert


_MAKERS = {
    "Tensor": _tensor,
    "Inferred": _tensor,
    "int": _int,
    "float": _number(float, lambda v: not isinstance(v, (str, bytes)) and _has_float(v)),
    "complex": _number(
        complex, lambda v: hasattr(type(v), "__complex__") or isinstance(v, complex) or _has_float(v)
    ),
    "bool": _bool,
    "str": _str,
    "number": _scalar,
    "NoneType": _none,
    "Device": _device,
    "Generator": _exactly(rushlight.Generator),
    "List": _list,
    "Dict": _dict,
    "Tuple": _tuple,
    "NamedTuple": _tuple,
    "Optional": _optional,
    "Union": _union,
    "Enum": _enum,
    "Class": _class,
    "Interface": _interface,
    "Future": lambda kind: _exactly(rushlight.futures.Future)(kind),
    "Await": lambda kind: _exactly(_Await)(kind),
    "list": _exactly(list, tuple),
    "tuple": _exactly(tuple, list),
}
