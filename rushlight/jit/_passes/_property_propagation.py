"""What graphs are told of their inputs by example."""

from rushlight import Tensor
from rushlight.jit._graph_types import ClassType, TensorType

__all__ = ["apply_input_props_using_example"]


def apply_input_props_using_example(graph, example_input):
    """Let each tensor among a graph's inputs be like the example's; None says nothing of an input."""
    inputs = list(graph.inputs())
    if not inputs:
        return
    if inputs[0].debugName() == "self" and isinstance(inputs[0].type(), ClassType):
        del inputs[0]
    if len(inputs) != len(example_input):
        raise RuntimeError("Number of inputs in graph does not match number of inputs in the example")
    for i, (value, example) in enumerate(zip(inputs, example_input, strict=True)):
        if example is None:
            continue
        if isinstance(example, Tensor) != isinstance(value.type(), TensorType):
            raise RuntimeError(f"Input {i} does not match type of example", value, example)
        if isinstance(example, Tensor):
            value.setType(TensorType.create_from_tensor(example))
