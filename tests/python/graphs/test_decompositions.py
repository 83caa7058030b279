"""`run_decompositions`: programs of core ATen operators that compute what the program did."""

import copy

import pytest
from function_module import FunctionModule

import rushlight as torch
from rushlight import nn
from rushlight._command.names import is_aliased
from rushlight._decomp import core_aten_decompositions, get_decompositions, register_decomposition
from rushlight.export import Dim, default_decompositions, export
from rushlight.nn import functional as F
from rushlight.utils import _pytree as pytree

aten = torch.ops.aten


ACTIVATIONS = (
    "silu mish softplus logsigmoid hardsigmoid hardswish hardshrink softshrink relu6 elu selu celu gelu "
    "leaky_relu tanhshrink softsign glu hardtanh"
).split()
LABELS = torch.tensor([0, 1, 2, 1])
FUNCTIONS = {
    **{name: getattr(F, name) for name in ACTIVATIONS},
    "powers": lambda x: (x**2, x.square(), x.exp2(), x.abs() ** x),
    "mixes": lambda x: (torch.lerp(x, x + 1, 0.3), torch.addcmul(x, x, x, value=2), x.addcdiv(x, x + 9)),
    "parts": lambda x: (x.frac(), x.floor_divide(2), x.clamp(min=0), x.clamp_max(0.5), 1 - x, x % 2),
    "logs": lambda x: (torch.logaddexp(x, x * 2), torch.xlogy(x, x.abs()), torch.hypot(x, x), torch.sinc(x)),
    "tests": lambda x: (x > 0, x.eq(0), x.isfinite(), x.isinf(), x.all(), x.any(1), x.count_nonzero()),
    "choices": lambda x: (torch.where(x > 0, x, 0.0), x.masked_fill(x > 0, 1.0), torch.nan_to_num(x / 0)),
    "sums": lambda x: (x.sum(), x.std(), x.var(1), *torch.var_mean(x, 0), x.nansum(), *x.aminmax()),
    "norms": lambda x: (x.norm(), x.norm(dim=1), x.logsumexp(1), F.normalize(x), F.cosine_similarity(x, -x)),
    "shapes": lambda x: (x.t(), x.mT.reshape(-1), x[None].squeeze(), x.swapaxes(0, 1), x.movedim(0, 1)),
    "pieces": lambda x: (
        *x.split(3),
        *x.chunk(2, 1),
        *x.unbind(),
        torch.stack([x, x]),
        x.roll(1, 0),
        x.roll(2),
    ),
    "made": lambda x: (torch.zeros_like(x) + x.new_ones(4, 1), torch.eye(4) + x, x.tril(), x.triu(1)),
    "places": lambda x: (x.index_add(0, LABELS[:2], x[:2]), x.take(LABELS), F.one_hot(LABELS, 4), x[LABELS]),
    "products": lambda x: (x @ x.t(), x.mv(x[0]), x[0].dot(x[1]), torch.baddbmm(x[None], x[None], x[None])),
    "distances": lambda x: (F.mse_loss(x, -x), F.smooth_l1_loss(x, -x), F.huber_loss(x, -x, "none", 0.5)),
    "entropies": lambda x: (
        F.cross_entropy(x, LABELS),
        F.cross_entropy(x, LABELS, weight=x[0].abs(), ignore_index=1),
        F.binary_cross_entropy(x.sigmoid(), x.abs().clamp(0, 1)),
        F.binary_cross_entropy_with_logits(x, x.abs().clamp(0, 1), pos_weight=x[1].abs()),
    ),
}


def agree(first, second):
    for a, b in zip(pytree.tree_leaves(first), pytree.tree_leaves(second), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5, equal_nan=True)


def targets(program):
    return {n.target for n in program.graph.nodes if n.op == "call_function" and hasattr(n.target, "_schema")}


def others(program):
    """The operators that are not in PyTorch's core set; skips where PyTorch is not, so it is asked last."""
    if is_aliased():
        pytest.skip("which operators are core is asked of PyTorch, whose name is taken here")
    oracle = pytest.importorskip("torch")
    names = [str(target).removeprefix("aten.").split(".") for target in targets(program)]
    packets = [(getattr(oracle.ops.aten, name, None), overload) for name, overload in names]
    return [
        f"{name}.{overload}"
        for (name, overload), (packet, _) in zip(names, packets)
        if packet is None
        or overload not in packet.overloads()
        or oracle.Tag.core not in getattr(packet, overload).tags
    ]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_becomes_core_operators_and_computes_the_same(name):
    torch.manual_seed(0)
    x, function = torch.randn(4, 4), FUNCTIONS[name]
    program = export(FunctionModule(function), (x,)).run_decompositions()
    agree(function(x), program.module()(x))
    assert others(program) == []


