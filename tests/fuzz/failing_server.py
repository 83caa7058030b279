"""The server while memory runs out: one allocation in N fails, by chance, in all its threads.

    PYTHONPATH=. python tests/fuzz/failing_server.py --minutes 10 --one-in 500

Meanwhile clients ask. Every answer is the right one or an error of HTTP whose body is JSON, or the connection
ends; the server does not. Afterwards, with memory again, all requests have their answers, and the server
takes no more memory than before.
"""

import argparse
import collections
import http.client
import json
import pathlib
import re
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests/python/helpers"), str(pathlib.Path(__file__).parent)]
sys.path.append(str(ROOT))  # behind a build that the caller puts on the path

import failing_memory  # noqa: E402
import serving  # noqa: E402

import rushlight as torch  # noqa: E402
from rushlight.export import Dim, save_file  # noqa: E402


class Client:
    """Asks for one product after the other."""

    def __init__(self, port, expected):
        self.port, self.expected, self.answers = port, expected, collections.Counter()
        self.ended, self.thread = threading.Event(), threading.Thread(target=self._run)
        self.thread.start()

    def _run(self):
        while not self.ended.is_set():
            self.answers[self.ask()] += 1

    def ask(self):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        tensor = {"name": "input", "datatype": "FP32", "shape": [2, 4], "data": [1.0] * 8}
        try:
            connection.request("POST", "/v2/models/linear/infer", json.dumps({"inputs": [tensor]}))
            answer = connection.getresponse()
            body = json.loads(answer.read())
        except ValueError as error:
            return f"not JSON: {error}"
        except (http.client.HTTPException, ConnectionError):
            return "connection ended"
        except OSError as error:
            return f"no answer: {error}"
        finally:
            connection.close()
        if answer.status != 200:
            return f"status {answer.status}" if "error" in body else f"no error in the body: {body}"
        data = body["outputs"][0]["data"]
        right = len(data) == 6 and all(abs(a - b) < 1e-5 for a, b in zip(data, self.expected))
        return "right" if right else f"another result: {data}"

    def end(self):
        self.ended.set()
        self.thread.join()
        return self.answers


def clients(port, expected, seconds, count=4):
    """What the server answered in this time."""
    running = [Client(port, expected) for _ in range(count)]
    time.sleep(seconds)
    return sum((client.end() for client in running), collections.Counter())


def run(options, folder):
    library = failing_memory.build(folder)
    net, file, mark = torch.nn.Linear(4, 3), pathlib.Path(folder, "linear.rl"), pathlib.Path(folder, "fail")
    save_file(net, file, (torch.ones(2, 4),), dynamic_shapes=({0: Dim("N", max=8)},))
    expected = net(torch.ones(2, 4)).flatten().tolist()
    environment = {"LD_PRELOAD": str(library), "FAILING_MEMORY": str(options.one_in)}
    server = serving.Server(file, "--log", "none", FAILING_MEMORY_WHILE=str(mark), **environment)
    found = []
    try:
        before = clients(server.port, expected, 2)
        memory = server.resident()
        mark.touch()
        during = clients(server.port, expected, 60 * options.minutes)
        mark.unlink()
        time.sleep(0.5)
        after = clients(server.port, expected, 2)
        grown = server.resident() / memory - 1
    finally:
        mark.unlink(missing_ok=True)
        status = server.end()
    told = re.search(r"(\d+) allocations failed", "".join(server.plain))
    failures = int(told[1]) if told else 0
    print(f"{failures} failures of memory; answers {dict(during)}; memory {grown:+.1%}; ended with {status}")
    if set(before) != {"right"} or set(after) != {"right"}:
        found.append(f"with memory: {dict(before)} before, {dict(after)} after")
    strange = [what for what in during if not re.fullmatch(r"right|connection ended|status 5\d\d", what)]
    found += [f"an answer was {what}" for what in strange]
    if status or not failures:
        found.append("the server did not end as it should, or nothing failed")
    if grown > 0.1:
        found.append("memory grew")
    print("\n".join(found) or "held")
    return bool(found)


def main(arguments=None):
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--one-in", type=int, default=500)
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        return run(options, folder)


if __name__ == "__main__":
    sys.exit(main())
