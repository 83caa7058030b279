"""Forward-mode differentiation: dual tensors, writes in place, forward over reverse, gradcheck."""

import pytest

import rushlight as torch
import rushlight.autograd.forward_ad as fwAD
from rushlight.autograd import functional, gradcheck

close = torch.testing.assert_close


@pytest.fixture
def x():
    torch.manual_seed(0)
    return torch.randn(3, dtype=torch.float64)


def test_a_dual_tensor_carries_its_tangent(x):
    t = torch.ones_like(x)
    with fwAD.dual_level():
        dual = fwAD.make_dual(x, t)
        primal, tangent = fwAD.unpack_dual(dual)
        close(primal, x)
        close(tangent, t)
        close(fwAD.unpack_dual(dual.exp().sum()).tangent, x.exp().sum())
        assert fwAD.unpack_dual(dual.detach()).tangent is None
        assert fwAD.unpack_dual(dual > 0).tangent is None
    assert fwAD.unpack_dual(dual).tangent is None


def test_writes_in_place_carry_tangents(x):
    t = torch.ones_like(x)
    with fwAD.dual_level():
        dual = fwAD.make_dual(x, t)
        product = x.clone().mul_(dual)
        close(fwAD.unpack_dual(product).tangent, x)
        whole = torch.zeros(4, dtype=x.dtype)
        whole[1:].copy_(dual.sin())
        close(fwAD.unpack_dual(whole).tangent, torch.cat([torch.zeros(1, dtype=x.dtype), x.cos()]))
        product.zero_()
        close(fwAD.unpack_dual(product).tangent, torch.zeros_like(x))
        view = fwAD.make_dual(x.clone(), t.clone())[:2]
        view.mul_(3)
        close(fwAD.unpack_dual(view).tangent, torch.full((2,), 3.0, dtype=x.dtype))


def test_forward_over_reverse_is_a_hessian_product(x):
    v = torch.randn_like(x)
    leaf = x.clone().requires_grad_()
    with fwAD.dual_level():
        dual = fwAD.make_dual(leaf, v)
        (gradient,) = torch.autograd.grad((dual**3).sum(), dual, create_graph=True)
        close(fwAD.unpack_dual(gradient).tangent.detach(), 6 * x * v)


def test_tangents_can_be_differentiated(x):
    leaf = x.clone().requires_grad_()
    with fwAD.dual_level():
        tangent = fwAD.unpack_dual(fwAD.make_dual(leaf, torch.ones_like(x)).sin()).tangent
    tangent.sum().backward()
    close(leaf.grad, -x.sin())


def test_levels_are_checked(x):
    with pytest.raises(RuntimeError, match="no level exists"):
        fwAD.make_dual(x, x)
    with fwAD.dual_level():
        with pytest.raises(RuntimeError, match="Nested forward mode AD"):
            fwAD.enter_dual_level()
        with pytest.raises(RuntimeError, match="different size"):
            fwAD.make_dual(x, x[:2])
        with fwAD._set_fwd_grad_enabled(False):
            assert fwAD.unpack_dual(fwAD.make_dual(x, x).sin()).tangent is None


