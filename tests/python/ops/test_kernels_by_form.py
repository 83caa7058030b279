"""The form in which a kernel gets its operands (one number for all, one row, few lines, codes of eight bits,
masks) changes neither what it gives nor by much what it takes.
"""

import time

import numpy as np
import pytest

import rushlight as torch
from rushlight.nn import functional as F

FLOAT8 = ["float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz"]


def seconds(call):
    """Of processor time, the least of some calls."""
    least = float("inf")
    for _ in range(12):
        start = time.process_time()
        for _ in range(4):
            call()
        least = min(least, time.process_time() - start)
    return least


@pytest.fixture(autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", ["gelu", "silu", "mish", "elu", "softplus", "logsigmoid"])
def test_one_gradient_for_all_is_as_many_that_are_equal(name, dtype):
    x = torch.linspace(-9, 9, 20_011, dtype=getattr(torch, dtype)).requires_grad_()
    y = getattr(F, name)(x)
    for value in (1.0, -2.5):
        one = torch.full((), value, dtype=y.dtype).expand(y.shape)
        many = one.contiguous()
        (from_one,) = torch.autograd.grad(y, x, one, retain_graph=True)
        (from_many,) = torch.autograd.grad(y, x, many, retain_graph=True)
        assert torch.equal(from_one, from_many)
    took = seconds(lambda: torch.autograd.grad(y, x, one, retain_graph=True))
    assert took < 2.5 * seconds(lambda: torch.autograd.grad(y, x, many, retain_graph=True))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "uint8", "bool", "int64"])
@pytest.mark.parametrize("shape", [(3, 1, 5), (700, 3), (2, 999, 16), (90, 64), (40, 65), (515, 1)])
@pytest.mark.parametrize("largest", [True, False])
def test_extremes_of_few_lines(shape, dtype, largest):
    rng = np.random.default_rng(len(shape) + shape[0])
    values = rng.integers(0, 2 if dtype == "bool" else 40, shape).astype("float32") - (dtype[0] in "fbi") * 7
    if dtype in ("bool", "uint8"):
        values = np.abs(values) % (2 if dtype == "bool" else 200)
    if "float" in dtype:
        values[values == 3] = -0.0
        values.flat[rng.integers(0, values.size, 3)] = np.nan
    x = torch.from_numpy(values).to(getattr(torch, dtype))
    dim = len(shape) - 2
    found, at = (x.max if largest else x.min)(dim)
    lines = np.moveaxis(values, dim, -1)
    nan = np.isnan(lines)
    ranked = np.where(nan, np.inf, lines if largest else -lines)
    expected = ranked.argmax(-1)  # the first of equals
    np.testing.assert_array_equal(at.numpy(), expected)
    np.testing.assert_array_equal(
        found.to(torch.float32).numpy(), np.take_along_axis(lines, expected[..., None], -1)[..., 0]
    )


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int16", "int32", "int64"])
@pytest.mark.parametrize("k, n", [(1, 7), (13, 1), (130, 515), (7, 1024)])
def test_a_row_of_whole_numbers_times_a_matrix(dtype, k, n):
    rng = np.random.default_rng(k)
    kind = np.iinfo(dtype)
    a = rng.integers(kind.min, kind.max, (1, k), dtype, endpoint=True)
    b = rng.integers(kind.min, kind.max, (k, n), dtype, endpoint=True)
    c = rng.integers(kind.min, kind.max, (1, n), dtype, endpoint=True)
    bits = np.dtype(dtype.replace("u", "").replace("int", "uint"))
    expected = (a.astype(bits) @ b.astype(bits)).astype(dtype)
    left, right = torch.from_numpy(a), torch.from_numpy(b)
    np.testing.assert_array_equal((left @ right).numpy(), expected)
    turned = torch.from_numpy(np.ascontiguousarray(b.T)).mT
    np.testing.assert_array_equal((left @ turned).numpy(), expected)
    apart = torch.from_numpy(np.repeat(a, 2, 1))[:, ::2]
    np.testing.assert_array_equal((apart @ right).numpy(), expected)
    summed = torch.addmm(torch.from_numpy(c), left, right, alpha=3, beta=-2)
    by_bits = 3 * expected.astype(bits).astype("uint64") - 2 * c.astype(bits).astype("uint64")
    np.testing.assert_array_equal(summed.numpy(), by_bits.astype(bits).astype(dtype))


def test_a_row_takes_no_more_than_several():
    matrix = torch.ones(512, 512, dtype=torch.int8)
    row, rows = matrix[:1].clone(), matrix[:64].clone()
    assert seconds(lambda: row @ matrix) < seconds(lambda: rows @ matrix)
    assert seconds(lambda: row @ matrix.mT) < seconds(lambda: rows @ matrix.mT)


