"""Operands of no elements, of one, and of several dtypes, against PyTorch."""

import math

import pytest

import rushlight as torch

oracle = pytest.importorskip("torch")


def same(f):
    """f(library) for both, compared by dtype, shape and value."""
    ours, theirs = f(torch), f(oracle)
    assert str(ours.dtype) == str(theirs.dtype) and tuple(ours.shape) == tuple(theirs.shape)
    assert ours.detach().flatten().tolist() == pytest.approx(theirs.detach().flatten().tolist(), nan_ok=True)


@pytest.mark.parametrize("dtype", ["uint8", "bfloat16", "float32", "int64", "bool"])
def test_outer_products_are_computed_in_the_common_dtype(dtype):
    def f(m):
        vec = m.arange(5).to(getattr(m, dtype)) * (50 if dtype == "uint8" else 1)
        return m.addr(m.ones(5, 5, dtype=m.float64), vec, vec, beta=0.5, alpha=0.3)

    same(f)


@pytest.mark.parametrize("name", ["bitwise_and_", "bitwise_left_shift_", "copysign_", "remainder_", "xlogy_"])
def test_in_place_results_that_do_not_fit_are_named_first(name):
    integers = name.startswith("bitwise")
    for m in (torch, oracle):
        x = m.ones(2, dtype=m.int64 if integers else m.float32)
        other = m.ones(2, dtype=m.float32 if integers else m.complex64)
        with pytest.raises(RuntimeError, match="can't be cast to the desired output type") as caught:
            getattr(x, name)(other)
        assert not isinstance(caught.value, NotImplementedError)


def test_the_slope_of_acosh_at_infinity():
    def f(m):
        x = m.tensor([float("inf"), 2.0, 1.0, float("-inf")], dtype=m.float64, requires_grad=True)
        m.acosh(x).sum().backward()
        return x.grad

    same(f)


@pytest.mark.parametrize("shape", [(), (0,), (1,)])
def test_second_gradients_of_a_variance_without_degrees_of_freedom(shape):
    def f(m):
        x = m.full(shape, 3.0, dtype=m.float64, requires_grad=True)
        g = m.ones((), dtype=m.float64, requires_grad=True)
        (first,) = m.autograd.grad(m.var(x, correction=1), x, g, create_graph=True)
        return m.autograd.grad(first.sum(), g)[0]

    same(f)


def test_scattering_nothing_has_two_gradients():
    for m in (torch, oracle):
        x, src = (m.ones(n, 0, dtype=m.float64, requires_grad=True) for n in (3, 2))
        y = m.scatter_reduce(x, 0, m.zeros(2, 0, dtype=m.int64), src, "amax")
        first = m.autograd.grad(
            y, (x, src), m.ones(3, 0, dtype=m.float64, requires_grad=True), create_graph=True
        )
        assert [t.requires_grad for t in first] == [True, True]


def test_sparse_tensors_of_no_rows():
    same(lambda m: m.ones(0, 5).to_sparse(1).to_dense())
    assert torch.ones(0, 5).to_sparse(1).dense_dim() == 1


def test_triangular_factors_of_nothing():
    same(lambda m: m.cholesky(m.ones(0, 5)))
    same(lambda m: m.cholesky(m.ones(5, 0)))


def test_integrals_of_integers():
    same(lambda m: m.trapezoid(m.ones(2, 0, dtype=m.int64)))
    same(lambda m: m.trapezoid(m.tensor([1, 2, 4]), m.tensor([0, 1, 5])))
    same(lambda m: m.cumulative_trapezoid(m.tensor([1, 2, 4]), m.tensor([0, 1, 5])))
    big = 2**62
    same(lambda m: m.trapezoid(m.tensor([big, big]), m.tensor([0, 1])))


