"""Every example runs for a few steps and leaves its pictures."""

import importlib.util
import json
import os
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest
from serving import needs_server

import rushlight as torch
from rushlight import serve

FOLDER = Path(__file__).resolve().parents[3] / "examples"
pytest.importorskip("matplotlib")

RUNS = {
    "classify_digits": (["--steps", "20"], ["confusion.png", "digits.pt"], "held-out accuracy"),
    "language_model": (["--steps", "2"], ["lstm.png", "lstm.txt"], "nats a character"),
    "language_model gpt": (["--steps", "2", "--model", "gpt"], ["gpt.png", "gpt.txt"], "nats a character"),
    "quantize": (
        ["--steps", "60", "--text-steps", "3"],
        ["quantize.png", "digits-int8.rl", "text-int4-weights.rl"],
        "text: int4-weights: perplexity",
    ),
    "vae": (["--steps", "5"], ["vae_plane.png", "vae_codes.png"], "nats an image"),
    "dcgan": (["--steps", "3"], ["dcgan.png"], "generator"),
    "cart_pole": (["--steps", "2"], ["cart_pole.png"], "of 200 steps"),
    "physics_informed": (["--steps", "5"], ["physics_informed.png"], "largest error"),
    "neural_ode": (["--steps", "3"], ["neural_ode.png"], "loss"),
    "gaussian_process": (["--steps", "50"], ["gaussian_process.png"], "noise 0.1"),
    "numerics": ([], ["numerics.png"], "Kalman filter: error"),
    "pytorch_checkpoint": (["--steps", "20"], ["pretrained.pt", "tuned.pt"], "odd or even"),
    "custom_operator": ([], ["custom_operator.png"], "largest error of the derivative"),
}


@pytest.mark.parametrize("name", RUNS)
def test_example(name, tmp_path):
    options, files, says = RUNS[name]
    program = FOLDER / f"{name.split()[0]}.py"
    path = os.pathsep.join(p for p in sys.path if p)
    done = subprocess.run(
        [sys.executable, program, "--out", tmp_path, *options],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr
    assert says in done.stdout
    assert all((tmp_path / file).stat().st_size > 0 for file in files)


def test_every_example_is_run():
    programs = {path.stem for path in FOLDER.glob("*.py")} - {"common", "serve"}
    assert programs == {name.split()[0] for name in RUNS}


@needs_server
def test_serving(monkeypatch):
    monkeypatch.syspath_prepend(str(FOLDER))
    import classify_digits

    spec = importlib.util.spec_from_file_location("serve_example", FOLDER / "serve.py")
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    module, inputs, dynamic_shapes = example.served(classify_digits.make_model())
    with serve.Server(module, inputs, name="digits", dynamic_shapes=dynamic_shapes, log="none") as server:
        tensor = {"name": "input", "datatype": "FP32", "shape": [3, 1, 8, 8], "data": [0.5] * 192}
        request = urllib.request.Request(
            f"{server.url}/v2/models/digits/infer", json.dumps({"inputs": [tensor]}).encode()
        )
        with urllib.request.urlopen(request, timeout=60) as answer:
            (output,) = json.load(answer)["outputs"]
    assert output["shape"] == [3, 10]
    assert output["data"] == pytest.approx(module(torch.full((3, 1, 8, 8), 0.5)).flatten().tolist(), abs=1e-5)
