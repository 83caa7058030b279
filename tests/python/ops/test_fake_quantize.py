"""Numbers rounded as integers would be: to the last bit as PyTorch does it, and with its exceptions."""

import numpy as np
import pytest

import rushlight

inf, nan = np.inf, np.nan
EDGES = np.array(
    [inf, -inf, nan, 1e30, -1e30, 0.5, 1.5, 2.5, -0.5, 0.25, 300, 1e10, 9e18, 1e19, -1e19, -0.0, 0, 1e-45],
    np.float32,
)
SCALES = (1.0, 0.1, 0.037, 1e-3, 1e-45, 0.0, nan, inf, -1.0)
BOUNDS = ((0, 0, 255), (3, 0, 255), (-7, -128, 127), (5, 0, 2**25))
RNG = np.random.default_rng(0)


def inputs(scale):
    yield EDGES
    yield (RNG.standard_normal(200) * 40).astype(np.float32)
    if np.isfinite(scale):
        yield ((np.arange(-300, 300) + 0.5) * scale).astype(np.float32)


def run(library, name, args):
    """The results and what became of the arguments, as arrays; or the exception."""
    tensors = [library.tensor(a.copy()) if isinstance(a, np.ndarray) else a for a in args]
    function = library
    for part in name.split("."):
        function = getattr(function, part)
    try:
        result = function(*tensors)
    except (RuntimeError, IndexError) as error:
        return type(error), str(error).splitlines()[0]
    results = result if isinstance(result, tuple) else (result,)
    return [np.asarray(t.numpy() if hasattr(t, "numpy") else t) for t in (*results, *tensors)]


def same(name, *args, rtol=0.0):
    oracle = pytest.importorskip("torch")
    theirs, ours = run(oracle, name, args), run(rushlight, name, args)
    if isinstance(theirs, tuple):
        assert ours == theirs
        return
    assert isinstance(ours, list), ours
    for a, b in zip(ours, theirs, strict=True):
        assert a.dtype == b.dtype and a.shape == b.shape
        np.testing.assert_allclose(a, b, rtol=rtol, atol=rtol)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16])
@pytest.mark.parametrize("scale", SCALES)
def test_one_scale(dtype, scale):
    s = np.array([scale], np.float32)
    with np.errstate(over="ignore"):
        for bounds in BOUNDS:
            for x in inputs(scale):
                x = x.astype(dtype)
                z = np.array(bounds[:1], np.int32)
                same("ops.aten.fake_quantize_per_tensor_affine_cachemask", x, scale, *bounds)
                same("fake_quantize_per_tensor_affine", x, s, z, *bounds[1:])
                same("ops.aten.fake_quantize_per_channel_affine_cachemask", x[None], s, z, 0, *bounds[1:])


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("kind", [np.int32, np.float32, np.float16])
def test_a_scale_for_each_channel(axis, kind):
    x = (RNG.standard_normal((4, 6, 5)) * 20).astype(np.float32)
    n = x.shape[axis]
    scale, zero = RNG.uniform(0.01, 1, n).astype(np.float32), RNG.uniform(0, 200, n).astype(kind)
    for array, at in ((x, axis), (x.transpose(), 2 - axis)):
        same("ops.aten.fake_quantize_per_channel_affine_cachemask", array, scale, zero, at, 0, 255)
        same("_fake_quantize_learnable_per_channel_affine", array, scale, zero.astype(np.float32), at, 0, 255)


def test_layouts_are_kept():
    x = rushlight.randn(2, 3, 4, 5).to(memory_format=rushlight.channels_last)
    scale, zero = rushlight.rand(3) + 0.1, rushlight.zeros(3, dtype=rushlight.int32)
    y = rushlight.fake_quantize_per_channel_affine(x, scale, zero, 1, -9, 9)
    assert y.stride() == x.stride()
    plain = rushlight.fake_quantize_per_channel_affine(x.contiguous(), scale, zero, 1, -9, 9)
    assert rushlight.equal(y, plain)
    part = x[::2, :, ::2]
    y = rushlight.fake_quantize_per_tensor_affine(part, 0.1, 0, -9, 9)
    assert y.is_contiguous(memory_format=rushlight.channels_last)
    assert rushlight.equal(y, rushlight.fake_quantize_per_tensor_affine(part.contiguous(), 0.1, 0, -9, 9))


