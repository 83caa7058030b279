"""`torch.compile`: functions and modules that run through graphs."""

import functools
import inspect
import weakref
from types import FunctionType

from rushlight import _C
from rushlight._errors.advice import advised
from rushlight.nn import Module

from ._compiled import Compiled, all_compiled
from .backends import get_default_backend, lookup_backend

__all__ = ["OptimizedModule", "is_dynamo_supported", "is_inductor_supported", "optimize"]

__capture__ = "skip"  # Note [Capture marks]

_MODES = ("default", "lite", "reduce-overhead", "max-autotune-no-cudagraphs", "max-autotune")


class OptimizedModule(Module):
    """A module that runs through graphs; its parameters, attributes and state are those of ``_orig_mod``."""

    _OWN = frozenset(
        ["_orig_mod", "dynamo_ctx", "forward", "_compiled", "_modules", "_parameters", "_buffers"]
    )

    def __init__(self, mod, dynamo_ctx=None):
        super().__init__()
        self._modules["_orig_mod"] = mod
        self.__dict__["dynamo_ctx"] = dynamo_ctx
        self._connect()

    def _connect(self):
        mod, options = self._modules["_orig_mod"], self.__dict__["dynamo_ctx"]
        self.__dict__.pop("training", None)
        compiled = Compiled(mod, *(options or (lookup_backend("eager"),)), name=type(mod).__qualname__)
        _remember(compiled)
        self.__dict__["_compiled"] = self.__dict__["forward"] = compiled

        def run_as_written(on, holder=weakref.ref(self), graphs=weakref.ref(compiled)):
            if holder() is not None:
                holder().__dict__["forward"] = mod if on else graphs()
                _C._stand_for(holder(), mod if on else None)

        compiled.watcher = run_as_written

    @property
    def training(self):
        return self._modules["_orig_mod"].training

    @training.setter
    def training(self, value):
        if "_orig_mod" in self._modules:
            self._modules["_orig_mod"].training = value

    def __getattr__(self, name):
        modules = self.__dict__.get("_modules", {})
        if name == "_orig_mod" and name in modules:
            return modules["_orig_mod"]
        if "_orig_mod" not in modules:
            raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")
        return getattr(modules["_orig_mod"], name)

    def __setattr__(self, name, value):
        if name in self._OWN or "_orig_mod" not in self.__dict__.get("_modules", {}) or name == "training":
            return super().__setattr__(name, value)
        setattr(self._modules["_orig_mod"], name, value)

    def __delattr__(self, name):
        if name in self._OWN:
            return super().__delattr__(name)
        delattr(self._modules["_orig_mod"], name)

    def __len__(self):
        return len(self._modules["_orig_mod"])

    def __getitem__(self, index):
        return self._modules["_orig_mod"][index]

    def __iter__(self):
        return iter(self._modules["_orig_mod"])

    def __contains__(self, name):
        return name in self._modules["_orig_mod"]

    def __dir__(self):
        return sorted({*super().__dir__(), *dir(self._modules["_orig_mod"])})

    def __getstate__(self):
        state = dict(self.__dict__)
        state.pop("forward", None)
        state.pop("_compiled", None)
        return state

    def __setstate__(self, state):
        self.__dict__.update(state)
        self._connect()


def _remember(compiled):
    all_compiled[:] = [r for r in all_compiled if r() is not None]
    all_compiled.append(weakref.ref(compiled))


def _backend_with(backend, mode, options):
    """The back end, told of the mode or the options."""
    found = lookup_backend(backend)
    told = {}
    if mode is not None and mode != "default":
        told["mode"] = mode
    if options:
        told["options"] = dict(options)
    if not told:
        return found
    bound = functools.partial(found, **told)
    bound.opts_out = getattr(found, "opts_out", False)  # type: ignore[attr-defined]
    bound.compiler_name = getattr(found, "__name__", "backend")  # type: ignore[attr-defined]
    return bound


def compile_callable(model, fullgraph, backend, mode, options, dynamic=None):
    """What `torch.compile` returns."""
    if mode is not None and options is not None:
        raise RuntimeError(
            "Either mode or options can be specified, but both can't be specified at the same time."
        )
    if backend is None:
        backend = get_default_backend()
    if backend == "inductor" and mode is not None and mode not in _MODES:
        raise RuntimeError(f"Unrecognized mode={mode}, should be one of: {', '.join(_MODES)}")
    if backend == "inductor" and options:
        from rushlight._inductor import check_options

        check_options(options)
    made = _backend_with(backend, mode, options)
    if isinstance(model, OptimizedModule):
        model = model._orig_mod
    if isinstance(model, Module):
        return OptimizedModule(model, (made, fullgraph, dynamic))
    if inspect.isclass(model):
        raise RuntimeError(
            f"torch.compile expects a function or a module, but got the class {model.__qualname__}"
        )
    if not callable(model):
        text = f"A callable function is expected, but {type(model)} is provided."
        raise advised(AssertionError(text))
    return _wrap(getattr(model, "_torchdynamo_orig_callable", model), made, fullgraph, dynamic)


def _wrap(function, backend, fullgraph, dynamic):
    compiled = Compiled(function, backend, fullgraph, dynamic)
    _remember(compiled)

    own = _copy_of(function) if type(function) is FunctionType else function
    front = _C._compiled_function(own, compiled)
    if not hasattr(function, "__name__"):
        front.__name__ = front.__qualname__ = compiled.name
    front._torchdynamo_orig_callable = function
    front._compiled = compiled

    def run_as_written(on, holder=weakref.ref(front)):
        if holder() is not None:
            _C._run_as_written(holder(), on)

    compiled.watcher = run_as_written
    return front


def _copy_of(f):
    """Another function of the same code and variables."""
    copy = FunctionType(f.__code__, f.__globals__, f.__name__, f.__defaults__, f.__closure__)
    copy.__kwdefaults__ = f.__kwdefaults__
    return functools.update_wrapper(copy, f)


def optimize(
    backend="inductor",
    *,
    nopython=False,
    guard_export_fn=None,
    guard_fail_fn=None,
    disable=False,
    dynamic=None,
):
    """A decorator that compiles; `torch.compile` is its public form."""
    if disable or backend is None:
        return lambda fn: fn
    return lambda fn: compile_callable(fn, nopython, backend, None, None, dynamic)


def is_dynamo_supported():
    return True


def is_inductor_supported():
    return True


def force_eager(on):
    """Whether everything runs as it is written; graphs are kept for later."""
    for compiled in _living():
        compiled.force_eager(on)


def reset():
    """Forget all graphs."""
    for compiled in _living():
        compiled.reset()


def _living():
    return [compiled for reference in all_compiled if (compiled := reference()) is not None]
