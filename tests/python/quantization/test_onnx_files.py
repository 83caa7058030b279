"""Quantised models as ONNX files that onnxruntime runs with equal results, and such files read."""

import numpy as np
import pytest
from test_command import Net
from test_files import Steps, static

import rushlight as torch
from rushlight import nn
from rushlight.ao import quantization
from rushlight.ao.quantization.quantize_fx import convert_fx, prepare_fx
from rushlight.export import load_file, save_file
from rushlight.export._fixed_numbers import with_fixed_numbers

onnx = pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")
import rushlight.onnx  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore:Please use quant_min")


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(0)


def kinds(program):
    return [node.op_type for node in program.model_proto.graph.node]


def read_again(path, x, wanted, step):
    """The file as a module, and that as a file of ours: as onnxruntime computes it."""
    model = torch.onnx.load(path)
    with torch.no_grad():
        assert (model(x) - wanted).abs().max() <= step
    save_file(model, path.with_suffix(".rl"), (x,))
    loaded = load_file(path.with_suffix(".rl"))
    assert (loaded(x) - wanted).abs().max() <= step
    return str(loaded)


@pytest.mark.parametrize("backend", ["x86", "qnnpack"])
def test_static_layers(tmp_path, backend):
    x = torch.randn(4, 3, 12, 12)
    model = static(x, backend)
    program = torch.onnx.export(model, (x,), tmp_path / "m.onnx")
    found = kinds(program)
    assert found.count("Conv") == 2 and found.count("MatMul") == 2 and "Cast" not in found
    assert found.count("QuantizeLinear") >= 5 and found.count("DequantizeLinear") >= 8
    step = 1.001 * model.last.scale
    result = program(x)[0]
    assert (result - model(x)).abs().max() <= step
    text = read_again(tmp_path / "m.onnx", x, result, step)
    assert text.count("onednn::qconv_pointwise(") == 2 and text.count("onednn::qlinear_pointwise(") == 2


class _Sums(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Conv2d(2, 4, 3, padding=1), nn.Conv2d(4, 4, 1)
        self.pool, self.head = nn.MaxPool2d(2), nn.Linear(72, 3)

    def forward(self, x):
        x = torch.relu(self.first(x))
        x = torch.relu(x + self.second(x)) * self.second(x)
        return self.head(self.pool(torch.cat([x, x], 1)).flatten(1))


def test_traced_models_of_integers(tmp_path):
    """Their scales are in buffers, from which each step reads them: in files they are numbers."""
    model, x = _Sums().eval(), torch.randn(2, 2, 6, 6)
    prepared = prepare_fx(model, quantization.get_default_qconfig_mapping("x86"), (x,))
    prepared(x)
    converted = convert_fx(prepared)
    assert "quantized.add_relu" in converted.code and "quantized.mul" in converted.code
    wanted = converted(x)
    save_file(converted, tmp_path / "model.rl", (x,))
    torch.testing.assert_close(load_file(tmp_path / "model.rl")(x), wanted, rtol=0, atol=0)
    program = rushlight.onnx.export(converted, (x,), tmp_path / "model.onnx")
    assert {"QuantizeLinear", "Add", "Mul", "Concat"} <= set(kinds(program))
    read_again(tmp_path / "model.onnx", x, wanted, converted.head.scale)


def test_numbers_that_a_model_changes_are_read():
    class Counted(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("step", torch.tensor(0.5))
            self.register_buffer("zero", torch.tensor(3))

        def forward(self, x):
            y = torch.quantize_per_tensor(x, self.step, self.zero, torch.quint8).dequantize()
            self.step.mul_(2)
            return y

    program = torch.export.export(Counted(), (torch.ones(3),))
    reads = [
        sum("_local_scalar_dense" in str(node.target) for node in graph.nodes)
        for graph in (program.graph, with_fixed_numbers(program).graph)
    ]
    assert reads == [2, 1]  # the zero point is fixed


def test_dynamic_layers(tmp_path):
    model = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10)).eval()
    model, x = quantization.quantize_dynamic(model), torch.randn(3, 64)
    program = torch.onnx.export(model, (x,), tmp_path / "m.onnx", verify=True)
    assert kinds(program).count("QuantizeLinear") == 2
    read_again(tmp_path / "m.onnx", x, program(x)[0], 1e-3)


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int8])
def test_steps(tmp_path, dtype):
    model, x = Steps(dtype).eval(), torch.randn(2, 3, 8, 8)
    program = torch.onnx.export(model, (x,), tmp_path / "m.onnx")
    step = 4 * 0.01 * (model.d.abs() * model.d_scales[:, None]).float().amax().item()
    with torch.no_grad():
        assert (program(x)[0] - model(x)).abs().max() <= step
    text = read_again(tmp_path / "m.onnx", x, program(x)[0], step)
    assert text.count("onednn::qconv_pointwise(") == 3 and text.count("onednn::qlinear_pointwise(") == 1


def test_part_of_the_range():
    model, x = Steps(most=127).eval(), torch.randn(2, 3, 8, 8)
    program = torch.onnx.export(model, (x,))
    assert kinds(program).count("Min") >= 5
    with torch.no_grad():
        torch.testing.assert_close(program(x)[0], model(x), rtol=1e-4, atol=0.1)


