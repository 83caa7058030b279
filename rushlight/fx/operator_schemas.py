"""Calls in the order of their function's signature: every argument by its name, however it was passed."""

import functools
import inspect
import types
import typing
from typing import NamedTuple

import rushlight as torch
from rushlight._command.names import is_own
from rushlight._operators.schema import parse_schema
from rushlight._ops import OpOverload, OpOverloadPacket

from ._names import _BUILTIN_OPERATOR, _METHOD

__all__ = [
    "ArgsKwargsPair",
    "check_for_mutable_operation",
    "create_type_hint",
    "get_signature_for_torch_op",
    "normalize_function",
    "normalize_module",
    "type_matches",
]


class ArgsKwargsPair(NamedTuple):
    """Arguments of a call, by position and by name."""

    args: tuple
    kwargs: dict


_TYPES = {
    "Tensor": torch.Tensor,
    "int": int,
    "SymInt": int,
    "float": float,
    "bool": bool,
    "str": str,
    "Scalar": typing.Union[int, float, complex, bool],  # noqa: UP007
    "ScalarType": torch.dtype,
    "Device": torch.device,
    "Layout": torch.layout,
    "MemoryFormat": torch.memory_format,
    "Generator": torch.Generator,
}


def _python_type(text):
    """A type of the schema language as Python's."""
    text = text.replace("(a!)", "").replace("(a)", "")
    if text.endswith("?"):
        return typing.Optional[_python_type(text[:-1])]  # noqa: UP045
    if text.endswith("]"):
        return typing.List[_python_type(text[: text.rindex("[")])]  # noqa: UP006
    return _TYPES.get(text, typing.Any)


def _signature_of(schema):
    parameters = []
    for argument in schema.arguments:
        name = "input" if argument.name == "self" else argument.name
        default = argument.default_value if argument.has_default_value() else inspect.Parameter.empty
        kind = (
            inspect.Parameter.KEYWORD_ONLY if argument.kwarg_only else inspect.Parameter.POSITIONAL_OR_KEYWORD
        )
        if argument.name == "from":  # a keyword of the language, and no name
            name, kind = "from_", inspect.Parameter.POSITIONAL_ONLY
            parameters = [p.replace(kind=kind) for p in parameters]
        annotation = _python_type(str(argument.type))
        parameters.append(inspect.Parameter(name, kind, default=default, annotation=annotation))
    returns = [_python_type(str(r.type)) for r in schema.returns]
    result = returns[0] if len(returns) == 1 else tuple(returns)
    return inspect.Signature(parameters, return_annotation=result)


@functools.cache
def _schemas_by_name():
    """(space, name) -> the schemas of the built-in overloads."""
    table = {}
    for record in torch._C._operator_records():
        text = record["schema"]
        table.setdefault((record["space"], record["name"]), []).append(text)
    return table


_SPACES = {"special": "special", "fft": "fft", "linalg": "linalg", "functional": "nn"}


def _schemas_of(op):
    if isinstance(op, OpOverload):
        return [op._schema]
    if isinstance(op, OpOverloadPacket):
        return list(op._schemas.values())
    if not isinstance(op, (_BUILTIN_OPERATOR, _METHOD)):
        return None
    space = _SPACES.get((getattr(op, "__module__", None) or "").rpartition(".")[2], "")
    found = _schemas_by_name().get((space, op.__name__))
    return None if found is None else [parse_schema(text) for text in found]


def get_signature_for_torch_op(op, return_schemas=False):
    """The signatures of an operator's overloads; None for what is no operator."""
    schemas = _schemas_of(op)
    signatures = None if schemas is None else [_signature_of(schema) for schema in schemas]
    return (signatures, schemas) if return_schemas else signatures


def check_for_mutable_operation(target, args, kwargs):
    """Raise if the overload that the arguments choose writes to one of them."""
    signatures, schemas = get_signature_for_torch_op(target, return_schemas=True)
    if not signatures:
        return
    matching = [schema for s, schema in zip(signatures, schemas) if _binds(s, args, kwargs)]
    if matching and all(schema.is_mutable for schema in matching):
        raise RuntimeError(
            f"Tried to trace mutable operation {matching[0]}. FX only supports functional code, so "
            "operations that mutate operands in-place (e.g. via `out` arguments) are not supported"
        )


def _binds(signature, args, kwargs):
    try:
        signature.bind(*args, **kwargs)
    except TypeError:
        return False
    return True


def create_type_hint(x):
    """For a list or tuple of types, the generic type that holds them."""
    if isinstance(x, list):
        return list[_widest(x)]
    if isinstance(x, tuple):
        return tuple[_widest(x), ...]
    return x


