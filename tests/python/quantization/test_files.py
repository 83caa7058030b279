"""Quantised models in one file: the layers they become, and results equal to the models'."""

import pathlib
import subprocess

import numpy as np
import pytest

import rushlight as torch
from rushlight import nn
from rushlight.ao import quantization
from rushlight.export import Dim, load_file, save_file

PACKAGE = pathlib.Path(torch.__file__).parent
RUNNERS = [
    pytest.param(
        PACKAGE / "bin" / name,
        marks=pytest.mark.skipif(not (PACKAGE / "bin" / name).exists(), reason=f"{name} is not built here"),
        id=name,
    )
    for name in ("rushlight-run", "rushlight-run-small")
]
steps = torch.ops.quantized_decomposed


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(0)


class Small(nn.Module):
    def __init__(self):
        super().__init__()
        self.quant, self.dequant = quantization.QuantStub(), quantization.DeQuantStub()
        self.conv, self.bn, self.relu = nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU()
        self.depth, self.pool = nn.Conv2d(8, 8, 3, stride=2, groups=8), nn.MaxPool2d(2)
        self.first, self.relus, self.last = (
            nn.Linear(8, 16),
            nn.ModuleList([nn.ReLU(), nn.ReLU()]),
            nn.Linear(16, 5),
        )

    def forward(self, x):
        x = self.relu(self.bn(self.conv(self.quant(x))))
        x = self.pool(self.relus[0](self.depth(x)))
        x = self.relus[1](self.first(x.flatten(2).transpose(1, 2)))
        return self.dequant(self.last(x))


def static(samples, backend="x86"):
    model = quantization.fuse_modules(Small().eval(), [["conv", "bn", "relu"], ["first", "relus.1"]])
    model.qconfig = quantization.get_default_qconfig(backend)
    prepared = quantization.prepare(model)
    prepared(samples)
    return quantization.convert(prepared)


@pytest.mark.filterwarnings("ignore:Please use quant_min")
@pytest.mark.parametrize("backend", ["x86", "qnnpack"])
@pytest.mark.parametrize("optimize", [False, True])
def test_static_layers(tmp_path, backend, optimize):
    x = torch.randn(4, 3, 12, 12)
    model, path = static(x, backend), tmp_path / "m.rl"
    save_file(model, path, (x,), dynamic_shapes=({0: Dim("N", max=9)},), optimize=optimize)
    loaded = load_file(path)
    if optimize:
        text = str(loaded)
        assert text.count("onednn::qconv_pointwise(") == 2 and text.count("onednn::qlinear_pointwise(") == 2
        assert "quint8" not in text and "int_repr" not in text and "max_pool2d" in text
    for n in (4, 1):
        with torch.no_grad():
            assert torch.equal(loaded(x[:n]), model(x[:n]))


@pytest.mark.filterwarnings("ignore:Please use quant_min")
@pytest.mark.parametrize("runner", RUNNERS)
def test_static_layers_in_programs(tmp_path, runner):
    x = torch.randn(4, 3, 12, 12)
    model, path = static(x), tmp_path / "m.rl"
    save_file(model, path, (x,))
    assert torch.equal(run(runner, path, x, tmp_path), model(x))