def test_numbers_between_integers():
    """Operators that compute with the numbers: sums, means, activations that layers do not hold."""

    class Model(nn.Module):
        def forward(self, x):
            q = torch.quantize_per_tensor(x, 0.05, 100, torch.quint8)
            y = torch.sigmoid(torch.relu(q).dequantize())
            return y, torch.relu(q).transpose(1, 2).int_repr()

    x = torch.randn(2, 3, 4)
    program = torch.onnx.export(Model(), (x,))
    for found, wanted in zip(program(x), Model()(x)):
        torch.testing.assert_close(found, wanted)


class Reader:
    def __init__(self, name, samples):
        self.samples = iter([{name: s} for s in samples])

    def get_next(self):
        return next(self.samples, None)


@pytest.mark.parametrize("activations", ["QUInt8", "QInt8"])
@pytest.mark.parametrize("per_channel", [False, True])
@pytest.mark.parametrize("form", ["QDQ", "QOperator"])
def test_files_of_onnxruntime(tmp_path, activations, per_channel, form):
    from onnxruntime.quantization import QuantFormat, QuantType, quantize_static

    model, x = Net().eval(), torch.randn(2, 3, 8, 8)
    torch.onnx.export(model, (x,), tmp_path / "floats.onnx")
    quantize_static(
        str(tmp_path / "floats.onnx"),
        str(tmp_path / "m.onnx"),
        Reader("x", [torch.randn(2, 3, 8, 8).numpy() for _ in range(3)]),
        quant_format=QuantFormat[form],
        per_channel=per_channel,
        activation_type=QuantType[activations],
        weight_type=QuantType.QInt8,
    )
    session = onnxruntime.InferenceSession(str(tmp_path / "m.onnx"))
    wanted = torch.from_numpy(session.run(None, {"x": x.numpy()})[0])
    scales = [
        onnx.numpy_helper.to_array(t).max()
        for t in onnx.load(str(tmp_path / "m.onnx")).graph.initializer
        if t.name.endswith("_scale") and not t.dims
    ]
    text = read_again(tmp_path / "m.onnx", x, wanted, 1.001 * float(max(scales)))
    assert text.count("onednn::qconv_pointwise(") == 2 and text.count("onednn::qlinear_pointwise(") == 2


def test_models_of_floats_are_read(tmp_path):
    model, x = Net().eval(), torch.randn(2, 3, 8, 8)
    torch.onnx.export(model, (x,), tmp_path / "m.onnx")
    loaded = torch.onnx.load(tmp_path / "m.onnx")
    with torch.no_grad():
        torch.testing.assert_close(loaded(x), model(x), rtol=1e-4, atol=1e-5)
    assert loaded.inputs == ["x"] and loaded.outputs == ["output"]
    save_file(loaded, tmp_path / "m.rl", (x,))
    assert list(load_file(tmp_path / "m.rl").inputs) == ["x"]
    torch.save(loaded, tmp_path / "m.pt")
    again = torch.load(tmp_path / "m.pt", weights_only=False)
    with torch.no_grad():
        assert torch.equal(again(x), loaded(x))


def made(nodes, constants, inputs=("x",)):
    h = onnx.helper
    floats = [h.make_tensor_value_info(name, 1, None) for name in (*inputs, "y")]
    graph = h.make_graph(
        nodes,
        "g",
        floats[:-1],
        floats[-1:],
        [onnx.numpy_helper.from_array(a, n) for n, a in constants.items()],
    )
    return h.make_model(graph, opset_imports=[h.make_opsetid("", 18)])


@pytest.mark.parametrize("scale", [0.0, -1.0, float("nan"), float("inf")])
@pytest.mark.parametrize("kind", ["QuantizeLinear", "DequantizeLinear"])
def test_bad_scales(scale, kind):
    node = onnx.helper.make_node(kind, ["x", "s", "z"], ["y"])
    constants = {"s": np.array(scale, "f4"), "z": np.array(3, "u1")}
    model = torch.onnx.load(made([node], constants))
    with pytest.raises(ValueError, match="has a scale that is zero, negative, NaN or infinite"):
        model(torch.zeros(3) if kind == "QuantizeLinear" else torch.zeros(3, dtype=torch.uint8))


def test_what_is_not_read(tmp_path):
    load = torch.onnx.load
    node = onnx.helper.make_node("Einsum", ["x"], ["y"], equation="ii")
    with pytest.raises(torch.onnx.UnsupportedOnnxError, match="no reader for the operator Einsum"):
        load(made([node], {}))
    node = onnx.helper.make_node("Relu", ["z"], ["y"])
    with pytest.raises(torch.onnx.UnsupportedOnnxError, match="'z' is read before it is made"):
        load(made([node], {}))(torch.zeros(2))
    with pytest.raises(TypeError, match=r"takes 1 inputs \(x\)"):
        load(made([onnx.helper.make_node("Relu", ["x"], ["y"])], {}))()
    (tmp_path / "text.onnx").write_bytes(b"no such file")
    with pytest.raises(ValueError, match=r"is no ONNX (file|model)"):
        load(tmp_path / "text.onnx")
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "none.onnx")