def test_outer_products_with_a_sum_of_no_dimension():
    same(lambda m: m.addr(m.tensor(1.83), m.arange(5.0).bfloat16(), m.arange(5.0).bfloat16()))
    same(lambda m: m.addr(m.tensor(4, dtype=m.int32), *[m.full((3,), 100, dtype=m.uint8)] * 2))


def test_counts_of_nothing_are_integers():
    same(lambda m: m.bincount(m.zeros(0, dtype=m.int64), weights=m.zeros(0), minlength=2))


def test_products_and_clamps_of_two_dtypes():
    for m in (torch, oracle):
        with pytest.raises(RuntimeError, match="addmv input tensors must have the same dtype"):
            m.addmv(m.ones(5), m.ones(5, 2, dtype=m.bool), m.ones(2, dtype=m.bool))
        with pytest.raises(RuntimeError, match="can't be cast to the desired output type"):
            m.ones(2).clamp_min_(m.ones(2, dtype=m.complex64))


def test_distances_that_count_have_no_slope():
    def f(m):
        x = m.tensor([[float("inf"), 1.0], [2.0, float("nan")]], requires_grad=True)
        m.cdist(x, m.ones(3, 2), p=0.0).sum().backward()
        return x.grad

    same(f)


@pytest.mark.parametrize("name", ["add", "sub", "mul", "div", "__rsub__", "__rtruediv__", "lt"])
@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_numbers_beside_halves_are_rounded_alike_in_every_layout(name, dtype):
    """To the last bit: PyTorch multiplies and divides by the number itself, and rounds it for all else."""
    values = torch.linspace(0.1, 3, 12 * 18).reshape(12, 18).numpy()
    for layout in (lambda t: t, lambda t: t[:, ::2], lambda t: t.t()):

        def f(m, layout=layout):
            return getattr(layout(m.from_numpy(values).to(getattr(m, dtype))), name)(0.4473744)

        assert f(torch).tolist() == f(oracle).tolist()


@pytest.mark.parametrize("shape", [(0, 3, 4), (2, 3, 0), (0, 3)])
@pytest.mark.parametrize("training", [True, False])
def test_batches_without_numbers_leave_no_gradient(shape, training):
    def f(m):
        layer = m.nn.BatchNorm1d(3).train(training)
        torch.full((3,), 7.0)  # memory that is not zero, freed at once
        layer(m.empty(shape)).sum().backward()
        return m.cat([layer.weight.grad, layer.bias.grad])

    same(f)


@pytest.mark.parametrize(
    "x, n",
    [
        (("float32", 1e-30), 140),
        (("float32", 1e30), -140),
        (("bfloat16", 3e-5), 130),
        (("float16", 1e-6), 20),
        (("float64", 5e-324), 2097),
        (("float64", 1e300), -2000),
        (("float64", 0.0), 2000),
        (("int64", 3), 100),
    ],
)
@pytest.mark.parametrize("shape", [(), (1,)])
def test_ldexp_where_the_power_alone_does_not_fit(x, n, shape):
    dtype, value = x
    same(lambda m: m.ldexp(m.full(shape, value, dtype=getattr(m, dtype)), m.full(shape, n)))


@pytest.mark.parametrize("name", ["median", "nanmedian"])
@pytest.mark.parametrize("dtype", ["uint8", "int8", "int16", "int32", "int64", "float16", "float64"])
def test_the_median_of_nothing(name, dtype):
    same(lambda m: getattr(m, name)(m.empty(0, dtype=getattr(m, dtype))))


