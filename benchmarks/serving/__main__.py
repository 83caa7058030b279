"""Alternates the two servers under load and prints requests a second, latencies and the ratios of the two."""

import argparse
import re
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from . import models

ROOT = Path(__file__).resolve().parents[2]
UNITS = {"us": 1e-3, "ms": 1.0, "s": 1e3, "m": 6e4}


@dataclass
class Target:
    """A server that runs, and the file that tells wrk what to send."""

    url: str
    script: Path


@dataclass
class Load:
    requests: float  # a second
    p99: float  # ms


def free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


@contextmanager
def running(words: list[str], folder: Path, name: str):
    with open(folder / f"{name}.log", "w+") as log:
        process = subprocess.Popen(words, stdout=log, stderr=log, cwd=ROOT)
        try:
            yield process
        finally:
            process.terminate()
            process.wait(60)


def wait_for_answer(process: subprocess.Popen, url: str, body: bytes, headers: dict[str, str]) -> None:
    request = urllib.request.Request(url, body, {"Content-Type": "application/json"} | headers)
    until = time.monotonic() + 120
    while True:
        try:
            urllib.request.urlopen(request, timeout=60).read()
            return
        except urllib.error.HTTPError as error:
            raise SystemExit(f"{url} answers {error.code}: {error.read()[:500]!r}") from None
        except OSError:
            if process.poll() is not None or time.monotonic() > until:
                raise SystemExit(f"{url} did not start") from None
            time.sleep(0.1)


def write_script(folder: Path, name: str, body: bytes, headers: dict[str, str]) -> Path:
    (folder / f"{name}.body").write_bytes(body)
    lines = [
        'wrk.method = "POST"',
        f'local file = io.open("{folder / name}.body", "rb")',
        'wrk.body = file:read("*a")',
    ]
    for header, value in ({"Content-Type": "application/json"} | headers).items():
        lines.append(f'wrk.headers["{header}"] = "{value}"')
    script = folder / f"{name}.lua"
    script.write_text("\n".join(lines) + "\n")
    return script


def start_ours(stack: ExitStack, folder: Path, name: str, threads: int) -> Target:
    file, port = folder / f"{name}.rl", free_port()
    subprocess.run([sys.executable, "-m", "benchmarks.serving.models", name, str(file)], check=True, cwd=ROOT)
    program = ROOT / "rushlight" / "bin" / "rushlight-serve"
    words = [str(program), str(file), "--port", str(port), "--threads", str(threads)]
    process = stack.enter_context(running(words, folder, "ours"))
    body, headers = models.protocol_request(name)
    url = f"http://127.0.0.1:{port}/v2/models/{name}/infer"
    wait_for_answer(process, url, body, headers)
    return Target(url, write_script(folder, "ours", body, headers))


def start_peer(stack: ExitStack, folder: Path, name: str, threads: int) -> Target:
    port = free_port()
    words = [sys.executable, "-m", "benchmarks.serving.fastapi_server", name, str(port), str(threads)]
    process = stack.enter_context(running(words, folder, "peer"))
    body, headers = models.plain_request(name)
    url = f"http://127.0.0.1:{port}/predict"
    wait_for_answer(process, url, body, headers)
    return Target(url, write_script(folder, "peer", body, headers))


def load(target: Target, clients: int, seconds: int) -> Load:
    words = ["wrk", "-t1", f"-c{clients}", f"-d{seconds}s", "--timeout", "60s", "--latency", "-s"]
    printed = subprocess.run(
        [*words, str(target.script), target.url], capture_output=True, text=True, check=True
    ).stdout
    if bad := re.search(r"Non-2xx.*|Socket errors.*", printed):
        raise SystemExit(f"{target.url}: {bad[0]}")
    requests = re.search(r"Requests/sec:\s+([\d.]+)", printed)
    p99 = re.search(r"99%\s+([\d.]+)(us|ms|s|m)", printed)
    if not requests or not p99 or not float(requests[1]):
        raise SystemExit(
            f"{target.url}: no request was answered in {seconds} s, take more --seconds\n{printed}"
        )
    return Load(float(requests[1]), float(p99[1]) * UNITS[p99[2]])


def measure(name: str, clients: list[int], seconds: int, rounds: int, threads: int) -> None:
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        targets = [start(stack, folder, name, threads) for start in (start_ours, start_peer)]
        for target in targets:
            load(target, max(clients), seconds)
        for count in clients:
            ours, theirs = [], []
            for i in range(rounds):
                pair = [(targets[0], ours), (targets[1], theirs)]
                for target, results in pair if i % 2 else reversed(pair):
                    results.append(load(target, count, seconds))
            a, b = (statistics.median(x.requests for x in xs) for xs in (ours, theirs))
            p, q = (statistics.median(x.p99 for x in xs) for xs in (ours, theirs))
            requests = statistics.median(x.requests / y.requests for x, y in zip(ours, theirs, strict=True))
            latency = statistics.median(x.p99 / y.p99 for x, y in zip(ours, theirs, strict=True))
            print(
                f"{name:10} {count:7} {a:10.1f} {b:10.1f} {requests:6.2f} {p:10.1f} {q:10.1f} {latency:6.2f}",
                flush=True,
            )


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.serving", description=__doc__)
    parser.add_argument("--models", default="mlp,resnet50")
    parser.add_argument("--clients", default="1,16,64")
    parser.add_argument(
        "--seconds", type=int, default=5, help="of each load (ResNet-50 with 64 clients needs 30)"
    )
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    if not shutil.which("wrk"):
        raise SystemExit("this needs wrk (Debian, Ubuntu: apt install wrk)")
    head = ("model", "clients", "ours/s", "FastAPI/s", "ratio", "p99 ms", "FastAPI", "ratio")
    print("{:10} {:>7} {:>10} {:>10} {:>6} {:>10} {:>10} {:>6}".format(*head))
    for name in options.models.split(","):
        clients = [int(x) for x in options.clients.split(",")]
        measure(name, clients, options.seconds, options.rounds, options.threads)


if __name__ == "__main__":
    main()