class Cube(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        ctx.save_for_forward(x)
        return x**3

    @staticmethod
    def backward(ctx, g):
        return 3 * ctx.saved_tensors[0] ** 2 * g

    @staticmethod
    def jvp(ctx, t):
        return 3 * ctx.saved_tensors[0] ** 2 * t


def test_custom_functions(x):
    assert gradcheck(Cube.apply, (x.requires_grad_(),), check_forward_ad=True)


def test_gradcheck_compares_forward_mode(x):
    z = torch.randn(2, 2, dtype=torch.complex128, requires_grad=True)
    assert gradcheck(lambda a: (a.sin(), a * a), (x.requires_grad_(),), check_forward_ad=True,
                     check_batched_forward_grad=True, check_batched_grad=True)  # fmt: skip
    assert gradcheck(lambda a: (a @ a).abs(), (z,), check_forward_ad=True)

    class Wrong(Cube):
        @staticmethod
        def jvp(ctx, t):
            return t

    with pytest.raises(RuntimeError, match="forward mode"):
        gradcheck(Wrong.apply, (x,), check_forward_ad=True)


@pytest.mark.parametrize(
    "options", [{}, {"vectorize": True}, {"vectorize": True, "strategy": "forward-mode"}]
)
def test_jacobians_of_all_strategies_agree(options, x):
    def f(a, b):
        return a * b.sum(), (a**2).sum()

    y = torch.randn(2, dtype=x.dtype)
    for mine, plain in zip(functional.jacobian(f, (x, y), **options), functional.jacobian(f, (x, y))):
        close(mine, plain)
    close(functional.jacobian(torch.sin, x, **options), torch.diag(x.cos()))


@pytest.mark.parametrize("strategy", ["reverse-mode", "forward-mode"])
def test_hessians(strategy, x):
    found = functional.hessian(lambda a: (a**3).sum(), x, vectorize=True, outer_jacobian_strategy=strategy)
    close(found, torch.diag(6 * x))


def test_strategies_that_exclude_each_other(x):
    with pytest.raises(NotImplementedError, match="vectorize=True"):
        functional.jacobian(torch.sin, x, strategy="forward-mode")
    with pytest.raises(RuntimeError, match="not supported together"):
        functional.jacobian(torch.sin, x, vectorize=True, strict=True)


def test_batched_gradients(x):
    leaf = x.requires_grad_()
    (rows,) = torch.autograd.grad(leaf.sin(), leaf, torch.eye(3, dtype=x.dtype), is_grads_batched=True)
    close(rows, torch.diag(x.detach().cos()))


@pytest.mark.parametrize(
    "sample",
    [
        torch.bernoulli,
        torch.poisson,
        lambda p: torch.normal(p, 1.0),
        lambda p: torch.normal(p, p),
        lambda p: torch.zeros(3, dtype=p.dtype).add(p).bernoulli_(0.5),
    ],
)
def test_samples_have_zero_tangents(sample):
    with fwAD.dual_level():
        p = fwAD.make_dual(torch.rand(3, dtype=torch.float64), torch.ones(3, dtype=torch.float64))
        assert fwAD.unpack_dual(sample(p)).tangent.tolist() == [0, 0, 0]


def doubling_in_place(tangent_of_result):
    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.mark_dirty(x)
            return x.mul_(2)

        @staticmethod
        def jvp(ctx, tangent):
            return tangent_of_result(tangent)

    return Double.apply


def test_custom_functions_that_write_must_write_tangents(x):
    with fwAD.dual_level():
        written = doubling_in_place(lambda t: t.mul_(2))(fwAD.make_dual(x, torch.ones_like(x)).clone())
        close(fwAD.unpack_dual(written).tangent, torch.full_like(x, 2))
        with pytest.raises(RuntimeError, match="not modifying the forward mode gradients inplace"):
            doubling_in_place(lambda t: t * 2)(fwAD.make_dual(x, torch.ones_like(x)).clone())
        with pytest.raises(
            RuntimeError, match=r"invalid number of forward gradients \(expected 1 but got 2\)"
        ):
            doubling_in_place(lambda t: (t, t))(fwAD.make_dual(x, torch.ones_like(x)).clone())
        with pytest.raises(RuntimeError, match="forward gradient that has a different size"):
            doubling_in_place(lambda t: t[:1])(fwAD.make_dual(x, torch.ones_like(x)).clone())


def test_dual_tensors_print_their_tangents():
    with fwAD.dual_level():
        dual = fwAD.make_dual(torch.ones(2), torch.zeros(2))
        assert repr(dual) == "tensor([1., 1.], tangent=tensor([0., 0.]))"
        assert repr(torch.ones(2)) == "tensor([1., 1.])"


@pytest.mark.parametrize(
    "f",
    [torch.exp, torch.rsqrt, lambda v: 1 / v, lambda v: v.softmax(0), torch.sigmoid, lambda v: v.norm()],
)
def test_forward_over_reverse_of_a_recorded_gradient(f):
    v, t = torch.tensor([0.5, 1.0, 2.0], dtype=torch.float64, requires_grad=True), torch.ones(3).double()
    with fwAD.dual_level():
        dual = fwAD.make_dual(v, t)
        (recorded,) = torch.autograd.grad(f(dual).sum(), dual, create_graph=True)
        tangent = fwAD.unpack_dual(recorded).tangent
    (plain,) = torch.autograd.grad(f(v).sum(), v, create_graph=True)
    (second,) = torch.autograd.grad(plain, v, t)
    close(tangent, second)


def _one_output(forward, jvp):
    class Function(torch.autograd.Function):
        pass

    Function.forward, Function.jvp = staticmethod(forward), staticmethod(jvp)
    return Function.apply


VIEWS = [
    (lambda t: t.narrow(0, 0, 2).clone(), False, "jvp is not returning a view"),
    (lambda t: t.narrow(0, 0, 2).clone()[:], False, "not returning a view of the given grad input"),
    (lambda t: t.narrow(0, 0, 2).clone()[:], True, "not returning a view of the same base"),
    (lambda t: t.narrow(0, 0, 2), False, None),
]


@pytest.mark.parametrize("jvp, of_view, text", VIEWS)
def test_a_custom_function_of_views_has_tangents_that_are_views(jvp, of_view, text):
    f = _one_output(lambda ctx, x: x.narrow(0, 0, 2), lambda ctx, t: jvp(t))
    with fwAD.dual_level():
        x = fwAD.make_dual(torch.rand(4), torch.rand(4))
        x = x.view_as(x) if of_view else x
        if text is None:
            assert fwAD.unpack_dual(f(x)).tangent.shape == (2,)
        else:
            with pytest.raises(RuntimeError, match=text):
                f(x)


def test_an_input_that_is_returned_has_a_tangent_that_is_a_view():
    tangent = torch.rand(2)
    with fwAD.dual_level():
        x = fwAD.make_dual(torch.rand(2), tangent)
        out = _one_output(lambda ctx, x: x, lambda ctx, t: t.view_as(t))(x)
        assert fwAD.unpack_dual(out).tangent._base is tangent
        for wrong in (lambda ctx, t: t, lambda ctx, t: t * 2):
            with pytest.raises(RuntimeError, match="returning a view \\(or an input as-is\\)"):
                _one_output(lambda ctx, x: x, wrong)(x)


def test_outputs_without_gradients_get_no_tangents():
    def forward(ctx, x):
        out = x.clone()
        ctx.mark_non_differentiable(out)
        return out

    with fwAD.dual_level():
        x = fwAD.make_dual(torch.rand(2), torch.rand(2))
        with pytest.raises(RuntimeError, match="You should return None at that position instead"):
            _one_output(forward, lambda ctx, t: t.clone())(x)
        assert fwAD.unpack_dual(_one_output(forward, lambda ctx, t: None)(x)).tangent is None


def test_jvp_writes_to_the_tangent_of_what_forward_writes_to():
    def forward(ctx, x):
        ctx.mark_dirty(x)
        return x.mul_(2)

    with fwAD.dual_level():
        tangent = torch.ones(2)
        x = fwAD.make_dual(torch.ones(2), tangent)
        with pytest.raises(RuntimeError, match="must modify the corresponding gradient inplace"):
            _one_output(forward, lambda ctx, t: t)(x)
        assert _one_output(forward, lambda ctx, t: t.mul_(2))(x) is x
        assert fwAD.unpack_dual(x).tangent is tangent and tangent.tolist() == [2, 2]


def test_what_was_saved_for_backward_is_not_there_in_jvp():
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.clone()

    def jvp(ctx, t):
        assert ctx.saved_tensors == ()
        return t.clone()

    with fwAD.dual_level():
        x = fwAD.make_dual(torch.rand(2, requires_grad=True), torch.rand(2))
        assert fwAD.unpack_dual(_one_output(forward, jvp)(x)).tangent is not None


def test_refusals_of_forward_mode():
    with fwAD.dual_level():
        x = fwAD.make_dual(torch.rand(2), torch.rand(2))
        with pytest.raises(RuntimeError, match="has a forward gradient at the same level"):
            fwAD.make_dual(torch.rand(2), x)
        with pytest.raises(NotImplementedError, match="out= function"):
            torch.add(x, x, out=torch.rand(2))
        cut = x.clone().detach_()
        assert fwAD.unpack_dual(cut * 2).tangent is None


def test_a_tangent_lies_in_memory_as_its_tensor():
    storage = torch.arange(5.0)
    tangent = torch.arange(4.0).flip(0).contiguous()
    with fwAD.dual_level():
        dual = fwAD.make_dual(storage[:4], tangent)
        assert fwAD.unpack_dual(dual).tangent is not tangent
        whole = dual.as_strided((5,), (1,), 0)
        assert fwAD.unpack_dual(whole).tangent.tolist() == [3, 2, 1, 0, 0]
        matrix = fwAD.make_dual(torch.arange(6.0).reshape(2, 3).t(), torch.arange(6.0).reshape(3, 2))
        flat = fwAD.unpack_dual(matrix.as_strided((6,), (1,))).tangent
        assert flat.tolist() == [0, 2, 4, 1, 3, 5]  # in the order of the primal's memory
        same = torch.ones(3)
        assert fwAD.unpack_dual(fwAD.make_dual(torch.rand(3), same)).tangent is same
        with pytest.raises(
            NotImplementedError, match="Trying to use forward AD with .* that does not support it"
        ):
            torch.igamma(fwAD.make_dual(torch.rand(2), torch.rand(2)), torch.rand(2))


def test_a_tangent_is_pending_as_its_tensor():
    kinds = {"plain": lambda t: t, "conj": torch.conj, "negative": lambda t: t._neg_view()}
    for of_primal, of_tangent in ((p, t) for p in kinds.values() for t in kinds.values()):
        primal = of_primal(torch.randn(2, dtype=torch.complex128))
        given = of_tangent(torch.randn(2, dtype=torch.complex128))
        with fwAD.dual_level():
            dual = fwAD.make_dual(primal, given)
            tangent = fwAD.unpack_dual(dual).tangent
            assert (tangent is given) == (of_primal is of_tangent)
            assert (tangent.is_conj(), tangent.is_neg()) == (primal.is_conj(), primal.is_neg())
            assert torch.equal(tangent, given)
            assert torch.equal(fwAD.unpack_dual(torch.real(dual)).tangent, given.real)
            assert torch.allclose(fwAD.unpack_dual(dual * dual).tangent, 2 * primal * given)


@pytest.mark.parametrize("tangent", ["float64", "float16", "complex64"])
@pytest.mark.parametrize("primal", ["float32", "complex64"])
def test_tangents_of_another_type_stay_what_they_are(primal, tangent):
    given = torch.tensor([0.5, 2.0], dtype=getattr(torch, tangent))
    with fwAD.dual_level():
        dual = fwAD.make_dual(torch.tensor([1.0, 3.0], dtype=getattr(torch, primal)), given)
        found = fwAD.unpack_dual(dual)
        assert found.primal.dtype == getattr(torch, primal)
        assert found.tangent.dtype == given.dtype
        assert found.tangent.tolist() == given.tolist()
        if given.is_complex() and primal == "float32":
            with pytest.raises(RuntimeError, match="Expected primal and tangent to have the same dtype"):
                dual.sin()
        else:  # computed with in the primal's type
            assert fwAD.unpack_dual(dual * dual).tangent.tolist() == [1.0, 12.0]
