"""Views that were made before their base was written: derivatives follow them as values do."""

import random

import pytest

import rushlight as torch
import rushlight.autograd.forward_ad as fwAD

VIEWS = {
    "row": lambda t: t[1],
    "columns": lambda t: t[:, 1:],
    "transposed": lambda t: t.t(),
    "flat": lambda t: t.view(-1)[1::2],
    "corner": lambda t: t[:2, :2].diagonal(),
    "view of a view": lambda t: t.t()[1:].t()[1],
}


def program(seed, before_x):
    """A function of a 3 by 3 tensor: views of zeros are made, then some tensors are written, then all are read."""

    def function(x):
        choices = random.Random(seed)
        base = torch.zeros(3, 3, dtype=x.dtype)
        tensors = [base, *(view(base) for view in VIEWS.values())]
        if before_x:  # the views are known to the transform only as what they are made from
            x = x * 2
        for _ in range(4):
            target = choices.choice(tensors)
            part = x.reshape(-1)[: target.numel()].reshape(target.shape)
            step = choices.randrange(4)
            if step == 0:
                target.copy_(part)
            elif step == 1:
                target.add_(part * part)
            elif step == 2:
                target.copy_(target.clone() * part)
            else:
                target.sub_(choices.choice(tensors).sum())
        return torch.cat([t.reshape(-1) * (i + 1) for i, t in enumerate(tensors)])

    return function


def difference(function, x, v, h=1e-5):
    return (function(x + h * v) - function(x - h * v)) / (2 * h)


def by_dual_level(function, x, v):
    with fwAD.dual_level():
        tangent = fwAD.unpack_dual(function(fwAD.make_dual(x, v))).tangent
    return torch.zeros_like(function(x)) if tangent is None else tangent


FORWARD = {
    "dual level": by_dual_level,
    "jvp": lambda f, x, v: torch.func.jvp(f, (x,), (v,))[1],
    "linearize": lambda f, x, v: torch.func.linearize(f, x)[1](v),
    "jvp of a jvp's value": lambda f, x, v: torch.func.jvp(
        lambda y: torch.func.jvp(f, (y,), (v,))[0], (x,), (v,)
    )[1],
    "reverse mode": lambda f, x, v: torch.func.jacrev(f)(x).flatten(1) @ v.flatten(),
}


@pytest.mark.parametrize("transform", FORWARD)
@pytest.mark.parametrize("before_x", [False, True])
def test_derivatives_follow_views_made_before_a_write(transform, before_x):
    torch.manual_seed(0)
    for seed in range(25):
        x, v = torch.randn(2, 3, 3, dtype=torch.float64)
        function = program(seed, before_x)
        found = FORWARD[transform](function, x, v)
        torch.testing.assert_close(found, difference(function, x, v), rtol=1e-6, atol=1e-6, msg=f"program {seed}")


@pytest.mark.parametrize("view", VIEWS)
def test_views_made_before_the_dual_level_follow(view):
    base = torch.zeros(3, 3)
    former = VIEWS[view](base)
    tangent = torch.arange(9.0).reshape(3, 3)
    with fwAD.dual_level():
        base.copy_(fwAD.make_dual(torch.ones(3, 3), tangent))
        assert fwAD.unpack_dual(former * 2).tangent.tolist() == (VIEWS[view](tangent) * 2).tolist()
        assert fwAD.unpack_dual(former).tangent.tolist() == VIEWS[view](tangent).tolist()
        former.zero_()
        cleared = tangent.clone()
        VIEWS[view](cleared).zero_()
        assert fwAD.unpack_dual(base).tangent.tolist() == cleared.tolist()
    assert fwAD.unpack_dual(former).tangent is None


@pytest.mark.parametrize(
    "view",
    [torch.view_as_real, torch.real, torch.imag, torch.conj, lambda z: z.conj().imag, lambda z: z.conj().real],
)
def test_views_of_the_parts_of_complex_numbers_follow(view):
    base = torch.zeros(3, dtype=torch.complex64)
    former = view(base)
    with fwAD.dual_level():
        within = view(base)
        tangent = torch.tensor([1 + 2j, 3 - 4j, 5 + 6j])
        base.copy_(fwAD.make_dual(torch.ones(3, dtype=torch.complex64), tangent))
        for t in (former, within):
            assert fwAD.unpack_dual(t * 1).tangent.tolist() == (view(tangent) * 1).tolist()


def test_a_complex_view_of_real_numbers_follows():
    base = torch.zeros(3, 2)
    former = torch.view_as_complex(base)
    with fwAD.dual_level():
        base.copy_(fwAD.make_dual(torch.ones(3, 2), torch.arange(6.0).reshape(3, 2)))
        assert fwAD.unpack_dual(former).tangent.tolist() == [1j, 2 + 3j, 4 + 5j]


def test_examples_are_not_written_to_memory_that_a_view_shows():
    def function(x):
        y = torch.zeros(3)
        former = y[1:]
        y.copy_(x)
        return (former * 2).sum()

    with pytest.raises(RuntimeError, match="vmap: copy_"):
        torch.vmap(torch.func.grad_and_value(function))(torch.ones(2, 3))