@pytest.mark.parametrize("name", FLOAT8)
def test_every_code_of_eight_bits(name):
    codes = torch.arange(256, dtype=torch.uint8)
    eight = codes.view(getattr(torch, name))
    for target in (torch.float32, torch.float64, torch.bfloat16):
        together = eight.to(target)
        alone = torch.stack([torch.full((), c, dtype=target) for c in eight.tolist()])
        assert torch.equal(together.isnan(), alone.isnan())
        assert torch.equal(together.nan_to_num(7.0), alone.nan_to_num(7.0))
        known = ~together.isnan()
        assert torch.equal(together.signbit()[known], alone.signbit()[known])
    assert torch.equal(eight.to(torch.bool), eight.float().bool())
    back = eight.float().to(eight.dtype).view(torch.uint8)
    known = ~eight.float().isnan()
    assert torch.equal(back[known], codes[known])


def nearest_codes(x, eight):
    """The code of the nearest number, of two as near the even one, by looking at all."""
    codes = torch.arange(128, dtype=torch.uint8)
    numbers = codes.view(eight).double()
    finite = numbers[numbers.isfinite()].numpy()
    size = np.abs(x)
    right = np.clip(np.searchsorted(finite, size), 1, len(finite) - 1)
    below, above = size - finite[right - 1], finite[right] - size
    left = (below < above) | ((below == above) & (right % 2 == 1))
    return right - left, finite


@pytest.mark.parametrize("source", ["float32", "bfloat16", "float16"])
@pytest.mark.parametrize("name", FLOAT8)
def test_numbers_are_rounded_to_eight_bits(name, source):
    eight = getattr(torch, name)
    rng = np.random.default_rng(5)
    bits = rng.integers(0, 2**32, 30_000, dtype=np.uint32).view(np.float32)
    small = rng.standard_normal(30_000).astype("float32") * np.float32(0.02)
    x = np.concatenate([bits, small, np.array([0.0, -0.0], "float32")])
    given = torch.from_numpy(x).to(getattr(torch, source))
    numbers = given.double().numpy()
    codes, finite = nearest_codes(np.nan_to_num(numbers), eight)
    got = given.to(eight).view(torch.uint8).numpy()
    inside = np.isfinite(numbers) & (np.abs(numbers) <= finite[-1])
    sign = np.signbit(numbers) & ~((codes == 0) & name.endswith("uz"))
    np.testing.assert_array_equal(got[inside], (codes + 128 * sign)[inside])
    assert given.to(eight).float().isnan()[torch.from_numpy(np.isnan(numbers))].all()


def test_codes_of_eight_bits_take_no_longer_than_halves():
    x = torch.randn(100_000)
    half = seconds(lambda: x.double().half())
    for name in FLOAT8:
        eight = x.to(getattr(torch, name))
        assert seconds(lambda eight=eight: x.to(eight.dtype)) < 10 * half
        assert seconds(lambda eight=eight: eight.float()) < 10 * half


def test_hidden_keys_take_no_longer_than_others():
    q, k, v = torch.randn(3, 2, 4, 64, 32).unbind()
    seen = torch.rand(2, 1, 64, 64) < 0.8
    for dtype in (torch.float32, torch.bfloat16):
        operands = [x.to(dtype) for x in (q, k, v)]
        added = torch.zeros(2, 1, 64, 64, dtype=dtype)
        plain = seconds(lambda operands=operands, m=added: F.scaled_dot_product_attention(*operands, m))
        masked = seconds(lambda operands=operands: F.scaled_dot_product_attention(*operands, seen))
        assert masked < 1.9 * plain
    weights = torch.softmax((q @ k.mT / 32**0.5).masked_fill(~seen, float("-inf")), -1)
    torch.testing.assert_close(F.scaled_dot_product_attention(q, k, v, seen), weights @ v)


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "float16"])
@pytest.mark.parametrize("shape, heads", [((2, 3, 24), 2), ((1, 5, 21), 7), ((3, 1, 72), 1)])
def test_heads_of_a_projection_in_one_pass_or_by_steps(shape, heads, dtype):
    qkv, bias = torch.randn(shape).to(getattr(torch, dtype)), torch.randn(shape[-1]).to(getattr(torch, dtype))
    at_once = torch._transform_bias_rescale_qkv(qkv, bias, heads)
    by_steps = torch._transform_bias_rescale_qkv(qkv.clone().requires_grad_(), bias, heads)
    for a, b in zip(at_once, by_steps, strict=True):
        assert a.is_contiguous()
        torch.testing.assert_close(a, b.detach())


