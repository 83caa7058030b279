"""Reverse-mode automatic differentiation: ``backward`` and ``grad``, custom functions, checks."""

import math
from _thread import _local
from importlib import import_module

import rushlight
from rushlight import _C
from rushlight._errors.advice import advised
from rushlight.autograd.grad_mode import (
    _unsafe_preserve_version_counter,
    enable_grad,
    enforce_grad_layout_policy,
    inference_mode,
    no_grad,
    set_grad_enabled,
    set_multithreading_enabled,
)

__all__ = [
    "Function",
    "Variable",
    "backward",
    "detect_anomaly",
    "enable_grad",
    "enforce_grad_layout_policy",
    "grad",
    "grad_mode",
    "gradcheck",
    "gradgradcheck",
    "inference_mode",
    "no_grad",
    "set_detect_anomaly",
    "set_grad_enabled",
    "set_multithreading_enabled",
]

_HOME = {
    "Function": "function",
    "DeviceType": "_profiler_enums",
    "ProfilerActivity": "_profiler_enums",
    "Variable": "variable",
    "kineto_available": "profiler",
    "_record_function_with_args_enter": "profiler",
    "_record_function_with_args_exit": "profiler",
    "detect_anomaly": "anomaly_mode",
    "gradcheck": "gradcheck",
    "gradgradcheck": "gradcheck",
    "set_detect_anomaly": "anomaly_mode",
    "_unsafe_preserve_version_counter": "grad_mode",
}
_MODULES = frozenset(
    """
        anomaly_mode forward_ad function functional grad_mode graph profiler profiler_legacy
        profiler_util variable
    """.split()
)


TYPE_CHECKING = False
if TYPE_CHECKING:  # what `__getattr__` finds
    from typing import Any

    from rushlight.autograd import anomaly_mode as anomaly_mode
    from rushlight.autograd import forward_ad as forward_ad
    from rushlight.autograd import function as function
    from rushlight.autograd import functional as functional
    from rushlight.autograd import grad_mode as grad_mode
    from rushlight.autograd import graph as graph
    from rushlight.autograd import profiler as profiler
    from rushlight.autograd import profiler_legacy as profiler_legacy
    from rushlight.autograd import profiler_util as profiler_util
    from rushlight.autograd import variable as variable
    from rushlight.autograd._profiler_enums import DeviceType as DeviceType
    from rushlight.autograd._profiler_enums import ProfilerActivity as ProfilerActivity
    from rushlight.autograd.anomaly_mode import detect_anomaly as detect_anomaly
    from rushlight.autograd.anomaly_mode import set_detect_anomaly as set_detect_anomaly
    from rushlight.autograd.function import Function as Function
    from rushlight.autograd.gradcheck import gradcheck as gradcheck
    from rushlight.autograd.gradcheck import gradgradcheck as gradgradcheck
    from rushlight.autograd.profiler import kineto_available as kineto_available
    from rushlight.autograd.variable import Variable as Variable


def __getattr__(name):
    if name in _HOME:
        value = getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    elif name in _MODULES:
        value = import_module(f"{__name__}.{name}")
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


def _profiler_enabled():
    """Whether a profiler records this thread."""
    return _C._profiler_enabled()


def _is_checkpoint_valid():
    """Whether a reentrant checkpoint may run a pass of its own: not where only some gradients are asked
    for, since its pass accumulates all of them."""
    return _C._is_checkpoint_valid()


is_multithreading_enabled = _C._is_multithreading_enabled
SavedTensor = _C.SavedTensor
torch = rushlight


def _calculate_shape(output, grad, is_grads_batched):
    """The shapes to compare of an output and its gradient; tensors of sizes where they are nested."""
    if isinstance(output, tuple):  # a gradient edge
        if is_grads_batched:
            raise RuntimeError("Batched grads are not supported with GradientEdge")
        edge: Any = output
        return edge.node._input_metadata[edge.output_nr].shape, grad.shape

    def of(tensor):
        if getattr(tensor, "is_nested", False) and tensor.layout == rushlight.strided:
            return tensor._nested_tensor_size()
        return tensor.shape

    return of(output), of(grad[0] if is_grads_batched and not grad.is_nested else grad)


_warned_of_cycle = False


def _warn_of_cycle():
    """A gradient with a graph refers to its parameter, which refers to the gradient."""
    global _warned_of_cycle
    if _warned_of_cycle and not rushlight.is_warn_always_enabled():
        return
    _warned_of_cycle = True
    import warnings

    warnings.warn(
        "Using backward() with create_graph=True will create a reference cycle between the parameter and its "
        "gradient which can cause a memory leak. We recommend using autograd.grad when creating the graph to "
        "avoid this. If you have to use this function, make sure to reset the .grad fields of your "
        "parameters to None after use to break the cycle and avoid the leak.",
        stacklevel=3,
    )


_running = _local()  # .passes: what each backward pass of this thread queued, innermost last


