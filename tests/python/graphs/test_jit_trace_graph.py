"""The graph that `torch.jit._get_trace_graph` gives to tools: operators, shapes, scopes, as PyTorch's."""

import pytest

import rushlight
from rushlight import nn
from rushlight._command.names import is_aliased


def models(torch):
    """Each with example inputs."""
    nn = torch.nn

    class Functions(nn.Module):
        def forward(self, x, i):
            y = nn.functional.interpolate(x, scale_factor=2, mode="bilinear", align_corners=False)
            y = nn.functional.relu(y, inplace=True).add_(1)
            first, second = y.split(1, 1)
            table = torch.ones(10, 4)
            z = torch.einsum(
                "bchw,nw->bn",
                (first + second).narrow(3, 4, 4),
                nn.functional.embedding(i, table).narrow(1, 0, 2).repeat(1, 2),
            )
            return {"a": z, "b": torch.cat([first, second], 1)}

    network = nn.Sequential(
        nn.Conv2d(3, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(inplace=True), nn.MaxPool2d(2),
        nn.Dropout(0.5), nn.ConvTranspose2d(4, 2, 2), nn.InstanceNorm2d(2, affine=True), nn.GroupNorm(1, 2),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(2, 5), nn.LayerNorm(5), nn.GELU(), nn.Softmax(-1),
    )  # fmt: skip
    yield network, (torch.ones(2, 3, 8, 8),)
    yield Functions(), (torch.ones(2, 2, 4, 4), torch.zeros(3, dtype=torch.long))
    yield nn.LSTM(4, 6), (torch.ones(3, 2, 4),)
    yield nn.Sequential(nn.Conv1d(3, 4, 3), nn.Tanh()), (torch.ones(2, 3, 8),)


CONSTANTS = ("prim::Constant", "prim::NumToTensor")


def described(graph):
    """What stays of a graph without constants: (kind, shapes of the tensors that go in, and come out)."""

    def shapes(values):
        return [tuple(v.type().sizes()) for v in values if v.isCompleteTensor()]

    found = []
    for node in graph.nodes():
        inputs = [v for v in node.inputs() if v.node().kind() not in CONSTANTS]
        if node.kind() not in CONSTANTS and (inputs or not node.kind().startswith("prim::ListConstruct")):
            found.append((node.kind(), shapes(inputs), shapes(node.outputs())))
    return found


@pytest.mark.parametrize("number", range(4))
def test_operators_and_shapes_are_those_of_pytorch(number):
    if is_aliased():
        pytest.skip("compares with PyTorch")
    torch = pytest.importorskip("torch")
    graphs = []
    for library in (rushlight, torch):
        model, inputs = list(models(library))[number]
        graph, _ = library.jit._get_trace_graph(model, inputs)
        graphs.append(graph)
    ours, theirs = map(described, graphs)
    size = ("aten::size", "aten::Int", "aten::mul", "aten::floor", "aten::ones", "prim::ListConstruct")
    ours, theirs = ([call for call in calls if call[0] not in size] for calls in (ours, theirs))
    assert [call[0] for call in ours] == [call[0] for call in theirs]
    assert ours == theirs


def test_the_program_runs_once_and_its_results_are_those_of_the_graph():
    class Counting(nn.Module):
        calls = 0

        def forward(self, x, *, scale):
            self.calls += 1
            return x * scale, x.sum()

    model, x = Counting(), rushlight.ones(2, 3)
    graph, (product, total), inputs = rushlight.jit._get_trace_graph(
        model, x, {"scale": rushlight.tensor(2.0)}, return_inputs=True
    )
    assert model.calls == 1 and [tensor.tolist() for tensor in inputs] == [x.tolist(), 2.0]
    assert [v.type().sizes() for v in graph.inputs()] == [[2, 3], []]
    (given,) = graph.outputs()
    assert given.node().kind() == "prim::TupleConstruct"
    assert [v.type().sizes() for v in given.node().inputs()] == [list(product.shape), list(total.shape)]


def test_hooks_give_nodes_their_scopes():
    model = nn.Sequential(nn.Linear(2, 3), nn.Sequential(nn.ReLU()))

    def push(module, inputs):
        rushlight._C._get_tracing_state().push_scope(type(module).__name__)

    def pop(module, inputs, output):
        rushlight._C._get_tracing_state().pop_scope()

    for module in model.modules():
        module.register_forward_pre_hook(push)
        module.register_forward_hook(pop)
    graph, _ = rushlight.jit._get_trace_graph(model, rushlight.ones(1, 2))
    assert {n.kind(): n.scopeName() for n in graph.nodes()} == {
        "aten::linear": "Sequential/Linear",
        "aten::relu": "Sequential/Sequential/ReLU",
    }
    assert rushlight._C._get_tracing_state() is None


def test_a_failing_program_ends_the_recording():
    def fails(x):
        x.view(7)

    with pytest.raises(RuntimeError, match="shape"):
        rushlight.jit._get_trace_graph(fails, rushlight.ones(2))
    assert rushlight._C._get_tracing_state() is None and not rushlight.jit.is_tracing()
    graph, _ = rushlight.jit._get_trace_graph(lambda x: x + 1, rushlight.ones(2))
    assert [n.kind() for n in graph.nodes()][-1] == "aten::add"


def test_types_show_all_that_a_tensor_had():
    x = rushlight.ones(2, 3, dtype=rushlight.float64, requires_grad=True)
    graph, _ = rushlight.jit._get_trace_graph(lambda x: x.t(), x)
    (given,) = graph.inputs()
    kind = given.type()
    assert str(kind) == "Double(2, 3, strides=[3, 1], requires_grad=1, device=cpu)"
    assert (kind.sizes(), kind.strides(), kind.dim(), kind.scalarType()) == ([2, 3], [3, 1], 2, "Double")
    assert (kind.dtype(), kind.device(), kind.requiresGrad()) == (x.dtype, x.device, True)
    assert kind.kind() == "TensorType"


def test_fvcore_counts_operations():
    if not is_aliased():
        pytest.skip("fvcore counts modules of what is called torch")
    count = pytest.importorskip("fvcore.nn")
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(144, 5))
    counts = count.FlopCountAnalysis(model, rushlight.ones(2, 3, 8, 8))
    assert dict(counts.by_operator()) == {"conv": 2 * 36 * 4 * 27, "linear": 2 * 144 * 5}
    assert counts.by_module()["3"] == 2 * 144 * 5
