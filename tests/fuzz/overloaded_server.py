"""rushlight-serve at a multiple of what it can do: it must answer each request, keep its memory and serve on.

    python tests/fuzz/overloaded_server.py --minutes 10 [--times 2] [--senders 64]

The capacity is measured first. Then requests come at `times` that rate, whether the former are answered or
not, as from many clients. Only 200, 429 and 503 with Retry-After are answers; memory after the first tenth
may grow by 5%; the slowest percent of what was admitted waits at most four times as long as the queue takes
to empty.
"""

import argparse
import collections
import http.client
import json
import pathlib
import queue
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests/python/helpers")]
sys.path.append(str(ROOT))  # behind a build that the caller puts on the path

import serving  # noqa: E402

import rushlight as torch  # noqa: E402
from rushlight import nn  # noqa: E402
from rushlight.export import save_file  # noqa: E402

QUEUE = 16
BODY = json.dumps(
    {"inputs": [{"name": "input", "datatype": "FP32", "shape": [1, 512], "data": [0.5] * 512}]}
).encode()


def model(width=2048, layers=3):
    """Some 10 ms of work."""
    parts = [nn.Linear(512, width)]
    for _ in range(layers):
        parts += [nn.ReLU(), nn.Linear(width, width)]
    return nn.Sequential(*parts, nn.Linear(width, 4)).eval()


class Senders:
    """Threads that each send what is due as soon as they are free."""

    def __init__(self, port, count):
        self.port = port
        self.due = queue.SimpleQueue()
        self.answers, self.seconds = collections.Counter(), []
        self.lock = threading.Lock()
        self.threads = [threading.Thread(target=self.send) for _ in range(count)]
        for thread in self.threads:
            thread.start()

    def send(self):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        while self.due.get():
            start = time.perf_counter()
            try:
                connection.request(
                    "POST", "/v2/models/busy/infer", BODY, {"Content-Type": "application/json"}
                )
                answer = connection.getresponse()
                answer.read()
                what = answer.status
                if what == 503 and not answer.headers.get("Retry-After"):
                    what = "503 without Retry-After"
            except (OSError, http.client.HTTPException) as error:
                what = type(error).__name__
                connection.close()
            with self.lock:
                self.answers[what] += 1
                if what == 200:
                    self.seconds.append(time.perf_counter() - start)
        connection.close()

    def end(self):
        for _ in self.threads:
            self.due.put(False)
        for thread in self.threads:
            thread.join(120)


def capacity(server, seconds):
    """Requests a second of four clients that wait for their answers."""
    senders = Senders(server.port, 4)
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if senders.due.qsize() < 4:
            senders.due.put(True)
        time.sleep(0.0005)
    senders.end()
    return senders.answers[200] / seconds


def overload(server, rate, seconds, count):
    """(answers, seconds of those admitted, bytes in memory over the time)"""
    senders, memory = Senders(server.port, count), []
    start, sent, looked = time.monotonic(), 0, 0
    while (now := time.monotonic() - start) < seconds:
        while sent < now * rate:
            # What no sender was free for is not heaped up: that would be a burst at the end.
            if senders.due.qsize() < count:
                senders.due.put(True)
            sent += 1
        if now >= looked * seconds / 40:
            memory.append(server.resident())
            looked += 1
        time.sleep(0.002)
    senders.end()
    return senders.answers, sorted(senders.seconds), memory


def main(arguments=None):
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--times", type=float, default=2)
    parser.add_argument("--senders", type=int, default=64)
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "busy.rl"
        save_file(model(), file, (torch.zeros(1, 512),))
        server = serving.Server(file, "--queue", str(QUEUE), "--log", "none")
        try:
            seconds = options.minutes * 60
            most = capacity(server, min(10, max(1, seconds / 10)))
            answers, waited, memory = overload(server, options.times * most, seconds, options.senders)
            after = capacity(server, 1)
        finally:
            status = server.end()
    settled = memory[len(memory) // 10]
    growth = max(memory[len(memory) // 10 :]) / settled - 1
    p99, bound = waited[int(len(waited) * 0.99)], 4 * (QUEUE + 2) / (len(waited) / seconds)
    print(f"capacity {most:.0f} requests a second, asked {options.times:g} times that for {seconds:.0f} s")
    print(f"answers: {dict(answers)}; admitted: median {waited[len(waited) // 2]:.3f} s, p99 {p99:.3f} s")
    print(f"memory {settled / 1e6:.1f} MB, {growth:+.1%} at most")
    print(f"afterwards {after:.0f} a second; ended with {status}")
    found = [f"an answer was {what}" for what in answers if what not in (200, 429, 503)]
    if not answers[503] and not answers[429]:
        found.append("nothing was refused: this was no overload")
    if growth > 0.05:
        found.append("memory grew")
    if p99 > bound:
        found.append(f"those admitted waited too long (p99 {p99:.3f} s, bound {bound:.3f} s)")
    if status or not after:
        found.append("the server did not go on, or did not end as it should")
    print("\n".join(found) or "held")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
