"""Passes of `torch._C` that work out what the results of a graph are like, or forget it.

The script runs on fake tensors, which have sizes, an element type and a device but no data. What an input
does not say is made up for the run, and no result is told by it."""

from rushlight import Tensor, empty, empty_strided, float32
from rushlight._subclasses.fake_tensor import FakeTensorMode
from rushlight.jit._graph_types import TensorType
from rushlight.utils._pytree import tree_leaves

__all__ = [
    "_jit_pass_complete_shape_analysis",
    "_jit_pass_erase_shape_information",
    "_jit_pass_propagate_device",
    "_jit_pass_propagate_dtype",
    "_jit_pass_propagate_shapes_on_graph",
    "_propagate_shapes",
]

_EXAMPLES = {"int": 1, "float": 1.0, "bool": True, "str": "", "complex": 1j, "Scalar": 1, "NoneType": None}


def _jit_pass_erase_shape_information(graph):
    """Forget what tensors are like."""
    for value in graph._values():
        value._complete = None


def _jit_pass_propagate_shapes_on_graph(graph):
    """Work out the sizes of results."""
    _tell(graph, _results(graph), "sizes", "strides")


def _jit_pass_propagate_dtype(graph):
    """Work out the element types of results."""
    _tell(graph, _results(graph), "dtype")


def _jit_pass_propagate_device(graph):
    """Work out the devices of results."""
    _tell(graph, _results(graph), "device")


def _jit_pass_complete_shape_analysis(graph, inputs, with_grad=False):
    """Take over what inputs are like, and work out all that is known of the results."""
    tensors = [value for value in graph._inputs if isinstance(value.type(), TensorType)]
    for value, example in zip(
        tensors, [x for x in tree_leaves(inputs) if isinstance(x, Tensor)], strict=False
    ):
        known = TensorType.create_from_tensor(example)
        value.setType(known if with_grad else known._with(grad=False))
    _tell(graph, _results(graph), "sizes", "strides", "dtype", "device", "grad")


def _propagate_shapes(graph, inputs, with_grad=False):
    """A copy of a graph after `_jit_pass_complete_shape_analysis`."""
    made = graph.copy()
    _jit_pass_complete_shape_analysis(made, inputs, with_grad)
    return made


def _tell(graph, results, *facts):
    """Note these facts of the results, as far as all inputs say them."""
    kinds = [value.type() for value in graph._inputs]
    tensors = [kind for kind in kinds if isinstance(kind, TensorType)]
    guessed = any(kind.annotation_str in _EXAMPLES for kind in kinds if not isinstance(kind, TensorType))
    for fact in facts:
        if not all(_says(kind, fact) for kind in tensors) or (guessed and fact in ("sizes", "strides")):
            continue
        for value, result in zip(graph._outputs, results, strict=False):
            if isinstance(result, Tensor) and isinstance(value.type(), TensorType):
                found = getattr(TensorType.create_from_tensor(result), f"_{fact}")
                value.setType(value.type()._with(**{fact: found}))


def _says(kind, fact):
    return kind.sizes() is not None if fact in ("sizes", "strides") else getattr(kind, f"_{fact}") is not None


def _results(graph):
    """What a run without data gives; nothing where it fails, for values decide, say."""
    module = graph.module()
    inputs = graph._inputs[1:] if graph._inputs and graph._inputs[0].debugName() == "self" else graph._inputs
    if graph.unit is None or not any(_is_told(value.type()) for value in inputs):
        return ()
    own = () if len(inputs) == len(graph._inputs) else (module,)
    try:
        with FakeTensorMode(allow_non_fake_inputs=True):
            result = graph.unit.function()(*own, *(_example(value.type()) for value in inputs))
    except (RuntimeError, TypeError, ValueError, LookupError, AttributeError, NotImplementedError):
        return ()
    return (result,) if len(graph._outputs) == 1 else result


def _is_told(kind):
    return isinstance(kind, TensorType) and kind != TensorType()


def _example(kind):
    """A value of a type, for a run without data."""
    if not isinstance(kind, TensorType):
        if kind.annotation_str.startswith("Optional["):
            return None
        return _EXAMPLES[kind.annotation_str]
    dtype, device = kind.dtype() or float32, kind.device() or "cpu"
    if kind.sizes() is None:
        return empty([size or 1 for size in kind._sizes or (1,)], dtype=dtype, device=device)
    if kind.strides() is None or len(kind.strides()) != kind.dim():
        return empty(kind.sizes(), dtype=dtype, device=device)
    return empty_strided(kind.sizes(), kind.strides(), dtype=dtype, device=device)
