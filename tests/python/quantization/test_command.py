"""Files made smaller: `export.quantize_file` and the command, what they refuse, the error of each layer."""

import re
import subprocess
import sys

import numpy as np
import pytest

import rushlight as torch
from rushlight import nn
from rushlight._command import quantize as command
from rushlight.export import Dim, QuantizeError, load_file, quantize_file, save_file


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.bn = nn.Conv2d(3, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16)
        self.depth = nn.Conv2d(16, 16, 3, padding=1, groups=16)
        self.head = nn.Sequential(nn.Linear(16 * 16, 64), nn.ReLU6(), nn.Linear(64, 20))

    def forward(self, x):
        x = torch.relu(self.bn(self.conv(x)))
        x = nn.functional.max_pool2d(torch.relu(self.depth(x) + x), 2)
        return self.head(x.flatten(1))


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """(file of floats, samples as .npy, samples)"""
    torch.manual_seed(0)
    folder, x = tmp_path_factory.mktemp("quantize"), torch.randn(24, 3, 8, 8)
    save_file(Net().eval(), folder / "m.rl", (x[:2],), dynamic_shapes=({0: Dim("N", max=64)},))
    np.save(folder / "x.npy", x.numpy())
    return folder / "m.rl", folder / "x.npy", x


@pytest.mark.parametrize(
    ("method", "operator", "ratio", "error"),
    [
        ("int8", "onednn::q", 0.4, 0.03),
        ("int8-weights", "_weight_only_linear(", 0.4, 0.01),
        ("int4-weights", "_weight_only_linear(", 0.3, 0.15),
    ],
)
def test_methods(files, tmp_path, method, operator, ratio, error):
    path, _, x = files
    done = quantize_file(path, tmp_path / "q.rl", method, x)
    assert done.layers == (4 if method == "int8" else 2) == len(done.errors)
    names = ["convolution", "depth", "head.0", "head.2"]  # the first one has its normalisation in it
    assert [name for name, _ in done.errors] == names[-done.layers :]
    assert operator in str(load_file(tmp_path / "q.rl"))
    assert done.sizes[1] < ratio * done.sizes[0] and min(done.seconds) > 0
    relative, most, same = done.outputs["output"]
    assert 0 < relative < error and most > 0 and same >= 0.5
    for rows in (1, 5):
        a, b = load_file(path)(x[:rows]), load_file(tmp_path / "q.rl")(x[:rows])
        assert 0 < (a - b).norm() < 2 * error * a.norm()
    assert all(0 < e < 2 * error for _, e in done.errors)


def test_all_of_a_network_is_integers(files, tmp_path):
    path, _, x = files
    quantize_file(path, tmp_path / "q.rl", "int8", x)
    text = str(load_file(tmp_path / "q.rl"))
    assert text.count("onednn::qconv_pointwise(") == 2 and text.count("onednn::qlinear_pointwise(") == 2
    assert "_quantized_sum(" in text and " relu(" not in text and "hardtanh(" not in text
    assert text.count("quantize_per_tensor(") == 1  # the input; the last layer gives floats


@pytest.mark.filterwarnings("ignore:Please use quant_min")
def test_activations_of_seven_bits(files, tmp_path):
    """Samples fill half the range, so that scales are twice as large; what is beyond still has a place."""
    path, _, x = files
    scales = []
    for bits in (8, 7):
        done = quantize_file(path, tmp_path / "q.rl", "int8", x, activation_bits=bits)
        assert done.layers == 4 and done.outputs["output"][0] < (0.03 if bits == 8 else 0.05)
        text = str(load_file(tmp_path / "q.rl"))
        assert text.count("onednn::qconv_pointwise(") == 2 and ", 0, 255, uint8)" in text
        scales.append(float(re.search(r"quantize_per_tensor\(%\S+, ([\d.e-]+),", text)[1]))
    assert 1.7 < scales[1] / scales[0] < 2.3
    code, _ = quantize(path, "--method", "int8-weights", "--activation-bits", 7, "-o", tmp_path / "r.rl")
    assert "those of other methods are floats" in code


