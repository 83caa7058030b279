"""Exported programs compute what eager does at sizes that differ from the example's, size one among them."""

import math

import pytest
from serving_programs import PROGRAMS

import rushlight as torch
from rushlight import nn
from rushlight.export import Dim, export, load, load_file, save, save_file
from rushlight.export.dynamic_shapes import UserError
from rushlight.utils import _pytree as pytree


def check_at_all_sizes(run, module, program):
    for sizes in program.sizes:
        inputs = program.inputs(*sizes)
        with torch.no_grad():
            found, expected = (pytree.tree_leaves(f(*inputs)) for f in (run, module))
        assert len(found) == len(expected)
        for a, b in zip(found, expected):
            assert a.shape == b.shape, sizes
            torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5, equal_nan=True)


@pytest.fixture(params=sorted(PROGRAMS))
def program(request):
    return PROGRAMS[request.param]


def made(program):
    torch.manual_seed(0)
    return program.make().eval()


def test_programs_serve_other_sizes(program, tmp_path):
    module = made(program)
    exported = export(module, program.inputs(*program.sizes[0]), dynamic_shapes=program.shapes())
    check_at_all_sizes(exported.module(), module, program)
    if program.make.__name__ != "Lstm":  # its operator stands in no archive where sizes change
        save(exported, tmp_path / "program.pt2")
        check_at_all_sizes(load(tmp_path / "program.pt2").module(), module, program)


def test_files_serve_other_sizes(program, tmp_path):
    module = made(program)
    inputs = program.inputs(*program.sizes[0])
    save_file(module, tmp_path / "model.rl", inputs, dynamic_shapes=program.shapes())
    check_at_all_sizes(load_file(tmp_path / "model.rl"), module, program)


_OTHERWISE = {"Patches", "MaskedAttention"}  # a bicubic table at 1x1, what is exported by `functionalize`


class Eigenvalues(nn.Module):
    def forward(self, x):
        return torch.linalg.eigvalsh(x @ x.mT)


def test_onnx_refuses_what_it_has_no_rule_for(tmp_path):
    pytest.importorskip("onnx")
    with pytest.raises(NotImplementedError, match="onnx.export: "):
        torch.onnx.export(
            Eigenvalues(), (torch.rand(3, 4),), tmp_path / "model.onnx", dynamic_shapes=({0: Dim("rows")},)
        )


@pytest.mark.parametrize("name", sorted(set(PROGRAMS) - _OTHERWISE))
def test_onnx_serves_other_sizes(name, tmp_path):
    program = PROGRAMS[name]
    runtime = pytest.importorskip("onnxruntime")
    pytest.importorskip("onnx")
    module = made(program)
    inputs = program.inputs(*program.sizes[0])
    torch.onnx.export(module, inputs, tmp_path / "model.onnx", dynamic_shapes=program.shapes())
    session = runtime.InferenceSession(tmp_path / "model.onnx", providers=["CPUExecutionProvider"])

    def run(*values):
        named = {i.name: v.numpy() for i, v in zip(session.get_inputs(), values)}
        return [torch.as_tensor(v) for v in session.run(None, named)]

    check_at_all_sizes(run, module, program)


# --- what is refused, and what the words say ----------------------------------------------------------


class Single(nn.Module):
    def forward(self, x):
        return x + 1 if x.shape[0] == 1 else x - 1


def test_a_smallest_size_that_is_asked_for_is_kept_or_refused():
    x = torch.ones(4, 3)
    for least in (0, 1):
        text = rf"computes otherwise with n = 1 than .* but sizes from {least} on were asked for\. "
        with pytest.raises(UserError, match=text):
            export(Single(), (x,), dynamic_shapes=({0: Dim("n", min=least)},))
    with pytest.raises(UserError, match="computes otherwise"):
        export(Single(), (x,), dynamic_shapes=({0: Dim.AUTO(min=1)},))
    for shape in (Dim("n"), Dim("n", min=2), Dim.AUTO, Dim.DYNAMIC):
        (found,) = export(Single(), (x,), dynamic_shapes=({0: shape},)).range_constraints.values()
        assert found.lower == 2
    kept = export(nn.Linear(3, 3), (x,), dynamic_shapes=({0: Dim("n", min=0)},))
    assert kept.range_constraints["n"].lower == 0 and kept.module()(torch.ones(0, 3)).shape == (0, 3)


def test_an_example_of_size_one_stands_for_others():
    module = nn.Linear(3, 2)
    run = export(module, (torch.ones(1, 3),), dynamic_shapes=({0: Dim("n")},)).module()
    for n in (1, 2, 7):
        torch.testing.assert_close(run(torch.ones(n, 3)), module(torch.ones(n, 3)))


class TwoInputs(nn.Module):
    def forward(self, x, y):
        return x.sum(0) + y.sum(0)


class Added(nn.Module):
    def forward(self, x, y):
        return x + y


