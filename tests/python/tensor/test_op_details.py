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


@pytest.mark.parametrize("name", ["unbind_copy", "split_with_sizes_copy", "split_copy"])
def test_copies_of_views_take_out_lists(name):
    x = rushlight.arange(6.0).view(3, 2)
    sizes = {"unbind_copy": [], "split_with_sizes_copy": [[1, 2]], "split_copy": [2]}[name]
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


HALVES = ("float16", "bfloat16")


@pytest.mark.parametrize("dtype", HALVES)
def test_nextafter_steps_by_units_of_the_half_type(dtype):
    a = [float("inf"), 1.0, 0.0, -0.0, -1.0, float("nan"), 3.0, 65504.0, -2.0]
    b = [0.0, 2.0, -1.0, 1.0, 0.0, 1.0, 3.0, float("inf"), -9.0]
    ours, theirs = (
        m.nextafter(m.tensor(a, dtype=getattr(m, dtype)), m.tensor(b, dtype=getattr(m, dtype))).tolist()
        for m in (rushlight, torch)
    )
    assert str(ours) == str(theirs)


@pytest.mark.parametrize("dtype", HALVES)
def test_truncated_quotients_of_half_types_are_rounded_first(dtype):
    values = [i * 0.37 + 0.5 for i in range(200)]
    ours, theirs = (
        m.div(
            m.tensor(values, dtype=getattr(m, dtype)),
            m.tensor(values[::-1], dtype=getattr(m, dtype)) / 30,
            rounding_mode="trunc",
        ).tolist()
        for m in (rushlight, torch)
    )
    assert ours == theirs


def test_heaviside_of_nan_is_zero():
    x = rushlight.tensor([float("nan"), 0.0, -1.0, 2.0])
    assert rushlight.heaviside(x, rushlight.full((4,), 0.5)).tolist() == [0, 0.5, 0, 1]


def test_logcumsumexp_of_complex_numbers():
    values = [1 + 2j, 0.5 - 1j, 0.5 + 3j, -2 + 0.25j, 3 - 3j]

    def program(m):
        x = m.tensor(values, dtype=m.complex128, requires_grad=True)
        y = m.logcumsumexp(x, 0)
        (grad,) = m.autograd.grad(y, [x], m.tensor(values[::-1], dtype=m.complex128))
        return y.detach(), grad

    for mine, other in zip(program(rushlight), program(torch), strict=True):
        assert torch.allclose(torch.tensor(mine.tolist()), torch.tensor(other.tolist()))
    special = [complex(-float("inf"), 1), 0.5 - 1j, complex(float("nan"), 0), 1j]
    assert str(rushlight.logcumsumexp(rushlight.tensor(special), 0)[0].item()) == "(-inf+0j)"
    assert rushlight.logcumsumexp(rushlight.tensor(special), 0)[2:].isnan().all()


def test_integer_sums_of_einsum_and_bilinear_have_pytorchs_dtypes():
    def program(m):
        x = m.ones(2, 3, dtype=m.int32)
        cube = m.ones(1, 3, 1, dtype=m.int32)
        weight = m.ones(2, 3, 3, dtype=m.int32)
        results = [m.einsum("ij->i", x), m.einsum("iji->j", cube), m.einsum("ij,ij->i", x, x)]
        return [str(r.dtype).split(".")[1] for r in (*results, m.nn.functional.bilinear(x, x, weight))]

    assert program(rushlight) == program(torch)


def test_attention_with_dropout_of_half_types_runs_in_float32():
    def program(m):
        m.manual_seed(0)
        q = (m.arange(96) % 13 / 5).view(4, 3, 8).half()
        return m.nn.functional.scaled_dot_product_attention(q, q, q, is_causal=True, dropout_p=0.5).tolist()

    assert torch.allclose(torch.tensor(program(rushlight)), torch.tensor(program(torch)), rtol=1e-3)


