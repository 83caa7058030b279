"""Questions about a graph capture in progress. Captures of this library announce none; programs may."""

import contextlib
import threading

__all__ = ["TracingContext", "active_fake_mode", "detect_fake_mode", "tracing"]

_active = threading.local()


class TracingContext:
    """What is known of a graph while it is captured: the mode whose fake tensors stand for its inputs."""

    def __init__(self, fake_mode):
        self.fake_mode = fake_mode

    @staticmethod
    def try_get():
        """The context of the capture in progress, or None."""
        return getattr(_active, "context", None)

    @staticmethod
    def get():
        context = TracingContext.try_get()
        if context is None:
            raise RuntimeError("TracingContext.get() must be called within an ongoing trace.")
        return context


@contextlib.contextmanager
def tracing(context):
    """Within it, `context` is that of the capture in progress."""
    before = TracingContext.try_get()
    _active.context = context
    try:
        yield context
    finally:
        _active.context = before


def active_fake_mode():
    """The innermost ``FakeTensorMode`` that is entered, or None."""
    from rushlight._subclasses.fake_tensor import FakeTensorMode
    from rushlight.utils._python_dispatch import _get_current_dispatch_mode_stack

    modes = [mode for mode in _get_current_dispatch_mode_stack() if isinstance(mode, FakeTensorMode)]
    return modes[-1] if modes else None


def detect_fake_mode(inputs=None):
    """The fake mode of the capture in progress, of tensors in a structure, or the one entered; or None."""
    context = TracingContext.try_get()
    if context is not None and context.fake_mode is not None:
        return context.fake_mode
    from rushlight._subclasses.fake_tensor import FakeTensor
    from rushlight.utils._pytree import tree_leaves

    modes = {leaf.fake_mode: None for leaf in tree_leaves(inputs) if isinstance(leaf, FakeTensor)}
    if len(modes) > 1:
        raise AssertionError("detect_fake_mode: the inputs belong to several fake modes")
    return next(iter(modes), None) or active_fake_mode()
