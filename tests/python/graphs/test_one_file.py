"""Models in one file: exported, run without Python, equal to what they were; bad files and bad inputs."""

import os
import pathlib
import subprocess
import sys

import pytest
from one_file_models import GPT, ResNet, Translator, with_statistics

import rushlight as torch
from rushlight import nn
from rushlight.export import Dim, UnsupportedError, export, load_file, save, save_file

RUNNER = pathlib.Path(torch.__file__).parent / "bin" / "rushlight-run"
needs_runner = pytest.mark.skipif(not RUNNER.exists(), reason="rushlight-run is not built here")


def rushlight_run(*arguments):
    return subprocess.run([RUNNER, *map(str, arguments)], capture_output=True, text=True, timeout=120)


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(0)


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """A file of a small model, its module and an input."""
    torch.manual_seed(0)
    model = with_statistics(ResNet(4, (1, 1), 10), torch.randn(4, 3, 32, 32))
    path = tmp_path_factory.mktemp("one_file") / "small.rl"
    images = torch.randn(2, 3, 32, 32)
    save_file(model, path, (images,), dynamic_shapes={"images": {0: Dim("N", max=64)}})
    return path, model, images


# --- models equal to eager --------------------------------------------------------------------------


def test_resnet_of_any_batch(small):
    path, model, _ = small
    loaded = load_file(path)
    assert "native_batch_norm" not in str(loaded) and "relu_(" not in str(loaded)
    for n in (1, 2, 5, 2):
        images = torch.randn(n, 3, 32, 32)
        with torch.no_grad():
            torch.testing.assert_close(loaded(images), model(images), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("optimize", [False, True])
def test_gpt_decodes_with_its_cache(tmp_path, optimize):
    model, path = GPT().eval(), tmp_path / "gpt.rl"
    shapes = {"token": None, "cache": {4: Dim("T", max=60)}}
    example = torch.randint(0, 61, (1, 1)), model.empty_cache(1, 5)
    save_file(model, path, example, dynamic_shapes=shapes, optimize=optimize)
    loaded = load_file(path)
    assert list(loaded.inputs) == ["token", "cache"] and list(loaded.outputs) == ["logits", "cache"]
    assert loaded.outputs["cache"] == "float32[2, 2, 1, 4, T+1, 8]"
    token = torch.tensor([[7]])
    caches = [model.empty_cache(1), model.empty_cache(1)]
    for _ in range(24):
        with torch.no_grad():
            expected = model(token, caches[0])
        found = loaded.run(token, caches[1])
        torch.testing.assert_close(found["logits"], expected["logits"], rtol=1e-5, atol=1e-5)
        caches = expected["cache"], found["cache"]
        token = expected["logits"].argmax(-1, keepdim=True)
        assert torch.equal(token, found["logits"].argmax(-1, keepdim=True))
    assert caches[1].shape[4] == 25


def test_attention_stays_one_operator(tmp_path):
    model, path = GPT().eval(), tmp_path / "gpt.rl"
    save_file(model, path, (torch.zeros(1, 1, dtype=torch.int64), model.empty_cache(1, 5)))
    assert str(load_file(path)).count("_scaled_dot_product_flash_attention_for_cpu(") == 2


def test_translator_of_any_length(tmp_path):
    model, path = Translator().eval(), tmp_path / "translator.rl"
    words = torch.randint(0, 50, (3, 7)), torch.randint(0, 50, (3, 5))
    shapes = {"source": {1: Dim("S")}, "target": {1: Dim("L")}}
    save_file(model, path, words, dynamic_shapes=shapes)
    loaded = load_file(path)
    for source, target in ((7, 5), (2, 9), (11, 1), (7, 5)):
        words = torch.randint(0, 50, (3, source)), torch.randint(0, 50, (3, target))
        with torch.no_grad():
            torch.testing.assert_close(loaded(*words), model(*words), rtol=1e-5, atol=1e-5)


def test_exported_programs_are_saved_too(tmp_path):
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(inplace=True), nn.Linear(8, 2))
    x = torch.randn(3, 4)
    save(export(model, (x,)), tmp_path / "model.rl")
    torch.testing.assert_close(load_file(tmp_path / "model.rl")(x), model(x).detach())
    with pytest.raises(RuntimeError, match="use load_file"):
        torch.export.load(tmp_path / "model.rl")


def test_tied_and_half_precision_weights(tmp_path):
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.randn(6, 6, dtype=torch.bfloat16))
            self.same = self.weight
            self.register_buffer("table", torch.arange(6))

        def forward(self, x):
            return (x @ self.weight) @ self.same + self.table

    model, x = Model(), torch.randn(2, 6, dtype=torch.bfloat16)
    save_file(model, tmp_path / "model.rl", (x,))
    assert torch.equal(load_file(tmp_path / "model.rl")(x), model(x).detach())
    assert str(load_file(tmp_path / "model.rl")).count('constant("') == 2


