"""torch.library.custom_op: functions that become operators like any other."""

from typing import Sequence  # noqa: UP035

import pytest

import rushlight as torch
from rushlight import library
from rushlight.utils._python_dispatch import TorchDispatchMode

Tensor = torch.Tensor


@library.custom_op("tests::scaled_sin", mutates_args=())
def scaled_sin(x: Tensor, scale: float = 2.0) -> Tensor:
    return x.sin() * scale


@scaled_sin.register_fake
def _(x, scale=2.0):
    return torch.empty_like(x)


def _setup(ctx, inputs, output):
    x, scale = inputs
    ctx.save_for_backward(x)
    ctx.scale = scale


scaled_sin.register_autograd(
    lambda ctx, grad: (grad * ctx.saved_tensors[0].cos() * ctx.scale, None), setup_context=_setup
)


# --- custom_op ----------------------------------------------------------------------------------


def test_defaults_of_dtypes_are_numbers_in_schemas():
    def cast(
        x: Tensor,
        to: torch.dtype = torch.float32,
        other: torch.dtype = torch.int32,
        text: str = "long",
        at: torch.device = torch.device("cpu"),
    ) -> Tensor:
        assert isinstance(to, torch.dtype) and isinstance(at, torch.device)
        return x.to(to, copy=True)

    operator = library.custom_op("tests::cast_by_default", cast, mutates_args=())
    schema = torch.ops.tests.cast_by_default.default._schema
    values = [a.default_value for a in schema.arguments]
    assert values == [None, 6, 3, "long", torch.device("cpu")]
    assert operator(torch.ones(1, dtype=torch.float64)).dtype == torch.float32
    assert [str(a) for a in schema.arguments] == [
        "Tensor x",
        "ScalarType to=6",
        "ScalarType other=3",
        'str text="long"',
        "Device at=cpu",
    ]


def test_a_custom_operator_is_called_three_ways():
    x = torch.linspace(0, 1, 4)
    for call in (scaled_sin, torch.ops.tests.scaled_sin, torch.ops.tests.scaled_sin.default):
        torch.testing.assert_close(call(x, 3.0), x.sin() * 3)
        torch.testing.assert_close(call(x, scale=3.0), x.sin() * 3)
    torch.testing.assert_close(scaled_sin(x), x.sin() * 2)
    assert (
        str(torch.ops.tests.scaled_sin.default._schema)
        == "tests::scaled_sin(Tensor x, float scale=2.0) -> Tensor"
    )


def test_its_derivative_is_the_registered_one():
    x = torch.linspace(0, 1, 4, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda t: scaled_sin(t, 3.0), x)
    assert torch.autograd.gradgradcheck(lambda t: scaled_sin(t, 3.0), x)
    scaled_sin(x).sum().backward()
    torch.testing.assert_close(x.grad, x.detach().cos() * 2)


def test_meta_tensors_take_the_fake_function():
    assert scaled_sin(torch.empty(3, 4, device="meta")).shape == (3, 4)


