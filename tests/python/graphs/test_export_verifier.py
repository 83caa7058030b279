"""What `validate` finds in exported programs that passes have changed."""

import pytest

import rushlight as torch
from rushlight._export.verifier import SpecViolationError, Verifier
from rushlight.export import Dim, export
from rushlight.export.graph_signature import InputKind, InputSpec, TensorArgument


class Program(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 3)
        self.register_buffer("count", torch.zeros(()))
        self.register_buffer("scratch", torch.ones(3), persistent=False)

    def forward(self, x):
        self.count.add_(x.shape[0])
        return torch.cond(x.sum() > 0, torch.sin, torch.cos, (self.layer(x) * self.scratch + 2.5,))


def exported():
    return export(Program(), (torch.randn(2, 4),), dynamic_shapes=({0: Dim("batch")},))


def test_programs_as_exported_and_decomposed_are_valid():
    program = exported()
    program.validate()
    decomposed = program.run_decompositions()
    decomposed.validate()
    Verifier().check(decomposed)
    assert torch.ops.aten.add_.Tensor not in [n.target for n in decomposed.graph.nodes]


def test_a_program_that_writes_is_no_program_of_the_dialect_aten():
    with pytest.raises(SpecViolationError, match="add_.* is not functional"):
        Verifier().check(exported())
    program = exported().run_decompositions()
    node = next(n for n in program.graph.nodes if n.target is torch.ops.aten.add.Tensor)
    node.target = torch.ops.aten.add_.Tensor
    with pytest.raises(SpecViolationError, match="add_.Tensor is not functional"):
        program.validate()


@pytest.mark.parametrize(
    "kind, target, text",
    [
        (InputKind.PARAMETER, "layer.gone", "parameter layer.gone is not in the state dict"),
        (InputKind.PARAMETER, "count", "count, which is not an instance of torch.nn.Parameter"),
        (InputKind.BUFFER, "gone", "buffer gone is not in the state dict"),
        (InputKind.CONSTANT_TENSOR, "gone", "constant gone is not in the constants"),
    ],
)
def test_what_the_signature_names_is_there(kind, target, text):
    program = exported()
    argument = TensorArgument(program.graph_signature.input_specs[0].arg.name)
    program.graph_signature.input_specs[0] = InputSpec(kind, argument, target, kind == InputKind.BUFFER)
    with pytest.raises(SpecViolationError, match=text):
        program.validate()


def test_outputs_are_those_of_the_signature():
    program = exported()
    output = program.graph.output_node()
    output.args = ((*output.args[0], next(iter(program.graph.nodes))),)
    with pytest.raises(SpecViolationError, match="Number of output nodes: the graph returns 2"):
        program.validate()


def test_modules_are_no_operators():
    with pytest.raises(SpecViolationError, match="call_module in a graph of operators"):
        Verifier()._check_graph_module(torch.fx.symbolic_trace(torch.nn.Sequential(torch.nn.Linear(2, 2))))


def test_subclasses_refuse_more():
    class NoSines(Verifier):
        functional = False

        def check_valid_op(self, op):
            if op is torch.ops.aten.sin.default:
                raise SpecViolationError("a sine")

    with pytest.raises(SpecViolationError, match="a sine"):
        NoSines().check(exported())


def test_passes_make_another_program():
    from rushlight.fx.passes.infra.pass_base import PassResult

    def renamed(module):
        for node in module.graph.nodes:
            if node.op == "call_function":
                node.name = f"{node.name}_changed"
        module.recompile()
        return PassResult(module, True)

    def doubled(module):
        for node in module.graph.find_nodes(op="call_function", target=torch.ops.aten.relu.default):
            with module.graph.inserting_after(node):
                twice = module.graph.call_function(torch.ops.aten.mul.Tensor, (node, 2))
            twice.meta = {**node.meta}
            node.replace_all_uses_with(twice, delete_user_cb=lambda user, made=twice: user is not made)
        module.recompile()
        return PassResult(module, True)

    x = torch.randn(3)
    program = torch.export.export(torch.nn.ReLU(), (x,))
    for change, factor in ((renamed, 1), (doubled, 2)):
        made = program._transform_do_not_use(change)
        made.validate()
        (result,) = made.graph.output_node().args[0]
        assert made.graph_signature.user_outputs == (result.name,) != program.graph_signature.user_outputs
        assert torch.equal(made.module()(x), x.relu() * factor)
    assert program._transform_do_not_use(lambda module: PassResult(module, False)) is program