def test_writes_to_what_the_model_makes_are_kept(tmp_path):
    class Model(nn.Module):
        def forward(self, x):
            y = torch.zeros_like(x)
            y[:, 0] = 1
            y[:, 1:].add_(x[:, 1:])
            return y, y.clone().mul_(2)

    x = torch.randn(3, 4)
    save_file(Model(), tmp_path / "model.rl", (x,))
    for found, expected in zip(load_file(tmp_path / "model.rl")(x), Model()(x)):
        assert torch.equal(found, expected)


# --- what files cannot hold -------------------------------------------------------------------------


def test_a_model_with_state_says_where(tmp_path):
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("count", torch.zeros(()))

        def forward(self, x):
            self.count.add_(1)
            return x + self.count

    with pytest.raises(UnsupportedError, match=r"test_one_file.py, line \d+: .*'count'.*eval"):
        save_file(Model(), tmp_path / "model.rl", (torch.ones(2),))
    assert not os.listdir(tmp_path)


def test_other_results_than_tensors_are_refused(tmp_path):
    class Model(nn.Module):
        def forward(self, x):
            return x + 1, "three"

    with pytest.raises(UnsupportedError, match="returns 'three', but files return tensors"):
        save_file(Model(), tmp_path / "model.rl", (torch.ones(2),))


def test_an_operator_of_python_says_where(tmp_path):
    @torch.library.custom_op("one_file::twice", mutates_args=())
    def twice(x: torch.Tensor) -> torch.Tensor:
        return 2 * x

    twice.register_fake(torch.empty_like)

    class Model(nn.Module):
        def forward(self, x):
            return twice(x)

    with pytest.raises(UnsupportedError, match=r"test_one_file.py, line \d+: .*one_file::twice"):
        save_file(Model(), tmp_path / "model.rl", (torch.ones(2),))


# --- inputs that do not fit -------------------------------------------------------------------------


def test_wrong_inputs_list_what_the_model_expects(small):
    loaded = load_file(small[0])
    for call, message in [
        (lambda: loaded(), "are missing"),
        (lambda: loaded(pictures=small[2]), "do not fit"),
        (lambda: loaded(small[2].double()), "its dtype must be float32"),
        (lambda: loaded(small[2][:, :2]), "its size 1 must be 3"),
        (lambda: loaded(torch.zeros(65, 3, 32, 32)), "its size 0 must be N"),
    ]:
        with pytest.raises(ValueError, match=message) as caught:
            call()
        assert "float32[N, 3, 32, 32]" in str(caught.value)


# --- bad files --------------------------------------------------------------------------------------


def test_truncated_altered_and_other_files_are_one_error(small, tmp_path):
    good, path = small[0].read_bytes(), tmp_path / "bad.rl"

    def refused(content, message):
        path.write_bytes(content)
        with pytest.raises(RuntimeError, match=message):
            load_file(path)

    refused(b"", "cut short")
    refused(good[:20], "cut short")
    refused(good[:-1], "cut short or appended to")
    refused(good + b"\0", "cut short or appended to")
    refused(b"PK\3\4" + good[4:], "an archive of torch.save")
    refused(b"RIFF" + good[4:], "not a file that rushlight.export.save_file wrote")
    refused(
        good[:8] + b"\3\0\0\0" + good[12:], "version 3 of the format, but this program reads versions 1 to 2"
    )
    refused(good[:40] + b"\xff" + good[41:], "table of contents is damaged")
    refused(good[:200] + bytes([good[200] ^ 1]) + good[201:], "section 'graph' is damaged")
    refused(good[:-65] + bytes([good[-65] ^ 1]) + good[-64:], "section 'weights' is damaged")
    with pytest.raises(RuntimeError, match="cannot open"):
        load_file(tmp_path / "none.rl")
    with pytest.raises(RuntimeError, match="is not a file"):
        load_file(tmp_path)


def test_weights_are_read_only(small):
    methods, state, texts = torch._C._read_model(str(small[0]))
    (_, constants), *others = methods.values()
    assert not (others or state or texts)
    with pytest.raises(RuntimeError, match="read-only"):
        next(iter(constants.values())).zero_()


# --- without Python ---------------------------------------------------------------------------------


@needs_runner
def test_the_runner_computes_what_eager_does(small, tmp_path):
    numpy = pytest.importorskip("numpy")
    path, model, images = small
    numpy.save(tmp_path / "x.npy", images.numpy())
    done = rushlight_run(path, "--input", tmp_path / "x.npy", "--output", tmp_path / "y.npy")
    assert done.returncode == 0, done.stderr
    found = torch.from_numpy(numpy.load(tmp_path / "y.npy"))
    torch.testing.assert_close(found, model(images).detach(), rtol=1e-4, atol=1e-5)