MODELS = {
    "images": lambda: (
        nn.Sequential(
            nn.Conv2d(3, 8, 3, padding=1),
            nn.BatchNorm2d(8),
            nn.ReLU(inplace=True),
            nn.MaxPool2d(2),
            nn.Upsample(scale_factor=2, mode="bilinear"),
            nn.Upsample(scale_factor=2),
            nn.ConvTranspose2d(8, 4, 2, 2),
            nn.GroupNorm(2, 4),
            nn.PixelShuffle(2),
            nn.AdaptiveAvgPool2d(2),
            nn.Flatten(),
            nn.Linear(4, 2),
        ),
        (torch.randn(2, 3, 8, 8),),
    ),
    "encoder": lambda: (
        nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True), 2),
        (torch.randn(2, 5, 8),),
    ),
    "lstm": lambda: (nn.LSTM(4, 5, batch_first=True), (torch.randn(2, 3, 4),)),
    "gru": lambda: (nn.GRU(4, 5, bidirectional=True), (torch.randn(3, 2, 4),)),
    "cell": lambda: (nn.LSTMCell(4, 5), (torch.randn(2, 4),)),
}


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("name", MODELS)
def test_a_model_becomes_core_operators_and_trains_its_buffers(name, training):
    torch.manual_seed(0)
    model, args = MODELS[name]()
    model.train(training)
    program = export(copy.deepcopy(model), args).run_decompositions()
    assert not any(target._schema.is_mutable for target in targets(program))
    run = program.module()
    for _ in range(2):
        agree(model(*args), run(*args))
    agree(dict(model.named_buffers()), dict(run.named_buffers()))
    assert [op for op in others(program) if op != "_adaptive_avg_pool2d.default"] == []


def test_writes_become_outputs_that_the_signature_names():
    class Writes(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("n", torch.zeros(3))

        def forward(self, x):
            self.n.add_(1)
            x[0] += self.n.sum()
            x.view(-1).mul_(2)
            made = torch.zeros(4)
            made[1:3] = x[0, :2]
            return x + 1, made

    x = torch.randn(2, 3)
    program = export(Writes(), (x.clone(),)).run_decompositions()
    signature = program.graph_signature
    assert list(signature.buffers_to_mutate.values()) == ["n"]
    assert list(signature.user_inputs_to_mutate.values()) == ["x"]
    assert not any(target._schema.is_mutable for target in targets(program))
    assert len(program.graph.output_node().args[0]) == 4
    assert len(signature.user_outputs) == 2

    model, given, ours = Writes(), x.clone(), x.clone()
    run = program.module()
    agree(model(given), run(ours))
    agree(given, ours)
    agree(model.n, run.n)


def test_sizes_stay_dynamic():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(4, 3)

        def forward(self, x):
            h = F.silu(self.linear(x))
            return h.view(x.shape[0] * 3), x.new_zeros(x.shape[0] * 2), x.tril(), h.mean(0)

    model = Model()
    program = export(model, (torch.randn(5, 4),), dynamic_shapes=({0: Dim("b")},)).run_decompositions()
    for size in (2, 5, 11):
        x = torch.randn(size, 4)
        agree(model(x), program.module()(x))
    assert others(program) == []


def test_a_table_without_an_operator_keeps_it_whole():
    program = export(nn.Sequential(nn.Linear(4, 3), nn.SiLU()), (torch.randn(2, 4),))
    table = default_decompositions()
    assert aten.linear.default in table
    del table[aten.linear.default]
    kept = program.run_decompositions(table)
    assert aten.linear.default in targets(kept)
    assert aten.silu.default not in targets(kept)
    assert targets(program.run_decompositions({})) == {aten.linear.default, aten.silu.default}
    agree(program.module()(torch.ones(2, 4)), kept.module()(torch.ones(2, 4)))


def test_a_function_of_the_program_takes_an_operator_apart():
    table = default_decompositions()
    table[aten.silu.default] = lambda x: x * (1 / (1 + torch.exp(-x)))
    program = export(nn.SiLU(), (torch.randn(3),)).run_decompositions(table)
    assert aten.exp.default in targets(program)
    assert aten.sigmoid.default not in targets(program)


def test_buffers_take_numbers_without_their_history(tmp_path):
    """Running statistics depend on weights: with history, steps would pile up, and a loaded program fail."""
    module, x = nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3)), torch.randn(4, 3)
    program = export(module, (x,)).run_decompositions()
    torch.export.save(program, tmp_path / "norm.pt2")
    eager = copy.deepcopy(module)
    for made in (program.module(), torch.export.load(tmp_path / "norm.pt2").module()):
        ours, theirs = made, copy.deepcopy(eager)
        for _ in range(3):
            ours(x).square().sum().backward()
            theirs(x)
        for name in ("1.running_mean", "1.running_var", "1.num_batches_tracked"):
            assert not ours.get_buffer(name).requires_grad
            torch.testing.assert_close(ours.get_buffer(name), theirs.get_buffer(name))