@pytest.mark.parametrize("hint", [Dim.AUTO, Dim.DYNAMIC])
def test_sizes_that_are_equal_by_chance_stay_apart(hint):
    x, y = torch.randn(5, 3), torch.randn(5, 3)
    apart = export(TwoInputs(), (x, y), dynamic_shapes=({0: hint}, {0: hint}))
    assert len(apart.range_constraints) == 2
    torch.testing.assert_close(apart.module()(x, y[:2]), x.sum(0) + y[:2].sum(0))
    together = export(Added(), (x, y), dynamic_shapes=({0: hint, 1: hint}, {0: hint, 1: hint}))
    assert len(together.range_constraints) == 2
    with pytest.raises(AssertionError, match="Guard failed"):
        together.module()(x, y[:2])
    matrix = torch.randn(4, 4)
    square = export(Added(), (matrix, matrix.t().clone()), dynamic_shapes=({0: hint, 1: hint},) * 2)
    assert len(square.range_constraints) == 2


class Limited(nn.Module):
    def forward(self, x):
        if x.size(1) > 64:
            raise ValueError("at most 64 steps.")
        return x * 2


class OfNumbers(nn.Module):
    def forward(self, x):
        return x / torch.tensor([x.size(1)] * 17).sum()


class Looping(nn.Module):
    def forward(self, x):
        total = x[:, 0]
        for i in range(1, x.size(1)):
            total = total * 0.5 + x[:, i]
        return total


class Logarithmic(nn.Module):
    def forward(self, x):
        return x * math.log(x.size(1))


class ByValue(nn.Module):
    def forward(self, x):
        return x if x.sum() > 0 else -x


@pytest.mark.parametrize(
    ("module", "text"),
    [
        (
            Limited(),
            r"fails with n = 4096 .*: at most 64 steps.; it does not with Dim\('n', max=64\)\. Leave",
        ),
        (OfNumbers(), "makes a tensor of numbers that change with the sizes"),
        (Looping(), r"takes another path at other sizes\. Leave"),
        (Logarithmic(), r"computes 1\.\d+ in `mul` from n otherwise than by .*, or roots of these\. Leave"),
    ],
)
def test_a_refusal_names_the_line_and_ends(module, text):
    with pytest.raises(UserError, match=text) as raised:
        export(module, (torch.ones(2, 5),), dynamic_shapes=({1: Dim("n")},))
    message = str(raised.value)
    assert f"{__file__}, line " in message and "Suggested fixes:\n  n = " in message
    assert message.splitlines()[0].endswith("does not depend on the example's.")


def test_a_refusal_of_values_names_the_line():
    with pytest.raises(RuntimeError, match="Could not guard on data-dependent expression") as raised:
        export(ByValue(), (torch.ones(2),))
    assert f"{__file__}, line " in str(raised.value) and "`return x if x.sum() > 0" in str(raised.value)


def test_a_hint_gives_way_to_what_the_program_allows():
    (found,) = export(
        Limited(), (torch.ones(2, 5),), dynamic_shapes=({1: Dim.AUTO},)
    ).range_constraints.values()
    assert (found.lower, found.upper) == (0, 64)


def test_no_state_changes():
    module = nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3), nn.MultiheadAttention(3, 1))
    module.forward = lambda x: module[2](*[module[1](module[0](x))] * 3)[0]
    before = {name: value.clone() for name, value in module.state_dict().items()}
    x, state = torch.randn(4, 3), torch.get_rng_state()
    export(module, (x,), dynamic_shapes=({0: Dim("n")},))
    assert all(torch.equal(before[name], value) for name, value in module.state_dict().items())
    assert module.training and torch.equal(torch.get_rng_state(), state)


def _shifted(x, y):
    return torch.cat([x, x[:1]]) * y


def _grouped(x, y):
    return x.view(-1, 3) + y.view(-1, 1)


@pytest.mark.parametrize(
    ("function", "sizes", "others", "wrong"),
    [(_shifted, (4, 5), [(7, 8), (2, 3)], (7, 9)), (_grouped, (12, 4), [(30, 10), (3, 1)], (12, 5))],
)
def test_hinted_sizes_that_belong_together_change_together(function, sizes, others, wrong):
    class Program(nn.Module):
        def forward(self, x, y, z):
            return function(x, y), z * 2

    def inputs(sizes, last):
        return (*(torch.arange(float(n)) for n in sizes), torch.ones(last, 6))

    program = export(Program(), inputs(sizes, 6), dynamic_shapes=({0: Dim.AUTO},) * 3)
    for further in others:
        given = inputs(further, 11)  # a size of its own
        assert all(map(torch.equal, program.module()(*given), Program()(*given)))
    with pytest.raises(AssertionError, match=r"y\.size\(\)\[0\] == \d+ since x\.size\(\)\[0\] is known, got"):
        program.module()(*inputs(wrong, 6))
