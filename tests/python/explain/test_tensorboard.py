"""Event files, read back with TensorBoard's own reader and compared with those that PyTorch writes."""

import importlib
import io

import pytest

import rushlight
from rushlight._command.names import is_aliased

pytest.importorskip("tensorboard")
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator  # noqa: E402

from rushlight.utils.tensorboard import SummaryWriter  # noqa: E402


def read(folder):
    accumulator = EventAccumulator(str(folder), size_guidance={"tensors": 0, "images": 0, "histograms": 0})
    return accumulator.Reload()


def both_writers(tmp_path):
    pytest.importorskip("torch")
    from torch.utils.tensorboard import SummaryWriter as Oracle

    return [
        (SummaryWriter(tmp_path / "ours"), rushlight),
        (Oracle(tmp_path / "theirs"), pytest.importorskip("torch")),
    ]


def test_numbers_and_text(tmp_path):
    with SummaryWriter(tmp_path) as writer:
        for step in range(3):
            writer.add_scalar("loss", rushlight.tensor(1.0 / (step + 1)), step)
        writer.add_scalar("wide", 0.1, 0, new_style=True, double_precision=True)
        writer.add_scalars("group", {"a": 1, "b": 2}, 0)
        writer.add_text("note", "**hello**", 1)
        writer.add_tensor("weights", rushlight.arange(6.0).view(2, 3), 2)
    log = read(tmp_path)
    assert [(e.step, e.value) for e in log.Scalars("loss")] == [(0, 1.0), (1, 0.5), (2, pytest.approx(1 / 3))]
    assert log.Tensors("wide")[0].tensor_proto.double_val[0] == 0.1
    assert log.Tensors("note/text_summary")[0].tensor_proto.string_val == [b"**hello**"]
    assert [d.size for d in log.Tensors("weights")[0].tensor_proto.tensor_shape.dim] == [2, 3]
    assert [e.value for e in read(tmp_path / "group_b").Scalars("group")] == [2]
    assert writer.get_logdir() == tmp_path


@pytest.mark.parametrize("bins", ["tensorflow", "auto"])
def test_histograms_are_pytorchs(tmp_path, bins):
    values = [-1.0, 0.1, 0.1, 0.5, 2.0, 30.0, 0.0]
    for writer, module in both_writers(tmp_path):
        with writer:
            writer.add_histogram("h", module.tensor(values), 4, bins=bins)
            writer.add_histogram("capped", module.tensor(values), 4, max_bins=10)
    ours, theirs = read(tmp_path / "ours"), read(tmp_path / "theirs")
    for tag in ("h", "capped"):
        mine, other = ours.Histograms(tag)[0].histogram_value, theirs.Histograms(tag)[0].histogram_value
        assert (mine.min, mine.max, mine.num) == (other.min, other.max, other.num)
        assert mine.sum == pytest.approx(other.sum)
        assert sum(mine.bucket) == len(values)
        if tag == "h":
            assert mine.bucket == other.bucket
            assert mine.bucket_limit == other.bucket_limit
    with SummaryWriter(tmp_path) as writer, pytest.raises(ValueError, match="no element"):
        writer.add_histogram("empty", rushlight.empty(0))


def test_pictures(tmp_path):
    pytest.importorskip("PIL")
    import io

    import numpy as np
    from PIL import Image

    pixels = rushlight.arange(3 * 4 * 5).view(3, 4, 5) / 60
    with SummaryWriter(tmp_path) as writer:
        writer.add_image("one", pixels)
        writer.add_image("gray", pixels[0], dataformats="HW")
        writer.add_images("many", rushlight.ones(10, 1, 4, 5))
        writer.add_image_with_boxes("boxes", rushlight.zeros(3, 20, 20), rushlight.tensor([[2, 3, 10, 12]]))
        writer.add_video("film", rushlight.rand(1, 3, 3, 4, 5))
        with pytest.raises(AssertionError, match="size of input tensor and input format are different"):
            writer.add_image("bad", pixels[0])
    log = read(tmp_path)

    def image(tag):
        return np.asarray(Image.open(io.BytesIO(log.Images(tag)[0].encoded_image_string)))

    assert image("one").shape == (4, 5, 3)
    assert image("one")[0, 1].tolist() == [int(v * 255) for v in pixels[:, 0, 1].tolist()]
    assert image("gray").shape == (4, 5, 3)
    assert image("many").shape == (8, 40, 3)
    assert image("boxes")[3, 2].tolist() == [255, 0, 0]
    assert Image.open(io.BytesIO(log.Images("film")[0].encoded_image_string)).n_frames == 3


