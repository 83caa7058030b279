"""`torch.compiler`: what programs tell `torch.compile`, and ask of it."""

import contextlib
import functools
import threading

import rushlight

__all__ = [
    "allow_in_graph",
    "assume_constant_result",
    "compile",
    "cudagraph_mark_step_begin",
    "disable",
    "get_default_backend",
    "is_compiling",
    "is_dynamo_compiling",
    "is_exporting",
    "list_backends",
    "nested_compile_region",
    "reset",
    "set_default_backend",
    "set_stance",
    "substitute_in_graph",
    "wrap_numpy",
]

__package_capture__ = "through"  # Note [Capture marks]


def compile(*args, **kwargs):  # noqa: A001 - PyTorch's name
    """See ``torch.compile``."""
    return rushlight.compile(*args, **kwargs)


_exporting = False
_thread = threading.local()  # .capturing: torch.compile runs a program here


def __getattr__(name):
    if name == "config":
        from importlib import import_module

        return import_module("rushlight.compiler.config")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


@contextlib.contextmanager
def _exporting_program():
    """Within it, a program runs for `torch.export`."""
    global _exporting
    before, _exporting = _exporting, True
    try:
        yield
    finally:
        _exporting = before


@contextlib.contextmanager
def _capturing_program():
    """Within it, a program runs for `torch.compile`."""
    before, _thread.capturing = is_dynamo_compiling(), True
    try:
        yield
    finally:
        _thread.capturing = before


def is_compiling() -> bool:
    """Whether `torch.compile` or `torch.export` runs the program to capture it.

    Example:
        >>> torch.compiler.is_compiling()
        False
    """
    return _exporting or is_dynamo_compiling()


def is_dynamo_compiling() -> bool:
    """Whether `torch.compile` runs the program to capture it."""
    return getattr(_thread, "capturing", False)


def is_exporting() -> bool:
    """Whether `torch.export` runs the program."""
    return _exporting


def reset() -> None:
    """Forgets all graphs; compiled functions capture them again."""
    rushlight._dynamo.reset()


def cudagraph_mark_step_begin() -> None:
    """Marks an iteration's start for CUDA graphs made by the compiler, of which there are none."""


def list_backends(exclude_tags=("debug", "experimental")) -> list[str]:
    """The names of compiler backends."""
    return rushlight._dynamo.list_backends(exclude_tags)


def set_default_backend(backend) -> None:
    """The back end of `torch.compile` where none is named: a name, a function, or None for "inductor"."""
    rushlight._dynamo.backends.set_default_backend(backend)


def get_default_backend():
    """The back end of `torch.compile` where none is named."""
    return rushlight._dynamo.backends.get_default_backend()


def disable(fn=None, recursive=True, *, reason=None):
    """A function that no graph holds: what calls it runs as it is written. Used with or without arguments."""
    if fn is None:
        return functools.partial(disable, recursive=recursive, reason=reason)
    if isinstance(fn, rushlight.nn.Module):
        fn.forward = disable(fn.forward, recursive, reason=reason)
        return fn
    if isinstance(fn, type):
        return fn

    @functools.wraps(fn)
    def run(*args, **kwargs):
        if is_dynamo_compiling():
            rushlight._dynamo.graph_break(
                reason or f"{getattr(fn, '__qualname__', fn)} is marked with compiler.disable"
            )
        if not recursive:
            return fn(*args, **kwargs)
        return rushlight._C._with_parts(None, fn, *args, **kwargs)

    run._torchdynamo_disable = True
    run._torchdynamo_orig_callable = fn
    return run


def allow_in_graph(fn):
    """Gives back the function, or the list of them: whatever calls operators may be in a graph."""
    return fn


def assume_constant_result(fn):
    """Gives back the function: what it reads is checked at each call."""
    return fn


def nested_compile_region(fn=None, *, options=None, max_reuse_entries=8, reuse_hash_fn=None):
    """Gives back the function, or a decorator: a part that repeats is captured where it is called."""
    if options is not None:
        raise RuntimeError("nested_compile_region config is an experimental feature for testing only.")
    return fn if fn is not None else lambda fn: fn


def substitute_in_graph(original_fn, *, can_constant_fold_through=False, skip_signature_check=False):
    """A decorator that gives back what it decorates: Python functions are run, not interpreted."""
    return lambda fn: fn


_stances = ["default"]


def _stance():
    """The innermost stance that is set."""
    return _stances[-1]


def _set_stances(stances):
    _stances[:] = stances
    rushlight._dynamo.eval_frame.force_eager(stances[-1] == "force_eager")


class set_stance:  # noqa: N801 - PyTorch's name
    """What calls that no graph is for shall do: a function to call, a context manager, a decorator."""

    _STANCES = (
        "default",
        "eager_then_compile",
        "aot_eager_then_compile",
        "force_eager",
        "eager_on_recompile",
        "fail_on_recompile",
    )

    def __init__(self, stance="default", *, skip_guard_eval_unsafe=False, force_backend=None):
        if stance not in self._STANCES:
            raise RuntimeError(f"invalid torch.compile stance '{stance}'")
        self.stance, self.before = stance, list(_stances)
        _set_stances([stance])

    def __call__(self, fn):
        _set_stances(self.before)

        @functools.wraps(fn)
        def run(*args, **kwargs):
            with set_stance(self.stance):
                return fn(*args, **kwargs)

        return run

    def __enter__(self):
        return self

    def __exit__(self, *error):
        _set_stances(self.before)


def wrap_numpy(fn):
    """A function of NumPy arrays as one of tensors: arguments and results are converted."""
    import numpy

    def to_numpy(x):
        return x.numpy(force=True) if isinstance(x, rushlight.Tensor) else x

    def to_tensor(x):
        if isinstance(x, (tuple, list)):
            return type(x)(map(to_tensor, x))
        return rushlight.as_tensor(x) if isinstance(x, (numpy.ndarray, numpy.generic)) else x

    @functools.wraps(fn)
    def wrapped(*args, **kwargs):
        return to_tensor(fn(*map(to_numpy, args), **{k: to_numpy(v) for k, v in kwargs.items()}))

    return wrapped
