"""Kullback-Leibler divergences between pairs of distributions, found by their types."""

import warnings
from functools import total_ordering

import rushlight as torch
from rushlight import inf

_KL_REGISTRY: dict = {}  # (type of p, type of q) -> function; _kl_same.py and _kl_between.py fill it
_KL_MEMOIZE: dict = {}

__all__ = ["register_kl", "kl_divergence"]


def register_kl(type_p, type_q):
    """Decorates ``f(p, q)`` as the divergence for these types and their subclasses.

    Among several that match, the most specific type of p wins, then the most specific type of q."""
    for t in (type_p, type_q):
        if not isinstance(t, type):  # packages have hierarchies of their own beside Distribution
            raise TypeError(
                f"Expected {'type_p' if t is type_p else 'type_q'} to be a Distribution subclass but got {t}"
            )

    def decorate(fun):
        _KL_REGISTRY[type_p, type_q] = fun
        _KL_MEMOIZE.clear()
        return fun

    return decorate


@total_ordering
class _Match:
    """Pairs of types, less = more specific in the first place where they differ."""

    __slots__ = ["types"]

    def __init__(self, *types):
        self.types = types

    def __eq__(self, other):
        return self.types == other.types

    def __le__(self, other):
        for x, y in zip(self.types, other.types, strict=True):
            if not issubclass(x, y):
                return False
            if x is not y:
                break
        return True


def _dispatch_kl(type_p, type_q):
    matches = [
        (super_p, super_q)
        for super_p, super_q in _KL_REGISTRY
        if issubclass(type_p, super_p) and issubclass(type_q, super_q)
    ]
    if not matches:
        return NotImplemented
    left_p, left_q = min(_Match(*m) for m in matches).types
    right_q, right_p = min(_Match(*reversed(m)) for m in matches).types
    left_fun, right_fun = _KL_REGISTRY[left_p, left_q], _KL_REGISTRY[right_p, right_q]
    if left_fun is not right_fun:
        warnings.warn(
            f"Ambiguous kl_divergence({type_p.__name__}, {type_q.__name__}). "
            f"Please register_kl({left_p.__name__}, {right_q.__name__})",
            RuntimeWarning,
            stacklevel=3,
        )
    return left_fun


def kl_divergence(p, q):
    """KL(p || q) = E_p[log p(x) - log q(x)], of shape ``batch_shape``.

    Raises ``NotImplementedError`` when no formula was registered for the two types."""
    key = type(p), type(q)
    fun = _KL_MEMOIZE.get(key)
    if fun is None:
        fun = _KL_MEMOIZE[key] = _dispatch_kl(*key)
    if fun is NotImplemented:
        raise NotImplementedError(
            f"No KL(p || q) is implemented for p type {p.__class__.__name__} "
            f"and q type {q.__class__.__name__}"
        )
    return fun(p, q)


def _infinite_like(tensor):
    return torch.full_like(tensor, inf)


def _x_log_x(tensor):
    return torch.special.xlogy(tensor, tensor)


def _batch_trace_xxt(bmat):
    """tr(X X^T) of matrices ``[..., n, m]``."""
    return bmat.pow(2).sum((-2, -1))


_euler_gamma = 0.57721566490153286060