def test_figure(tmp_path):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure = plt.figure(figsize=(2, 1), dpi=50)
    with SummaryWriter(tmp_path) as writer:
        writer.add_figure("plot", figure)
    assert (read(tmp_path).Images("plot")[0].width, read(tmp_path).Images("plot")[0].height) == (100, 50)
    assert not plt.fignum_exists(figure.number)


def test_curves_are_pytorchs(tmp_path):
    labels, predictions = [1, 0, 1, 1, 0, 0], [0.9, 0.2, 0.6, 0.3, 0.7, 0.1]
    for writer, module in both_writers(tmp_path):
        with writer:
            writer.add_pr_curve("pr", module.tensor(labels), module.tensor(predictions), 0)
    tensors = [read(tmp_path / who).Tensors("pr")[0].tensor_proto for who in ("ours", "theirs")]
    assert list(tensors[0].float_val) == pytest.approx(list(tensors[1].float_val), abs=1e-6)


def test_sound_mesh_and_layout(tmp_path):
    with SummaryWriter(tmp_path) as writer:
        writer.add_audio("beep", rushlight.linspace(-1, 1, 100), sample_rate=8000)
        writer.add_mesh(
            "cloud", rushlight.rand(1, 5, 3), colors=rushlight.zeros(1, 5, 3, dtype=rushlight.int64)
        )
        writer.add_custom_scalars({"c": {"t": ["Multiline", ["loss"]], "m": ["Margin", ["a", "b", "c"]]}})
    log = read(tmp_path)
    assert log.Audio("beep")[0].sample_rate == 8000
    assert any(tag.startswith("cloud") for tag in log.Tags()["tensors"])
    assert "custom_scalars__config__" in log.Tags()["tensors"]


def test_hparams_embedding_and_graph(tmp_path):
    model = rushlight.nn.Sequential(rushlight.nn.Linear(3, 4), rushlight.nn.ReLU(), rushlight.nn.Linear(4, 2))
    with SummaryWriter(tmp_path) as writer:
        writer.add_hparams({"lr": 0.1, "name": "a", "flag": True}, {"acc": 0.5}, run_name="run")
        writer.add_embedding(rushlight.eye(3), metadata=["x", "y", "z"], tag="points")
        writer.add_graph(model, rushlight.ones(1, 3))
    assert read(tmp_path / "run").Scalars("acc")[0].value == 0.5
    assert (tmp_path / "00000/points/metadata.tsv").read_text().split() == ["x", "y", "z"]
    assert "points:00000" in (tmp_path / "projector_config.pbtxt").read_text()
    nodes = {node.name: list(node.input) for node in read(tmp_path).Graph().node}
    first, second = "Sequential/Linear[0]", "Sequential/Linear[2]"
    assert nodes[f"{first}/linear"] == ["input/input", f"{first}/weight/weight", f"{first}/bias/bias"]
    assert nodes["Sequential/ReLU[1]/relu"] == [f"{first}/linear"]
    assert nodes["output/output.1"] == [f"{second}/linear"]
    assert model.training


def test_appending_after_close(tmp_path):
    writer = SummaryWriter(tmp_path, filename_suffix=".first")
    writer.add_scalar("a", 1, 0)
    writer.close()
    writer.add_scalar("a", 2, 1)
    writer.close()
    writer.close()
    assert [e.value for e in read(tmp_path).Scalars("a")] == [1, 2]


