"""Small matters of single operators in which programs meet PyTorch's behaviour."""

import pytest

import rushlight
from rushlight.nn import functional as F

torch = pytest.importorskip("torch")


def both(program, *arrays):
    """What a program returns with each library, as lists."""
    results = []
    for module in (rushlight, torch):
        tensors = [module.tensor(a, requires_grad=isinstance(a[0], float)) for a in arrays]
        results.append([t.tolist() for t in program(module, *tensors)])
    return results


def test_as_strided_inplace_is_differentiable():
    def program(m, x):
        y = (x * 2).as_strided_((2, 2), (1, 2), 1)
        weight = m.tensor([[1.0, 2.0], [3.0, 4.0]])
        return [y, *m.autograd.grad((y * weight).sum(), [x])]

    ours, theirs = both(program, [0.0, 1.0, 2.0, 3.0, 4.0])
    assert ours == theirs


def test_group_norm_statistics_have_gradients():
    def program(m, x, w):
        y, mean, rstd = m.native_group_norm(x.view(2, 4, 2), w, None, 2, 4, 2, 2, 1e-5)
        loss = (y * y).sum() + (mean**3).sum() + (rstd**2).sum()
        grads = m.autograd.grad(loss, [x, w], create_graph=True)
        return [g.detach().round(decimals=3) + 0.0 for g in (*grads, *m.autograd.grad(grads[0].sum(), [x]))]

    ours, theirs = both(program, [float(i * i % 7) for i in range(16)], [1.0, 2.0, 3.0, 4.0])
    for mine, other in zip(ours, theirs, strict=True):
        assert mine == pytest.approx(other, abs=2e-2)


@pytest.mark.parametrize("name", ["unbind_copy", "split_with_sizes_copy"])
def test_copies_of_views_take_out_lists(name):
    x = rushlight.arange(6.0).view(3, 2)
    sizes = [[1, 2]] if name == "split_with_sizes_copy" else []
    views = getattr(rushlight, name)(x, *sizes)
    out = [rushlight.full_like(v, 9) if i else rushlight.empty(0) for i, v in enumerate(views)]
    assert getattr(rushlight, name)(x, *sizes, out=out) is None
    assert [o.tolist() for o in out] == [v.tolist() for v in views]
    with pytest.raises(RuntimeError, match="expected out"):
        getattr(rushlight, name)(x, *sizes, out=out[:1])
    with pytest.raises(RuntimeError, match="dtype"):
        getattr(rushlight, name)(x, *sizes, out=[o.double() for o in out])


def test_linear_takes_out():
    x, w = rushlight.arange(6.0).view(2, 3), rushlight.ones(4, 3)
    out = rushlight.empty(0)
    assert F.linear(x, w, out=out) is out and out.tolist() == F.linear(x, w).tolist()
    with pytest.raises(RuntimeError, match="dtype"):
        F.linear(x, w, out=rushlight.empty(2, 4, dtype=rushlight.float64))


def test_batch_norm_in_evaluation_keeps_no_statistics():
    mean, var = rushlight.zeros(2), rushlight.ones(2)
    x = rushlight.randn(3, 2, requires_grad=True)
    results = rushlight.native_batch_norm(x, None, None, mean, var, False, 0.1, 1e-5)
    assert [tuple(r.shape) for r in results] == [(3, 2), (0,), (0,)]
    F.batch_norm(x, mean, var, training=True)
    assert mean._version == 0
    y = F.batch_norm(x, mean, var)
    var.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


def test_norms_of_nothing_and_of_complex_numbers():
    assert F.batch_norm(rushlight.empty(0), rushlight.empty(0), rushlight.empty(0)).shape == (0,)
    values = [[1 + 2j, 3 - 1j], [0.5j, 2 + 0j]]
    ours = F.rms_norm(rushlight.tensor(values), [2])
    theirs = torch.nn.functional.rms_norm(torch.tensor(values), [2])
    assert torch.allclose(torch.tensor(ours.tolist()), theirs)


@pytest.mark.parametrize("amounts", [(-1, 1, -2, 1), (2, -1, 1, -1), (0, -2, 3, 0), (-1, -1, 2, 2)])
def test_circular_padding_wraps_what_negative_amounts_leave(amounts):
    def program(m, x):
        y = m.nn.functional.pad(x.view(1, 1, 4, 4), amounts, "circular")
        return [y, *m.autograd.grad((y * y).sum(), [x])]

    ours, theirs = both(program, [float(i) for i in range(16)])
    assert ours == theirs


def test_ravel_copies_what_is_not_contiguous():
    column = rushlight.zeros(8, 2)[:, 0]
    assert column.ravel().data_ptr() != column.data_ptr()
    assert rushlight.zeros(3, 4).ravel()._base is not None


def test_hash_of_a_number():
    for module in (rushlight, torch):
        hashed = module.hash_tensor(module.tensor(3.0), dim=0, keepdim=True)
        assert hashed.shape == () and hashed.item() == 4613937818241073152


def test_nearest_grid_sample_keeps_the_grid_in_the_graph():
    x = rushlight.rand(1, 1, 3, 3, requires_grad=True)
    grid = rushlight.zeros(1, 2, 2, 2, requires_grad=True)
    y = F.grid_sample(x, grid, mode="nearest", align_corners=False)
    grads = rushlight.autograd.grad(y.sum(), [x, grid], create_graph=True)
    assert grads[1].requires_grad and grads[1].abs().sum() == 0


def test_fractional_max_pool_of_no_images():
    assert F.fractional_max_pool3d(rushlight.empty(0, 1, 4, 5, 4), (2, 2, 1), output_size=2).shape == (
        0,
        1,
        2,
        2,
        2,
    )
