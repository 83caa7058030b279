"""First-order unification: values for variables that make two terms equal."""

from __future__ import annotations

import itertools

__all__ = ["Var", "isvar", "reify", "unify", "var"]

_fresh = itertools.count(1)


class Var:
    """A variable; those of equal tokens are one."""

    def __init__(self, token=None):
        self.token = f"_{next(_fresh)}" if token is None else token

    def __eq__(self, other):
        return isinstance(other, Var) and self.token == other.token

    def __hash__(self):
        return hash((Var, self.token))

    def __str__(self):
        return f"~{self.token}"

    __repr__ = __str__


def var(token=None) -> Var:
    """The variable of this token, a new one without it."""
    return Var(token)


def isvar(term) -> bool:
    """Whether a term is a variable."""
    return isinstance(term, Var)


def _walk(term, values):
    while isvar(term) and term in values:
        term = values[term]
    return term


def unify(first, second, values=None):
    """The values, with those added that make both equal; False if none do. First ``first``'s variables."""
    values = {} if values is None else values
    first, second = _walk(first, values), _walk(second, values)
    if first == second:
        return values
    if isvar(first):
        return {**values, first: second}
    if isvar(second):
        return {**values, second: first}
    if not (isinstance(first, (tuple, list)) and type(first) is type(second) and len(first) == len(second)):
        return False
    for one, other in zip(first, second):
        values = unify(one, other, values)
        if values is False:
            return False
    return values


def reify(term, values):
    """The term with the values of its variables."""
    term = _walk(term, values)
    if isinstance(term, (tuple, list)):
        return type(term)(reify(part, values) for part in term)
    return term