def run(runner, path, x, folder):
    np.save(folder / "x.npy", x.numpy())
    words = [runner, path, "--input", folder / "x.npy", "--output", folder / "y.npy"]
    done = subprocess.run(list(map(str, words)), capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return torch.from_numpy(np.load(folder / "y.npy"))


@pytest.mark.parametrize("runner", RUNNERS)
def test_dynamic_layers(tmp_path, runner):
    model = nn.Sequential(nn.Linear(256, 192), nn.ReLU(), nn.Linear(192, 10)).eval()
    quantized, x = quantization.quantize_dynamic(model), torch.randn(3, 256)
    for name, each in (("floats", model), ("bytes", quantized)):
        save_file(each, tmp_path / f"{name}.rl", (x,))
    assert torch.equal(load_file(tmp_path / "bytes.rl")(x), quantized(x))
    assert torch.equal(run(runner, tmp_path / "bytes.rl", x, tmp_path), quantized(x))
    sizes = [(tmp_path / f"{name}.rl").stat().st_size for name in ("floats", "bytes")]
    assert sizes[1] <= 0.27 * sizes[0]


# --- graphs with steps between floats and integers


class Steps(nn.Module):
    """What PT2E makes of a network, by hand."""

    def __init__(self, dtype=torch.uint8, most=None):
        super().__init__()
        low, high = (0, 255) if dtype == torch.uint8 else (-128, 127)
        self.range = low, most or high, dtype
        self.zero = low
        for name, shape in {"a": (8, 3, 3, 3), "b": (8, 1, 3, 3), "c": (8, 8, 1, 1), "d": (6, 8)}.items():
            self.register_buffer(name, torch.randint(-127, 128, shape).to(torch.int8))
            self.register_buffer(f"{name}_scales", torch.rand(shape[0]) * 0.01 + 0.001)
            self.register_buffer(f"{name}_zeros", torch.zeros(shape[0], dtype=torch.int64))
        self.bias = nn.Parameter(torch.randn(6))

    def rounded(self, x, scale, zero):
        q = steps.quantize_per_tensor(x, scale, zero, *self.range)
        return steps.dequantize_per_tensor(q, scale, zero, *self.range)

    def weight(self, name):
        settings = getattr(self, f"{name}_scales"), getattr(self, f"{name}_zeros")
        return steps.dequantize_per_channel(getattr(self, name), *settings, 0, -128, 127, torch.int8)

    def forward(self, x):
        f, zero = nn.functional, self.zero
        x = self.rounded(x, 0.03, zero + 120)
        x = self.rounded(f.relu(f.conv2d(x, self.weight("a"), padding=1)), 0.01, zero)
        x = self.rounded(f.max_pool2d(x, 2), 0.01, zero)
        y = self.rounded(f.hardtanh(f.conv2d(x, self.weight("b"), padding=1, groups=8), 0, 6), 6 / 255, zero)
        y = self.rounded(f.conv2d(y, self.weight("c")), 0.02, zero + 100)
        x = self.rounded(f.relu(x + y), 0.02, zero)
        x = self.rounded(x.mean((2, 3)), 0.01, zero)
        return f.linear(x, self.weight("d"), self.bias)


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int8])
def test_steps_become_layers(tmp_path, dtype):
    model, x = Steps(dtype).eval(), torch.randn(2, 3, 8, 8)
    save_file(model, tmp_path / "m.rl", (x,))
    text = str(load_file(tmp_path / "m.rl"))
    assert text.count("onednn::qconv_pointwise(") == 3 and text.count("onednn::qlinear_pointwise(") == 1
    assert text.count("_quantized_sum(") == 1 and "relu(" not in text and "hardtanh(" not in text
    assert "dequantize_per_channel" not in text
    with torch.no_grad():
        expected = model(x)
    # One step of the last activation, by which sums in another order may be off.
    step = 0.01 * (model.d.abs() * model.d_scales[:, None]).float().amax().item()
    assert (load_file(tmp_path / "m.rl")(x) - expected).abs().max() <= 4 * step
    save_file(model, tmp_path / "plain.rl", (x,), optimize=False)
    torch.testing.assert_close(load_file(tmp_path / "plain.rl")(x), expected, rtol=1e-5, atol=2 * step)


@pytest.mark.parametrize("runner", RUNNERS)
def test_steps_in_programs(tmp_path, runner):
    model, x = Steps().eval(), torch.randn(2, 3, 8, 8)
    save_file(model, tmp_path / "m.rl", (x,))
    assert torch.equal(run(runner, tmp_path / "m.rl", x, tmp_path), load_file(tmp_path / "m.rl")(x))


def test_part_of_the_range_is_kept(tmp_path):
    """Layers of integers use all of a byte: with less, the steps stay."""
    model, x = Steps(most=127).eval(), torch.randn(2, 3, 8, 8)
    save_file(model, tmp_path / "m.rl", (x,))
    text = str(load_file(tmp_path / "m.rl"))
    assert 'uint8, "relu"' not in text and "quantize_per_tensor(" in text
    with torch.no_grad():
        torch.testing.assert_close(load_file(tmp_path / "m.rl")(x), model(x), rtol=1e-4, atol=1e-1)