def test_tensorboard_serves_it(tmp_path):
    import json
    from urllib.request import urlopen

    from tensorboard import program

    model = rushlight.nn.Sequential(rushlight.nn.Linear(3, 4), rushlight.nn.ReLU())
    with SummaryWriter(tmp_path) as writer:
        writer.add_scalar("loss", 0.5, 3)
        writer.add_histogram("weights", rushlight.randn(50), 0)
        writer.add_image("picture", rushlight.rand(3, 4, 5))
        writer.add_graph(model, rushlight.ones(1, 3))
        writer.add_embedding(rushlight.eye(3), metadata=["x", "y", "z"], tag="points")
    board = program.TensorBoard()
    board.configure(argv=[None, "--logdir", str(tmp_path), "--port", "0", "--host", "127.0.0.1"])
    board.flags.load_fast = "false"
    data = board.launch() + "data/plugin/"

    def ask(path):
        with urlopen(data + path, timeout=30) as answer:
            return answer.read().decode()

    for plugin, tag in (("scalars", "loss"), ("histograms", "weights"), ("images", "picture")):
        wait_for(lambda path=f"{plugin}/tags", tag=tag: tag in json.loads(ask(path)).get(".", {}))
    assert json.loads(ask("scalars/scalars?run=.&tag=loss"))[0][1:] == [3, 0.5]
    assert json.loads(ask("histograms/histograms?run=.&tag=weights"))[0][1] == 0
    assert json.loads(ask("images/images?run=.&tag=picture&sample=0"))[0]["step"] == 0
    assert "Sequential/Linear[0]/linear" in ask("graphs/graph?run=.")
    (points,) = json.loads(ask("projector/info?run=."))["embeddings"]
    assert points["tensorShape"] == [3, 3]
    assert ask(f"projector/metadata?run=.&name={points['tensorName']}").split() == ["x", "y", "z"]


def wait_for(condition):
    """TensorBoard reads its files on a thread of its own."""
    import time

    for _ in range(200):
        if condition():
            return
        time.sleep(0.1)
    raise AssertionError("TensorBoard did not find what was written")


@pytest.mark.parametrize(
    "name", "float16 bfloat16 float32 float64 int8 int16 int32 int64 uint8 bool complex64 complex128".split()
)
def test_tensors_of_every_type_are_read_back(name):
    from tensorboard.util.tensor_util import make_ndarray

    from rushlight.utils.tensorboard.summary import tensor_proto

    x = rushlight.tensor([[0, 1, 1], [1, 0, 2]]).to(getattr(rushlight, name))
    proto = tensor_proto("x", x).value[0].tensor
    if name == "bfloat16":  # which NumPy does not have
        assert list(proto.half_val) == x.view(rushlight.int16).flatten().tolist()
        return
    found = make_ndarray(proto)
    assert found.shape == (2, 3) and rushlight.equal(rushlight.as_tensor(found).to(x.dtype), x)


def test_tensors_that_tensorboard_does_not_know():
    from rushlight.utils.tensorboard.summary import tensor_proto

    with pytest.raises(ValueError, match="unsupported tensor dtype"):
        tensor_proto("x", rushlight.ones(2, dtype=rushlight.uint32))


