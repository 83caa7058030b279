"""What graphs are told of their tensors, and the passes that work it out for the results."""

import pytest

import rushlight as torch
from rushlight._subclasses.fake_tensor import FakeTensorMode
from rushlight.jit._passes._property_propagation import apply_input_props_using_example


class Doubled(torch.nn.Module):
    def forward(self, x):
        return x * 2


def scripted():
    @torch.jit.script
    def program(x, y):
        return torch.relu(x) @ y + 1

    return program


def test_results_are_worked_out_from_examples_without_data():
    graph = scripted().graph
    (result,) = graph.outputs()
    apply_input_props_using_example(graph, [torch.ones(2, 3), torch.ones(3, 4)])
    torch._C._jit_pass_propagate_shapes_on_graph(graph)
    assert result.type().sizes() == [2, 4] and result.type().dtype() is None
    torch._C._jit_pass_propagate_dtype(graph)
    torch._C._jit_pass_propagate_device(graph)
    assert result.type().dtype() is torch.float32 and result.type().device() == torch.device("cpu")
    assert result.isCompleteTensor() and "Float(2, 4" in str(graph)
    torch._C._jit_pass_erase_shape_information(graph)
    assert result.type() == torch._C.TensorType.get() and "Float" not in str(graph)


def test_nothing_is_told_that_inputs_do_not_say():
    graph = scripted().graph
    first, second = graph.inputs()
    first.setType(first.type().with_dtype(torch.float64))
    torch._C._jit_pass_propagate_dtype(graph)
    assert next(graph.outputs()).type() == torch._C.TensorType.get()
    second.setType(second.type().with_sizes([3, None]))
    assert second.type().sizes() is None and second.type().dim() == 2
    assert second.type().symbolic_sizes() == [3, -2]
    with pytest.raises(RuntimeError, match="Number of inputs"):
        apply_input_props_using_example(graph, [torch.ones(1)])


def test_a_graph_that_fails_without_data_is_told_nothing():
    graph = scripted().graph
    apply_input_props_using_example(graph, [torch.ones(2, 3), torch.ones(5, 4)])
    torch._C._jit_pass_propagate_shapes_on_graph(graph)
    assert next(graph.outputs()).type().sizes() is None


def test_types_of_a_copy_leave_the_graph_as_it_was():
    program = scripted()
    made = torch._C._propagate_shapes(program.graph, (torch.ones(2, 3), torch.ones(3, 4)), False)
    assert next(made.outputs()).type().sizes() == [2, 4]
    assert next(program.graph.outputs()).type().sizes() is None
    assert program.graph is program.graph


def test_graphs_become_functions_and_late_ones_are_graphs():
    traced = torch.jit.trace(lambda x: x * 2 + 1, torch.ones(2))
    made = torch._C._create_function_from_graph("forward", traced.graph)
    assert torch.equal(made(torch.ones(3)), torch.full((3,), 3.0))
    assert isinstance(torch.jit.script(Doubled()).forward.graph, torch._C.Graph)


def test_scripts_run_under_modes_that_the_library_loads_on_first_use():
    with FakeTensorMode(allow_non_fake_inputs=True):
        result = scripted()(torch.ones(2, 3), torch.ones(3, 4))
    assert result.shape == (2, 4)