def test_what_is_read_twice_is_kept(tmp_path):
    class Twice(Steps):
        def forward(self, x):
            x = self.rounded(x, 0.03, 120)
            y = nn.functional.conv2d(x, self.weight("a"))
            return y, self.rounded(nn.functional.relu(y), 0.02, 0)

    model, x = Twice().eval(), torch.randn(2, 3, 8, 8)
    save_file(model, tmp_path / "m.rl", (x,))
    with torch.no_grad():
        expected = model(x)
    for found, value in zip(load_file(tmp_path / "m.rl")(x), expected):
        assert (found - value).abs().max() <= 0.0201


# --- weights alone


@pytest.mark.parametrize("bits", [8, 4])
@pytest.mark.parametrize("shape", [(5, 64), (48, 96), (3, 40), (7, 34)])
def test_weight_only_layers(bits, shape):
    from rushlight.export._small_weights import of_eight_bits, of_four_bits

    n, k = shape
    weight, bias = torch.randn(n, k), torch.randn(n)
    group = 32 if bits == 4 else 0
    integers, scales = of_eight_bits(weight) if bits == 8 else of_four_bits(weight, group)
    table = torch.ops.aten._weight_only_embedding(integers, scales, torch.arange(n), group)
    error = (table - weight).abs().max() / weight.abs().max()
    assert error < (0.005 if bits == 8 else 0.15)
    for rows in (1, 3, 70):
        x = torch.randn(2, rows, k)
        found = torch.ops.aten._weight_only_linear(x, integers, scales, bias, group)
        torch.testing.assert_close(found, nn.functional.linear(x, table, bias), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("group", [32, 64, 96])
@pytest.mark.parametrize("shape", [(9, 768), (6, 320), (5, 96), (3, 32), (4, 200)])
def test_a_token_by_weights_of_four_bits(shape, group):
    """One row has a loop of its own where groups are of whole blocks: numbers are centred by the sum of x."""
    from rushlight.export._small_weights import of_four_bits

    n, k = shape
    integers, scales = of_four_bits(torch.randn(n, k), group)
    table = torch.ops.aten._weight_only_embedding(integers, scales, torch.arange(n), group)
    for x in (torch.randn(1, k), torch.randn(k) + 3, torch.ones(1, k)):
        found = torch.ops.aten._weight_only_linear(x, integers, scales, None, group)
        exact = nn.functional.linear(x.double(), table.double())
        size = nn.functional.linear(x.double().abs(), table.double().abs())
        assert ((found - exact).abs() <= 4e-6 * size).all()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"weight": torch.zeros(4, 8)}, "contiguous matrix of int8"),
        ({"scales": torch.ones(3)}, "scales must be"),
        ({"scales": torch.ones(4, dtype=torch.float64)}, "contiguous and float32"),
        ({"input": torch.zeros(2, 7)}, "last dimension must be 8"),
        ({"bias": torch.zeros(3)}, "bias must be 4 numbers"),
        ({"group": 5}, "must be a contiguous matrix of uint8"),
    ],
)
def test_bad_weights(change, words):
    given = {
        "input": torch.zeros(2, 8),
        "weight": torch.zeros(4, 8, dtype=torch.int8),
        "scales": torch.ones(4),
        "bias": None,
        "group": 0,
    }
    with pytest.raises(RuntimeError, match=words):
        torch.ops.aten._weight_only_linear(*{**given, **change}.values())


def test_rows_that_are_not_there():
    table = torch.zeros(4, 8, dtype=torch.int8), torch.ones(4)
    for bad in (-1, 4):
        with pytest.raises(IndexError, match=f"{bad} is not a row of 4"):
            torch.ops.aten._weight_only_embedding(*table, torch.tensor([bad]))


# --- weights that stand for integers, as torchao makes them