def test_storages_stay_on_their_device():
    x = rushlight.empty(3, device="meta")
    for source in (rushlight.ones(3), rushlight.ones(3).untyped_storage()):
        with pytest.raises(RuntimeError, match="different device"):
            x.set_(source)


def test_linear_algebra_errors_have_pytorchs_name():
    assert rushlight.linalg.LinAlgError.__name__ == torch.linalg.LinAlgError.__name__
    with pytest.raises(rushlight.linalg.LinAlgError):
        rushlight.linalg.inv(rushlight.zeros(2, 2))


def test_finfo_reads_as_pytorchs():
    for name in ("float16", "bfloat16", "float32", "float64"):
        assert repr(rushlight.finfo(getattr(rushlight, name))) == repr(torch.finfo(getattr(torch, name)))


@pytest.mark.parametrize("name", ["mm", "bmm", "addmm", "baddbmm"])
def test_products_of_half_matrices_can_be_summed_in_float32(name):
    batch = [1] if name in ("bmm", "baddbmm") else []
    x = (rushlight.arange(64.0) / 7).view(*batch, 8, 8)
    operands = [x.half()] * (3 if "add" in name else 2)
    result = getattr(rushlight, name)(*operands, out_dtype=rushlight.float32)
    expected = getattr(rushlight, name)(*(t.float() for t in operands))
    assert result.dtype == rushlight.float32 and rushlight.equal(result, expected)
    with pytest.raises(RuntimeError, match="out_dtype must be"):
        getattr(rushlight, name)(*(t.double() for t in operands), out_dtype=rushlight.float32)


def test_rows_of_tables_are_bounded_in_place():
    table = rushlight.tensor([[3.0, 4.0], [0.1, 0.0], [6.0, 8.0]])
    assert rushlight.embedding_renorm_(table, rushlight.tensor([0, 1]), 1.0, 2.0) is table
    assert table.tolist() == [pytest.approx([0.6, 0.8]), pytest.approx([0.1, 0.0]), [6.0, 8.0]]


def test_second_derivatives_of_ctc_loss_are_refused():
    x = rushlight.randn(5, 1, 4).log_softmax(-1).requires_grad_()
    loss = F.ctc_loss(x, rushlight.tensor([[1, 2]]), rushlight.tensor([5]), rushlight.tensor([2]))
    (grad,) = rushlight.autograd.grad(loss, x, create_graph=True)
    with pytest.raises(RuntimeError, match="_ctc_loss_backward is not implemented"):
        rushlight.autograd.grad(grad.sum(), x)


def test_order_of_dimensions_may_be_ambiguous():
    assert rushlight.empty(2, 3, 5, 7).transpose(1, 2).dim_order(ambiguity_check=True) == (0, 2, 1, 3)
    with pytest.raises(RuntimeError, match="unique dim order"):
        rushlight.empty(1, 2, 3, 4).dim_order(ambiguity_check=True)
    formats = [rushlight.contiguous_format, rushlight.channels_last]
    assert rushlight.empty(1, 2, 3, 4).dim_order(ambiguity_check=formats) == (0, 1, 2, 3)
    with pytest.raises(TypeError, match="must be a bool or a list"):
        rushlight.empty(1).dim_order(ambiguity_check="x")


def test_masked_fill_takes_every_value_that_fits():
    values = [2.5, 3, True, 300, 1e30, 2 + 0j, 1 + 1j, -1, float("nan")]

    def outcome(m, dtype, value):
        x, mask = m.tensor([1, 0], dtype=getattr(m, dtype)), m.tensor([True, False])
        try:
            return str(x.masked_fill(mask, value(m)).tolist())
        except RuntimeError as error:
            return str(error)

    for dtype in ("bool", "uint8", "int32", "float16", "float32", "complex64"):
        for value in values:
            makes = (lambda m, v=value: v), (lambda m, v=value: m.tensor(v))
            for make in makes:
                assert outcome(rushlight, dtype, make) == outcome(torch, dtype, make)


