"""Products with integers in place of weights."""

import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest

import rushlight as torch

int8 = torch.int8


@pytest.mark.parametrize("dtype", [torch.int8, torch.uint8])
def test_products_of_small_integers(dtype):
    a = torch.arange(15).to(dtype).view(3, 5)
    b = torch.arange(-20, 20).view(8, 5).t().to(int8)
    expected = a.int() @ b.int()
    assert torch.equal(torch._int_mm(a, b), expected) and expected.dtype == torch.int32
    out = torch.empty(3, 8, dtype=torch.int32)
    assert torch._int_mm(a, b, out=out) is out and torch.equal(out, expected)
    assert torch.equal(torch._int_mm(a[:, :0], b[:0]), torch.zeros(3, 8, dtype=torch.int32))
    assert torch.ops.aten._int_mm(a.to("meta"), b.to("meta")).shape == (3, 8)


# Rows of seven bits, with few high bits and with many, longer and shorter than what is split; the weights of
# the last are the largest there are.
_OF_ALL_KINDS = """
import numpy as np
import rushlight as torch

rng = np.random.default_rng(0)
for m, k, n in ((1, 200, 17), (4, 1030, 40), (50, 193, 16), (7, 40, 33), (5, 2050, 5), (163, 64, 33)):
    weights = rng.integers(-128, 128, (k, n)), np.full((k, n), -128)
    few = np.where(rng.random((m, k)) < 0.01, 255, rng.integers(0, 128, (m, k)))
    some = few.copy()
    some[m // 2 :] = rng.integers(0, 256, (m - m // 2, k))
    rows = [rng.integers(0, 128, (m, k)), few, some, rng.integers(0, 256, (m, k)), np.full((m, k), 255)]
    rows = [(r, torch.uint8) for r in rows]
    near = np.where(rng.random((m, k)) < 0.01, -128, rng.integers(-60, 60, (m, k)))
    far = np.where(rng.random((m, k)) < 0.01, 127, near)
    rows += [(r, torch.int8) for r in (near, far, np.full((m, k), -128))]
    for w in weights:
        for a, dtype in rows:
            found = torch._int_mm(torch.tensor(a).to(dtype), torch.tensor(w).to(torch.int8)).numpy()
            assert (found == a @ w).all(), (m, k, n, dtype)
"""


