"""Marks of API stability, as PyTorch has them: kept for programs that ask, without effect here."""

_BACK_COMPAT_OBJECTS: dict = {}
_MARKED_WITH_COMPATIBILITY: dict = {}


def compatibility(is_backward_compatible, *, _name=None):
    """Say of a function or class whether later versions keep it."""

    def mark(symbol):
        _MARKED_WITH_COMPATIBILITY.setdefault(symbol)
        if is_backward_compatible:
            _BACK_COMPAT_OBJECTS.setdefault(symbol)
        return symbol

    return mark