def test_weights_of_several_methods_once(tmp_path):
    class Decoder(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("cache", torch.zeros(4, 96), persistent=False)
            self.words, self.layer = nn.Embedding(64, 96), nn.Linear(96, 96)

        def forward(self, ids, positions):
            self.cache.index_copy_(0, positions, self.layer(self.words(ids)))
            return nn.functional.linear(self.cache.mean(0), self.words.weight)

    model, one = Decoder().eval(), (torch.tensor([3]), torch.tensor([1]))
    examples = {"prefill": (torch.tensor([1, 2]), torch.tensor([0, 1])), "decode": one}
    save_file({"prefill": model, "decode": model}, tmp_path / "d.rl", examples)
    for method, ratio in (("int8-weights", 0.4), ("int4-weights", 0.3)):
        done = quantize_file(tmp_path / "d.rl", tmp_path / "q.rl", method)
        assert done.layers == 6 and done.sizes[1] < ratio * done.sizes[0]
        text = str(load_file(tmp_path / "q.rl"))
        assert text.count("_weight_only_embedding(") == 2 and text.count("_weight_only_linear(") == 4
        sessions = [load_file(tmp_path / name).session() for name in ("d.rl", "q.rl")]
        for call in ("prefill", "decode"):
            a, b = (s.call(call, *examples[call])["output"] for s in sessions)
            assert (a - b).norm() < 0.2 * a.norm()
    with pytest.raises(QuantizeError, match="quantised by their weights alone"):
        samples = {"ids": one[0], "positions": one[1]}
        quantize_file(tmp_path / "d.rl", tmp_path / "q.rl", "int8", samples)


# --- the command


def quantize(*words):
    """(exit, printed) of the command in this process."""
    import contextlib
    import io

    out = io.StringIO()
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
            command.main(list(map(str, words)))
    except SystemExit as end:
        return end.code, out.getvalue()
    return 0, out.getvalue()


def test_table_and_report(files, tmp_path):
    path, data, _ = files
    words = [path, "--method", "int8", "--calibrate", data, "-o", tmp_path / "q.rl"]
    code, printed = quantize(*words, "--report", tmp_path / "page.html")
    assert code == 0
    assert re.search(r"^size +\d+\.\d+ MB +\d+\.\d+ MB +0\.\d+ of it$", printed, re.M)
    assert re.search(r"^a run .* times as fast$", printed, re.M)
    assert re.search(r"^layers +4 +are int8$", printed, re.M)
    assert re.search(r"^output: off by \d+\.\d+ %.*the largest is the same in \d+ %$", printed, re.M)
    page = (tmp_path / "page.html").read_text()
    assert page.count("<rect") == 4 and "convolution" in page and "size" in page
    code, printed = quantize(
        path, "--method", "int8-weights", "--calibrate", f"x={data}", "-o", tmp_path / "w.rl"
    )
    assert code == 0, printed


def test_it_is_a_command(files, tmp_path):
    words = [files[0], "--method", "int4-weights", "-o", tmp_path / "q.rl"]
    done = subprocess.run(
        [sys.executable, "-m", "rushlight", "quantize", *map(str, words)], capture_output=True, text=True
    )
    assert done.returncode == 0 and "are int4-weights" in done.stdout
    words[2] = "int2"
    done = subprocess.run(
        [sys.executable, "-m", "rushlight", "quantize", *map(str, words)], capture_output=True, text=True
    )
    assert done.returncode == 1 and done.stderr.count("\n") == 1
    assert "there is no method 'int2': it is one of int8, int8-weights, int4-weights" in done.stderr


SAMPLES = {
    "none.npy": (np.zeros((0, 3, 8, 8), "f4"), "no samples"),
    "dtype.npy": (np.zeros((4, 3, 8, 8), "f8"), "samples of 'x' must be float32, got float64"),
    "shape.npy": (np.zeros((4, 3, 9, 8), "f4"), r"samples of 'x' must be float32\[N, 3, 8, 8\]"),
    "rank.npy": (np.zeros((3, 8), "f4"), r"samples of 'x' must be float32\[N, 3, 8, 8\]"),
    "nan.npy": (np.full((4, 3, 8, 8), np.nan, "f4"), "'x' holds NaN or an infinity for these samples"),
    "inf.npy": (np.full((4, 3, 8, 8), np.inf, "f4"), "'x' holds NaN or an infinity for these samples"),
}


@pytest.mark.parametrize("name", SAMPLES)
def test_bad_samples(files, tmp_path, name):
    data, words = SAMPLES[name]
    np.save(tmp_path / name, data)
    code, _ = quantize(files[0], "--method", "int8", "--calibrate", tmp_path / name, "-o", tmp_path / "q.rl")
    assert re.search(words, code) and "\n" not in code and not (tmp_path / "q.rl").exists()


def test_bad_input(files, tmp_path):
    path, data, _ = files
    output = "-o", tmp_path / "q.rl"

    def refused(*words):
        code, _ = quantize(*words)
        assert isinstance(code, str) and code.startswith("rushlight: quantize: ") and "\n" not in code
        return code

    assert "samples of the inputs" in refused(path, "--method", "int8", *output)
    assert "there is no '" in refused(path, "--method", "int8", "--calibrate", "no.npy", *output)
    (tmp_path / "text.npy").write_text("text")
    bad = refused(path, "--method", "int8", "--calibrate", tmp_path / "text.npy", *output)
    assert "is no array of NumPy's" in bad
    bad = refused(path, "--method", "int8", "--calibrate", f"y={data}", *output)
    assert "the model has no input 'y': it has x" in bad
    assert "cannot open" in refused(tmp_path / "no.rl", "--method", "int8-weights", *output)
    (tmp_path / "text.rl").write_text("text")
    refused(tmp_path / "text.rl", "--method", "int8-weights", *output)
    bad = refused(path, "--method", "int4-weights", "--group", 33, *output)
    assert "multiples of 32" in bad
    bad = refused(path, "--method", "int8-weights", "-o", path)
    assert "is the model itself" in bad
    quantize_file(path, tmp_path / "small.rl", "int8-weights")
    bad = refused(tmp_path / "small.rl", "--method", "int4-weights", *output)
    assert "is quantised already" in bad


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_weights_that_no_scale_covers(tmp_path, bad):
    model, x = nn.Sequential(nn.Linear(64, 64)).eval(), torch.randn(2, 64)
    with torch.no_grad():
        model[0].weight[3, 4] = bad
    save_file(model, tmp_path / "m.rl", (x,))
    for method in ("int8-weights", "int4-weights"):
        with pytest.raises(QuantizeError, match="the weight '0.weight' holds NaN or an infinity"):
            quantize_file(tmp_path / "m.rl", tmp_path / "q.rl", method)


def test_zeros_and_models_without_layers(tmp_path):
    model, x = nn.Sequential(nn.Linear(64, 64)).eval(), torch.randn(2, 64)
    with torch.no_grad():
        model[0].weight.zero_()
    save_file(model, tmp_path / "m.rl", (x,))
    for method in ("int8", "int8-weights", "int4-weights"):
        quantize_file(tmp_path / "m.rl", tmp_path / "q.rl", method, x)
        torch.testing.assert_close(load_file(tmp_path / "q.rl")(x), model[0].bias.detach().expand(2, 64))
    save_file(nn.ReLU(), tmp_path / "r.rl", (x,))
    for method in ("int8", "int8-weights"):
        with pytest.raises(QuantizeError, match="there is nothing to quantise"):
            quantize_file(tmp_path / "r.rl", tmp_path / "q.rl", method, x)


# --- language models


@pytest.fixture(scope="module")
def language_model(tmp_path_factory):
    """A file of a GPT-2 with random weights, as export-lm writes it."""
    import json

    from rushlight.export import save_language_model
    from rushlight.safetensors import save_file as save_tensors

    folder, width, words, length = tmp_path_factory.mktemp("lm"), 64, 300, 48
    shapes = {"wte.weight": (words, width), "wpe.weight": (length, width)}
    for i in range(2):
        for name, sizes in (("attn.c_attn", (width, 3 * width)), ("attn.c_proj", (width, width))):
            shapes |= {f"h.{i}.{name}.weight": sizes, f"h.{i}.{name}.bias": sizes[1:]}
        for name, sizes in (("mlp.c_fc", (width, 4 * width)), ("mlp.c_proj", (4 * width, width))):
            shapes |= {f"h.{i}.{name}.weight": sizes, f"h.{i}.{name}.bias": sizes[1:]}
    torch.manual_seed(0)
    tensors = {name: 0.2 * torch.randn(sizes) for name, sizes in shapes.items()}
    for norm in ("h.0.ln_1", "h.0.ln_2", "h.1.ln_1", "h.1.ln_2", "ln_f"):
        tensors |= {f"{norm}.weight": torch.ones(width), f"{norm}.bias": torch.zeros(width)}
    save_tensors(tensors, folder / "model.safetensors")
    config = {"model_type": "gpt2", "n_embd": width, "n_layer": 2, "n_head": 4, "vocab_size": words}
    config |= {"n_positions": length, "layer_norm_epsilon": 1e-5, "activation_function": "gelu_new"}
    (folder / "config.json").write_text(json.dumps(config))
    save_language_model(folder, folder / "lm.rl")
    return folder / "lm.rl"


@pytest.mark.parametrize(
    ("method", "ratio", "error"), [("int8-weights", 0.33, 0.05), ("int4-weights", 0.25, 0.4)]
)
def test_language_models(language_model, tmp_path, method, ratio, error):
    from rushlight.export import load_language_model

    code, printed = quantize(language_model, "--method", method, "-o", tmp_path / "q.rl")
    assert code == 0, printed
    assert f"are {method}" in printed and "logits: off by" in printed
    assert (tmp_path / "q.rl").stat().st_size < ratio * language_model.stat().st_size
    tokens, pages, logits = torch.arange(20), torch.arange(2)[None], []
    for path in (language_model, tmp_path / "q.rl"):
        whole, parts = load_file(path).session(), load_file(path).session()
        text, last = torch.zeros(20, dtype=torch.int64), torch.tensor([19])
        logits.append(whole.step(tokens, tokens, text, pages, last))
        for n in (slice(0, 7), slice(7, 19), slice(19, 20)):
            last = torch.tensor([n.stop - n.start - 1])
            found = parts.step(tokens[n], tokens[n], text[n], pages, last)
        torch.testing.assert_close(found, logits[-1], rtol=1e-4, atol=1e-4)
        ids, _, why = load_language_model(path).generate([1, 2, 3], max_tokens=8, temperature=0)
        assert len(ids) == 8 and why == "length"
    assert (logits[1] - logits[0]).norm() < error * logits[0].norm()
