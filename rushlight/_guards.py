"""Questions about a graph capture in progress: there is none."""

__all__ = ["TracingContext", "active_fake_mode", "detect_fake_mode"]


class TracingContext:
    """What is known of a graph while it is captured."""

    @staticmethod
    def try_get():
        """The context of the capture in progress, or None."""
        return None


def active_fake_mode():
    """The innermost ``FakeTensorMode`` that is entered, or None."""
    from rushlight._subclasses.fake_tensor import FakeTensorMode
    from rushlight.utils._python_dispatch import _get_current_dispatch_mode_stack

    modes = [mode for mode in _get_current_dispatch_mode_stack() if isinstance(mode, FakeTensorMode)]
    return modes[-1] if modes else None


def detect_fake_mode(inputs=None):
    """The fake mode of tensors in a structure, else the one that is entered, or None."""
    from rushlight._subclasses.fake_tensor import FakeTensor
    from rushlight.utils._pytree import tree_leaves

    modes = {leaf.fake_mode: None for leaf in tree_leaves(inputs) if isinstance(leaf, FakeTensor)}
    if len(modes) > 1:
        raise AssertionError("detect_fake_mode: the inputs belong to several fake modes")
    return next(iter(modes), None) or active_fake_mode()
