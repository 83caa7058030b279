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


def program(seed, buffer, before_x=False):
    """A function of a 3 by 3 tensor: views of a buffer are made, some are written, then all are read."""

    def function(x):
        choices = random.Random(seed)
        base = buffer(x)
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


BUFFERS = {"zeros": lambda x: torch.zeros(3, 3, dtype=x.dtype), "made of x": lambda x: x * 0}


def difference(function, x, v, h=1e-5):
    return (function(x + h * v) - function(x - h * v)) / (2 * h)


def by_dual_level(function, x, v):
    with fwAD.dual_level():
        tangent = fwAD.unpack_dual(function(fwAD.make_dual(x, v))).tangent
    return torch.zeros_like(function(x)) if tangent is None else tangent


def twice(f, x, v):
    return torch.func.jvp(lambda y: torch.func.jvp(f, (y,), (v,))[0], (x,), (v,))[1]


def of_examples(f, x, v):
    return torch.vmap(lambda x: torch.func.jvp(f, (x,), (v,))[1])(torch.stack([x, x + 1]))[0]


def of_examples_each(f, x, v):
    return torch.func.jvp(torch.vmap(f), (x.expand(2, 3, 3),), (v.expand(2, 3, 3),))[1][1]


TRANSFORMS = {
    "dual level": by_dual_level,
    "jvp": lambda f, x, v: torch.func.jvp(f, (x,), (v,))[1],
    "linearize": lambda f, x, v: torch.func.linearize(f, x)[1](v),
    "jvp of a jvp's value": twice,
    "jacrev": lambda f, x, v: torch.func.jacrev(f)(x).flatten(1) @ v.flatten(),
    "jacfwd": lambda f, x, v: torch.func.jacfwd(f)(x).flatten(1) @ v.flatten(),
}
WITHIN_VMAP = {"vmap of jvp": of_examples, "jvp of vmap": of_examples_each}  # these need a buffer of examples
CASES = [(name, buffer) for name in TRANSFORMS for buffer in BUFFERS]
CASES += [(name, "made of x") for name in WITHIN_VMAP]


@pytest.mark.parametrize("transform,buffer", CASES)
@pytest.mark.parametrize("before_x", [False, True])
def test_derivatives_follow_views_made_before_a_write(transform, buffer, before_x):
    torch.manual_seed(0)
    derivative = (TRANSFORMS | WITHIN_VMAP)[transform]
    for seed in range(20):
        x, v = torch.randn(2, 3, 3, dtype=torch.float64)
        function = program(seed, BUFFERS[buffer], before_x)
        expected = difference(function, x, v)
        found = derivative(function, x, v)
        torch.testing.assert_close(found, expected, rtol=1e-6, atol=1e-6, msg=f"program {seed}")


@pytest.mark.parametrize("buffer", BUFFERS)
def test_second_derivatives_follow_views_made_before_a_write(buffer):
    torch.manual_seed(0)
    for seed in range(10):
        x, v = torch.randn(2, 3, 3, dtype=torch.float64)
        function = program(seed, BUFFERS[buffer])
        expected = difference(lambda y, f=function, v=v: torch.func.jvp(f, (y,), (v,))[1], x, v)
        rows = torch.func.jacfwd(torch.func.jacfwd(function))(x).flatten(3).flatten(1, 2)
        found = (rows @ v.flatten()) @ v.flatten()
        torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5, msg=f"program {seed}")


def test_buffers_filled_slice_by_slice_have_forward_derivatives():
    def function(x):
        table = torch.zeros(4, dtype=x.dtype)
        table[1:] = x**2
        table[0] = table[1:].sum()
        return table * 3

    x = torch.tensor([1.0, 2.0, 3.0])
    expected = [[6.0, 12.0, 18.0], [6.0, 0.0, 0.0], [0.0, 12.0, 0.0], [0.0, 0.0, 18.0]]
    assert torch.func.jacfwd(function)(x).tolist() == expected
    assert torch.func.jacfwd(torch.func.jacfwd(function))(x).sum((1, 2)).tolist() == [18.0, 6.0, 6.0, 6.0]


def test_the_primal_of_what_was_written_has_no_tangent():
    base = torch.zeros(3)
    former = base[1:]
    with fwAD.dual_level():
        base.copy_(fwAD.make_dual(torch.ones(3), torch.ones(3)))
        primal = fwAD.unpack_dual(former).primal
        assert fwAD.unpack_dual(primal).tangent is None
        assert fwAD.unpack_dual(primal[1:] * 2).tangent is None


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
    [
        torch.view_as_real,
        torch.real,
        torch.imag,
        torch.conj,
        lambda z: z.conj().imag,
        lambda z: z.conj().real,
    ],
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


@pytest.mark.parametrize(
    "view", [lambda t: t[1:], lambda t: t.tensor_split(3)[1], lambda t: t.unfold(0, 2, 2)]
)
def test_a_view_of_what_was_detached_and_written_shows_constants(view):
    x = torch.arange(4.0, requires_grad=True)
    base = x * 1
    former = view(base)
    base.detach_()
    (expected,) = torch.autograd.grad(former.sum(), x, retain_graph=True)  # not yet written
    assert expected.sum() == former.numel()
    base.mul_(2)
    assert former.requires_grad and not base.requires_grad
    assert torch.autograd.grad(former.sum(), x, allow_unused=True) == (None,)
    base.mul_(x)
    (expected,) = torch.autograd.grad(view(base).sum(), x, retain_graph=True)
    assert torch.equal(torch.autograd.grad(former.sum(), x)[0], expected)


def test_views_of_one_operator_refuse_what_their_detached_base_became():
    x = torch.ones(2, requires_grad=True)
    base = x * 1
    first, _ = base.unbind()
    base.detach_().mul_(2)
    with pytest.raises(RuntimeError, match="its base or another view of its base has been modified inplace"):
        first.backward()
