"""What schemas of operators say, by the names that packages ask for."""

import rushlight as torch

__all__ = [
    "has_kernel",
    "has_kwarg_only_tensors",
    "has_tensor_arg",
    "is_builtin",
    "is_functional_schema",
    "is_tensor_like_type",
    "is_tensorlist_like_type",
    "lookup_op",
    "mutates_and_returns_first_arg",
    "parse_namespace",
]


def parse_namespace(qualname):
    """``"ns::name"`` as ``("ns", "name")``."""
    parts = qualname.split("::")
    if len(parts) != 2:
        raise ValueError(f"Expected `qualname` to be of the form 'namespace::name', got {qualname!r}")
    return tuple(parts)


def lookup_op(qualname):
    """The overload of this name: ``"ns::name"``, or ``"ns::name.overload"``."""
    space, name = parse_namespace(qualname)
    name, _, overload = name.partition(".")
    return getattr(getattr(getattr(torch.ops, space), name), overload or "default")


def is_builtin(op):
    """Whether an overload is one of the library's own."""
    return op.namespace in ("aten", "prim", "prims")


def is_tensor_like_type(type_):
    """Whether an argument's type is Tensor or Tensor?."""
    return str(type_) in ("Tensor", "Optional[Tensor]", "Tensor?")


def is_tensorlist_like_type(type_):
    """Whether an argument's type is a list of tensors, each of which, or all, may be None."""
    written = str(type_).replace("Optional[Tensor]", "Tensor").replace("Tensor?", "Tensor")
    return written in ("Tensor[]", "List[Tensor]", "Tensor[]?", "Optional[List[Tensor]]")


def _takes_tensors(argument):
    return is_tensor_like_type(argument.type) or is_tensorlist_like_type(argument.type)


def has_tensor_arg(schema):
    return any(map(_takes_tensors, schema.arguments))


def has_kwarg_only_tensors(schema):
    return any(a.kwarg_only and _takes_tensors(a) for a in schema.arguments)


def is_functional_schema(schema):
    """Whether an operator writes to none of its arguments and returns new tensors, at least one value."""
    if isinstance(schema, str):
        from rushlight._operators.schema import parse_schema

        schema = parse_schema(schema)
    aliased = any(r.alias_info is not None for r in schema.returns)
    return not schema.is_mutable and not aliased and len(schema.returns) > 0


def mutates_and_returns_first_arg(op):
    """Whether an operator writes to its first argument alone and returns that, as ``add_`` does."""
    schema = op._schema
    if len(schema.returns) != 1 or not schema.arguments:
        return False
    returned, first = schema.returns[0].alias_info, schema.arguments[0]
    if returned is None or not returned.is_write or first.alias_info is None or not first.alias_info.is_write:
        return False
    if any(a.alias_info is not None for a in schema.arguments[1:]):
        return False
    return returned.after_set == first.alias_info.after_set


def has_kernel(op, key):
    """Whether an operator has a kernel for a dispatch key that a program gave it. Of operators in C++ those
    that are made of others have the composite key, the rest all others."""
    if op._record():
        return (op.traits.family == "composite") == (key == "CompositeImplicitAutograd")
    from rushlight._library.custom_ops import _definitions
    from rushlight._library.libraries import _impls

    name = op.name()
    if key in ("Autograd", "Meta") and name.removesuffix(".default") in _definitions:
        return True
    return f"{name.replace('::', '/').removesuffix('.default')}/{key}" in _impls