def test_modes_see_it_whole():
    seen = []

    class Log(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            seen.append(str(func))
            return func(*args, **(kwargs or {}))

    x = torch.ones(2, requires_grad=True)
    with Log():
        scaled_sin(x)
    assert seen == ["tests.scaled_sin.default"]


def test_opcheck_accepts_it():
    x = torch.randn(3, requires_grad=True)
    assert set(library.opcheck(scaled_sin, (x,)).values()) == {"SUCCESS"}


def test_opcheck_finds_what_is_wrong():
    @library.custom_op("tests::liar", mutates_args=())
    def liar(x: Tensor) -> Tensor:
        x.add_(1)
        return x.clone()

    with pytest.raises(Exception, match="written to"):
        library.opcheck(liar, (torch.ones(2),), test_utils="test_schema")
    found = library.opcheck(liar, (torch.ones(2),), test_utils="test_faketensor", raise_exception=False)
    assert "no fake impl" in str(found["test_faketensor"])


def test_without_a_derivative_backward_says_so():
    @library.custom_op("tests::no_derivative", mutates_args=())
    def no_derivative(x: Tensor) -> Tensor:
        return x * 2

    y = no_derivative(torch.ones(2, requires_grad=True))
    with pytest.raises(RuntimeError, match="no autograd formula was registered"):
        y.sum().backward()


def test_results_must_be_new_tensors():
    @library.custom_op("tests::identity", mutates_args=())
    def identity(x: Tensor) -> Tensor:
        return x

    with pytest.raises(RuntimeError, match="must not also be an input"):
        identity(torch.ones(2))


def test_writing_operators_count_versions():
    @library.custom_op("tests::fill_twos", mutates_args={"out"})
    def fill_twos(x: Tensor, out: Tensor) -> None:
        out.fill_(2)

    out = torch.zeros(3)
    before = out._version
    assert fill_twos(torch.ones(3), out) is None
    assert out.tolist() == [2, 2, 2] and out._version > before
    assert fill_twos._opoverload._schema.is_mutable
    with pytest.raises(RuntimeError, match="non-functional"):
        fill_twos.register_autograd(lambda ctx, *grads: None)


def test_writing_operators_may_write_to_leaves():
    @library.custom_op("tests::fill_with", mutates_args={"out"})
    def fill_with(out: Tensor, value: float) -> None:
        out.fill_(value)

    leaf = torch.zeros(3, requires_grad=True)
    fill_with(leaf, 2.0)
    assert leaf.tolist() == [2, 2, 2] and leaf.is_leaf and leaf.requires_grad
    fill_with(leaf[:2], 3.0)
    assert leaf.tolist() == [3, 3, 2] and leaf.grad_fn is None
    (leaf * 2).sum().backward()
    assert leaf.grad.tolist() == [2, 2, 2]
    kept = torch.ones(3, requires_grad=True) * 1
    used = kept.sin()
    fill_with(kept, 2.0)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        used.sum().backward()


@pytest.mark.parametrize("surplus", [0, 1, 3])
def test_a_backward_function_may_give_surplus_nones(surplus):
    @library.custom_op("tests::scaled_by", mutates_args=())
    def scaled_by(x: Tensor, factor: float) -> Tensor:
        return x * factor

    scaled_by.register_autograd(lambda ctx, grad: (grad * 3, None, *[None] * surplus))
    x = torch.ones(2, requires_grad=True)
    scaled_by(x, 3.0).sum().backward()
    assert x.grad.tolist() == [3, 3]
    scaled_by.register_autograd(lambda ctx, grad: grad * 3)
    with pytest.raises(RuntimeError, match="incorrect number of gradients"):
        scaled_by(x, 3.0).sum().backward()


@pytest.mark.parametrize("grads", [lambda g: ([g, g],), lambda g: ([g], None), lambda g: (g, None, None)])
def test_gradients_of_lists_nest_as_the_inputs_do(grads):
    @library.custom_op("tests::first_of", mutates_args=())
    def first_of(xs: Sequence[Tensor], factor: float) -> Tensor:
        return xs[0] * factor

    first_of.register_autograd(lambda ctx, grad: grads(grad))
    x = torch.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="same structure as the inputs"):
        first_of([x, x], 3.0).sum().backward()


def test_lists_and_several_results_differentiate():
    @library.custom_op("tests::sum_and_product", mutates_args=())
    def sum_and_product(xs: Sequence[Tensor], factor: float) -> tuple[Tensor, Tensor]:
        return sum(xs) * factor, xs[0] * xs[1]

    def setup(ctx, inputs, output):
        ctx.save_for_backward(*inputs[0])
        ctx.factor = inputs[1]

    def backward(ctx, d_sum, d_product):
        a, b = ctx.saved_tensors
        return [d_sum * ctx.factor + d_product * b, d_sum * ctx.factor + d_product * a], None

    sum_and_product.register_autograd(backward, setup_context=setup)
    a, b = (torch.tensor([v], dtype=torch.float64, requires_grad=True) for v in (2.0, 3.0))
    assert torch.autograd.gradcheck(lambda *xs: sum_and_product(xs, 5.0), (a, b))


def test_kernels_by_device():
    @library.custom_op("tests::where_am_i", mutates_args=(), device_types="cpu")
    def where_am_i(x: Tensor) -> Tensor:
        return x + 1

    assert where_am_i(torch.zeros(1)).item() == 1
    with pytest.raises(NotImplementedError, match="no fake impl registered for <CustomOpDef"):
        where_am_i(torch.zeros(1, device="meta"))
    library.register_kernel("tests::where_am_i", "cpu", lambda x: x + 2)
    assert where_am_i(torch.zeros(1)).item() == 2