@needs_runner
@pytest.mark.parametrize("dtype", ["bool", "uint8", "int32", "int64", "float16", "float64", "complex64"])
def test_the_runner_reads_and_writes_arrays(tmp_path, dtype):
    numpy = pytest.importorskip("numpy")

    class Model(nn.Module):
        def forward(self, a, b):
            return {"second": torch.cat([b, b]), "first": a.t()}

    a, b = numpy.arange(6).reshape(2, 3).astype(dtype), numpy.array([1], dtype)
    save_file(Model(), tmp_path / "model.rl", (torch.from_numpy(a), torch.from_numpy(b)))
    numpy.save(tmp_path / "a.npy", numpy.asfortranarray(a))
    numpy.save(tmp_path / "b.npy", b)
    done = rushlight_run(
        tmp_path / "model.rl",
        *["--input", f"b={tmp_path / 'b.npy'}", "--input", tmp_path / "a.npy"],
        *["--output", f"first={tmp_path / 'first.npy'}", f"--output={tmp_path / 'second.npy'}"],
    )
    assert done.returncode == 0, done.stderr
    assert (numpy.load(tmp_path / "first.npy") == a.T).all()
    second = numpy.load(tmp_path / "second.npy")
    assert second.dtype == dtype and (second == [b[0], b[0]]).all()


@needs_runner
def test_the_runner_describes_models_and_refuses_with_one_line(small, tmp_path):
    numpy = pytest.importorskip("numpy")
    path, _, images = small
    shown = rushlight_run(path).stdout
    assert "images: float32[N, 3, 32, 32]" in shown and "output: float32[N, 10]" in shown
    numpy.save(tmp_path / "x.npy", images.double().numpy())
    (tmp_path / "cut.npy").write_bytes((tmp_path / "x.npy").read_bytes()[:-1])
    (tmp_path / "cut.rl").write_bytes(path.read_bytes()[:-1])
    numpy.save(tmp_path / "big.npy", images.numpy().astype(">f4"))
    numpy.save(tmp_path / "words.npy", numpy.array(["a"]))
    for arguments, message in [
        ([path, "--input", tmp_path / "x.npy"], "its dtype must be float32"),
        ([path, "--input", tmp_path / "cut.npy"], "was cut short"),
        ([path, "--input", tmp_path / "none.npy"], "cannot open"),
        ([path, "--input", tmp_path / "big.npy"], "big-endian; write it with array.astype("),
        ([path, "--input", tmp_path / "words.npy"], "'<U1' is none of tensors; write it with array.astype("),
        ([path, "--input", path], "it is no .npy file, as numpy.save writes them"),
        ([path, "--input", f"y={tmp_path / 'x.npy'}"], "there is no input for 'y'; the model has images"),
        ([tmp_path / "cut.rl"], "was cut short"),
        ([], "no model is given"),
        ([path, "--nosuch"], "unexpected argument"),
    ]:
        done = rushlight_run(*arguments)
        assert done.returncode == 1 and message in done.stderr, done.stderr


@pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="the system does not tell")
def test_reading_keeps_no_page_of_the_weights(tmp_path):
    """Checking their sum looks through all of them; until a run wants them they need no memory."""
    save_file(nn.Linear(2048, 4096), tmp_path / "wide.rl", (torch.randn(1, 2048),))  # 32 MB
    program = (
        "import re, sys\n"
        "from rushlight.export import load_file\n"
        "def resident():\n"
        "    return int(re.search(r'RssFile:\\s+(\\d+)', open('/proc/self/status').read())[1]) >> 10\n"
        "before = resident()\n"
        "model = load_file(sys.argv[1])\n"
        "print(resident() - before)\n"
    )
    command = [sys.executable, "-c", program, str(tmp_path / "wide.rl")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    assert int(done.stdout) < 12


def test_constants_whose_conjugation_is_pending(tmp_path):
    class Turned(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("w", torch.tensor([1 + 2j]).conj())

        def forward(self, x):
            return x * self.w

    path = tmp_path / "turned.rl"
    save_file(Turned(), path, (torch.tensor([1 + 2j]),))
    assert load_file(path)(torch.tensor([1 + 2j])).tolist() == [5]


def test_layers_beside_writes_through_a_pending_conjugation(tmp_path):
    class Written(nn.Module):
        def forward(self, z, x):
            z = z * 0.5
            z.conj().mul_(1 + 2j)
            pooled = nn.functional.adaptive_avg_pool2d(x, 2)
            return z, nn.functional.conv_transpose2d(pooled, torch.ones(2, 1, 2, 2), stride=2)

    path, args = tmp_path / "written.rl", (torch.tensor([1 + 2j, 3j]), torch.rand(1, 2, 5, 3))
    save_file(Written(), path, args)
    for found, expected in zip(load_file(path)(*args), Written()(*args)):
        torch.testing.assert_close(found, expected)