def test_sets_with_nan_still_hold_infinity():
    nan, inf = float("nan"), float("inf")
    x = rushlight.tensor([nan, 1.0, inf, -inf, 0.25])
    assert rushlight.isin(x, rushlight.tensor([nan, -2.0, inf, 0.25, nan])).tolist() == [0, 0, 1, 0, 1]
    assert rushlight.isin(x, rushlight.tensor([nan])).tolist() == [False] * 5
    assert rushlight.isin(x, rushlight.tensor([nan]), invert=True).tolist() == [True] * 5


def test_nan_reaches_distances_of_order_zero():
    x = rushlight.tensor([[float("nan"), 1.0], [2.0, 3.0]])
    assert str(rushlight.cdist(x, x[1:], 0.0).tolist()) == "[[nan], [0.0]]"


def test_digamma_just_below_zero_and_integers():
    x = rushlight.tensor([-1e-30, -1e-300, -2 - 1e-9], dtype=rushlight.float64)
    assert rushlight.digamma(x).tolist() == pytest.approx([1e30, 1e300, 1e9], rel=1e-6)


def test_batch_norm_reads_strided_running_statistics_backward():
    spread = rushlight.tensor([0.5, 2.0, 1.5, 4.0])
    mean, var = spread[::2], spread[1::2]

    def gradients(mean, var):
        x = rushlight.arange(8.0).view(4, 2).requires_grad_()
        weight = rushlight.ones(2, requires_grad=True)
        y = F.batch_norm(x, mean, var, weight)
        return [g.tolist() for g in rushlight.autograd.grad((y * y).sum(), [x, weight])]

    assert gradients(mean, var) == gradients(mean.clone(), var.clone())


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

    for (kind, mine), (their_kind, other) in zip(program(rushlight), program(torch), strict=True):
        assert kind == their_kind
        expected = torch.tensor(other.tolist())
        tolerance = (0.02 if dtype == "float16" else 0.15) * expected.abs().max()
        assert (torch.tensor(mine.tolist()) - expected).abs().max() <= tolerance


def test_casts_leave_gaps_and_the_tensor_alone():
    column = rushlight.zeros(4, 3)[:, 0]
    assert column.float(memory_format=rushlight.contiguous_format) is column
    images = rushlight.zeros(2, 3, 4, 4).to(memory_format=rushlight.channels_last)
    assert images.float(memory_format=rushlight.contiguous_format).is_contiguous()


def test_integer_sums_widen_operands_of_einsum():
    x = rushlight.ones(2, 3, dtype=rushlight.int32)
    assert rushlight.einsum("ij,k->jk", x, x[0]).dtype == rushlight.int64
    assert rushlight.einsum("ij,ik->k", x, x).tolist() == [6, 6, 6]
    with pytest.raises(RuntimeError):
        rushlight.einsum("ij,kj->ik", x, x.double())


def test_one_step_of_logspace_is_the_first_power():
    for dtype in ("bfloat16", "float16", "float32"):
        ours, theirs = (m.logspace(4.3, 9.0, 1, dtype=getattr(m, dtype)).tolist() for m in (rushlight, torch))
        assert ours == theirs


def test_outputs_of_complex_and_polar_have_their_dtype():
    x = rushlight.ones(3, dtype=rushlight.float64)
    for name in ("complex", "polar"):
        with pytest.raises(
            RuntimeError, match="Expected (object of scalar type ComplexDouble|out tensor to have dtype)"
        ):
            getattr(rushlight, name)(x, x, out=rushlight.empty(3, dtype=rushlight.complex64))


def test_quotients_by_zero_in_addcdiv():
    def program(m):
        x, zero = m.tensor([1 + 1j, 2 - 1j, 0j]), m.zeros(3, dtype=m.complex64)
        return str(m.addcdiv(x, x, zero).tolist()), m.addcdiv(
            m.ones(1), m.ones(1), m.full((1,), 3.0), value=0.7
        )

    (ours, mine), (theirs, other) = program(rushlight), program(torch)
    assert ours == theirs and mine.tolist() == other.tolist()