def test_decomposed_programs_are_saved_and_loaded(tmp_path):
    model = nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3), nn.Softplus())
    x = torch.randn(5, 4)
    program = export(copy.deepcopy(model), (x,)).run_decompositions()
    torch.export.save(program, tmp_path / "model.pt2")
    loaded = torch.export.load(tmp_path / "model.pt2").module()
    agree(model(x), loaded(x))
    agree(dict(model.named_buffers()), dict(loaded.named_buffers()))


def test_tables_are_looked_up_and_added_to():
    mine: dict = {}

    @register_decomposition(aten.silu, mine)
    def silu(x):
        return x * torch.sigmoid(x)

    assert mine == {aten.silu.default: silu}
    with pytest.raises(RuntimeError, match="duplicate registrations"):
        register_decomposition(aten.silu.default, mine)(silu)
    found = get_decompositions([aten.mish, aten.add])
    assert list(found) == [aten.mish.default]
    made = torch.fx.experimental.proxy_tensor.make_fx(F.mish, decomposition_table=found)(torch.randn(3))
    assert "mish" not in made.code and "tanh" in made.code
    assert aten.linear.default in core_aten_decompositions()


class Recurrent(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.convolution = torch.nn.Conv1d(1, 4, 5, 3)
        self.layer = torch.nn.GRU(4, 6, batch_first=True)

    def forward(self, x):
        return self.layer(self.convolution(x[:, None]).transpose(1, 2))[0]


def test_recurrent_layers_stay_where_their_length_changes():
    dim = torch.export.Dim("samples", min=20)
    program = torch.export.export(Recurrent(), (torch.rand(2, 50),), dynamic_shapes=({1: dim},))
    made = program.run_decompositions()
    assert torch.ops.aten.gru.input in {n.target for n in made.graph.nodes}
    for length in (20, 50, 83):
        x = torch.rand(2, length)
        assert torch.allclose(made.module()(x), program.module()(x), atol=1e-6)
    fixed = torch.export.export(Recurrent(), (torch.rand(2, 20),)).run_decompositions()
    assert torch.ops.aten.gru.input not in {n.target for n in fixed.graph.nodes}


def test_decomposed_programs_become_files_of_one_model(tmp_path):
    x = torch.rand(4)
    program = torch.export.export(FunctionModule(lambda x: x**3 + (x > 0.5) * x.remainder(2)), (x,))
    torch.export.save_file(program.run_decompositions(), tmp_path / "model.rl")
    assert torch.allclose(torch.export.load_file(tmp_path / "model.rl")(x), program.module()(x))


def test_operators_of_programs_with_rules_of_their_own_stay_whole():
    @torch.library.custom_op("test_decompositions::scaled", mutates_args=())
    def scaled(x: torch.Tensor, by: float) -> torch.Tensor:
        return x * by

    scaled.register_fake(lambda x, by: torch.empty_like(x))
    program = FunctionModule(lambda x: scaled(x, 2.5) + 1)
    program = export(program, (torch.ones(3),), dynamic_shapes=([{0: Dim("n")}],))
    decomposed = program.run_decompositions()
    assert any("scaled" in str(node.target) for node in decomposed.graph.nodes)
    for size in (1, 5):
        torch.testing.assert_close(decomposed.module()(torch.ones(size)), torch.ones(size) * 2.5 + 1)


def test_an_operator_that_is_not_in_the_table_is_named():
    table = default_decompositions()
    assert table.has_materialized
    operator = torch.ops.aten.linear.default
    table.pop(operator)
    assert table.pop(operator, "none") == "none"
    with pytest.raises(KeyError, match="aten.linear.default"):
        table.pop(operator)