@pytest.mark.parametrize("dtype", ["uint8", "int16", "int32", "float32", "bool"])
def test_ctc_loss_takes_labels_of_any_kind(dtype):
    def f(m):
        scores = m.log_softmax(m.arange(40.0).view(5, 2, 4) % 7, -1)
        targets = m.tensor([[1, 1], [1, 1]]).to(getattr(m, dtype))
        return m.nn.functional.ctc_loss(scores, targets, (5, 5), (2, 2))

    same(f)


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int16", "bool"])
@pytest.mark.parametrize("narrow", ["indices", "offsets"])
def test_embedding_bag_takes_positions_of_two_dtypes(dtype, narrow):
    def f(m):
        kinds = {"indices": m.int64, "offsets": m.int64, narrow: getattr(m, dtype)}
        indices, offsets = m.tensor([1, 1, 0]).to(kinds["indices"]), m.tensor([0, 1]).to(kinds["offsets"])
        return m.nn.functional.embedding_bag(indices, m.arange(12.0).view(4, 3), offsets, mode="sum")

    same(f)


def test_embedding_bag_refuses_positions_of_one_narrow_dtype():
    for m in (torch, oracle):
        with pytest.raises(RuntimeError, match="indices"):
            m.nn.functional.embedding_bag(m.zeros(1, 3, dtype=m.uint8), m.ones(4, 3))


@pytest.mark.parametrize("kind", ["max", "avg"])
@pytest.mark.parametrize("dims", [1, 2, 3])
@pytest.mark.parametrize("empty", ["batch", "first", "channels", "pixels"])
def test_adaptive_pools_of_no_elements(kind, dims, empty):
    shape = {
        "batch": (0, 2, *[4] * dims),
        "first": (0, *[4] * dims),
        "channels": (2, 0, *[4] * dims),
        "pixels": (2, 2, 0, *[4] * (dims - 1)),
    }[empty]
    name = f"adaptive_{kind}_pool{dims}d"
    words = []
    for m in (torch, oracle):
        try:
            words.append(tuple(getattr(m.nn.functional, name)(m.ones(shape), 2).shape))
        except RuntimeError as e:
            words.append(str(e).split("which")[0] if dims > 1 or kind == "max" else "refused")
    assert words[0] == words[1]


@pytest.mark.parametrize("reduction", ["none", "sum", "mean"])
def test_linear_cross_entropy_of_no_features(reduction):
    def f(m):
        target = m.zeros(2, dtype=m.int64)
        loss = m.nn.functional.linear_cross_entropy
        return loss(m.ones(2, 0), m.ones(4, 0), target, reduction=reduction)

    same(f)


@pytest.mark.parametrize("dims", [1, 2, 3])
@pytest.mark.parametrize("padding", [0, "same"])
def test_convolutions_of_images_without_channels_have_none(dims, padding):
    def f(m):
        x, weight = m.ones(1, 0, *[4] * dims, requires_grad=True), m.ones(2, 0, *[2] * dims)
        weight.requires_grad_()
        y = getattr(m.nn.functional, f"conv{dims}d")(x, weight, m.ones(2), padding=padding)
        y.sum().backward()
        assert x.grad.shape == x.shape and weight.grad.shape == weight.shape
        return y

    same(f)


@pytest.mark.parametrize("name", ["batch_norm", "instance_norm"])
def test_channels_with_infinity_have_no_variance(name):
    def f(m):
        x = m.arange(24.0).view(2, 3, 4)
        x[0, 1, 2] = float("inf")
        if name == "batch_norm":
            return m.nn.functional.batch_norm(x, None, None, training=True)
        return m.nn.functional.instance_norm(x)

    same(f)


@pytest.mark.parametrize(
    "name", ["hardtanh", "relu6", "hardshrink", "softshrink", "hardswish", "elu", "selu", "celu"]
)
def test_slopes_at_nan(name):
    def f(m):
        x = m.full((64,), float("nan"), requires_grad=True)
        getattr(m.nn.functional, name)(x).backward(m.ones(64))
        return x.grad[:8]

    same(f)


@pytest.mark.parametrize("name", ["maximum", "minimum"])
def test_both_operands_learn_beside_nan(name):
    def f(m):
        x, y = (m.tensor(v, requires_grad=True) for v in ([float("nan"), 1.0, 2.0], [1.0, float("nan"), 2.0]))
        getattr(m, name)(x, y).sum().backward()
        return m.stack([x.grad, y.grad])

    same(f)


