"""Choices, loops and scans that take functions."""

import pytest

import rushlight as torch
from rushlight._higher_order_ops import associative_scan, cond, scan
from rushlight._higher_order_ops import map as hop_map
from rushlight.func import grad, vmap


@pytest.mark.parametrize("length", [1, 2, 3, 7, 8, 13])
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("mode", ["pointwise", "generic"])
def test_associative_scan_is_a_running_total(length, reverse, mode):
    x = torch.randn(3, length, 2, dtype=torch.float64)
    wanted = x.flip(1).cumsum(1).flip(1) if reverse else x.cumsum(1)
    torch.testing.assert_close(associative_scan(torch.add, x, 1, reverse=reverse, combine_mode=mode), wanted)


def linear_recurrence(left, right):
    return {"a": left["a"] * right["a"], "b": left["b"] * right["a"] + right["b"]}


def test_associative_scan_of_nested_values_and_its_gradient():
    a, b = torch.rand(6, 2, dtype=torch.float64), torch.randn(6, 2, dtype=torch.float64)
    a.requires_grad_()

    def loop(a):
        state, states = torch.zeros(2, dtype=torch.float64), []
        for i in range(6):
            state = state * a[i] + b[i]
            states.append(state)
        return torch.stack(states)

    got = associative_scan(linear_recurrence, {"a": a, "b": b}, 0)["b"]
    torch.testing.assert_close(got, loop(a))
    (g,) = torch.autograd.grad(got.sin().sum(), a)
    (wanted,) = torch.autograd.grad(loop(a).sin().sum(), a)
    torch.testing.assert_close(g, wanted)


def test_associative_scan_refuses_what_changes_kind():
    with pytest.raises(RuntimeError, match="must return what it takes"):
        associative_scan(lambda x, y: (x, y), torch.ones(3), 0)
    with pytest.raises(RuntimeError, match="same length"):
        associative_scan(linear_recurrence, {"a": torch.ones(2), "b": torch.ones(3)}, 0)
    with pytest.raises(ValueError, match="Combine_mode"):
        associative_scan(torch.add, torch.ones(3), 0, combine_mode="other")


@pytest.mark.parametrize("reverse", [False, True])
def test_scan(reverse):
    def step(carry, x):
        return carry + x["v"], {"sum": carry + x["v"], "was": carry}

    x = torch.arange(8.0).reshape(2, 4)
    carry, ys = scan(step, torch.zeros(2), {"v": x}, dim=1, reverse=reverse)
    assert torch.equal(carry, x.sum(1))
    wanted = x.flip(1).cumsum(1).flip(1) if reverse else x.cumsum(1)
    assert torch.equal(ys["sum"], wanted.T) and ys["was"].shape == (4, 2)
    with pytest.raises(RuntimeError, match="same metadata"):
        scan(lambda c, x: (torch.stack([c, c]), x), torch.zeros(2), x.T)


def test_scan_under_transforms():
    def total(init, xs):
        return scan(lambda c, x: (c * x, c + x), init, xs)[1].sum()

    init, xs = torch.tensor(2.0), torch.tensor([1.0, 3.0, 5.0])
    assert grad(total)(init, xs) == 1 + 1 + 3
    batch = torch.stack([xs, 2 * xs])
    assert torch.equal(
        vmap(total, in_dims=(None, 0))(init, batch), torch.stack([total(init, x) for x in batch])
    )


def test_map():
    x = torch.randn(4, 3, requires_grad=True)
    result = hop_map(lambda x, y: (x["x"] * y, x["x"].sum()), {"x": x}, torch.ones(3) * 2)
    assert torch.equal(result[0], x * 2) and torch.equal(result[1], x.sum(1))
    result[0].sum().backward()
    assert torch.equal(x.grad, torch.full((4, 3), 2.0))
    with pytest.raises(RuntimeError, match="Leading dimensions of mapped xs cannot be 0"):
        hop_map(lambda x: x, torch.ones(0, 2))


def test_cond():
    x = torch.tensor([1.0, -2.0], requires_grad=True)
    y = cond(x.sum() > 0, lambda x: x.sin(), lambda x: x.cos(), (x,))
    assert torch.equal(y, x.cos())
    chosen = vmap(lambda x: torch.cond(x > 0, lambda x: (x * 10,), lambda x: (x - 1,), (x,))[0])(x)
    assert chosen.tolist() == [10, -3]
    chosen.sum().backward()
    assert x.grad.tolist() == [10, 1]
    with pytest.raises(RuntimeError, match="single-element"):
        cond(x > 0, lambda x: x, lambda x: x, (x,))
    with pytest.raises(RuntimeError, match="Expected pred"):
        cond(1, lambda: 1, lambda: 2)


def test_while_loop():
    def body(i, x):
        return i + 1, x * 2

    i, x = torch.while_loop(lambda i, x: i < 5, body, (torch.tensor(0), torch.ones(2)))
    assert i == 5 and x.tolist() == [32.0, 32.0]
    with pytest.raises(RuntimeError, match="must return what it takes"):
        torch.while_loop(lambda x: True, lambda x: torch.ones(3), (torch.ones(2),))
    with pytest.raises(RuntimeError, match="must return a bool"):
        torch.while_loop(lambda x: 1, lambda x: x, (torch.ones(2),))
