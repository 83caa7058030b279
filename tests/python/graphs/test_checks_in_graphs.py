"""Graphs hold what a composition checks: a singular matrix raises there, too."""

import io

import pytest

import rushlight as torch
from rushlight.export import load_file, save_file
from rushlight.fx.experimental.proxy_tensor import make_fx

GOOD, BAD = 2 * torch.eye(2), torch.zeros(2, 2)
CALLS = {
    "inv": torch.linalg.inv,
    "solve": lambda x: torch.linalg.solve(x, x + 1),
    "cholesky": torch.linalg.cholesky,
    "lu_factor": lambda x: torch.linalg.lu_factor(x)[0],
    "ldl_factor": lambda x: torch.linalg.ldl_factor(x)[0],
}


class Model(torch.nn.Module):
    def __init__(self, name):
        super().__init__()
        self.name = name

    def forward(self, x):
        return CALLS[self.name](x) + 1


def _refusal(run):
    with pytest.raises(RuntimeError) as caught:
        run(BAD)
    return str(caught.value)


@pytest.mark.parametrize("name", CALLS)
def test_traced_exported_and_compiled(name):
    model = Model(name)
    graphs = {
        "make_fx": make_fx(model)(GOOD),
        "exported": torch.export.export(model, (GOOD,)).module(),
        "eager": torch.compile(model, backend="eager", fullgraph=True),
        "inductor": torch.compile(model, fullgraph=True),
    }
    with torch.no_grad():
        graphs["without gradients"] = torch.compile(model, fullgraph=True)
        graphs["without gradients"](GOOD)
    for kind, run in graphs.items():
        assert torch.equal(run(GOOD), model(GOOD)), kind
        assert _refusal(run) == _refusal(model), kind


def test_exported_files():
    file = io.BytesIO()
    torch.export.save(torch.export.export(Model("inv"), (GOOD,)), file)
    file.seek(0)
    run = torch.export.load(file).module()
    assert torch.equal(run(GOOD), Model("inv")(GOOD))
    assert "The diagonal element 1 is zero" in _refusal(run)


@pytest.mark.parametrize("name", CALLS)
def test_models_in_one_file(name, tmp_path):
    save_file(Model(name), tmp_path / "m.rl", (GOOD,))
    run = load_file(tmp_path / "m.rl")
    torch.testing.assert_close(run(GOOD), Model(name)(GOOD))
    assert _refusal(run).startswith(_refusal(Model(name)))


def test_training():
    x = GOOD.clone().requires_grad_()
    fast = torch.compile(lambda x: torch.linalg.inv(x).sum(), fullgraph=True)
    fast(x).backward()
    assert torch.allclose(x.grad, torch.full((2, 2), -0.25))
    assert "singular" in _refusal(lambda bad: fast(bad.requires_grad_()))


def test_the_check_itself():
    check = torch.ops.aten._linalg_check_errors
    assert check(torch.zeros(3, dtype=torch.int32), "linalg.inv", is_matrix=False) is None
    with pytest.raises(torch.linalg.LinAlgError, match=r"linalg.cholesky: \(Batch element 1\): .*order 2"):
        check(torch.tensor([0, 2], dtype=torch.int32), "linalg.cholesky", is_matrix=False)
    with pytest.raises(RuntimeError, match="dtype int32"):
        check(torch.zeros(3), "linalg.inv", is_matrix=False)