@pytest.mark.parametrize("name", ["mse_loss", "smooth_l1_loss"])
def test_losses_of_truth_values_have_gradients(name):
    def f(m):
        x = m.tensor([0.5, 2.0], requires_grad=True)
        getattr(m.nn.functional, name)(x, m.tensor([True, False])).backward()
        return x.grad

    same(f)


@pytest.mark.parametrize("name", ["mse_loss", "smooth_l1_loss", "huber_loss"])
def test_second_gradients_of_losses_of_nothing(name):
    def f(m):
        x = m.ones(0, dtype=m.float64, requires_grad=True)
        g = m.ones((), dtype=m.float64, requires_grad=True)
        loss = getattr(m.nn.functional, name)(x, m.ones(0, dtype=m.float64))
        (first,) = m.autograd.grad(loss, x, g, create_graph=True)
        return m.autograd.grad(first.sum(), g)[0]

    same(f)


def test_second_gradients_of_the_norm_of_nothing():
    def f(m):
        x = m.ones(0, dtype=m.float64, requires_grad=True)
        g = m.ones((), dtype=m.float64, requires_grad=True)
        (first,) = m.autograd.grad(m.linalg.vector_norm(x), x, g, create_graph=True)
        return m.autograd.grad(first.sum(), g)[0]

    same(f)


def test_second_gradients_of_samples_of_no_images():
    def f(m):
        x = m.ones(0, 1, 2, 2, dtype=m.float64, requires_grad=True)
        grid = m.zeros(0, 1, 1, 2, dtype=m.float64, requires_grad=True)
        y = m.nn.functional.grid_sample(x, grid, align_corners=False)
        first = m.autograd.grad(y.sum(), [x, grid], create_graph=True)
        return m.autograd.grad(sum(t.sum() for t in first), x, allow_unused=True)[0]

    for m in (torch, oracle):
        g = f(m)
        assert g is None or tuple(g.shape) == (0, 1, 2, 2)


@pytest.mark.parametrize("full", [False, True])
def test_poisson_nll_loss_keeps_the_dtype_of_its_input(full):
    def f(m):
        x = m.ones(3, dtype=m.bfloat16)
        return m.nn.functional.poisson_nll_loss(x, m.tensor([1, 2, 3]), full=full)

    same(f)


DIVISIONS = {
    "fmod": lambda m, x: m.fmod(x, 0.43),
    "remainder": lambda m, x: x % 0.43,
    "remainder of a number": lambda m, x: 0.43 % x,
    "floor": lambda m, x: x // 0.43,
    "floor of a number": lambda m, x: 0.43 // x,
    "trunc": lambda m, x: m.div(x, 0.43, rounding_mode="trunc"),
    "remainder by a wider tensor": lambda m, x: x % m.tensor(0.43),
    "in place": lambda m, x: x.clone().fmod_(0.43),
}


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("name", DIVISIONS)
def test_divisions_of_halves_by_numbers_jump_where_those_of_pytorch_do(name, dtype):
    """A number of which a half lies a rounding error away: it is rounded first, but for floor and trunc."""

    def f(m):
        x = m.cat([m.arange(-300, 301) / 100, m.tensor([0.43, -0.43, 0.86])]).to(getattr(m, dtype))
        return DIVISIONS[name](m, x)

    same(f)


@pytest.mark.parametrize("shapes", [((2, 1), (1, 1)), ((4, 3), (2, 4, 3)), ((3,), (2, 4, 3)), ((4, 3), (3,))])
def test_classes_of_targets_with_more_dimensions_are_the_inputs_last(shapes):
    def f(m):
        x, y = (m.linspace(-1, 1, math.prod(s), dtype=m.float64).reshape(s) for s in shapes)
        return m.nn.functional.multilabel_soft_margin_loss(x, y.sigmoid(), reduction="sum")

    same(f)
