"""Whether calls that were written for one version of an operator's schema fit another."""

__all__ = ["check_forward", "is_backward"]


def _default(argument):
    return (argument.has_default_value(), argument.default_value)


def _aliases(argument):
    info = argument.alias_info
    return None if info is None else (info.before_set, info.after_set, info.is_write)


def _is_same_place(new, old):
    return (new.name, new.N, _aliases(new)) == (old.name, old.N, _aliases(old))


def _keeps_default(new, old):
    return not old.has_default_value() or _default(new) == _default(old)


def _takes(new, old):
    """Whether what was given for `old` may be given for `new`."""
    if not _is_same_place(new, old) or (new.kwarg_only and not old.kwarg_only):
        return False
    return old.type.isSubtypeOf(new.type) and _keeps_default(new, old)


def _is_taken(new, old):
    """Whether what is given for `new` may be given for `old`."""
    if not _is_same_place(new, old) or (new.kwarg_only and not old.kwarg_only):
        return False
    return new.type.isSubtypeOf(old.type) and _default(new) == _default(old)


def _is_same_operator(new, old):
    facts = [(s.name, s.overload_name, s.is_vararg, s.is_varret, len(s.returns)) for s in (new, old)]
    return facts[0] == facts[1]


def _parts(schema):
    """The arguments before the results that are given, and those."""
    out = [a.is_out for a in schema.arguments]
    first = out.index(True) if True in out else len(out)
    return schema.arguments[:first], schema.arguments[first:]


def is_backward(new, old):
    """Whether every call that fits `old` fits `new`: types more general, results more special, and what was
    added has defaults."""
    if not _is_same_operator(new, old):
        return False
    if not all(_takes(before, after) for after, before in zip(new.returns, old.returns)):
        return False
    (own, out), (former, former_out) = _parts(new), _parts(old)
    if len(own) < len(former) or len(out) < len(former_out):
        return False
    if not all(a.has_default_value() for a in own[len(former) :]):
        return False
    return all(_takes(a, b) for a, b in [*zip(own, former), *zip(out, former_out)])


def check_forward(new, old):
    """(whether programs for `old` can read calls of `new` that leave what was added alone, why not)."""
    if not _is_same_operator(new, old):
        return False, ""
    (own, out), (former, former_out) = _parts(new), _parts(old)
    if len(out) != len(former_out):
        return False, "Function schema should have the same number of out arguments"
    for argument, before in zip(own, former):
        if not _is_taken(argument, before):
            why = f"'{argument.name}' is not forward compatible with the older version of the schema"
            return False, why
    for argument in own[len(former) :]:
        what = (
            "Function schema is not forward compatible since the new argument "
            f"'{argument.name}' of type {argument.type} "
        )
        if not argument.has_default_value():
            return False, what + "did not provide a default value."
        if isinstance(argument.default_value, (list, dict)):
            return False, what + "has a container type as its default value."
    for argument, before in zip(out, former_out):
        if not _is_taken(argument, before):
            return False, f"Out argument '{argument.name}' is not FC with the older version of the schema"
    return True, ""
