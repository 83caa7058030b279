"""Modules as functions of their parameters, and the package `functorch` under the alias."""

import subprocess
import sys

import pytest

import rushlight as torch
from rushlight._functorch.make_functional import (
    combine_state_for_ensemble,
    make_functional,
    make_functional_with_buffers,
)


def test_make_functional():
    model, x = torch.nn.Linear(3, 2), torch.randn(4, 3)
    function, params = make_functional(model)
    assert torch.equal(function(params, x), model(x)) and not list(function.parameters())
    grads = torch.func.grad(lambda p: function(p, x).sum())(params)
    model(x).sum().backward()
    assert torch.equal(grads[0], model.weight.grad)
    with pytest.raises(RuntimeError, match="has buffers"):
        make_functional(torch.nn.BatchNorm1d(2))


def test_buffers_and_ensembles():
    models = [torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.BatchNorm1d(2)).eval() for _ in range(3)]
    x = torch.randn(4, 3)
    function, params, buffers = make_functional_with_buffers(models[0])
    assert torch.equal(function(params, buffers, x), models[0](x))
    function, params, buffers = combine_state_for_ensemble(models)
    together = torch.func.vmap(function, in_dims=(0, 0, None))(params, buffers, x)
    torch.testing.assert_close(together, torch.stack([model(x) for model in models]))


def test_the_package(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(
        "import functorch, torch\n"
        "print(functorch.vmap(torch.sin)(torch.zeros(2)).tolist(), functorch.__file__)\n"
    )
    ran = subprocess.run(
        [sys.executable, "-m", "rushlight", program], capture_output=True, text=True, timeout=60
    )
    assert ran.stdout.startswith("[0.0, 0.0]") and "torch_path" in ran.stdout, ran.stderr
    assert "FutureWarning: We've integrated functorch into PyTorch." in ran.stderr
    assert "Please use `torch.vmap` instead" in ran.stderr


def test_the_packages_inside(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(
        "import torch\n"
        "from functorch.einops import rearrange\n"
        "from functorch.experimental import chunk_vmap, replace_all_batch_norm_modules_\n"
        "from functorch.experimental.control_flow import cond, map\n"
        "print(rearrange(torch.ones(2, 6), 'a (b c) -> a b c', b=2).shape)\n"
        "print(map(lambda x, y: x + y, torch.ones(2, 3), torch.ones(3)).sum().item(), cond is torch.cond)\n"
        "print(chunk_vmap(torch.sin, chunks=2)(torch.zeros(4)).tolist())\n"
        "net = replace_all_batch_norm_modules_(torch.nn.Sequential(torch.nn.BatchNorm1d(2)))\n"
        "print(net[0].track_running_stats)\n"
    )
    ran = subprocess.run(
        [sys.executable, "-m", "rushlight", program], capture_output=True, text=True, timeout=60
    )
    assert ran.stdout.splitlines() == [
        "torch.Size([2, 2, 3])",
        "12.0 True",
        "[0.0, 0.0, 0.0, 0.0]",
        "False",
    ], ran.stderr


def test_numbers_leave_for_numpy_where_nothing_is_recorded():
    pytest.importorskip("numpy")
    x = torch.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="requires grad"):
        x.numpy()
    with torch.no_grad():
        assert x.numpy().tolist() == [1, 1]


def test_ellipses_in_patterns():
    from rushlight._functorch.rearrange import rearrange

    x = torch.arange(24).view(2, 3, 4)
    assert torch.equal(rearrange(x, "... -> (...)"), x.reshape(-1))
    assert torch.equal(rearrange(x, "a ... -> a (...)"), x.reshape(2, 12))
    assert torch.equal(rearrange(x, "a ... c -> c (a ...)"), x.permute(2, 0, 1).reshape(4, 6))
    assert torch.equal(rearrange(x, "... c -> c ..."), x.permute(2, 0, 1))
    for pattern in ("(...) -> ...", "a (b ...) -> a b ..."):
        with pytest.raises(ValueError, match="in parentheses cannot be taken apart"):
            rearrange(x, pattern)


def test_models_of_an_ensemble_are_alike():
    models = [torch.nn.Linear(2, 2) for _ in range(3)]
    models[1].eval()
    with pytest.raises(RuntimeError, match="same training/eval mode"):
        combine_state_for_ensemble(models)
    models[1] = torch.nn.Conv2d(3, 3, 3)
    with pytest.raises(RuntimeError, match="of the same class"):
        combine_state_for_ensemble(models)


def test_the_package_of_compilers(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(
        "import torch\n"
        "from functorch.compile import aot_function, default_decompositions, make_boxed_func\n"
        "from functorch.compile import min_cut_rematerialization_partition as partition, nop\n"
        "from torch._functorch.aot_autograd import aot_module_simplified\n"
        "x = torch.ones(3, requires_grad=True)\n"
        "f = aot_function(lambda x: x.sin().cos(), nop, partition_fn=partition)\n"
        "f(x).sum().backward()\n"
        "assert torch.allclose(x.grad, -x.sin().sin() * x.cos())\n"
        "assert torch.ops.aten.detach.default in default_decompositions\n"
        "print('well')\n"
    )
    run = subprocess.run(
        [sys.executable, "-m", "rushlight", str(program)], capture_output=True, text=True, timeout=120
    )
    assert run.stdout == "well\n", run.stderr