@pytest.mark.parametrize("align", [True, False])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("mode", ["nearest", "bilinear", "bicubic"])
@pytest.mark.parametrize("shape", [(2, 3, 9, 7), (1, 1, 1, 4), (1, 2, 5, 3), (1, 2, 4, 1)])
def test_samples_of_floats_are_those_of_doubles(shape, mode, padding, align):
    torch.manual_seed(3)
    image = torch.randn(shape)
    # Eighths of pixels, which both types hold: no point lies on this side for one and on that for the other.
    places = (torch.randint(-300, 300, (shape[0], 9, 11, 2)) * 2 + 1) / 16
    sizes = torch.tensor([shape[3], shape[2]], dtype=torch.float32)
    spans = (sizes - 1).clamp(min=1) if align else sizes
    grid = 2 * places / spans - 1 if align else (2 * places + 1) / spans - 1
    options = {"mode": mode, "padding_mode": padding, "align_corners": align}
    got = F.grid_sample(image, grid, **options)
    expected = F.grid_sample(image.double(), grid.double(), **options).float()
    close = (got - expected).abs() <= 1e-3
    assert close.float().mean() > (0.9 if mode == "nearest" else 0.999)


def test_pixels_that_no_tap_meets_are_not_read():
    image = torch.zeros(1, 1, 6, 6)
    image[..., 3] = float("inf")
    for padding in ("border", "reflection"):
        grid = torch.full((1, 1, 1, 2), -1.0)
        out = F.grid_sample(image, grid, mode="bicubic", padding_mode=padding, align_corners=True)
        assert out.item() == 0


def test_put_in_place_and_apart():
    x = torch.arange(12.0).reshape(3, 4)
    index, source = torch.tensor([[1, -1], [5, 1]]), torch.tensor([[10.0, 20.0], [30.0, 40.0]])
    apart = x.put(index, source, accumulate=True)
    assert apart.flatten()[[1, 5, 11]].tolist() == [51.0, 35.0, 31.0] and x[0, 1] == 1
    turned = x.mT.clone(memory_format=torch.preserve_format)
    there = x.clone()
    place = there.data_ptr()
    assert torch.equal(there.put_(index, source, accumulate=True), apart) and there.data_ptr() == place
    turned.put_(index, source, accumulate=True)  # rows are counted in the tensor's own order
    assert torch.equal(turned, x.mT.contiguous().put(index, source, accumulate=True))
    with pytest.raises(IndexError):
        there.put_(torch.tensor([12]), torch.tensor([0.0]))


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "bool"])
@pytest.mark.parametrize("n", [1, 5, 100, 129])
def test_running_extremes_of_lines_together(n, dtype):
    rng = np.random.default_rng(n)
    values = rng.integers(0, 2 if dtype == "bool" else 9, (7, n)).astype("float64")
    if "float" in dtype:
        values[2, n // 2] = np.nan
    x = torch.from_numpy(values).to(getattr(torch, dtype))
    for largest in (True, False):
        found, at = (x.cummax if largest else x.cummin)(1)
        alone = [(row.cummax if largest else row.cummin)(0) for row in x]
        assert torch.equal(at, torch.stack([a.indices for a in alone]))
        expected = (np.maximum if largest else np.minimum).accumulate(values, 1)
        np.testing.assert_array_equal(found.double().numpy(), expected)


@pytest.mark.parametrize("dtype", ["int64", "float32", "complex64", "bfloat16"])
def test_few_elements_meet_a_matrix_in_any_order(dtype):
    kind = getattr(torch, dtype)
    indices = torch.tensor([[3, 0, 3, 1], [5, 2, 5, 0]])
    sparse = torch.sparse_coo_tensor(indices, torch.tensor([1, 2, 3, 4]).to(kind), (4, 6))
    dense, added = (torch.arange(30).reshape(6, 5) % 7).to(kind), torch.arange(5).to(kind).expand(4, 5)
    wide = torch.complex64 if dtype == "complex64" else torch.float64
    expected = added + (sparse.to_dense().to(wide) @ dense.to(wide)).to(kind)
    for a in (sparse, sparse.coalesce()):
        assert torch.equal(torch.sparse.addmm(added, a, dense), expected)
        assert torch.equal(torch.sparse.addmm(added, a, dense, beta=2), expected + added)
    outside = torch._sparse_coo_tensor_unsafe(torch.tensor([[0], [6]]), torch.ones(1, dtype=kind), (4, 6))
    with pytest.raises(RuntimeError):
        torch.sparse.addmm(added, outside, dense)


def test_indices_outside_are_found_in_either_dimension():
    for indices, message in (([[0, 4], [0, 0]], "size is 4 but found index 4"), ([[0], [-1]], "negative")):
        with pytest.raises(RuntimeError, match=message):
            torch.sparse_coo_tensor(indices, torch.ones(len(indices[0])), (4, 6))
    empty = torch.sparse_coo_tensor(torch.zeros(2, 0, dtype=torch.int64), torch.ones(0), (0, 6))
    assert empty.shape == (0, 6) and torch.sparse_coo_tensor([[3], [5]], [1.0], (4, 6)).to_dense()[3, 5] == 1
