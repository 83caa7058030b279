"""Products of groups, of scaled operands, and of halves that are summed in float32."""

import pytest

import rushlight as torch
from rushlight.nn.functional import ScalingType, grouped_mm, scaled_grouped_mm, scaled_mm


def test_grouped_products():
    offs = torch.tensor([3, 3, 8], dtype=torch.int32)
    rows, batch = torch.randn(8, 4, requires_grad=True), torch.randn(3, 4, 5, requires_grad=True)
    expected = torch.cat([rows[:3] @ batch[0], rows[3:8] @ batch[2]])
    torch.testing.assert_close(grouped_mm(rows, batch, offs=offs), expected)
    grads = torch.autograd.grad(grouped_mm(rows, batch, offs=offs).sum(), [rows, batch])
    assert grads[1][1].abs().sum() == 0 and grads[1][2].abs().sum() > 0

    columns = torch.randn(4, 8)
    batch = torch.randn(3, 5, 4)
    expected = torch.cat([batch[0] @ columns[:, :3], batch[2] @ columns[:, 3:]], 1)
    torch.testing.assert_close(grouped_mm(batch, columns, offs=offs), expected)

    left, right = torch.randn(4, 8), torch.randn(8, 5)
    expected = torch.stack([left[:, i:j] @ right[i:j] for i, j in ((0, 3), (3, 3), (3, 8))])
    torch.testing.assert_close(grouped_mm(left, right, offs=offs), expected)
    one, two = torch.randn(3, 4, 5), torch.randn(3, 5, 2)
    assert grouped_mm(one, two, out_dtype=torch.bfloat16).dtype == torch.bfloat16
    for bad in (
        lambda: grouped_mm(left, right),
        lambda: grouped_mm(one, two, offs=offs),
        lambda: grouped_mm(left, right, offs=offs.long()),
        lambda: grouped_mm(left, right, offs=torch.tensor([5, 3], dtype=torch.int32)),
        lambda: grouped_mm(left, right, offs=torch.tensor([99], dtype=torch.int32)),
        lambda: grouped_mm(left, right.mT, offs=offs),
    ):
        with pytest.raises(RuntimeError):
            bad()


@pytest.mark.parametrize("recipe", [ScalingType.TensorWise, ScalingType.RowWise, ScalingType.BlockWise1x128])
def test_scaled_products(recipe):
    a, b = torch.randn(6, 200), torch.randn(200, 5)
    shapes = {
        ScalingType.TensorWise: ((1,), (1,)),
        ScalingType.RowWise: ((6, 1), (1, 5)),
        ScalingType.BlockWise1x128: ((6, 2), (2, 5)),
    }[recipe]
    scale_a, scale_b = (torch.rand(shape) + 0.5 for shape in shapes)
    small_a, small_b = a.to(torch.float8_e4m3fn), b.to(torch.float8_e4m3fn)
    wide_a = scale_a.repeat_interleave(128, -1)[:, :200] if recipe is ScalingType.BlockWise1x128 else scale_a
    wide_b = scale_b.repeat_interleave(128, 0)[:200] if recipe is ScalingType.BlockWise1x128 else scale_b
    expected = (small_a.float() * wide_a) @ (small_b.float() * wide_b) + 1
    result = scaled_mm(
        small_a, small_b, scale_a, recipe, scale_b, recipe, bias=torch.ones(5), output_dtype=torch.float32
    )
    torch.testing.assert_close(result, expected)
    offs = torch.tensor([2, 6], dtype=torch.int32)
    if recipe is not ScalingType.TensorWise:
        return
    stack = torch.stack([small_b.float(), small_b.float()]).to(torch.float8_e4m3fn)
    grouped = scaled_grouped_mm(
        small_a, stack, scale_a, recipe, scale_b, recipe, offs=offs, output_dtype=torch.float32
    )
    torch.testing.assert_close(grouped, expected - 1)


@pytest.mark.parametrize("name", ["mm", "bmm", "addmm", "baddbmm"])
def test_products_of_half_matrices_can_be_summed_in_float32(name):
    batch = [1] if name in ("bmm", "baddbmm") else []
    x = (torch.arange(64.0) / 7).view(*batch, 8, 8)
    operands = [x.half()] * (3 if "add" in name else 2)
    result = getattr(torch, name)(*operands, out_dtype=torch.float32)
    expected = getattr(torch, name)(*(t.float() for t in operands))
    assert result.dtype == torch.float32 and torch.equal(result, expected)
    with pytest.raises(RuntimeError, match="out_dtype must be"):
        getattr(torch, name)(*(t.double() for t in operands), out_dtype=torch.float32)