def test_lerp_of_integers_takes_the_weights_dtype():
    def program(m):
        x = m.tensor([-3, 1], dtype=m.int8)
        return m.lerp(x, x + 2, m.tensor(0.25)).tolist()

    assert program(rushlight) == program(torch)
    with pytest.raises(NotImplementedError):
        rushlight.lerp(rushlight.tensor([1]), rushlight.tensor([2]), 0.5)


def test_the_module_names_itself():
    assert rushlight.torch is rushlight and rushlight.torch.special.gammainc is rushlight.special.gammainc


@pytest.mark.parametrize("whole", [rushlight.int32, rushlight.int64])
@pytest.mark.parametrize("half", ["float16", "bfloat16"])
def test_ldexp_keeps_the_type_of_what_is_scaled(half, whole):
    x = rushlight.tensor([1.0, 3.0]).to(getattr(rushlight, half))
    y = rushlight.ldexp(x, rushlight.tensor([2, -1], dtype=whole))
    assert y.dtype == x.dtype and y.tolist() == [4.0, 1.5]


def test_pivots_of_one_factorisation_serve_a_batch():
    a = rushlight.rand(4, 4)
    lu, pivots = rushlight.linalg.lu_factor(a)
    p, lower, upper = rushlight.lu_unpack(lu.expand(2, 4, 4), pivots)
    # PyTorch leaves the second permutation as it found it in memory.
    assert rushlight.allclose(p @ lower @ upper, a.expand(2, 4, 4), atol=1e-6)
    with pytest.raises(RuntimeError, match="4 elements in its last dimension"):
        rushlight.lu_unpack(rushlight.rand(4, 4), rushlight.ones(3, dtype=rushlight.int32))


@pytest.mark.parametrize("name, least", [("int8", -128), ("int64", -(2**63))])
def test_multiples_of_the_least_number(name, least):
    def of(function, a, b):
        dtype = getattr(rushlight, name)
        return function(rushlight.tensor(a, dtype=dtype), rushlight.tensor(b, dtype=dtype)).item()

    assert of(rushlight.gcd, least, least) == least and of(rushlight.gcd, least, 6) == 2
    assert of(rushlight.lcm, least, 7) == least  # wrapped around, and no trap of the processor
    assert of(rushlight.lcm, least, 0) == 0


def test_hashes_of_nothing():
    assert rushlight.hash_tensor(rushlight.zeros(0, 3), dim=1).shape == (0,)
    assert rushlight.hash_tensor(rushlight.zeros(2, 0), dim=1).tolist() == [0, 0]
    with pytest.raises(RuntimeError, match="Expected reduction dim"):
        rushlight.hash_tensor(rushlight.zeros(0))


def test_assigning_another_type_by_index_is_refused():
    def program(m, write):
        x = m.zeros(3, 2, dtype=m.int64)
        try:
            write(m, x)
        except RuntimeError as error:
            return str(error)
        return x.tolist()

    def by_rows(m, x):
        x[m.tensor([0, 2])] = m.tensor([[0.5, 1.5]])

    def by_column(m, x):
        x[0, m.tensor([1])] = m.tensor(2.5)

    def by_mask(m, x):
        x[x == 0] = m.tensor(2.5)

    def by_number(m, x):
        x[m.tensor([1])] = 2.5

    for write in (by_rows, by_column, by_mask, by_number):
        ours, theirs = program(rushlight, write), program(torch, write)
        assert ours == theirs, (write.__name__, ours, theirs)


def test_distinct_values_do_not_drop_a_gradient():
    x = rushlight.tensor([1.0, 2.0, 1.0], requires_grad=True)
    for values in (rushlight.unique(x), rushlight.unique(x, dim=0), rushlight.unique_consecutive(x)):
        assert values.requires_grad
        with pytest.raises(NotImplementedError, match="unique.*is not implemented"):
            values.sum().backward()
    _, inverse, counts = rushlight.unique(x, return_inverse=True, return_counts=True)
    assert not inverse.requires_grad and counts.tolist() == [2, 1]
