"""Products with integers in place of weights."""

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
@pytest.mark.parametrize("rows", [1, 7])
def test_weights_of_int8(dtype, rows):
    x = torch.randn(rows, 24).to(dtype)
    weight = torch.randint(-128, 128, (75, 24), dtype=int8)
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
def test_weights_of_four_bits(dtype, group):
    numbers = torch.randint(0, 16, (48, 128), dtype=torch.int32)
    packed = torch._convert_weight_to_int4pack_for_cpu(numbers, 2)
    assert packed.shape == (48, 64) and packed.dtype == torch.uint8
    settings = torch.randn(128 // group, 48, 2).to(dtype)
    scale, zero = settings.float().permute(2, 1, 0).repeat_interleave(group, 2)
    x = torch.randn(3, 128).to(dtype)
    expected = x.float() @ ((numbers - 8) * scale + zero).t()
    result = torch._weight_int4pack_mm_for_cpu(x, packed, group, settings)
    torch.testing.assert_close(result, expected.to(dtype), atol=1e-4, rtol=1e-2)
    with pytest.raises(RuntimeError, match="expect qGroupSize to be 32, 64, 128 or 256, got 31"):
        torch._weight_int4pack_mm_for_cpu(x, packed, 31, settings)
    with pytest.raises(RuntimeError, match="groups of columns"):
        torch._weight_int4pack_mm_for_cpu(x, packed, group, settings[:1])
    with pytest.raises(RuntimeError, match="expect N to be dividable by 16"):
        torch._convert_weight_to_int4pack_for_cpu(numbers[:30], 2)