def test_helpers_by_pytorchs_names():
    np = pytest.importorskip("numpy")
    pytest.importorskip("torch")
    from torch.utils.tensorboard import _utils as oracle

    from rushlight.utils.tensorboard import _convert_np, _pytorch_graph, _utils, summary

    random = np.random.RandomState(0)
    for shape in [(1, 2, 3, 4, 5), (2, 2, 1, 2, 3), (5, 2, 3, 2, 2), (19, 3, 3, 2, 1), (36, 1, 3, 1, 2)]:
        video = random.random_sample(shape)
        assert np.array_equal(_utils._prepare_video(video), oracle._prepare_video(video))
    images = random.randint(0, 256, (16, 3, 8, 6), np.uint8)
    assert np.array_equal(_utils.convert_to_HWC(images, "nchw"), oracle.convert_to_HWC(images, "nchw"))
    assert np.array_equal(_utils.make_grid(images, 5), oracle.make_grid(images, 5))
    assert summary._calc_scale_factor(images) == 1 and summary._calc_scale_factor(images / 255) == 255
    assert _convert_np.make_np(rushlight.ones(2, dtype=rushlight.bfloat16)).tolist() == [1, 1]
    drawn, _ = _pytorch_graph.graph(rushlight.nn.Linear(2, 3), rushlight.ones(1, 2))
    assert any(node.op == "IO Node" for node in drawn.node)


def test_models_that_return_dictionaries_need_leave(tmp_path):
    class Named(rushlight.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = rushlight.nn.Linear(3, 5)

        def forward(self, x):
            return {"out": self.layer(x)}

    with SummaryWriter(tmp_path) as writer:
        with pytest.raises(RuntimeError, match="Encountering a dict at the output of the tracer"):
            writer.add_graph(Named(), rushlight.ones(1, 3))
        writer.add_graph(Named(), rushlight.ones(1, 3), use_strict_trace=False)
    names = {node.name for node in read(tmp_path).Graph().node}
    assert names >= {"Named/Linear[layer]/linear", "output/output.1", "input/x"}


def test_graphs_have_pytorchs_operators_in_its_scopes():
    libraries = [rushlight] if is_aliased() else [rushlight, pytest.importorskip("torch")]
    found = []
    for t in libraries:

        class Model(t.nn.Module):
            def __init__(self):
                super().__init__()
                nn = rushlight.nn if t is rushlight else t.nn  # noqa: B023
                self.body = nn.Sequential(nn.Conv2d(1, 2, 3), nn.ReLU())
                self.head = nn.Linear(2, 3)

            def forward(self, x, scale):
                y = self.body(x).mean((2, 3))
                return self.head(y) * scale, y

        module = "rushlight" if t is rushlight else "torch"
        graph = importlib.import_module(f"{module}.utils.tensorboard._pytorch_graph").graph
        drawn, _ = graph(Model(), (t.zeros(1, 1, 5, 5), t.ones(1)))
        shown = [n for n in drawn.node if not n.op.startswith("prim::") or n.op == "prim::GetAttr"]
        ops = [(n.op.replace("_convolution", "conv2d"), n.name.rpartition("/")[0]) for n in shown]
        found.append(sorted(o for o in ops if o[0] != "IO Node"))
        assert {n.name for n in shown if n.op == "IO Node"} >= {"input/x", "input/scale", "output/output.1"}
        by_name = {n.name: n for n in drawn.node}
        linear = next(n for n in drawn.node if n.op == "aten::linear")
        assert [by_name[i].op for i in linear.input] == ["aten::mean", "prim::GetAttr", "prim::GetAttr"]
        assert [d.size for d in linear.attr["_output_shapes"].list.shape[0].dim] == [1, 3]
    assert found[0] == found[-1] and len(found[0]) == 9


def test_boxes_are_drawn_as_pytorch_draws_them(tmp_path):
    if is_aliased():
        pytest.skip("PyTorch is the oracle")
    pytest.importorskip("torch")
    oracle = pytest.importorskip("torch.utils.tensorboard.summary")
    np, Image = pytest.importorskip("numpy"), pytest.importorskip("PIL.Image")
    from rushlight.utils.tensorboard import summary

    def seen(made):
        found = made.image_boxes("x", picture, boxes).value[0].image.encoded_image_string
        return np.asarray(Image.open(io.BytesIO(found)))

    picture, boxes = np.zeros((3, 32, 32), np.float32), np.array([[3, 4, 20, 18], [10, 10, 40, 40]])
    drawn = [seen(summary), seen(oracle)]
    assert np.array_equal(*drawn) and drawn[0].any()