def test_rules_for_a_mode():
    class Mode(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            return func(*args, **(kwargs or {}))

    @library.register_torch_dispatch("tests::scaled_sin", Mode)
    def _(mode, func, types, args, kwargs):
        assert isinstance(mode, Mode)
        return torch.full_like(args[0], 42)

    with Mode():
        assert scaled_sin(torch.ones(1)).item() == 42
    assert scaled_sin(torch.zeros(1)).item() == 0


def test_vmap_runs_the_registered_rule_or_each_example():
    @library.custom_op("tests::row_sums", mutates_args=())
    def row_sums(x: Tensor, y: Tensor) -> Tensor:
        return x.sum(-1) + y

    x, y = torch.arange(12.0).view(3, 2, 2), torch.ones(2)
    expected = x.sum(-1) + y
    torch.testing.assert_close(torch.func.vmap(row_sums, in_dims=(0, None))(x, y), expected)
    calls = []

    @row_sums.register_vmap
    def _(info, in_dims, x, y):
        calls.append((info.batch_size, in_dims))
        return (x.sum(-1) + y).t(), 1

    torch.testing.assert_close(torch.func.vmap(row_sums, in_dims=(0, None))(x, y), expected)
    assert calls == [(3, (0, None))]


def test_function_transforms_use_the_derivative():
    x = torch.linspace(0, 1, 4)
    torch.testing.assert_close(torch.func.grad(lambda t: scaled_sin(t).sum())(x), x.cos() * 2)


# --- infer_schema -------------------------------------------------------------------------------


def test_schemas_are_inferred():
    def f(
        x: Tensor, n: int, s: float | None, l: list[int], y: Tensor | None = None, *, name: str = "a"
    ) -> tuple[Tensor, Tensor]: ...

    assert library.infer_schema(f, mutates_args={"x"}) == (
        '(Tensor(a0!) x, SymInt n, float? s, SymInt[] l, Tensor? y=None, *, str name="a") -> (Tensor, Tensor)'
    )
    with pytest.raises(ValueError, match="must have a type annotation"):
        library.infer_schema(lambda x: x, mutates_args=())


def test_unusable_annotations_are_refused():
    def bad(x: tuple[int, int]) -> Tensor: ...

    def worse(x: Tensor, y: object) -> Tensor: ...

    def unknown(x: Tensor) -> Tensor: ...

    for f, text in ((bad, "instead of tuple"), (worse, "unsupported type")):
        with pytest.raises(ValueError, match=text):
            library.infer_schema(f, mutates_args=())
    with pytest.raises(ValueError, match="were not found"):
        library.infer_schema(unknown, mutates_args={"z"})


# --- autocast -----------------------------------------------------------------------------------


def _seen_by(register):
    """An operator that tells in which dtypes its operands came, and whether casting goes on inside."""
    seen = []

    @library.custom_op("tests::told", mutates_args=())
    def told(x: Tensor, other: Tensor, more: Sequence[Tensor]) -> Tensor:
        seen.append([t.dtype for t in (x, other, *more)] + [torch.mm(x, x).dtype])
        return x * 2

    told.register_fake(lambda x, other, more: torch.empty_like(x))
    told.register_autograd(lambda ctx, grad: (grad * 2, None, None))
    register(told)
    return told, seen


def test_autocast_of_an_operator():
    half, single, double = torch.float16, torch.float32, torch.float64
    told, seen = _seen_by(lambda op: op.register_autocast("cpu", half))
    x, whole = torch.ones(2, 2, requires_grad=True), torch.arange(2)
    operands = x, whole, [torch.ones(1, dtype=torch.bfloat16), torch.ones(1, dtype=double)]
    told(*operands)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y = told(*operands)
        with torch.autocast("cpu", enabled=False):
            told(*operands)
    assert y.dtype == half
    y.sum().backward()
    assert x.grad.dtype == single and x.grad.tolist() == [[2, 2], [2, 2]]
    plain = [single, torch.int64, torch.bfloat16, double, single]
    assert seen == [plain, [half, torch.int64, half, double, half], plain]
    assert torch.compile(lambda x: told(x, whole, []))(x).dtype == single


def test_autocast_of_other_devices_and_by_a_kernel(lib):
    told, seen = _seen_by(lambda op: library.register_autocast(op, "cuda", torch.float16))
    with torch.autocast("cpu"):
        told(torch.ones(1, 1), torch.ones(1), [])
    assert seen == [[torch.float32] * 3]

    lib.define("doubled(Tensor x) -> Tensor")
    lib.impl("doubled", lambda x: x * 2, "CompositeImplicitAutograd")
    with torch.autocast("cpu"):
        assert torch.ops.tests.doubled(torch.ones(2)).dtype == torch.float32
        lib.impl("doubled", lambda x: torch.ops.tests.doubled(x.bfloat16()), "AutocastCPU")
        assert torch.ops.tests.doubled(torch.ones(2)).dtype == torch.bfloat16
    assert torch.ops.tests.doubled(torch.ones(2)).dtype == torch.float32