BACKWARD = "ops.aten._fake_quantize_learnable_per_{}_affine_backward"


def test_gradients_of_learned_scales():
    """Element by element to the last bit; sums are in another order."""
    for x in [*EDGES, *(RNG.standard_normal(60) * 30)]:
        x, g = np.array([x], np.float32), RNG.standard_normal(1).astype(np.float32)
        scale = RNG.uniform(0.01, 1, 1).astype(np.float32)
        zero = RNG.uniform(-10, 260, 1).astype(np.float32)
        same(BACKWARD.format("tensor"), g, x, scale, zero, 0, 255, 0.3)
    for axis in (0, 1, 2):
        x, g = RNG.standard_normal((2, 4, 6, 5)).astype(np.float32) * 20
        n = x.shape[axis]
        scale, zero = RNG.uniform(0.01, 1, n).astype(np.float32), RNG.uniform(0, 200, n).astype(np.float32)
        same(BACKWARD.format("channel"), g, x, scale, zero, axis, 0, 255, 0.3, rtol=1e-4)
        same(BACKWARD.format("tensor"), g, x, scale[:1], zero[:1], 0, 255, 0.3, rtol=1e-4)


def test_channels_without_other_dimensions_have_gradients():
    """PyTorch's kernel sums all of them to one number there, which its engine refuses."""
    x = rushlight.tensor([0.3, 5.0, -2.0], requires_grad=True)
    scale, zero = rushlight.tensor([0.2, 0.5, 0.1]).requires_grad_(), rushlight.zeros(3).requires_grad_()
    y = rushlight._fake_quantize_learnable_per_channel_affine(x, scale, zero, 0, -4, 4)
    y.sum().backward()
    assert x.grad.tolist() == [1.0, 0.0, 0.0]
    assert zero.grad.tolist() == pytest.approx([0.0, -0.5, -0.1])
    assert scale.grad.tolist() == pytest.approx([0.5, 4.0, -4.0], rel=1e-5)


@pytest.mark.parametrize("bounds", [(0, 255), (-128, 127), (0, 15), (-(2**31), 2**31 - 1), (5, 3)])
@pytest.mark.parametrize("symmetric", [False, True])
@pytest.mark.parametrize("on", [(0, 0), (0, 1), (1, 0), (1, 1)])
def test_observed_and_rounded(bounds, symmetric, on):
    on = [np.array([flag]) for flag in on]
    for start in (inf, -1.0, 0.5, nan):
        size = 10 ** RNG.uniform(-7, 3)
        x = (RNG.standard_normal((3, 4)) * size + RNG.standard_normal()).astype(np.float32)
        end = -inf if start == inf else RNG.standard_normal()
        state = [np.array([v], np.float32) for v in (start, end, 1)] + [np.array([0], np.int32)]
        for name in ("fused_moving_avg_obs_fake_quant", "_fused_moving_avg_obs_fq_helper"):
            same(name, x, *on, *state, 0.01, *bounds, -1, False, symmetric)
        if bounds[1] < 2**30 and start == start:
            rows = [np.repeat(s, 3) for s in state]
            same("fused_moving_avg_obs_fake_quant", x, *on, *rows, 0.1, *bounds, 0, True, symmetric)


