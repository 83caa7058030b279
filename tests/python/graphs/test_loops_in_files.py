"""Loops, maps, scans and choices in models of one file, in ONNX and in `.pt2` archives: as many steps as the
data or a size say."""

import pathlib
import subprocess

import pytest

import rushlight as torch
from rushlight import nn
from rushlight._higher_order_ops import while_loop
from rushlight._higher_order_ops.map import map as hop_map
from rushlight._higher_order_ops.scan import scan
from rushlight.export import Dim, export, load, load_file, save, save_file

RUNNER = pathlib.Path(torch.__file__).parent / "bin" / "rushlight-run"
DYNAMIC = Dim.DYNAMIC


class Program(nn.Module):
    def __init__(self, function):
        super().__init__()
        torch.manual_seed(0)
        self.layer, self.function = nn.Linear(3, 3), function

    def forward(self, *args):
        return self.function(self.layer, *args)


def steps(layer, x, n):
    """Uses a parameter, and a size that may change."""

    def step(i, x):
        return i + 1, layer(x).sin() + x.shape[0] / rows

    rows = x.shape[0] + 1
    return while_loop(lambda i, x: (i < n).reshape(1), step, (torch.tensor(0), x))


def nested(layer, x, n):
    def outer(i, x):
        def inner(j, x):
            return j + 1, x + torch.cond(x.sum() > 3, lambda x: x * 0.1, lambda x: layer(x).cos(), (x,))

        return i + 1, while_loop(lambda j, x: j < i, inner, (torch.zeros_like(i), x))[1]

    return while_loop(lambda i, x: i < n, outer, (torch.tensor(0), x))


def grown(layer, x, n):
    """A loop that would not end for the other choice."""

    def grow(x):
        return while_loop(lambda x: x.sum() < 100, lambda x: (x * 2,), (x,))[0]

    return torch.cond(n > 0, grow, lambda x: layer(x), (x,))


def rows(layer, x, n):
    return hop_map(lambda row: (layer(row).softmax(-1), row.sum() * x.shape[0] + n), x)


def carried(layer, x, n):
    def step(state, row):
        state = torch.tanh(layer(state + row))
        return state, {"state": state, "twice": state * 2 + x.shape[0]}

    last, found = scan(step, x[0] * n, x, reverse=True)
    return last, found["state"], found["twice"]


def scans_within(layer, x, n):
    def step(i, x):
        return i + 1, scan(both, x[0] * 0, x)[1]

    return while_loop(lambda i, x: i < n, step, (torch.tensor(0), x))


def both(total, row):
    return total + row, total * row


def example(rows, n):
    return torch.randn(rows, 3).abs() + 0.1, torch.tensor(n)


CASES = [steps, nested, grown, rows, carried, scans_within]
SIZES = [(4, 2), (1, 0), (9, 5), (2, 1)]


def case(function):
    program = Program(function).eval()
    return program, example(*SIZES[0]), ({0: DYNAMIC}, None)


def leaves(results):
    return torch.utils._pytree.tree_leaves(results)


def same(found, wanted):
    found, wanted = leaves(found), leaves(wanted)
    assert len(found) == len(wanted)
    for a, b in zip(found, wanted):
        torch.testing.assert_close(torch.as_tensor(a), b.detach(), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("function", CASES)
def test_an_archive(function, tmp_path):
    program, given, shapes = case(function)
    exported = export(program, given, dynamic_shapes=shapes)
    save(exported, tmp_path / "program.pt2")
    for kind in (exported, load(tmp_path / "program.pt2"), exported.run_decompositions()):
        for size in SIZES:
            x = example(*size)
            same(kind.module()(*x), program(*x))


@pytest.mark.parametrize("function", CASES)
def test_one_file(function, tmp_path):
    program, given, shapes = case(function)
    save_file(program, tmp_path / "model.rl", given, dynamic_shapes=shapes)
    model = load_file(tmp_path / "model.rl")
    for size in SIZES:
        x = example(*size)
        same(model(*x), program(*x))


@pytest.mark.skipif(not RUNNER.exists(), reason="rushlight-run is not built here")
def test_the_runner_takes_the_steps(tmp_path):
    numpy = pytest.importorskip("numpy")
    program, given, shapes = case(nested)
    save_file(program, tmp_path / "model.rl", given, dynamic_shapes=shapes)
    x, n = example(7, 4)
    numpy.save(tmp_path / "x.npy", x.numpy())
    numpy.save(tmp_path / "n.npy", n.numpy())
    command = [RUNNER, tmp_path / "model.rl", "--input", tmp_path / "x.npy", "--input", tmp_path / "n.npy"]
    command += ["--output", tmp_path / "count.npy", "--output", tmp_path / "y.npy"]
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    same([torch.from_numpy(numpy.load(tmp_path / f"{name}.npy")) for name in ("count", "y")], program(x, n))


@pytest.mark.parametrize("function", CASES)
def test_onnx(function, tmp_path):
    pytest.importorskip("onnx")
    onnxruntime = pytest.importorskip("onnxruntime")
    program, given, shapes = case(function)
    torch.onnx.export(program, given, tmp_path / "model.onnx", dynamic_shapes=shapes)
    session = onnxruntime.InferenceSession(tmp_path / "model.onnx", providers=["CPUExecutionProvider"])
    for size in SIZES:
        x = example(*size)
        found = session.run(None, {i.name: t.numpy() for i, t in zip(session.get_inputs(), x)})
        same(found, program(*x))


def test_a_scan_of_an_export_is_one_node_with_gradients():
    program, given, shapes = case(carried)
    exported = export(program, given, dynamic_shapes=shapes)
    assert [n.target for n in exported.graph.nodes].count(torch.ops.higher_order.scan) == 1
    x, n = example(6, 2)
    found = torch.autograd.grad(exported.module()(x, n)[2].sum(), list(exported.parameters()))
    same(found, torch.autograd.grad(program(x, n)[2].sum(), list(program.parameters())))


def test_carried_values_that_change_their_kind_are_refused():
    def widen(layer, x, n):
        return scan(lambda total, row: ((total + row).double(), row), x[0], x)[0]

    program, given, shapes = case(widen)
    with pytest.raises(RuntimeError, match="expected init and carry to have the same metadata"):
        export(program, given, dynamic_shapes=shapes)


def test_long_maps_of_fixed_length_are_loops_of_a_file(tmp_path):
    class Rows(nn.Module):
        def forward(self, x):
            return hop_map(lambda row: row.sin() * row.cos() + 1, x)

    x = torch.randn(2000, 3)
    save_file(Rows(), tmp_path / "model.rl", (x,))
    model = load_file(tmp_path / "model.rl")
    assert "jit::scan_graph" in str(model) and "stack" not in str(model)
    same(model(x), Rows()(x))


def test_what_functions_in_files_must_not_do_is_named(tmp_path):
    class Gives(nn.Module):
        def forward(self, x):
            return while_loop(lambda x: x.sum() < 9, lambda x: (x.clone().add_(1),), (x,))

    with pytest.raises(RuntimeError, match=r"test_loops_in_files.py, line \d+: the program calls aten.add_"):
        save(export(Gives(), (torch.ones(2),)), tmp_path / "model.rl")
