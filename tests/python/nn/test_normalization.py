"""Statistics of normalisations: their gradients, their dtypes, and batches of nothing."""

import pytest

import rushlight as torch
from rushlight.nn import functional as F

oracle = pytest.importorskip("torch")


def both(program, *arrays):
    """What a program returns with each library, as lists."""
    results = []
    for module in (torch, oracle):
        tensors = [module.tensor(a, requires_grad=isinstance(a[0], float)) for a in arrays]
        results.append([t.tolist() for t in program(module, *tensors)])
    return results


oracle = pytest.importorskip("torch")


def test_group_norm_statistics_have_gradients():
    def program(m, x, w):
        y, mean, rstd = m.native_group_norm(x.view(2, 4, 2), w, None, 2, 4, 2, 2, 1e-5)
        loss = (y * y).sum() + (mean**3).sum() + (rstd**2).sum()
        grads = m.autograd.grad(loss, [x, w], create_graph=True)
        return [g.detach().round(decimals=3) + 0.0 for g in (*grads, *m.autograd.grad(grads[0].sum(), [x]))]

    ours, theirs = both(program, [float(i * i % 7) for i in range(16)], [1.0, 2.0, 3.0, 4.0])
    for mine, other in zip(ours, theirs, strict=True):
        assert mine == pytest.approx(other, abs=2e-2)


def test_batch_norm_in_evaluation_keeps_no_statistics():
    mean, var = torch.zeros(2), torch.ones(2)
    x = torch.randn(3, 2, requires_grad=True)
    results = torch.native_batch_norm(x, None, None, mean, var, False, 0.1, 1e-5)
    assert [tuple(r.shape) for r in results] == [(3, 2), (0,), (0,)]
    F.batch_norm(x, mean, var, training=True)
    assert mean._version == 0
    y = F.batch_norm(x, mean, var)
    var.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


def test_norms_of_nothing_and_of_complex_numbers():
    assert F.batch_norm(torch.empty(0), torch.empty(0), torch.empty(0)).shape == (0,)
    values = [[1 + 2j, 3 - 1j], [0.5j, 2 + 0j]]
    ours = F.rms_norm(torch.tensor(values), [2])
    theirs = oracle.nn.functional.rms_norm(oracle.tensor(values), [2])
    assert oracle.allclose(oracle.tensor(ours.tolist()), theirs)


def test_batch_norm_reads_strided_running_statistics_backward():
    spread = torch.tensor([0.5, 2.0, 1.5, 4.0])
    mean, var = spread[::2], spread[1::2]

    def gradients(mean, var):
        x = torch.arange(8.0).view(4, 2).requires_grad_()
        weight = torch.ones(2, requires_grad=True)
        y = F.batch_norm(x, mean, var, weight)
        return [g.tolist() for g in torch.autograd.grad((y * y).sum(), [x, weight])]

    assert gradients(mean, var) == gradients(mean.clone(), var.clone())


HALVES = ("float16", "bfloat16")


@pytest.mark.parametrize("dtype", HALVES)
def test_statistics_of_half_norms(dtype):
    def program(m):
        x = (m.arange(32.0).view(2, 4, 4) % 7 / 4 - 1).to(getattr(m, dtype)).requires_grad_()
        calls = [
            lambda: m.native_layer_norm(x, [4], None, None, 1e-5),
            lambda: m.native_group_norm(x, None, None, 2, 4, 4, 2, 1e-5),
            lambda: m.native_batch_norm(x, None, None, None, None, True, 0.1, 1e-5),
            lambda: m.native_layer_norm(x, [4], m.ones(4), m.zeros(4), 1e-5),
        ]
        return [
            (str(s.dtype)[-8:], *m.autograd.grad((y * y * y).sum(), x)) for y, s, _ in (c() for c in calls)
        ]

    for (kind, mine), (their_kind, other) in zip(program(torch), program(oracle), strict=True):
        assert kind == their_kind
        expected = oracle.tensor(other.tolist())
        tolerance = (0.02 if dtype == "float16" else 0.15) * expected.abs().max()
        assert (oracle.tensor(mine.tolist()) - expected).abs().max() <= tolerance


@pytest.mark.parametrize("size", [5, 24, 131])
def test_norms_of_halves_are_those_of_floats(size):
    torch.manual_seed(0)
    x = torch.randn(6, size).half()
    weight, bias = torch.randn(2, size).half()
    norms = {
        "layer": lambda x, w, b: F.layer_norm(x, (size,), w, b),
        "batch": lambda x, w, b: F.batch_norm(x, None, None, w, b, training=True),
        "planes": lambda x, w, b: F.batch_norm(x.view(2, 3, size), None, None, w[:3], b[:3], training=True),
        "group": lambda x, w, b: F.group_norm(x, 1, w, b),
        "group of planes": lambda x, w, b: F.group_norm(x.view(2, 3, size), 3, w[:3], b[:3]),
    }
    for name, norm in norms.items():
        results = []
        for convert in (torch.Tensor.half, torch.Tensor.float):
            leaves = [convert(t).requires_grad_() for t in (x, weight, bias)]
            y = norm(*leaves)
            results.append([y, *torch.autograd.grad((y.float() ** 3).sum(), leaves)])
        for half, full in zip(*results, strict=True):
            scale = full.abs().max().item()
            assert (half.float() - full).abs().max().item() < 4e-3 * scale, name


@pytest.mark.parametrize("groups", [1, 2, 5])
def test_group_norm_of_rows(groups):
    x = [float(i * i % 23) for i in range(70)]
    weight, bias = [i / 10 for i in range(10)], [1.0 - i / 7 for i in range(10)]

    def program(m, x, w, b):
        y = m.nn.functional.group_norm(x.view(7, 10), groups, w, b)
        return [y.reshape(-1).detach(), *(g.reshape(-1) for g in m.autograd.grad((y**3).sum(), [x, w, b]))]

    ours, theirs = both(program, x, weight, bias)
    for mine, other in zip(ours, theirs, strict=True):
        assert mine == pytest.approx(other, rel=1e-4, abs=1e-3)
