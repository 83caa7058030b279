"""TorchScript: modules and functions that run without the classes and files they come from.

`script` compiles the source of a program that keeps to a subset of Python, `trace` records the operations
of one run. Both give text in that subset, which runs on the library alone and goes into a file with the
weights."""

from rushlight._command.submodules import submodule as _submodule
from rushlight.jit import _decorations
from rushlight.jit._decorations import (
    Attribute,
    Final,
    _drop,
    _overload,
    _overload_method,
    _unwrap_optional,
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

__all__ = [
    "Attribute",
    "CompilationUnit",
    "Error",
    "Final",
    "RecursiveScriptModule",
    "ScriptFunction",
    "ScriptModule",
    "ScriptWarning",
    "TopLevelTracedModule",
    "TracerWarning",
    "TracingCheckError",
    "annotate",
    "enable_onednn_fusion",
    "export",
    "export_opnames",
    "fork",
    "freeze",
    "fuser",
    "ignore",
    "interface",
    "is_scripting",
    "is_tracing",
    "isinstance",
    "load",
    "onednn_fusion_enabled",
    "optimize_for_inference",
    "optimized_execution",
    "run_frozen_optimizations",
    "save",
    "script",
    "script_if_tracing",
    "script_method",
    "set_fusion_strategy",
    "set_module",
    "strict_fusion",
    "trace",
    "trace_module",
    "unused",
    "wait",
]

__capture__ = "through"  # Note [Capture marks]

optimized_execution = _decorations.optimized_execution
_script_if_tracing = script_if_tracing
isinstance = _decorations.refined_isinstance  # noqa: A001 - PyTorch's name

# Where the rest lives: compiling is loaded when something is compiled.
_HOMES = {
    "_script": "RecursiveScriptModule ScriptFunction ScriptModule script script_method",
    "_trace": "TopLevelTracedModule TracerWarning TracingCheckError _get_trace_graph trace trace_module",
    "_archive": "load save",
    "_freeze": "freeze optimize_for_inference run_frozen_optimizations",
    "_compilation_unit": "CompilationUnit",
    "_fusion": "fuser set_fusion_strategy",
    "_operator_names": "export_opnames",
}


TYPE_CHECKING = False
if TYPE_CHECKING:  # what `__getattr__` finds
    from rushlight.jit._archive import load as load
    from rushlight.jit._archive import save as save
    from rushlight.jit._compilation_unit import CompilationUnit as CompilationUnit
    from rushlight.jit._freeze import freeze as freeze
    from rushlight.jit._freeze import optimize_for_inference as optimize_for_inference
    from rushlight.jit._freeze import run_frozen_optimizations as run_frozen_optimizations
    from rushlight.jit._fusion import fuser as fuser
    from rushlight.jit._fusion import set_fusion_strategy as set_fusion_strategy
    from rushlight.jit._operator_names import export_opnames as export_opnames
    from rushlight.jit._script import RecursiveScriptModule as RecursiveScriptModule
    from rushlight.jit._script import ScriptFunction as ScriptFunction
    from rushlight.jit._script import ScriptModule as ScriptModule
    from rushlight.jit._script import script as script
    from rushlight.jit._script import script_method as script_method
    from rushlight.jit._trace import TopLevelTracedModule as TopLevelTracedModule
    from rushlight.jit._trace import TracerWarning as TracerWarning
    from rushlight.jit._trace import TracingCheckError as TracingCheckError
    from rushlight.jit._trace import trace as trace
    from rushlight.jit._trace import trace_module as trace_module


def __getattr__(name):
    for home, names in _HOMES.items():
        if name in names.split():
            from importlib import import_module

            value = globals()[name] = getattr(import_module(f"rushlight.jit.{home}"), name)
            return value
    if name == "Future":
        from rushlight.futures import Future

        return Future
    if name == "_Await":
        from rushlight._awaits import _Await

        return _Await
    return _submodule(__name__, name)


def _awaitable(func, *args, **kwargs):
    """A call that is made when `_awaitable_wait` asks for its result."""
    from rushlight._awaits import _Await

    return _Await(func, args, kwargs)


def _awaitable_wait(aw):
    return aw.wait()


def _awaitable_nowait(o):
    """A result as an `Await`."""
    from rushlight._awaits import _Await

    return _Await(None, (o,), None, o)


_onednn_fusion = False


def enable_onednn_fusion(enabled):
    """Ask for fusion by oneDNN. Scripts run on the library's kernels, which fuse where that is faster, so it
    changes nothing that is computed."""
    global _onednn_fusion
    _onednn_fusion = bool(enabled)


def onednn_fusion_enabled():
    """What `enable_onednn_fusion` said last."""
    return _onednn_fusion


class Error(RuntimeError):
    """What a script raises where it has no exception of Python's to raise."""


class ScriptWarning(Warning):
    """What scripting warns of."""


def set_module(obj, mod):
    """Say which module an object belongs to."""
    obj.__module__ = mod


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
    if future is None:
        raise RuntimeError("Future can't be None")
    return future.wait()


_fork, _wait = fork, wait
