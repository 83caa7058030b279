"""Every example runs for a few steps and leaves its pictures."""

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[3] / "examples"
pytest.importorskip("matplotlib")

RUNS = {
    "classify_digits": (["--steps", "20"], ["confusion.png", "digits.pt"], "held-out accuracy"),
    "language_model": (["--steps", "2"], ["lstm.png", "lstm.txt"], "nats a character"),
    "language_model gpt": (["--steps", "2", "--model", "gpt"], ["gpt.png", "gpt.txt"], "nats a character"),
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


def test_serving(monkeypatch):
    pytest.importorskip("starlette")
    httpx = pytest.importorskip("httpx")
    monkeypatch.syspath_prepend(str(FOLDER))
    import classify_digits
    import serve

    app = serve.make_app(classify_digits.make_model())

    async def talk():
        transport = httpx.ASGITransport(app=app)
        async with (
            app.router.lifespan_context(app),
            httpx.AsyncClient(transport=transport, base_url="http://x") as c,
        ):
            answers = await asyncio.gather(
                *(c.post("/predict", json={"pixels": [0.5] * 64}) for _ in range(20))
            )
            bad = [
                await c.post("/predict", content=body)
                for body in (b"[]", b"{", b'{"pixels": [2]}', b" " * 70000)
            ]
            return answers, bad, await c.get("/health"), await c.get("/metrics")

    answers, bad, health, metrics = asyncio.run(talk())
    assert all(a.status_code == 200 and abs(sum(a.json()["probabilities"]) - 1) < 1e-5 for a in answers)
    assert [b.status_code for b in bad] == [400, 400, 400, 413]
    assert health.json() == {"status": "ok", "waiting": 0}
    counts = dict(line.split() for line in metrics.text.splitlines())
    assert counts["rushlight_requests_total"] == "20" and int(counts["rushlight_batches_total"]) < 20
