"""Parts of PyTorch's programs that run under autocast or by a comparison of sizes: read, decomposed, kept."""

import pytest

import rushlight as rl
from rushlight._command.names import is_aliased
from rushlight.export import load, load_file, save, unflatten


@pytest.fixture
def torch():
    if is_aliased():
        pytest.skip("PyTorch itself writes the files")
    return pytest.importorskip("torch")


def written(torch, function, example, path, **parts):
    module = type("Program", (torch.nn.Module,), {"forward": function})()
    for name, part in parts.items():
        setattr(module, name, part)
    shapes = ({0: torch.export.Dim.AUTO},)
    torch.export.save(torch.export.export(module, (example,), dynamic_shapes=shapes), path)
    return module


def test_a_part_under_autocast(torch, tmp_path):
    def program(self, x):
        with torch.no_grad():
            y = x * 2
        with torch.autocast("cpu", dtype=torch.bfloat16):
            z = self.layer(x)
        return y + z.float()

    path = tmp_path / "program.pt2"
    theirs = written(torch, program, torch.randn(3, 4), path, layer=torch.nn.Linear(4, 4))
    read = load(path)
    save(read, tmp_path / "again.pt2")
    save(read, tmp_path / "again.rl")
    runs = [read.module(), read.run_decompositions().module(), unflatten(read)]
    runs += [load(tmp_path / "again.pt2").module(), load_file(tmp_path / "again.rl")]
    x = torch.randn(5, 4)
    expected = rl.from_numpy(theirs(x).detach().numpy())
    for run in runs:
        assert rl.allclose(run(rl.from_numpy(x.numpy())), expected, rtol=1e-2, atol=1e-2)
    bfloats = [n for n in read.run_decompositions().graph.nodes if "bfloat16" in str(n.kwargs)]
    assert len(bfloats) == 3


def test_a_choice_by_a_size(torch, tmp_path):
    def program(self, x):
        return torch.cond(x.shape[0] > 4, lambda x: x.sin(), lambda x: x.cos(), (x,))

    path = tmp_path / "program.pt2"
    written(torch, program, torch.randn(3, 4), path)
    read = load(path)
    for run in (read.module(), read.run_decompositions().module()):
        for rows in (2, 4, 5, 9):
            x = rl.randn(rows, 4)
            assert rl.equal(run(x), x.sin() if rows > 4 else x.cos())


def test_levels_of_vmap_become_steps(torch, tmp_path):
    def program(self, x):
        rows = torch.vmap(lambda a, b: (a @ b).sin())(x, x * 2)
        every = torch.vmap(torch.vmap(torch.mul, in_dims=(0, None)), in_dims=(0, 0))(x, x[:, 0])
        return every + rows[:, None]

    path = tmp_path / "program.pt2"
    theirs = written(torch, program, torch.randn(3, 4), path)
    read = load(path)
    assert all(str(n.target).startswith("aten.") for n in read.graph.nodes if n.op == "call_function")
    save(read, tmp_path / "again.pt2")
    save(read, tmp_path / "again.rl")
    runs = [read.module(), load(tmp_path / "again.pt2").module(), load_file(tmp_path / "again.rl")]
    for rows in (3, 2, 7):
        x = torch.randn(rows, 4)
        expected = rl.from_numpy(theirs(x).numpy())
        for run in runs:
            rl.testing.assert_close(run(rl.from_numpy(x.numpy())), expected)
    again = torch.export.load(tmp_path / "again.pt2").module()(x)
    rl.testing.assert_close(rl.from_numpy(again.numpy()), expected)
