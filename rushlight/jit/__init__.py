"""The names of TorchScript, so that programs which decorate their functions with them run.

Nothing is compiled here: `script` and `trace` give back what they were given, which stays plain Python."""

import inspect

from rushlight.jit import _decorations
from rushlight.jit._decorations import (
    Attribute,
    Final,
    _overload,
    _overload_method,
    annotate,
    export,
    ignore,
    interface,
    is_scripting,
    is_tracing,
    script_if_tracing,
    strict_fusion,
    unused,
)
from rushlight.nn import Module

__all__ = [
    "Attribute",
    "Error",
    "Final",
    "ScriptFunction",
    "ScriptModule",
    "annotate",
    "export",
    "fork",
    "freeze",
    "ignore",
    "interface",
    "is_scripting",
    "is_tracing",
    "isinstance",
    "optimize_for_inference",
    "optimized_execution",
    "script",
    "script_if_tracing",
    "script_method",
    "strict_fusion",
    "trace",
    "trace_module",
    "unused",
    "wait",
]

optimized_execution = _decorations.optimized_execution
_script_if_tracing = script_if_tracing
isinstance = _decorations.refined_isinstance  # noqa: A001 - PyTorch's name


class Error(RuntimeError):
    """What TorchScript raises; nothing raises it here."""


class ScriptModule(Module):
    """A base for modules written for TorchScript: a plain Module."""


class ScriptFunction:
    """The type of scripted functions: nothing here is an instance, since `script` compiles nothing."""


def script(obj, optimize=None, _frames_up=0, _rcb=None, example_inputs=None):
    """Gives back `obj`: a function, class or Module. Raises ``TypeError`` for anything else."""
    if inspect.isclass(obj) or callable(obj):
        return obj
    raise TypeError(f"script: expected a function, a class or a Module, got {type(obj).__name__}")


def script_method(fn):
    """Gives back the method."""
    return fn


def trace(
    func,
    example_inputs=None,
    optimize=None,
    check_trace=True,
    check_inputs=None,
    check_tolerance=1e-5,
    strict=True,
    _force_outplace=False,
    _module_class=None,
    _compilation_unit=None,
    example_kwarg_inputs=None,
    _store_inputs=True,
):
    """Runs `func` once on the example inputs, so that a mistake shows here, and gives it back."""
    if example_kwarg_inputs is not None:
        func(**example_kwarg_inputs)
    elif example_inputs is not None:
        func(*example_inputs) if type(example_inputs) in (tuple, list) else func(example_inputs)
    return func


def trace_module(mod, inputs, *args, **kwargs):
    """Runs the named methods of `mod` once on their example inputs and gives `mod` back."""
    for name, example in inputs.items():
        method = getattr(mod, name)
        method(*example) if type(example) in (tuple, list) else method(example)
    return mod


def freeze(mod, preserved_attrs=None, optimize_numerics=True):
    """Gives back `mod`, which must be in evaluation mode."""
    if mod.training:
        raise RuntimeError(
            "Freezing is currently only implemented for modules in eval mode. "
            "Please call .eval() on your module before freezing."
        )
    return mod


def optimize_for_inference(mod, other_methods=None):
    """Gives back `mod` in evaluation mode."""
    return mod.eval()


def fork(func, *args, **kwargs):
    """A future of ``func(*args, **kwargs)``, which has run when this returns."""
    from rushlight.futures import Future

    future = Future()
    try:
        future.set_result(func(*args, **kwargs))
    except Exception as error:
        future.set_exception(error)
    return future


def wait(future):
    """The future's result."""
    return future.wait()
