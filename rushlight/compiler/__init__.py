"""What programs ask of a compiler: nothing is compiled here, and the answers say so."""

import contextlib

import rushlight

__all__ = [
    "allow_in_graph",
    "assume_constant_result",
    "compile",
    "cudagraph_mark_step_begin",
    "disable",
    "is_compiling",
    "is_dynamo_compiling",
    "is_exporting",
    "list_backends",
    "reset",
    "set_stance",
    "substitute_in_graph",
    "wrap_numpy",
]


def compile(*args, **kwargs):  # noqa: A001 - PyTorch's name
    """See ``torch.compile``."""
    return rushlight.compile(*args, **kwargs)


_exporting = False


@contextlib.contextmanager
def _exporting_program():
    """Within it, a program runs for `torch.export`."""
    global _exporting
    before, _exporting = _exporting, True
    try:
        yield
    finally:
        _exporting = before


def is_compiling() -> bool:
    """Whether `torch.export` runs the program: nothing else compiles."""
    return _exporting


def is_dynamo_compiling() -> bool:
    """Always False."""
    return False


def is_exporting() -> bool:
    """Whether `torch.export` runs the program."""
    return _exporting


def reset() -> None:
    """Forgets compiled code, of which there is none."""


def cudagraph_mark_step_begin() -> None:
    """Marks an iteration's start for CUDA graphs made by the compiler, of which there are none."""


def list_backends(exclude_tags=("debug", "experimental")) -> list[str]:
    """The names of compiler backends: none."""
    return []


def disable(fn=None, recursive=True, *, reason=None):
    """Gives back the function; used with or without arguments."""
    return (lambda f: f) if fn is None else fn


def allow_in_graph(fn):
    """Gives back the function, or the list of them."""
    return fn


def assume_constant_result(fn):
    """Gives back the function."""
    return fn


def substitute_in_graph(original_fn, *, can_constant_fold_through=False, skip_signature_check=False):
    """A decorator that gives back what it decorates."""
    return lambda fn: fn


class set_stance:  # noqa: N801 - PyTorch's name
    """A context manager and decorator without effect: all stances run eagerly here."""

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

    def __call__(self, fn):
        return fn

    def __enter__(self):
        return self

    def __exit__(self, *error):
        return None


def wrap_numpy(fn):
    """A function of NumPy arrays as one of tensors: arguments and results are converted."""
    import functools

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
