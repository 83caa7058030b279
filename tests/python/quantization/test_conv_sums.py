"""A convolution of integers with the sum that follows it gives the bits of the two operators."""

import pytest

import rushlight as torch
from rushlight.export import load_file, save_file

steps = torch.ops.quantized_decomposed
PLAIN = (1, 1), (0, 0), (1, 1)  # stride, padding, dilation
ROOMS = {torch.uint8: (0, 255), torch.int8: (-128, 127)}


def some_bytes(dtype, *sizes):
    low, high = ROOMS[dtype]
    return torch.randint(low, high + 1, sizes, dtype=dtype)


def both_ways(dtype, sizes, filters, kernel, relu, other_first, window=PLAIN, groups=1, zeros=0):
    """The results of the one operator, and of the two."""
    x = some_bytes(dtype, *sizes)
    weight = torch.randint(-127, 128, (filters, sizes[1] // groups, *kernel), dtype=torch.int8)
    k = sizes[1] // groups * kernel[0] * kernel[1]
    scales = torch.rand(filters) * 0.02 / k**0.5 + 1e-4
    zero = ROOMS[dtype][0] + 120
    zeros, bias = torch.full((filters,), zeros), torch.randn(filters)
    conv = (x, 0.03, zero, weight, scales, zeros, bias, *window, groups)
    settings = (0.02, zero + 3, dtype, "none")
    y = torch.ops.onednn.qconv_pointwise(*conv, *settings, [], "")
    other, out = some_bytes(dtype, *y.shape), (0.05, zero - 7)
    operands = [(y, 0.02, zero + 3), (other, 0.04, zero - 2)]
    if other_first:
        operands.reverse()
    apart = torch.ops.aten._quantized_sum(*operands[0], *operands[1], *out, dtype, relu)
    sums = (other, 0.04, zero - 2, *out, relu, other_first)
    fused = torch.ops.aten._quantized_conv_sum(*conv, *settings, *sums)
    assert fused.dtype == dtype and len(apart.unique()) > 30
    return fused, apart


@pytest.mark.parametrize("dtype", ROOMS)
@pytest.mark.parametrize("relu", [False, True])
@pytest.mark.parametrize("other_first", [False, True])
def test_bits(dtype, relu, other_first):
    torch.manual_seed(3)
    layers = ((2, 64, 40, 40), 96, (1, 1)), ((1, 17, 9, 11), 37, (3, 3)), ((3, 4, 5, 5), 3, (2, 3))
    for sizes, filters, kernel in layers:
        fused, apart = both_ways(dtype, sizes, filters, kernel, relu, other_first)
        assert torch.equal(fused, apart)


@pytest.mark.parametrize("dtype", ROOMS)
def test_windows(dtype):
    torch.manual_seed(4)
    for window in (((2, 1), (1, 2), (1, 1)), ((1, 1), (2, 2), (2, 2)), ((3, 3), (0, 0), (1, 1))):
        assert torch.equal(*both_ways(dtype, (2, 8, 13, 12), 16, (3, 3), True, False, window))
        assert torch.equal(*both_ways(dtype, (2, 8, 13, 12), 16, (3, 3), True, False, window, groups=2))
        assert torch.equal(*both_ways(dtype, (2, 8, 13, 12), 8, (3, 3), True, False, window, groups=8))
        assert torch.equal(*both_ways(dtype, (2, 8, 13, 12), 16, (3, 3), True, False, window, zeros=3))


def test_lines_of_images():
    """Windows in place, with a margin, of lines that are filled up: all against sums of integers."""
    torch.manual_seed(5)
    for dtype in ROOMS:
        for channels, kernel, stride, padding, dilation in (
            (3, (3, 3), (2, 2), (1, 1), (1, 1)),
            (8, (1, 1), (2, 2), (0, 0), (1, 1)),
            (5, (2, 3), (1, 2), (0, 1), (2, 1)),
            (16, (3, 1), (1, 1), (1, 0), (1, 1)),
            (1, (7, 7), (2, 2), (3, 3), (1, 1)),
        ):
            x, zero = some_bytes(dtype, 2, channels, 15, 13), ROOMS[dtype][0] + 50
            weight = torch.randint(-127, 128, (33, channels, *kernel), dtype=torch.int8)
            filters = weight, torch.ones(33), torch.zeros(33).long()
            settings = (stride, padding, dilation, 1, 1.0, 0, torch.float32, "none", [], "")
            y = torch.ops.onednn.qconv_pointwise(x, 1.0, zero, *filters, None, *settings)
            expected = torch.nn.functional.conv2d(
                x.double() - zero, weight.double(), None, stride, padding, dilation
            )
            assert torch.equal(y.double(), expected)


class Residual(torch.nn.Module):
    """Two convolutions and their sum, with steps around each."""

    def __init__(self, second):
        super().__init__()
        self.second = second
        for name in "ab":
            self.register_buffer(name, torch.randint(-127, 128, (16, 16, 3, 3), dtype=torch.int8))

    def rounded(self, x, scale, zero):
        q = steps.quantize_per_tensor(x, scale, zero, 0, 255, torch.uint8)
        return steps.dequantize_per_tensor(q, scale, zero, 0, 255, torch.uint8)

    def conv(self, x, name):
        weight = steps.dequantize_per_tensor(getattr(self, name), 0.002, 0, -128, 127, torch.int8)
        return self.rounded(torch.nn.functional.conv2d(x, weight, padding=1), 0.05, 128)

    def forward(self, x):
        x = self.rounded(x, 0.02, 128)
        y = self.conv(x, "a")
        return self.rounded(torch.relu(x + y if self.second else y + x), 0.06, 0)


@pytest.mark.parametrize("second", [False, True])
def test_in_files(tmp_path, second):
    torch.manual_seed(6)
    x = torch.randn(1, 16, 12, 12)
    save_file(Residual(second).eval(), tmp_path / "m.rl", (x,))
    model = load_file(tmp_path / "m.rl")
    with torch.profiler.profile() as profile:
        y = model(x)
    names = {event.key.removeprefix("aten::") for event in profile.key_averages()}
    assert "_quantized_conv_sum" in names and not names & {"_quantized_sum", "onednn::qconv_pointwise"}
    assert y.unique().numel() > 20 and y.shape == x.shape
