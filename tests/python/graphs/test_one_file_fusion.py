"""Files fuse what follows convolutions, and lay filters out once: results stay those of the modules."""

import pytest

import rushlight as torch
from rushlight import nn
from rushlight.export import load_file, save_file
from rushlight.profiler import ProfilerActivity, profile

F = nn.functional


def saved(model, tmp_path, *inputs):
    save_file(model.eval(), tmp_path / "model.rl", inputs)
    return load_file(tmp_path / "model.rl")


def called(model, *inputs):
    with profile(activities=[ProfilerActivity.CPU]) as recorded:
        model(*inputs)
    return {e.key: e.count for e in recorded.key_averages()}


class Residual(nn.Module):
    """A sum of two convolutions, one of which is the other's residual, and one used twice."""

    def __init__(self):
        super().__init__()
        self.a, self.b, self.c = (nn.Conv2d(16, 16, 1) for _ in range(3))

    def forward(self, x):
        y = F.relu(self.a(x) + self.b(x))
        z = self.c(y)
        return F.hardtanh(z + x, -0.5, 0.25), z


def test_sums_and_bounds_join_convolutions(tmp_path):
    model, x = Residual(), torch.randn(2, 16, 24, 23)
    file = saved(model, tmp_path, x)
    torch.testing.assert_close(file(x), model(x))
    names = called(file, x)
    assert names["aten::_convolution_epilogue"] == 1  # z is an output, so that nothing joins it
    assert names["aten::convolution"] == 2 and names.get("aten::relu", 0) + names.get("aten::relu_", 0) == 0


class Pools(nn.Module):
    def forward(self, x):
        flat = F.max_pool1d(x.flatten(2), 4)
        return F.max_pool2d(x, 3, 2, 1), F.max_pool2d(x, 2, return_indices=True), flat


def test_positions_that_nobody_takes_are_left_out(tmp_path):
    x = torch.randn(3, 16, 12, 11).to(memory_format=torch.channels_last)
    file = saved(Pools(), tmp_path, x)
    first, (second, places), third = Pools()(x)
    for result, expected in zip(file(x), (first, second, places, third), strict=True):
        torch.testing.assert_close(result, expected)
    names = called(file, x)
    assert (
        names["aten::max_pool2d"] == names["aten::max_pool2d_with_indices"] == names["aten::max_pool1d"] == 1
    )


class Scaled(nn.Module):
    """What looks like a residual, but is none."""

    def __init__(self):
        super().__init__()
        self.a = nn.Conv2d(8, 8, 1)

    def forward(self, x, row):
        y = self.a(x)
        return torch.add(self.a(x), x, alpha=2), y + y, self.a(x) + row, torch.relu(y)


def test_other_sums_stay(tmp_path):
    model, x, row = Scaled(), torch.randn(2, 8, 6, 6), torch.randn(6)
    file = saved(model, tmp_path, x, row)
    torch.testing.assert_close(file(x, row), model(x, row))


def test_nan_passes_bounds(tmp_path):
    model, x = nn.Sequential(nn.Conv2d(16, 32, 1), nn.ReLU6()), torch.randn(1, 16, 12, 12)
    x[0, 3, 5, 5] = float("nan")
    result = saved(model, tmp_path, x)(x)
    assert result[0, :, 5, 5].isnan().all() and result.isnan().sum() == 32


# in, out, kernel, stride, padding, dilation, groups, size
SHAPES = [
    (16, 24, 1, 1, 0, 1, 1, (14, 13)),
    (24, 50, 1, 2, 0, 1, 1, (15, 14)),
    (3, 32, 3, 2, 1, 1, 1, (33, 30)),
    (3, 20, 7, 2, 3, 1, 1, (40, 37)),
    (3, 20, 7, 2, 0, 1, 1, (40, 37)),
    (3, 40, 2, 10, 3, 1, 1, (60, 1)),
    (32, 48, 3, 2, 1, 1, 1, (15, 16)),
    (20, 17, (3, 5), (1, 2), (2, 1), 2, 1, (19, 21)),
    (64, 33, 5, 3, 4, 1, 1, (12, 18)),
    (32, 32, 3, 1, 1, 1, 32, (20, 19)),
    (48, 48, 3, 2, 1, 1, 48, (21, 20)),
    (144, 144, 5, 1, 2, 1, 144, (13, 11)),
    (64, 64, (3, 2), (2, 1), (4, 0), (1, 3), 64, (14, 15)),
    (32, 32, 3, 1, 5, 2, 32, (3, 2)),
    (24, 24, 3, 1, 1, 1, 24, (9, 9)),
]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("after", ["nothing", "bounds", "sum", "both"])
def test_packed_convolutions(tmp_path, shape, bias, after):
    inputs, outputs, kernel, stride, padding, dilation, groups, size = shape
    first = nn.Conv2d(inputs, inputs, 1)  # makes an image whose channels come last
    conv = nn.Conv2d(inputs, outputs, kernel, stride, padding, dilation, groups, bias)

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.conv = first, conv

        def forward(self, x, other):
            y = self.conv(self.first(x))
            y = y + other if after in ("sum", "both") else y
            return F.relu6(y) if after in ("bounds", "both") else y

    x = torch.randn(2, inputs, *size)
    with torch.no_grad():
        other = torch.randn(conv(x).shape)
        expected = Model().double()(x.double(), other.double()).float()
        first.float(), conv.float()
    result = saved(Model(), tmp_path, x, other)(x, other)
    torch.testing.assert_close(result, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("groups", [1, 32])
def test_padding_meets_no_infinities(tmp_path, groups):
    model = nn.Sequential(nn.Conv2d(32, 32, 1), nn.Conv2d(32, 32, 3, 2, 1, groups=groups))
    with torch.no_grad():
        model[1].weight[5, 0, 0, 0] = float("inf")
    x = torch.rand(1, 32, 8, 8)
    torch.testing.assert_close(saved(model, tmp_path, x)(x), model(x))


def test_dynamic_sizes(tmp_path):
    from rushlight.export import Dim

    model = nn.Sequential(nn.Conv2d(3, 16, 3, padding=1), nn.ReLU(), nn.Conv2d(16, 16, 3, 2, 1, groups=16))
    save_file(
        model.eval(), tmp_path / "m.rl", (torch.randn(2, 3, 16, 16),), dynamic_shapes=({0: Dim("N", max=9)},)
    )
    file = load_file(tmp_path / "m.rl")
    for n in (1, 7, 3):
        x = torch.randn(n, 3, 16, 16)
        torch.testing.assert_close(file(x), model(x), rtol=1e-4, atol=1e-5)


def test_threads_do_not_change_results(tmp_path):
    model = nn.Sequential(nn.Conv2d(3, 32, 3, 2, 1), nn.ReLU6(), nn.Conv2d(32, 64, 1), nn.Conv2d(64, 32, 1))
    x = torch.randn(2, 3, 64, 64)
    file, before = saved(model, tmp_path, x), torch.get_num_threads()
    try:
        results = []
        for threads in (1, 2, 3):
            torch.set_num_threads(threads)
            results.append(file(x))
    finally:
        torch.set_num_threads(before)
    assert all(torch.equal(r, results[0]) for r in results)
