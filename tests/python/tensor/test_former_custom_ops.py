"""`torch._custom_ops`: operators declared first, whose kernels and gradients come by name."""

from collections.abc import Sequence

import pytest

import rushlight as torch
from rushlight import Tensor, _custom_ops
from rushlight._custom_op.impl import CustomOp, custom_op, get_op, global_registry


@pytest.fixture(autouse=True)
def _forget():
    yield
    for name in [n for n in global_registry if n.startswith("former::")]:
        _custom_ops._destroy(name)


def with_gradient(gradient, save=lambda inputs, output: inputs.x, **options):
    @_custom_ops.custom_op("former::sine")
    def sine(x: Tensor, power: int = 1) -> Tensor:
        raise NotImplementedError

    _custom_ops.impl("former::sine", func=lambda x, power=1: x.sin() ** power)
    _custom_ops.impl_save_for_backward("former::sine", func=save)
    _custom_ops.impl_backward("former::sine", func=gradient, **options)
    return torch.ops.former.sine


def test_gradients_come_by_name():
    op = with_gradient(lambda ctx, saved, grad: {"x": grad * saved.cos()})
    x = torch.randn(3, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(op, (x,))


def test_saved_values_keep_their_form():
    seen = []

    def save(inputs, output):
        assert list(inputs._asdict()) == ["x", "power"]
        return {"x": inputs.x, "rest": [inputs.power, output]}

    def gradient(ctx, saved, grad):
        seen.append(saved["rest"][0])
        return {"x": grad * saved["x"].cos()}

    x = torch.randn(3, requires_grad=True)
    with_gradient(gradient, save)(x).sum().backward()
    assert seen == [1] and torch.equal(x.grad, x.detach().cos())


@pytest.mark.parametrize(
    ("gradients", "message"),
    [
        (lambda g: g, "to be a dict"),
        (lambda g: {"y": g}, "to have keys {'x'}"),
        (lambda g: {}, "to have keys {'x'}"),
        (lambda g: {"x": g, "power": None}, "non-Tensor-like types"),
        (lambda g: {"x": (g,)}, "either None or a Tensor"),
    ],
)
def test_wrong_gradients_are_told(gradients, message):
    op = with_gradient(lambda ctx, saved, grad: gradients(grad))
    with pytest.raises(RuntimeError, match=message):
        op(torch.randn(3, requires_grad=True)).sum().backward()


def test_lists_have_lists_of_gradients():
    @_custom_ops.custom_op("former::total")
    def total(xs: list[Tensor]) -> Tensor:
        raise NotImplementedError

    _custom_ops.impl("former::total", func=lambda xs: sum(xs) + 0)
    _custom_ops.impl_save_for_backward("former::total", func=lambda inputs, output: len(inputs.xs))
    _custom_ops.impl_backward("former::total", func=lambda ctx, n, grad: {"xs": [grad * i for i in range(n)]})
    xs = [torch.randn(2, requires_grad=True) for _ in range(3)]
    torch.ops.former.total(xs).sum().backward()
    assert [x.grad[0].item() for x in xs] == [0, 1, 2]
    _custom_ops.impl_backward("former::total", func=lambda ctx, n, grad: {"xs": [grad]})
    with pytest.raises(RuntimeError, match="3 gradients but got 1"):
        torch.ops.former.total(xs).sum().backward()


def test_what_is_missing_is_named():
    @_custom_ops.custom_op("former::bare")
    def bare(x: Tensor) -> Tensor:
        raise NotImplementedError

    with pytest.raises(NotImplementedError, match="no cpu impl registered"):
        torch.ops.former.bare(torch.ones(1))
    with pytest.raises(RuntimeError, match="Autograd has not been implemented"):
        torch.ops.former.bare(torch.ones(1, requires_grad=True))
    _custom_ops.impl_backward("former::bare", func=lambda ctx, saved, grad: {"x": grad})
    with pytest.raises(RuntimeError, match="unable to find a 'save_for_backward'"):
        torch.ops.former.bare(torch.ones(1, requires_grad=True))

    @_custom_ops.custom_op("former::sizes")
    def sizes(of: Sequence[int]) -> Tensor:
        raise NotImplementedError

    with pytest.raises(NotImplementedError, match="no Tensor inputs"):
        torch.ops.former.sizes((1, 2))


def test_declarations_are_checked():
    for name in ("aten::mine", "prim::mine"):
        with pytest.raises(ValueError, match="is a reserved namespace"):
            _custom_ops.custom_op(name, "(Tensor x) -> Tensor")
    with pytest.raises(ValueError, match="overloads"):
        _custom_ops.custom_op("former::f.Tensor", "(Tensor x) -> Tensor")
    for schema in ("(Tensor(a!) x) -> Tensor(a)", "(Tensor(a) x) -> Tensor(a)", "(Tensor x) -> ()"):
        with pytest.raises(ValueError, match="only supports functional"):
            _custom_ops.custom_op("former::f", schema)
    with pytest.raises(ValueError, match="signature to match"):
        _declare("(Tensor y) -> Tensor")
    with pytest.raises(RuntimeError, match="constructor is private"):
        CustomOp(None, None, None)
    with pytest.raises(RuntimeError, match="was not registered"):
        get_op("former::nothing")


def _declare(schema):
    def f(x):
        raise NotImplementedError

    return custom_op("former::f", schema)(f)


def test_kernels_are_given_once():
    with torch.library._scoped_library("former_too", "FRAGMENT") as lib:
        lib.define("f(Tensor x) -> Tensor")
        _custom_ops.impl("former_too::f", func=lambda x: x + 1)
        assert torch.ops.former_too.f(torch.ones(1)).item() == 2
        with pytest.raises(RuntimeError, match="already has an implementation"):
            _custom_ops.impl("former_too::f", func=lambda x: x + 2)
        with pytest.raises(ValueError, match="we only support device_type"):
            _custom_ops.impl("former_too::f", device_types="nothing")
        _custom_ops._destroy("former_too::f")