def _run_engine(*args):
    """Run a backward pass, and then what it queued for its end."""
    passes = _running.__dict__.setdefault("passes", [])
    queued: list = []
    passes.append(queued)
    try:
        results = _C._engine_run(*args)
        for callback in queued:  # which may queue more
            callback()
    finally:
        passes.pop()
    return results


def _as_tuple(value):
    """One tensor or gradient edge, or a sequence of them, as a tuple."""
    if isinstance(value, rushlight.Tensor) or hasattr(value, "_fields"):
        return (value,)
    return tuple(value)


def _make_grads(outputs, grads, batches=None):
    """The gradients to begin with: ones for scalars, given ones after checking them against their outputs.
    ``batches`` are what they are each one of, under vmap."""
    batches = batches or (None,) * len(outputs)
    return tuple(_make_grad(i, *given) for i, given in enumerate(zip(outputs, grads, batches)))


def _make_grad(i, out, grad, batch=None):
    if isinstance(out, tuple):  # a gradient edge: only its node knows the shape
        edge: Any = out
        out = edge.node._input_metadata[edge.output_nr]
        if grad is None:
            if math.prod(out.shape) != 1:
                raise advised(RuntimeError("grad can be implicitly created only for scalar outputs"))
            return rushlight.ones(out.shape, dtype=out.dtype, device=out.device)
    if isinstance(grad, rushlight.Tensor):
        if type(grad) is not rushlight.Tensor and grad.is_nested and grad.layout is rushlight.strided:
            nested: Any = grad  # whose method is called, as functions do not ask classes here
            if not nested._same_sizes(out):
                raise RuntimeError(f"Mismatch in shape: grad_output[{i}] has other sizes than output[{i}]")
            return grad
        if grad.shape != out.shape and batch is not None:
            raise RuntimeError(
                "If `is_grads_batched=True`, we interpret the first dimension of each grad_output as the "
                "batch dimension. The sizes of the remaining dimensions are expected to match the shape of "
                f"corresponding output, but a mismatch was detected: grad_output[{i}] has a shape of "
                f"{batch.shape} and output[{i}] has a shape of {out.shape}. If you only want some tensors in "
                "`grad_output` to be considered batched, consider using vmap."
            )
        if grad.shape != out.shape:
            raise advised(
                RuntimeError(
                    f"Mismatch in shape: grad_output[{i}] has a shape of {grad.shape} and output[{i}] has "
                    f"a shape of {out.shape}."
                )
            )
        if out.dtype.is_complex != grad.dtype.is_complex:
            raise RuntimeError(
                "For complex Tensors, both grad_output and output are required to have the same dtype. "
                f"Mismatch in dtype: grad_output[{i}] has a dtype of {grad.dtype} and output[{i}] has a "
                f"dtype of {out.dtype}."
            )
        return grad
    if grad is not None:
        raise TypeError(f"gradients can be either Tensors or None, but got {type(grad).__name__}")
    if not out.requires_grad:
        return None
    if out.numel() != 1:
        raise advised(RuntimeError("grad can be implicitly created only for scalar outputs"))
    if not out.dtype.is_floating_point:
        raise RuntimeError(f"grad can be implicitly created only for real scalar outputs but got {out.dtype}")
    return rushlight.ones_like(out, memory_format=rushlight.preserve_format)


def _grads_for(outputs, grads):
    if grads is None:
        return (None,) * len(outputs)
    grads = (grads,) if isinstance(grads, rushlight.Tensor) else tuple(grads)
    return grads


def backward(
    tensors, grad_tensors=None, retain_graph=None, create_graph=False, grad_variables=None, inputs=None
):
    """Adds to `.grad` of the leaves (or of `inputs`) the gradients of tensors.

    Args:
        tensors (Tensor or sequence): what is differentiated.
        grad_tensors (Tensor or sequence, optional): the gradients to begin with; not needed for single
            numbers.
        retain_graph (bool, optional): whether the graph stays for another pass; None: as `create_graph`.
        create_graph (bool): whether the pass is recorded, so that gradients can be differentiated.
        grad_variables: deprecated name of `grad_tensors`.
        inputs (Tensor or sequence, optional): what gets gradients, in place of all leaves.

    Raises: RuntimeError where a tensor has no history, the graph was freed, or a gradient to begin with is
        missing.

    Example:
        >>> x = torch.tensor([1.0, 2.0], requires_grad=True)
        >>> torch.autograd.backward((x**2).sum())
        >>> x.grad
        tensor([2., 4.])
    """
    if grad_variables is not None:
        import warnings

        warnings.warn(
            "`grad_variables` is deprecated. Use `grad_tensors` instead.", FutureWarning, stacklevel=2
        )
        if grad_tensors is not None:
            raise RuntimeError(
                "`grad_tensors` and `grad_variables` (deprecated) arguments both passed to `backward()`. "
                "Please only use `grad_tensors`."
            )
        grad_tensors = grad_variables
    inputs = () if inputs is None else _inputs(inputs, "backward")
    tensors = _as_tuple(tensors)
    grads = _make_grads(tensors, _grads_for(tensors, grad_tensors))
    keep = create_graph if retain_graph is None else retain_graph
    if create_graph:
        _warn_of_cycle()
    _run_engine(tensors, grads, keep, create_graph, inputs, True, True)


