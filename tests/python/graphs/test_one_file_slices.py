"""Files run layers of large images on a few examples at a time: results stay those of the whole batch."""

import subprocess
import sys

import pytest

import rushlight as torch
from rushlight import _C, nn
from rushlight.export import Dim, load_file, quantize_file, save_file
from rushlight.profiler import ProfilerActivity, profile

F = nn.functional


def saved(model, tmp_path, *inputs, **options):
    save_file(model.eval(), tmp_path / "model.rl", inputs, **options)
    return load_file(tmp_path / "model.rl")


def calls(model, *inputs):
    with profile(activities=[ProfilerActivity.CPU]) as recorded:
        model(*inputs)
    counts = {e.key: e.count for e in recorded.key_averages()}
    return counts.get("aten::convolution", 0) + counts.get("aten::_convolution_epilogue", 0)


class Layers(nn.Module):
    """Convolutions, a pool, joined channels, a residual; then a layer that needs the whole batch."""

    def __init__(self, width=16):
        super().__init__()
        self.first = nn.Conv2d(3, width, 3, padding=1)
        self.apart = nn.Conv2d(width, width, 3, padding=1, groups=width)
        self.last = nn.Conv2d(2 * width, width, 1)
        self.table = nn.Linear(width, 5)

    def forward(self, x):
        y = F.relu(self.first(x))
        z = F.relu6(self.apart(y) + y)
        z = F.max_pool2d(self.last(torch.cat([y, z], 1)), 2)
        return self.table((z - z.mean(0)).mean((2, 3))), z


@pytest.mark.parametrize("batch", [8, 9])
def test_large_images_run_in_turn(tmp_path, batch):
    model, x = Layers(), torch.randn(batch, 3, 128, 128)
    file = saved(model, tmp_path, x)
    for _ in range(3):  # recorded, planned, once more
        torch.testing.assert_close(file(x), model(x))
    assert calls(file, x) == 3 * batch
    assert file(x)[1].is_contiguous()


def test_small_images_run_together(tmp_path):
    model, x = Layers(), torch.randn(8, 3, 16, 16)
    file = saved(model, tmp_path, x)
    torch.testing.assert_close(file(x), model(x))
    assert calls(file, x) == 3


def test_many_channels_of_few_pixels_run_together(tmp_path):
    """Reading such weights for each image costs more than it saves."""
    model = nn.Sequential(*[nn.Conv2d(256, 256, 3, padding=1) for _ in range(2)])
    x = torch.randn(8, 256, 24, 24)
    file = saved(model, tmp_path, x)
    torch.testing.assert_close(file(x), model(x), rtol=1e-4, atol=1e-5)
    assert calls(file, x) == 2


def test_callers_choose_the_batch(tmp_path):
    model = Layers()
    file = saved(model, tmp_path, torch.randn(4, 3, 128, 128), dynamic_shapes=({0: Dim("N", max=64)},))
    for batch in (1, 8, 3, 8):
        x = torch.randn(batch, 3, 128, 128)
        torch.testing.assert_close(file(x), model(x))
        assert calls(file, x) == 3 * batch


class Shared(nn.Module):
    """An operand for all examples that looks like one for each, and a batch that is broadcast."""

    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Conv2d(8, 8, 3, padding=1), nn.Conv2d(8, 8, 3, padding=1)
        self.scale = nn.Parameter(torch.randn(8, 1, 1))
        self.map = nn.Parameter(torch.randn(1, 8, 256, 256))

    def forward(self, x, filters):
        y = F.relu(self.a(x)) * self.scale + self.map
        return F.relu(self.b(y)), F.conv2d(y, filters, padding=1)


def test_operands_for_all_stay_whole(tmp_path):
    model, x, filters = Shared(), torch.randn(8, 8, 256, 256), torch.randn(8, 8, 3, 3)
    file = saved(model, tmp_path, x, filters)
    for _ in range(2):
        torch.testing.assert_close(file(x, filters), model(x, filters), rtol=1e-4, atol=1e-4)
    assert calls(file, x, filters) == 8 + 8 + 1  # filters that callers give are not sliced


def test_channels_last_stays_so(tmp_path):
    model, x = Layers(), torch.randn(4, 3, 128, 128).to(memory_format=torch.channels_last)
    file = saved(model, tmp_path, x)
    torch.testing.assert_close(file(x), model(x))
    assert file(x)[1].is_contiguous(memory_format=torch.channels_last)


def test_memory_is_that_of_a_slice():
    graph = """rushlight graph 1
graph(%x: float32[16, 8, 256, 256]) {
  %w: float32[8, 8, 3, 3] = constant("w")
  %a: float32[16, 8, 256, 256] = convolution(%x, %w, None, [1, 1], [1, 1], [1, 1], False, [0, 0], 1)
  %b: float32[16, 8, 256, 256] = relu(%a)
  %c: float32[16, 8, 256, 256] = convolution(%b, %w, None, [1, 1], [1, 1], [1, 1], False, [0, 0], 1)
  %d: float32[16, 8, 128, 128], _ = nn::max_pool2d_with_indices(%c, [2, 2])
  return (%d)
}
"""
    x, w = torch.randn(16, 8, 256, 256), torch.randn(8, 8, 3, 3) / 8
    executor = _C._JitExecutor(graph, {"w": w})
    expected = F.max_pool2d(F.conv2d(F.relu(F.conv2d(x, w, padding=1)), w, padding=1), 2)
    for _ in range(3):
        torch.testing.assert_close(executor.run([x])[0], expected)
    assert executor.statistics()["arena_bytes"] < x.nbytes + expected.nbytes  # images in a piece took more


def test_a_weight_is_in_memory_once_while_it_is_packed(tmp_path):
    save_file(nn.Linear(8192, 4096).eval(), tmp_path / "model.rl", (torch.randn(8, 8192),))
    program = f"""
import resource, rushlight
peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
x = rushlight.randn(8, 8192)
model, before = rushlight.export.load_file({str(tmp_path / "model.rl")!r}), peak()
for _ in range(3): model(x)
print(peak() - before)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 1.5 * 128  # MB


class Integers(nn.Module):
    """Convolutions and a sum, whose integers are larger than the caches."""

    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(
            nn.Conv2d(8, 64, 3, padding=1) if i == 0 else nn.Conv2d(64, 64, 1) for i in range(3)
        )

    def forward(self, x):
        y = F.relu(self.layers[0](x))
        z = F.relu(self.layers[1](y))
        return F.max_pool2d(self.layers[2](z) + y, 2)


def test_layers_of_integers_run_in_turn(tmp_path):
    x = torch.randn(8, 8, 96, 96)
    save_file(Integers().eval(), tmp_path / "model.rl", (x,), dynamic_shapes=({0: Dim("N", max=9)},))
    quantize_file(tmp_path / "model.rl", tmp_path / "bytes.rl", "int8", x[:2].numpy())
    file = load_file(tmp_path / "bytes.rl")
    alone = torch.cat([file(image) for image in x.split(1)])
    for _ in range(3):
        assert torch.equal(file(x), alone)
    with profile(activities=[ProfilerActivity.CPU]) as recorded:
        file(x)
    counts = {e.key: e.count for e in recorded.key_averages()}
    assert counts["aten::onednn_qconv_pointwise"] + counts.get("aten::_quantized_conv_sum", 0) > 3, counts
