"""Tangents are no aliases of what they were computed from; derivatives at zero, at ties and of integers are
PyTorch's. What random programs found."""

import pytest

import rushlight
from rushlight.autograd import forward_ad
from rushlight.nn import functional

KEPT = {
    "max": (lambda a: a.max(0)[0], ()),
    "median": (lambda a: a.median(0)[0], ()),
    "mode": (lambda a: a.mode(0)[0], ()),
    "prod": (lambda a: a.prod(), ()),
    "cumprod": (lambda a: a.cumprod(0), ()),
    "sort": (lambda a: a.sort()[0], ()),
    "topk": (lambda a: a.topk(1)[0], ()),
    "addcmul": (lambda a: rushlight.addcmul(a, rushlight.zeros(2), rushlight.zeros(2)), (2,)),
    "addmm": (lambda a: rushlight.addmm(a, rushlight.zeros(2, 2), rushlight.zeros(2, 2)), (2, 2)),
}


@pytest.mark.parametrize("name", KEPT)
def test_what_is_written_to_a_tangent_does_not_reach_its_source(name):
    function, shape = KEPT[name]
    primal, tangent = rushlight.randn(shape), rushlight.randn(shape)
    before = tangent.clone()
    rushlight.func.jvp(function, (primal,), (tangent,))[1].mul_(0).add_(9)
    assert rushlight.equal(tangent, before)
    with forward_ad.dual_level():
        made = forward_ad.unpack_dual(function(forward_ad.make_dual(primal, tangent))).tangent
        made.zero_()
    assert rushlight.equal(tangent, before)


def test_views_share_their_tangents_memory():
    tangent = rushlight.randn(2, 3)
    with forward_ad.dual_level():
        view = forward_ad.make_dual(rushlight.randn(2, 3), tangent)[0]
        forward_ad.unpack_dual(view).tangent.zero_()
    assert rushlight.equal(tangent[0], rushlight.zeros(3))


def test_integers_carry_no_tangent():
    x, factor = rushlight.ones(3), rushlight.full((3,), 2.0)
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(x, rushlight.ones(3))
        whole = dual.short()
        target = rushlight.zeros(3, dtype=rushlight.int64)
        target.copy_(dual)
        for result in (whole, whole * factor, target, target * factor):
            assert forward_ad.unpack_dual(result).tangent is None


def second(lib, function, *operands):
    return lib.func.jacfwd(lib.func.jacrev(function))(*operands)


def test_second_derivatives_of_sizes_at_zero(torch):
    def transformed(lib):
        return second(lib, lambda a: lib.fft.fftn(a).abs().square().sum(), lib.ones(3, dtype=lib.float64))

    def stretched(lib):
        return second(lib, lambda a: lib.view_as_complex(a).abs().square().sum(), lib.zeros(2))

    for made in (transformed, stretched):
        assert made(rushlight).flatten().tolist() == pytest.approx(made(torch).flatten().tolist(), abs=1e-12)


def gradients(lib, function, *values):
    leaves = [lib.tensor(v, requires_grad=True) for v in values]
    return [g.tolist() for g in lib.autograd.grad(function(lib, *leaves).sum(), leaves)]


@pytest.mark.parametrize(
    "function",
    [
        lambda lib, a, b: lib.atan2(a, b),
        lambda lib, a, b: lib._foreach_clamp_min([a], [b])[0],
        lambda lib, a, b: lib._foreach_clamp_max([a], [b])[0],
        lambda lib, a, b: lib._foreach_maximum([a], [b])[0],
    ],
)
def test_gradients_at_the_origin_and_at_ties(torch, function):
    values = [0.0, 1.0, -2.0], [0.0, 1.0, 3.0]
    ours, theirs = (gradients(lib, function, *values) for lib in (rushlight, torch))
    for a, b in zip(ours, theirs, strict=True):
        assert a == pytest.approx(b)


@pytest.mark.parametrize("training", [False, True])
def test_randomised_relu_lies_in_order(torch, training):
    strides = {functional.rrelu(rushlight.randn(2, 5).t(), training=training).stride()}
    strides.add(torch.nn.functional.rrelu(torch.randn(2, 5).t(), training=training).stride())
    assert strides == {(2, 1)}


def test_quantiles_are_no_views():
    x = rushlight.randn(3, 4, requires_grad=True)
    for result in (x.quantile(0.25), x.quantile(0.5, dim=0), x.nanquantile(rushlight.tensor([0.2, 0.5]), 1)):
        assert not result._is_view()
        result.sum().backward()
        assert result.detach_().requires_grad is False
    again = rushlight.utils.checkpoint.checkpoint(lambda a: a.quantile(0.5, dim=0), x, use_reentrant=True)
    assert again.mul_(2).requires_grad


def test_views_whose_base_nobody_names_are_detached_in_place():
    x = rushlight.randn(3, 4, requires_grad=True)
    product = x * 2
    with pytest.raises(RuntimeError, match="Can't detach views in-place"):
        product.view(-1).detach_()
    alone = (x * 2).view(-1)
    alone.detach_()
    alone += 1
    assert not alone.requires_grad and not alone._is_view()


@pytest.mark.parametrize("size, step", [(2, 1), (3, 2)])
def test_elements_at_one_place_have_tangents_of_their_own(size, step):
    x = rushlight.linspace(-1, 1, 7, dtype=rushlight.float64).unfold(0, size, step)
    tangent = rushlight.arange(float(x.numel()), dtype=rushlight.float64).view(x.shape)
    f = rushlight.sin
    expected = x.cos() * tangent
    assert rushlight.allclose(rushlight.func.jvp(f, (x,), (tangent,))[1], expected)
    assert rushlight.allclose(rushlight.func.linearize(f, x)[1](tangent), expected)
    jacobian = rushlight.func.jacfwd(f)(x)
    assert rushlight.allclose(jacobian, rushlight.func.jacrev(f)(x.clone()))
    with forward_ad.dual_level():
        assert rushlight.equal(forward_ad.unpack_dual(forward_ad.make_dual(x, tangent)).tangent, tangent)


def test_what_looks_at_memory_finds_the_tangent_of_elements_at_one_place():
    base = rushlight.arange(5.0)
    x = base.unfold(0, 2, 1)
    with forward_ad.dual_level():
        found = forward_ad.make_dual(x, x.cos()).as_strided((5,), (1,))
        assert rushlight.equal(forward_ad.unpack_dual(found).tangent, base.cos())


TANGENTS = {
    "var": lambda a: a.var(0),
    "conv": lambda a: functional.conv1d(a[None], rushlight.ones(2, 3, 1))[0],
    "sum": lambda a: a.prod(1),
    "vmapped": rushlight.vmap(lambda a: functional.conv1d(a[None, None], rushlight.ones(2, 1, 1))[0]),
}


@pytest.mark.parametrize("name", TANGENTS)
@pytest.mark.parametrize("depth", [1, 2])
def test_a_tangent_may_be_written_to_by_what_has_a_gradient(name, depth):
    function = TANGENTS[name]
    for _ in range(depth):
        function = lambda a, f=function: rushlight.func.jvp(f, (a,), (a.sin(),))[1]
    factor = rushlight.tensor(2.0, requires_grad=True)
    result = function(rushlight.linspace(-1, 1, 12).view(3, 4))
    before = result.detach().clone()
    result.squeeze().mul_(factor)
    result.sum().backward()
    assert rushlight.allclose(factor.grad, before.sum(), rtol=1e-4, atol=1e-5)
