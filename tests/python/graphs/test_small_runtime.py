"""The small runtime: what it weighs, and that models of one file run on it as they do in the package."""

import pathlib
import subprocess
import sys

import numpy as np
import pytest
from one_file_models import GPT, ResNet, Translator, with_statistics

import rushlight as torch
from rushlight.export import Dim, load_file, save_file

PACKAGE = pathlib.Path(torch.__file__).parent
LIBRARY, OWN = PACKAGE / "lib/librushlight_runtime.so", PACKAGE / "lib/librushlight_runtime_own.so"
RUNNER = PACKAGE / "bin/rushlight-run-small"
pytestmark = pytest.mark.skipif(not RUNNER.exists(), reason="the small runtime is not built here")


def run(path, inputs, outputs, folder):
    """The results of the runner, by name."""
    words = [str(path)]
    for name, tensor in inputs.items():
        np.save(folder / f"in_{name}.npy", tensor.numpy())
        words += ["--input", f"{name}={folder / f'in_{name}.npy'}"]
    for name in outputs:
        words += ["--output", f"{name}={folder / f'out_{name}.npy'}"]
    done = subprocess.run([RUNNER, *words], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return {name: torch.from_numpy(np.load(folder / f"out_{name}.npy")) for name in outputs}


def test_own_code_is_small():
    """Linked without the mathematics library, and stripped."""
    assert OWN.stat().st_size <= 10e6


def test_it_shows_models_and_tensors_alone():
    symbols = subprocess.run(["nm", "-D", "--defined-only", LIBRARY], capture_output=True, text=True).stdout
    names = {line.split()[-1] for line in symbols.splitlines()}
    assert {"rl_model_load", "rl_model_run", "rl_tensor_from_memory"} <= names
    assert not {"rl_call", "rl_tensor_backward", "rl_save"} & names
    assert len(names) < 400


def test_resnet(tmp_path):
    torch.manual_seed(0)
    model = with_statistics(ResNet(8, (2, 1), 10), torch.randn(4, 3, 64, 64))
    images = torch.randn(2, 3, 64, 64)
    save_file(model, tmp_path / "m.rl", (images,), dynamic_shapes={"images": {0: Dim("N", max=64)}})
    found = run(tmp_path / "m.rl", {"images": images}, ["output"], tmp_path)["output"]
    torch.testing.assert_close(found, load_file(tmp_path / "m.rl")(images), rtol=1e-5, atol=1e-6)
    with torch.no_grad():
        torch.testing.assert_close(found, model(images), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("optimize", [False, True])
def test_gpt_with_its_cache(tmp_path, optimize):
    torch.manual_seed(0)
    model, path = GPT().eval(), tmp_path / "gpt.rl"
    shapes = {"token": None, "cache": {4: Dim("T", max=60)}}
    example = torch.randint(0, 61, (1, 1)), model.empty_cache(1, 5)
    save_file(model, path, example, dynamic_shapes=shapes, optimize=optimize)
    token, cache = torch.tensor([[7]]), model.empty_cache(1)
    for _ in range(4):
        with torch.no_grad():
            expected = model(token, cache)
        found = run(path, {"token": token, "cache": cache}, ["logits", "cache"], tmp_path)
        for name in ("logits", "cache"):
            torch.testing.assert_close(found[name], expected[name], rtol=1e-5, atol=1e-5)
        token, cache = expected["logits"].argmax(-1, keepdim=True), found["cache"]


def test_translator(tmp_path):
    torch.manual_seed(0)
    model, path = Translator().eval(), tmp_path / "translator.rl"
    words = {"source": torch.randint(0, 50, (3, 7)), "target": torch.randint(0, 50, (3, 5))}
    save_file(
        model, path, tuple(words.values()), dynamic_shapes={"source": {1: Dim("S")}, "target": {1: Dim("L")}}
    )
    with torch.no_grad():
        expected = model(**words)
    found = run(path, words, ["output"], tmp_path)["output"]
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)


class Varied(torch.nn.Module):
    """Operators of many families."""

    def forward(self, x):
        y = torch.nn.functional.interpolate(x, scale_factor=2, mode="bilinear")
        y = torch.nn.functional.group_norm(torch.nn.functional.max_pool2d(y, 2), 2)
        a, b = y.flatten(1).sort(dim=1)
        c = torch.fft.rfft(a).abs().cumsum(1).clamp(max=50)
        values, places = c.topk(5)
        square = a[:, :16].view(-1, 4, 4) + 9 * torch.eye(4)
        return {
            "a": torch.special.i0(values) + torch.erf(a[:, :5]),
            "b": torch.linalg.solve(square, a[:, 16:20]),
            "c": torch.where(a[:, :5] > 0, torch.lgamma(a[:, :5].abs() + 1), torch.atan2(a[:, :5], values)),
            "d": (places % 7).float()
            + torch.logsumexp(a, 1, keepdim=True)
            + b[:, :5].argmax(1, keepdim=True),
            "e": torch.einsum("nij,njk->nik", square, square).amax(2) + a.std(1, keepdim=True),
        }


def test_operators_of_many_families(tmp_path):
    x = torch.randn(2, 4, 6, 6, generator=torch.Generator().manual_seed(3))
    save_file(Varied(), tmp_path / "m.rl", (x,))
    expected = Varied()(x)
    found = run(tmp_path / "m.rl", {"x": x}, list(expected), tmp_path)
    for name, value in expected.items():
        torch.testing.assert_close(found[name], value, rtol=1e-4, atol=1e-4)


def test_threads_share_a_model_and_memory_is_weights_and_plan(tmp_path):
    """Peak memory is at most 1.1 times weights and planned values, above what process and library need."""
    torch.manual_seed(0)
    layers = [torch.nn.Linear(1024, 1024) for _ in range(12)]
    model, x = torch.nn.Sequential(*layers).eval(), torch.randn(8, 1024)
    save_file(model, tmp_path / "m.rl", (x,))
    np.save(tmp_path / "x.npy", x.numpy())
    program = pathlib.Path(__file__).with_name("small_runtime_program.py")
    for threads in (1, 4):
        command = [
            sys.executable,
            program,
            LIBRARY,
            tmp_path / "m.rl",
            tmp_path / "x.npy",
            tmp_path / "y.npy",
        ]
        done = subprocess.run([*command, str(threads)], capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr
        with torch.no_grad():
            expected = model(x).numpy()
        np.testing.assert_allclose(np.load(tmp_path / "y.npy"), expected, rtol=1e-4, atol=1e-5)
        before, after = map(int, done.stdout.split())
        if threads == 1:
            weights = sum(p.nbytes for p in model.parameters())
            fixed = 16 << 20  # the table of operators, kernels that were compiled, scratch memory
            assert after - before <= 1.1 * weights + fixed
