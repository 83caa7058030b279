"""What operators did when an archive was written, where that was something else than today."""

import rushlight

__all__ = ["at_that_time"]

Tensor = rushlight.Tensor


def _is_whole(value):
    if isinstance(value, Tensor):
        return not (value.is_floating_point() or value.is_complex())
    return value is None or isinstance(value, int)


def _divided(function):
    """Quotients of whole numbers were whole."""

    def divide(left, right, *, out=None):
        if not isinstance(left, Tensor) and not isinstance(right, Tensor):
            return function(left, right)
        words = {} if out is None else {"out": out}
        if _is_whole(left) and _is_whole(right) and _is_whole(out):
            words["rounding_mode"] = "trunc"
        return function(left, right, **words)

    return divide


def _filled(function):
    """Of whole numbers, `full` gave floats."""

    def full(size, value, *given, out=None, **words):
        if out is not None:
            return function(size, value, out=out)
        plain = (given[0] if given else words.get("dtype")) is None
        return function(size, float(value) if plain else value, *given, **words)

    return full


def _spaced(function):
    """A hundred numbers were the default."""

    def space(start, end, *given, steps=None, **words):
        steps = given[0] if given else steps
        return function(start, end, 100 if steps is None else steps, *given[1:], **words)

    return space


_THEN = {
    "div": (3, _divided),
    "div_": (3, _divided),
    "full": (4, _filled),
    "linspace": (7, _spaced),
    "logspace": (8, _spaced),
}


def at_that_time(space, name, version, function):
    """``function`` as the operator was in archives of a version."""
    last, make = _THEN.get(name, (-1, None)) if space in ("torch", "aten") else (-1, None)
    return make(function) if make is not None and version <= last else function