def _inputs(inputs, caller):
    if isinstance(inputs, dict):
        inputs = tuple(inputs.values())
    inputs = _as_tuple(inputs)
    if not inputs:
        raise RuntimeError(f"`inputs` argument to `{caller}()` cannot be empty.")
    return inputs


def _overriding(outputs, inputs):
    """Both as tuples, where one of them takes over functions; dicts and nodes of the graph do not."""
    if isinstance(inputs, dict):
        return None
    found = tuple(
        tuple(given) if isinstance(given, (list, tuple)) else (given,) for given in (outputs, inputs)
    )
    return found if _C._has_torch_function(sum(found, ())) else None


def grad(
    outputs,
    inputs,
    grad_outputs=None,
    retain_graph=None,
    create_graph=False,
    only_inputs=True,
    allow_unused=None,
    is_grads_batched=False,
    materialize_grads=False,
) -> "tuple[rushlight.Tensor, ...]":
    """The gradients of outputs with respect to inputs, as a tuple (or a dict, where inputs are one).

    Args:
        outputs (Tensor or sequence): what is differentiated.
        inputs (Tensor, GradientEdge or sequence): by what.
        grad_outputs (Tensor or sequence, optional): the gradients to begin with; not needed for single
            numbers.
        retain_graph (bool, optional): whether the graph stays for another pass; None: as `create_graph`.
        create_graph (bool): whether the pass is recorded, so that gradients can be differentiated.
        only_inputs (bool): deprecated; True.
        allow_unused (bool, optional): whether inputs that outputs do not depend on get None, not an error.
        is_grads_batched (bool): whether `grad_outputs` have a first dimension of several gradients to start
            from.
        materialize_grads (bool): whether zeros stand for None.

    Raises: RuntimeError where an output has no history, the graph was freed, or an input is not used.

    Example:
        >>> x = torch.tensor([1.0, 2.0], requires_grad=True)
        >>> torch.autograd.grad((x**2).sum(), x)
        (tensor([2., 4.]),)
    """
    if materialize_grads and allow_unused is False:
        raise ValueError(
            "Expected allow_unused to be True or not passed when materialize_grads=True, but got: "
            "allow_unused=False."
        )
    if not only_inputs:
        import warnings

        warnings.warn(
            "only_inputs argument is deprecated and is ignored now (defaults to True). To accumulate "
            "gradient for "
            "other parts of the graph, please use torch.autograd.backward.",
            FutureWarning,
            stacklevel=2,
        )
    overriding = _overriding(outputs, inputs)
    if overriding is not None:
        rest = {
            "grad_outputs": grad_outputs,
            "retain_graph": retain_graph,
            "create_graph": create_graph,
            "only_inputs": only_inputs,
            "allow_unused": allow_unused,
            "is_grads_batched": is_grads_batched,
            "materialize_grads": materialize_grads,
        }
        return _C._handle_torch_function(grad, sum(overriding, ()), *overriding, **rest)
    names = list(inputs) if isinstance(inputs, dict) else None
    inputs, outputs = _inputs(inputs, "grad"), _as_tuple(outputs)
    allow_unused = bool(allow_unused or materialize_grads)
    keep = create_graph if retain_graph is None else retain_graph
    given = _grads_for(outputs, grad_outputs)
    if is_grads_batched:
        results = _batched_grad(outputs, inputs, given, keep, create_graph, allow_unused)
    else:
        grads = _make_grads(outputs, given)
        results = _run_engine(outputs, grads, keep, create_graph, inputs, allow_unused, False)
    results = tuple(  # nested tensors have nested gradients
        r if r is None or not hasattr(type(i), "_gradient") else i._gradient(r)
        for r, i in zip(results, inputs)
    )
    if materialize_grads:
        if any(isinstance(i, tuple) for i, r in zip(inputs, results) if r is None):
            raise RuntimeError("materialize_grads cannot be used when the given input is a GradientEdge")
        results = tuple(rushlight.zeros_like(i, requires_grad=create_graph) if r is None else r
                        for r, i in zip(results, inputs))  # fmt: skip
    return tuple(results) if names is None else dict(zip(names, results))  # type: ignore[return-value]


def _batched_grad(outputs, inputs, batches, keep, create_graph, allow_unused):
    """One pass for the whole batch, under vmap."""
    from rushlight._functorch.vmap import batched_gradients

    def run(grads):
        grads = _make_grads(outputs, grads, batches)
        return _run_engine(outputs, grads, keep, create_graph, inputs, allow_unused, False)

    return batched_gradients(run, batches)
