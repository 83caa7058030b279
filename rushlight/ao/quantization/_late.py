"""Classes with some of their arguments, made when called: what ``with_args`` returns."""

import functools

from rushlight._command.names import show_from


class _PartialWrapper:
    """A maker of modules. ``callable_args`` are called at each making, so that each gets its own value."""

    def __init__(self, p):
        self.p = p
        self.callable_args = {}

    def __call__(self, *args, **kwargs):
        made = {name: make() for name, make in self.callable_args.items() if name not in kwargs}
        return self.p(*args, **made, **kwargs)

    def __repr__(self):
        return repr(self.p) + repr(self.callable_args)

    def with_args(self, **kwargs):
        return _with_args(self, **kwargs)

    def with_callable_args(self, **kwargs):
        return _with_callable_args(self, **kwargs)


def _with_args(cls_or_self, **kwargs):
    """A maker with further arguments; what it was made from stays as it is."""
    made = _PartialWrapper(functools.partial(cls_or_self, **kwargs))
    if isinstance(cls_or_self, _PartialWrapper):
        # The inner maker is called with plain arguments only, so functions of arguments move out.
        made.p = functools.partial(cls_or_self.p, **kwargs)
        made.callable_args = {k: v for k, v in cls_or_self.callable_args.items() if k not in kwargs}
    return made


def _with_callable_args(cls_or_self, **kwargs):
    """A maker some of whose arguments are functions, called at each making."""
    made = _with_args(cls_or_self)
    made.callable_args = {**made.callable_args, **kwargs}
    return made


show_from("ao.quantization.observer", _PartialWrapper, _with_args, _with_callable_args)
