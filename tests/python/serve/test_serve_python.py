"""rushlight.serve: the server on a module while that is developed."""

import json
import os
import signal
import subprocess
import sys
import time
import urllib.request

import pytest
from serving import needs_server

import rushlight as torch
from rushlight import nn, serve
from rushlight.export import save_file

pytestmark = needs_server


def ask(url, model, data):
    tensor = {"name": "input", "datatype": "FP32", "shape": [len(data)], "data": data}
    request = urllib.request.Request(
        f"{url}/v2/models/{model}/infer", json.dumps({"inputs": [tensor]}).encode()
    )
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.load(answer)["outputs"][0]["data"]


def becomes(expected, *question):
    until = time.monotonic() + 60
    while (found := ask(*question)) != expected:
        assert time.monotonic() < until, found
        time.sleep(0.05)


class Scale(nn.Module):
    def __init__(self, factor):
        super().__init__()
        self.factor = nn.Parameter(torch.tensor(factor))

    def forward(self, input):
        return input * self.factor


def test_a_module_is_served_and_updated(tmp_path):
    example = (torch.zeros(2),)
    with serve.Server(Scale(2.0), example, log="none") as server:
        assert ask(server.url, "model", [1, 2]) == [2, 4]
        server.update(Scale(3.0))
        becomes([3, 6], server.url, "model", [1, 2])
        process, folder = server._process, server._folder.name
    assert process.returncode == 0 and not os.path.exists(folder)
    save_file(Scale(4.0), tmp_path / "four.rl", example)
    with serve.Server(tmp_path / "four.rl", name="four", log="none") as server:
        assert ask(server.url, "four", [1, 2]) == [4, 8]


def test_a_server_that_cannot_start_is_an_error(capfd):
    with pytest.raises(RuntimeError, match="ended with status 1"):
        serve.Server(Scale(2.0), (torch.zeros(2),), options=["--batch", "no"])
    assert "--batch needs a number" in capfd.readouterr().err


SOURCE = """
import rushlight as torch
from rushlight import nn

class Scale(nn.Module):
    def forward(self, input):
        return input * {factor}

def make():
    return Scale(), (torch.zeros(2),)
"""


def heed_interrupts():
    """Whoever runs the tests in the background may have had SIGINT ignored, and children inherit that."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
def test_the_command_follows_the_source(tmp_path, sent):
    source = tmp_path / "mine.py"
    source.write_text(SOURCE.format(factor=2))
    words = [sys.executable, "-m", "rushlight.serve", f"{source}:make", "--port", "0", "--log", "none"]
    process = subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=heed_interrupts
    )
    try:
        url = process.stdout.readline().split()[1]
        assert ask(url, "mine", [1, 2]) == [2, 4]
        source.write_text("broken(")
        while "the former model is served" not in process.stderr.readline():
            assert process.poll() is None
        assert ask(url, "mine", [1, 2]) == [2, 4]
        source.write_text(SOURCE.format(factor=5))
        becomes([5, 10], url, "mine", [1, 2])
    finally:
        process.send_signal(sent)
        try:
            process.communicate(timeout=60)
        finally:
            process.kill()
    assert process.returncode == 0
    with pytest.raises(OSError):  # nor does its server go on
        urllib.request.urlopen(url, timeout=10)
    assert subprocess.run(words[:3], capture_output=True).returncode == 2