@pytest.mark.parametrize("capability", ["baseline", "avx2", "avx512", None])
def test_sums_are_exact_whatever_the_bytes_are(capability):
    """Processors without VNNI take high bits apart where these are few; those with AMX multiply in tiles."""
    variables = dict(os.environ)
    if capability:
        variables["RUSHLIGHT_CPU_CAPABILITY"] = capability
    variables["PYTHONPATH"] = str(pathlib.Path(torch.__file__).parent.parent)
    done = subprocess.run(
        [sys.executable, "-c", _OF_ALL_KINDS], env=variables, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("dtype", [torch.int8, torch.uint8])
@pytest.mark.parametrize(
    "m, k, n",
    [(1, 1, 1), (1, 33, 5), (2, 4, 32), (5, 7, 33), (7, 64, 31), (13, 130, 70), (49, 5, 3), (161, 70, 33)],
)
def test_sums_of_bytes_are_exact(dtype, m, k, n):
    low, high = (-128, 128) if dtype == int8 else (0, 256)
    rng = np.random.default_rng(m * k * n)
    left = rng.integers(low, high, (m, k))
    right = rng.integers(-128, 128, (k, n))
    for a, b in (
        (left, right),
        (np.full((m, k), high - 1), np.full((k, n), -128)),
        (np.full((m, k), low), np.full((k, n), -128)),
    ):
        x, y = torch.tensor(a).to(dtype), torch.tensor(b).to(int8)
        expected = torch.tensor(a @ b).int()
        for first in (x, x.t().contiguous().t(), torch.cat([x, x], 1)[:, :k]):
            for second in (y, y.t().contiguous().t()):
                assert torch.equal(torch._int_mm(first, second), expected)


def test_long_sums_of_bytes_do_not_saturate():
    # 255 * 128 * 4096 is beyond 16 bits in each pair, and within 32.
    x = torch.full((3, 4096), 255, dtype=torch.uint8)
    y = torch.full((4096, 40), -128, dtype=int8)
    assert torch._int_mm(x, y).eq(-255 * 128 * 4096).all()


def test_a_weight_that_was_written_to_is_laid_out_again():
    x = torch.ones(2, 512, dtype=int8)
    weight = torch.ones(512, 64, dtype=int8)
    for _ in range(8):
        assert torch._int_mm(x, weight).eq(512).all()
    weight[0] = 2
    for _ in range(2):
        assert torch._int_mm(x, weight).eq(513).all()


def test_empty_products_of_bytes():
    for m, k, n in ((0, 3, 4), (3, 0, 4), (3, 4, 0)):
        result = torch._int_mm(torch.zeros(m, k, dtype=int8), torch.zeros(k, n, dtype=int8))
        assert torch.equal(result, torch.zeros(m, n, dtype=torch.int32))


def test_refusals_of_products_of_small_integers():
    a = torch.ones(2, 3, dtype=int8)
    for left, right, text in (
        (a.float(), a.t(), "Expected self dtype to be int8 or uint8"),
        (a, a.t().int(), "Expected mat2 dtype to be of type int8"),
        (a, a, r"self.size\(1\) needs to match mat2.size\(0\) but got 3 and 2"),
        (a[None], a, "Expected self to be of dimension 2 but got 3"),
    ):
        with pytest.raises(RuntimeError, match=text):
            torch._int_mm(left, right)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("rows", [1, 7, 70])
@pytest.mark.parametrize("width", [24, 35, 1])
def test_weights_of_int8(dtype, rows, width):
    x = torch.randn(rows, width).to(dtype)
    weight = torch.randint(-128, 128, (75, width), dtype=int8)
    scales = torch.rand(75).to(dtype)
    expected = x.float() @ (weight.float() * scales.float()[:, None]).t()
    result = torch._weight_int8pack_mm(x, weight, scales)
    assert result.dtype == dtype
    # Sums of terms of some 100, in another order: what cancels keeps the error of those.
    rtol = torch.finfo(dtype).eps * 10
    torch.testing.assert_close(result, expected.to(dtype), atol=1e-3, rtol=rtol)
    for bad in (scales[:3], scales[:, None]):
        with pytest.raises(RuntimeError, match="expect scales to be 1d tensor with size 75"):
            torch._weight_int8pack_mm(x, weight, bad)
    with pytest.raises(RuntimeError, match="expect B to be int8 tensor"):
        torch._weight_int8pack_mm(x, weight.int(), scales)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("group", [32, 64])
@pytest.mark.parametrize("rows", [1, 6, 70])
@pytest.mark.parametrize("width", [128, 150, 34, 6])
def test_weights_of_four_bits(dtype, group, rows, width):
    numbers = torch.randint(0, 16, (48, width), dtype=torch.int32)
    packed = torch._convert_weight_to_int4pack_for_cpu(numbers, 2)
    assert packed.shape == (48, width // 2) and packed.dtype == torch.uint8
    settings = torch.randn(-(-width // group), 48, 2).to(dtype)
    scale, zero = settings.float().permute(2, 1, 0).repeat_interleave(group, 2)[:, :, :width]
    x = torch.randn(rows, width).to(dtype)
    expected = x.float() @ ((numbers - 8) * scale + zero).t()
    result = torch._weight_int4pack_mm_for_cpu(x, packed, group, settings)
    torch.testing.assert_close(result, expected.to(dtype), atol=1e-3, rtol=1e-2)
    with pytest.raises(RuntimeError, match="expect qGroupSize to be 32, 64, 128 or 256, got 31"):
        torch._weight_int4pack_mm_for_cpu(x, packed, 31, settings)
    with pytest.raises(RuntimeError, match="groups of columns"):
        torch._weight_int4pack_mm_for_cpu(x, packed, group, settings[:-1])
    with pytest.raises(RuntimeError, match="expect N to be dividable by 16"):
        torch._convert_weight_to_int4pack_for_cpu(numbers[:30], 2)


# --- float8


def scaled_product(lib, *args, **more):
    """`_scaled_mm`; PyTorch's asks oneDNN, which has no such product for every instruction set."""
    try:
        return lib._scaled_mm(*args, **more)
    except RuntimeError as error:
        if lib is torch or "could not create a primitive descriptor for the matmul" not in str(error):
            raise
        pytest.skip("PyTorch's oneDNN has no product of float8 for this processor")


@pytest.mark.parametrize("left", ["float8_e4m3fn", "float8_e5m2"])
@pytest.mark.parametrize("right", ["float8_e4m3fn", "float8_e5m2"])
@pytest.mark.parametrize("result", [None, "float32", "bfloat16", "float16"])
def test_scaled_products_of_float8(left, right, result):
    theirs = pytest.importorskip("torch")
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((5, 16)).astype("float32"), rng.standard_normal((8, 16)).astype("float32")
    one = (np.float32(0.5), np.float32(0.25))
    many = (rng.uniform(0.5, 1, (5, 1)).astype("float32"), rng.uniform(0.5, 1, (1, 8)).astype("float32"))
    for scales in (one, many):
        found = []
        for lib in (theirs, torch):
            x, y = lib.tensor(a).to(getattr(lib, left)), lib.tensor(b).to(getattr(lib, right)).t()
            out = getattr(lib, result) if result else None
            found.append(scaled_product(lib, x, y, *map(lib.tensor, scales), out_dtype=out).float().numpy())
        np.testing.assert_allclose(*found, rtol=1e-5 if result == "float32" else 0.07, atol=1e-5)


def test_scaled_products_with_more():
    theirs = pytest.importorskip("torch")
    found = []
    for lib in (theirs, torch):
        x = lib.arange(-10, 10).float().view(4, 5).to(lib.float8_e4m3fn)
        more = {"bias": lib.arange(4).float(), "scale_result": lib.tensor(2.0), "out_dtype": lib.float32}
        found.append(scaled_product(lib, x, x.t(), lib.tensor(0.5), lib.tensor(0.5), **more).numpy())
    np.testing.assert_allclose(*found)


def test_refusals_of_scaled_products():
    x = torch.ones(2, 3).to(torch.float8_e4m3fn)
    one = torch.tensor(1.0)
    with pytest.raises(ValueError, match="Invalid scaling configuration"):
        torch._scaled_mm(x, x.t(), torch.ones(2), torch.ones(2))
    with pytest.raises(ValueError, match="Invalid scaling configuration"):
        torch._scaled_mm(x.float(), x.t(), one, one)
    with pytest.raises(RuntimeError, match="cannot be multiplied"):
        torch._scaled_mm(x, x, one, one)


# --- four bits by inputs that are rounded to eight


@pytest.mark.parametrize("block", [32, 64, 96, 192])
@pytest.mark.parametrize("bias", [False, True])
def test_four_bits_by_rounded_inputs(block, bias):
    theirs = pytest.importorskip("torch")
    rng = np.random.default_rng(block)
    k, n = 192, 6
    x = rng.standard_normal((4, k)).astype("float32")
    x[1], x[2] = 0, abs(x[2])
    weight = rng.integers(0, 256, (n, k // 2)).astype("uint8")
    scales = rng.uniform(0.05, 0.2, (n, k // block)).astype("float32")
    added = rng.standard_normal(n).astype("float32") if bias else None
    found = []
    for lib in (theirs, torch):
        b = lib.tensor(added) if bias else None
        sizes = (block, k, n)
        packed = lib.ops.aten._dyn_quant_pack_4bit_weight(lib.tensor(weight), lib.tensor(scales), b, *sizes)
        found.append(
            (packed.numpy(), lib.ops.aten._dyn_quant_matmul_4bit(lib.tensor(x), packed, *sizes).numpy())
        )
    np.testing.assert_array_equal(found[0][0], found[1][0])
    np.testing.assert_allclose(found[0][1], found[1][1], rtol=1e-4, atol=1e-4)


def test_refusals_of_four_bits_by_rounded_inputs():
    weight, scales = torch.zeros(6, 96, dtype=torch.uint8), torch.ones(6, 2)
    with pytest.raises(RuntimeError, match="block_size must be in_features, or a multiple of 32"):
        torch._dyn_quant_pack_4bit_weight(weight, scales, None, 50, 192, 6)
    with pytest.raises(RuntimeError, match="as many scales as groups are wanted, 12"):
        torch._dyn_quant_pack_4bit_weight(weight, scales[:1], None, 96, 192, 6)
    packed = torch._dyn_quant_pack_4bit_weight(weight, scales, None, 96, 192, 6)
    with pytest.raises(RuntimeError, match="the weight must be packed by"):
        torch._dyn_quant_matmul_4bit(torch.ones(1, 192), packed[1:], 96, 192, 6)
    with pytest.raises(RuntimeError, match="must be a float32 matrix of 192 columns"):
        torch._dyn_quant_matmul_4bit(torch.ones(1, 190), packed, 96, 192, 6)
