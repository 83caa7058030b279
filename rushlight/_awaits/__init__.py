"""`Await`: a call that is made when its result is asked for, once."""

import types

__all__ = ["Await"]

_PENDING = object()


class _Await:
    """A function and its arguments, or a result; other attributes are those of the result.

    `torch.jit._awaitable` makes one, `torch.jit._awaitable_wait` gives the result.
    """

    def __init__(self, function, args, kwargs=None, result=_PENDING):
        self._call, self._result = (function, args, kwargs or {}), result
        self._nowait = function is None

    def fn(self):
        """The function that is to be called."""
        return self._call[0]

    def args(self):
        return tuple(self._call[1])

    def is_nowait(self):
        """Whether it was made of a result."""
        return self._nowait

    def wait(self):
        """The result; the first to ask calls the function."""
        if self._result is _PENDING:
            function, args, kwargs = self._call
            self._result = function(*args, **kwargs)
        return self._result

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.wait(), name)

    @classmethod
    def __class_getitem__(cls, item):
        return types.GenericAlias(cls, (item,))


Await = _Await