class Weight(torch.Tensor):
    """The parts of torchao's weights that files are written from."""

    @staticmethod
    def __new__(cls, qdata, scale, block_size, **more):
        return torch.Tensor._make_wrapper_subclass(cls, qdata.shape, dtype=torch.float32)

    def __init__(self, qdata, scale, block_size, **more):
        self.__dict__.update(qdata=qdata, scale=scale, block_size=block_size, **more)

    def __tensor_flatten__(self):
        return ["qdata", "scale"], None

    @classmethod
    def __torch_dispatch__(cls, function, types, args=(), kwargs=None):
        if function is not torch.ops.aten.detach.default:
            raise NotImplementedError(function)
        return Weight(**vars(args[0]))


def with_weight(weight):
    model = nn.Sequential(nn.Linear(64, 48)).eval()
    model[0].weight = nn.Parameter(weight, requires_grad=False)
    return model


def test_weights_of_torchao(tmp_path):
    x, eight = torch.randn(3, 64), torch.randint(-127, 128, (48, 64)).to(torch.int8)
    four = eight >> 4
    rows, groups = torch.rand(48, 1) + 0.1, torch.rand(48, 2) + 0.1
    for weight, numbers in (
        (Weight(eight, rows, (1, 64), act_quant_kwargs=None), eight * rows),
        (Weight(four, groups, (1, 32), target_dtype=torch.int4), four * groups.repeat_interleave(32, 1)),
    ):
        model = with_weight(weight)
        save_file(model, tmp_path / "m.rl", (x,))
        assert "_weight_only_linear(" in str(load_file(tmp_path / "m.rl"))
        expected = nn.functional.linear(x, numbers, model[0].bias)
        torch.testing.assert_close(load_file(tmp_path / "m.rl")(x), expected, rtol=1e-4, atol=1e-3)


def test_weights_that_files_cannot_hold(tmp_path):
    from rushlight.export import UnsupportedError

    eight, rows = torch.ones(48, 64, dtype=torch.int8), torch.ones(48, 1)
    for weight in (
        Weight(eight, rows, (1, 64), act_quant_kwargs="dynamic"),
        Weight(eight, rows, (1, 64), zero_point=torch.ones(48, 1)),
        Weight(eight, torch.ones(48, 4), (1, 16)),
        Weight(eight.float(), rows, (1, 64)),
    ):
        with pytest.raises(UnsupportedError, match=r"'0.weight' is a Weight that files can't hold"):
            save_file(with_weight(weight), tmp_path / "m.rl", (torch.randn(3, 64),))


def test_state_in_safetensors(tmp_path):
    from rushlight.safetensors import load_file as load_tensors
    from rushlight.safetensors import save_file as save_tensors

    model, x = Steps().eval(), torch.randn(2, 3, 8, 8)
    save_tensors(model.state_dict(), tmp_path / "m.safetensors")
    state, other = load_tensors(tmp_path / "m.safetensors"), Steps().eval()
    assert state["a"].dtype == torch.int8
    other.load_state_dict(state)
    with torch.no_grad():
        assert torch.equal(other(x), model(x))


@pytest.mark.filterwarnings("ignore:Please use quant_min")
def test_static_layers_by_the_interface_of_c(tmp_path):
    import ctypes

    c = ctypes.CDLL(PACKAGE / "lib" / "librushlight.so")
    x = torch.randn(4, 3, 12, 12)
    model, path = static(x), tmp_path / "m.rl"
    save_file(model, path, (x,))
    handle, given, result, data = (ctypes.c_void_p() for _ in range(4))
    values, sizes = x.numpy(), (ctypes.c_int64 * 4)(*x.shape)
    c.rl_last_error.restype = ctypes.c_char_p
    for status in (
        c.rl_model_load(str(path).encode(), ctypes.byref(handle)),
        c.rl_tensor_from_memory(
            values.ctypes.data_as(ctypes.c_void_p), sizes, None, 4, 11, None, None, ctypes.byref(given)
        ),
        c.rl_model_run(handle, ctypes.byref(given), 1, ctypes.byref(result), 1),
        c.rl_tensor_data(result, ctypes.byref(data)),
    ):
        assert status == 0, c.rl_last_error()
    wanted = model(x).numpy()
    found = np.ctypeslib.as_array(ctypes.cast(data, ctypes.POINTER(ctypes.c_float)), wanted.shape)
    assert np.array_equal(found, wanted)
    c.rl_tensor_release(result)
    c.rl_tensor_release(given)
    c.rl_model_release(handle)