def test_rows_that_nobody_has_seen():
    x = RNG.standard_normal((2, 3, 2)).astype(np.float32)
    nothing = [np.array([], np.float32)] * 3 + [np.array([], np.int32)]
    on = np.array([1])
    same("fused_moving_avg_obs_fake_quant", x, on, on, *nothing, 0.01, -128, 127, 0, True, True)
    empty = [rushlight.tensor(a) for a in nothing]
    with pytest.raises(RuntimeError, match="expected 1 running values"):  # PyTorch crashes
        rushlight.fused_moving_avg_obs_fake_quant(
            rushlight.tensor(x), *[rushlight.tensor([1])] * 2, *empty, 0.01, 0, 255, -1
        )


@pytest.mark.parametrize(
    "values",
    [[0.0, 1.0], [-1.0, 1.0], [1.0, 2.0], [-2.0, -1.0], [0.0], [1e-6, -1e-6], [1e-6], [-1e-6], [1e-40], [inf]]
    + [[nan, 1.0], [-inf, inf], [3e38, -3e38], [-0.3, 12.7]],
)
@pytest.mark.parametrize("reduced", [False, True])
def test_chosen_scales(values, reduced):
    same("_choose_qparams_per_tensor", np.array(values, np.float32), reduced)


ONES, WHOLE = np.ones(3, np.float32), np.zeros(3, np.int32)
X = np.ones((2, 3), np.float32)


@pytest.mark.parametrize(
    "name, args",
    [
        ("fake_quantize_per_tensor_affine", (X, 1.0, 0, 5, 3)),
        ("fake_quantize_per_tensor_affine", (X, 1.0, -1, 0, 255)),
        ("fake_quantize_per_tensor_affine", (X, 1.0, 300, 0, 255)),
        ("fake_quantize_per_tensor_affine", (X.astype(np.int32), 1.0, 0, 0, 255)),
        ("fake_quantize_per_tensor_affine", (X, ONES, WHOLE, 0, 255)),
        ("fake_quantize_per_channel_affine", (X, ONES[:2], WHOLE[:2], 1, 0, 255)),
        ("fake_quantize_per_channel_affine", (X, ONES, WHOLE[:2], 1, 0, 255)),
        ("fake_quantize_per_channel_affine", (X, ONES[None], WHOLE, 1, 0, 255)),
        ("fake_quantize_per_channel_affine", (X, ONES, WHOLE[None], 1, 0, 255)),
        ("fake_quantize_per_channel_affine", (X, ONES, WHOLE, -1, 0, 255)),
        ("fake_quantize_per_channel_affine", (X, ONES, WHOLE, 2, 0, 255)),
        ("fake_quantize_per_channel_affine", (X, ONES, WHOLE, 1, 5, 2)),
        ("fake_quantize_per_channel_affine", (X, ONES, WHOLE, 1, 5, 7)),
        ("fake_quantize_per_channel_affine", (X, ONES.astype(np.float64), WHOLE, 1, 0, 255)),
        ("fake_quantize_per_channel_affine", (X, ONES, WHOLE.astype(np.int64), 1, 0, 255)),
        ("fake_quantize_per_channel_affine", (X.astype(np.int32), ONES, WHOLE, 1, 0, 255)),
        (BACKWARD.format("tensor"), (X, X, ONES[:1], ONES[:1], 3, 255, 1.0)),
        (BACKWARD.format("channel"), (X, X, ONES, ONES, 1, 3, 255, 1.0)),
        (BACKWARD.format("tensor"), (X, X[:1], ONES[:1], ONES[:1], 0, 255, 1.0)),
    ],
)
def test_refusals(name, args):
    oracle = pytest.importorskip("torch")
    assert isinstance(run(oracle, name, args), tuple)
    same(name, *args)


def test_given_scales_have_no_gradient():
    scale = rushlight.ones(3, requires_grad=True)
    zero = rushlight.zeros(3, dtype=rushlight.int32)
    with pytest.raises(RuntimeError, match="not differentiable with respect to argument 'scale'"):
        rushlight.fake_quantize_per_channel_affine(rushlight.ones(3), scale, zero, 0, 0, 255)