def _widest(found):
    """The one of these types that the others derive from, or Any."""
    if not found or not all(isinstance(t, type) for t in found):
        return typing.Any
    return next((base for base in found if all(issubclass(t, base) for t in found)), typing.Any)


def type_matches(signature_type, argument_type):
    """Whether a value of the second type may be passed where the first is declared."""
    if signature_type is argument_type or signature_type is typing.Any:
        return True
    origin = getattr(signature_type, "__origin__", None)
    if origin is typing.Union or isinstance(signature_type, types.UnionType):
        return any(type_matches(choice, argument_type) for choice in signature_type.__args__)
    if origin is list:
        return _list_matches(signature_type.__args__[0], argument_type)
    if signature_type is int and argument_type is torch.dtype:
        return True
    if inspect.isclass(argument_type) and inspect.isclass(signature_type):
        return issubclass(argument_type, signature_type) or (signature_type is float and argument_type is int)
    return False


def _list_matches(element, argument_type):
    if element is int and argument_type is int:  # a bare number stands for a list of it
        return True
    origin = getattr(argument_type, "__origin__", None)
    contained = [a for a in getattr(argument_type, "__args__", ()) if a is not ...]
    if origin in (list, tuple):
        return all(type_matches(element, a) for a in contained)
    return argument_type is list


def _argument_types_match(signature, arg_types, kwarg_types):
    bound = signature.bind(*arg_types, **(kwarg_types or {}))
    return all(type_matches(signature.parameters[n].annotation, t) for n, t in bound.arguments.items())


def normalize_function(
    target, args, kwargs=None, arg_types=None, kwarg_types=None, normalize_to_only_use_kwargs=False
):
    """The arguments as the function's signature orders them, or None where that cannot be known.

    Where several overloads fit, ``arg_types`` and ``kwarg_types`` decide; without them it is an error.
    """
    kwargs = kwargs or {}
    if not isinstance(target, (OpOverload, OpOverloadPacket, _BUILTIN_OPERATOR, _METHOD)):
        signature = _python_signature(target)
        return _normalize(signature, args, kwargs, normalize_to_only_use_kwargs) if signature else None
    signatures = get_signature_for_torch_op(target)
    if not signatures:
        return None
    matching = [s for s in signatures if _binds(s, args, kwargs)]
    if len(matching) > 1 and arg_types is not None:
        matching = [s for s in matching if _argument_types_match(s, arg_types, kwarg_types)]
    if not matching:
        return None
    if len(matching) > 1 and len({tuple(s.parameters) for s in matching}) > 1:
        shown = "\n".join(str(s) for s in matching)
        raise RuntimeError(
            f"Tried to normalize arguments to {torch.typename(target)} but the schema match was ambiguous! "
            "Please provide argument types to the normalize_arguments() call. Available schemas:\n" + shown
        )
    return _normalize(matching[0], args, kwargs, normalize_to_only_use_kwargs)


def _python_signature(target):
    if not callable(target) or getattr(target, "__module__", None) in ("_operator", "builtins"):
        return None
    try:
        return inspect.signature(inspect.unwrap(target))
    except (TypeError, ValueError):
        return None


def normalize_module(root, target, args, kwargs=None, normalize_to_only_use_kwargs=False):
    """As `normalize_function`, for a call of a submodule."""
    try:
        module = root.get_submodule(target)
    except AttributeError:
        raise RuntimeError(
            f"Tried to normalize node with target {target} but root did not have that target!"
        ) from None
    if not is_own(type(module).__module__, "nn"):
        return None
    signature = inspect.signature(type(module).forward)
    own = signature.replace(parameters=list(signature.parameters.values())[1:])
    return _normalize(own, args, kwargs or {}, normalize_to_only_use_kwargs)


def _normalize(signature, args, kwargs, only_kwargs):
    kinds = {p.kind for p in signature.parameters.values()}
    if kinds & {inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD}:
        return None  # such parameters have no one place
    try:
        bound = signature.bind(*args, **kwargs)
    except TypeError:
        return None
    bound.apply_defaults()
    positional, keyword = [], {}
    for i, (name, value) in enumerate(bound.arguments.items()):
        is_keyword = signature.parameters[name].kind is inspect.Parameter.KEYWORD_ONLY
        if not only_kwargs and not is_keyword and i < len(args):
            positional.append(value)
        else:
            keyword[name] = value
    return ArgsKwargsPair(tuple(positional), keyword)
