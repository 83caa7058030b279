"""Malformed requests to rushlight-serve: HTTP, JSON, tensors, chats. It must answer all it can and go on.

    python tests/fuzz/server_requests.py --cases 100000 [--program FILE] [--language-model lm.rl]

Each case mutates a good request (bytes, numbers, structure, headers, length, where it is cut) and looks at
what comes back: nothing, or answers of HTTP whose bodies are JSON. After each hundred a good request must
have its answer, and memory for requests must be free at the end.
"""

import argparse
import json
import pathlib
import random
import socket
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests/python/helpers")]
sys.path.append(str(ROOT))  # behind a build that the caller puts on the path

import serving  # noqa: E402

import rushlight as torch  # noqa: E402
from rushlight import nn  # noqa: E402
from rushlight.export import Dim, save_file  # noqa: E402

STRANGE = [
    b"\0",
    b"\r\n",
    b"\xff\xfe",
    b"%00",
    b"-1",
    b"1e400",
    b"99999999999999999999",
    b"NaN",
    b"{" * 50,
    b"[" * 120,
]
STRANGE += [
    b'"',
    b"\\u",
    b"\\ud800",
    b"null",
    b": ",
    b"\r\n\r\n",
    b"chunked",
    b"\n ",
    b"HTTP/1.1",
    b"/v2/models/../x",
]
VALUES = [
    None,
    True,
    -1,
    0,
    2**63,
    2**64,
    1e308,
    "",
    "x",
    "\0",
    [],
    {},
    [[]],
    [1, "a"],
    [1, [2, 3]],
    {"a": []},
]
VALUES += [[-1], [2**62, 2**62], [1] * 70, "FP64", "BYTES", [0.5] * 9, {"binary_data_size": 2**40}]


def places(value, path=()):
    """Where something stands in JSON."""
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield from places(inner, (*path, key))


def changed(value, draw):
    """A copy in which one place holds something else, or is gone."""
    value = json.loads(json.dumps(value))
    path = draw.choice([p for p in places(value) if p] or [()])
    if not path:
        return draw.choice(VALUES)
    inner = value
    for key in path[:-1]:
        inner = inner[key]
    if draw.random() < 0.2:
        del inner[path[-1]]
    else:
        inner[path[-1]] = draw.choice(VALUES)
    return value


def good_bodies(language_model):
    tensor = {"name": "input", "datatype": "FP32", "shape": [1, 4], "data": [1, 2, 3, 4]}
    yield "/v2/models/linear/infer", {"id": "1", "inputs": [tensor], "parameters": {"timeout": 10**7}}, b""
    binary = {"name": "input", "datatype": "FP32", "shape": [1, 4], "parameters": {"binary_data_size": 16}}
    outputs = [{"name": "output", "parameters": {"binary_data": True}}]
    yield "/v2/models/linear/versions/1/infer", {"inputs": [binary], "outputs": outputs}, bytes(16)
    index = {"name": "index", "datatype": "INT64", "shape": [2], "data": [1, 2]}
    yield "/v2/models/lookup/infer", {"inputs": [index]}, b""
    if language_model:
        settings = {"model": "language", "max_tokens": 2, "temperature": 0.5, "stop": ["x"], "seed": 1}
        yield "/v1/completions", {**settings, "prompt": "Once", "stream": True, "n": 2}, b""
        yield "/v1/chat/completions", {**settings, "messages": [{"role": "user", "content": "hi"}]}, b""


def request_of(draw, bodies):
    path, body, binary = draw.choice(bodies)
    if draw.random() < 0.6:
        for _ in range(draw.randint(1, 3)):
            if isinstance(body, (dict, list)):
                body = changed(body, draw)
    text = json.dumps(body).encode()
    headers = [b"Host: x"]
    if binary:
        headers.append(
            b"Inference-Header-Content-Length: %d" % (len(text) + draw.choice([0, 0, 0, 1, -1, 10**6]))
        )
    data = text + binary
    if draw.random() < 0.25:
        data = mutated(data, draw)
    if draw.random() < 0.1:
        headers.append(b"Transfer-Encoding: chunked")
        data = b"%x\r\n" % len(data) + data + b"\r\n0\r\n\r\n"
    else:
        headers.append(b"Content-Length: %d" % max(len(data) + draw.choice([0] * 20 + [1, -1, 5000]), 0))
    if draw.random() < 0.1:
        headers.append(
            draw.choice([b"Expect: 100-continue", b"Connection: close", b"Content-Encoding: gzip", b": x"])
        )
    method = draw.choice([b"POST"] * 12 + [b"GET", b"HEAD", b"PUT", b"OPTIONS", b"POS T"])
    whole = method + b" " + path.encode() + b" HTTP/1.1\r\n" + b"\r\n".join(headers) + b"\r\n\r\n" + data
    if draw.random() < 0.35:
        whole = mutated(whole, draw)
    return whole


def mutated(data, draw):
    data = bytearray(data)
    for _ in range(draw.randint(1, 4)):
        at = draw.randrange(len(data) + 1)
        what = draw.random()
        if what < 0.4 and at < len(data):
            data[at] = draw.randrange(256)
        elif what < 0.7:
            data[at:at] = draw.choice(STRANGE)
        elif what < 0.85:
            del data[at : at + draw.randint(1, 20)]
        else:
            data = data[:at] or bytearray(b"x")
    return bytes(data)


def check_answers(data):
    """Each answer has a status, and a body of the length that it says."""
    while data:
        head, found, data = data.partition(b"\r\n\r\n")
        assert found and head.startswith((b"HTTP/1.1 ", b"HTTP/1.0 ")), head[:200]
        status = int(head.split()[1])
        assert status in (100, 200, 400, 404, 405, 408, 413, 415, 431, 500, 503, 504), head[:200]
        fields = dict(line.lower().split(b": ", 1) for line in head.split(b"\r\n")[1:])
        if b"content-length" not in fields:
            return  # a stream, or 100
        body, data = data[: int(fields[b"content-length"])], data[int(fields[b"content-length"]) :]
        if body and fields[b"content-type"] == b"application/json":
            json.loads(body)


def run(server, cases, seed, bodies):
    draw = random.Random(seed)
    answered = 0
    for case in range(cases):
        data = request_of(draw, bodies)
        with socket.create_connection(("127.0.0.1", server.port), timeout=20) as s:
            try:
                for piece in (data[: len(data) // 2], data[len(data) // 2 :]) if case % 10 == 0 else (data,):
                    s.sendall(piece)
                if case % 17 == 0:
                    continue  # it goes away
                s.shutdown(socket.SHUT_WR) if case % 3 == 0 else s.sendall(
                    b"GET / HTTP/1.1\r\nConnection: close\r\n\r\n"
                )
                s.settimeout(0.1 if case % 3 else 5)
                got = b""
                while part := s.recv(65536):
                    got += part
            except TimeoutError:
                pass  # it waits for the rest of a body
            except (BrokenPipeError, ConnectionResetError):
                continue
        assert server.process.poll() is None, f"the server ended in case {case}: {data!r}"
        if got and b"HEAD " not in data:
            answered += 1
            try:
                check_answers(got)
            except Exception as error:
                if b"text/event-stream" not in got:
                    raise AssertionError(f"case {case}: {error}\n{data!r}\n{got[:500]!r}") from error
        if case % 100 == 99:
            tensor = {"name": "input", "datatype": "FP32", "shape": [1, 4], "data": [1, 1, 1, 1]}
            status = server.ask("/v2/models/linear/infer", {"inputs": [tensor]})[0]
            assert status == 200, f"a good request after case {case}: {status}"
    return answered


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--program", default=serving.PROGRAM)
    parser.add_argument("--language-model")
    given = parser.parse_args()

    class Lookup(nn.Module):
        def __init__(self):
            super().__init__()
            self.table = nn.Embedding(10, 4)

        def forward(self, index):
            return self.table(index)

    with tempfile.TemporaryDirectory() as folder:
        rows = ({0: Dim("N", max=64)},)
        save_file(nn.Linear(4, 2).eval(), f"{folder}/linear.rl", (torch.zeros(2, 4),), dynamic_shapes=rows)
        save_file(Lookup().eval(), f"{folder}/lookup.rl", (torch.arange(3),), dynamic_shapes=rows)
        words = [f"{folder}/linear.rl", f"{folder}/lookup.rl", "--log", "none", "--max-body", "1M"]
        if given.language_model:
            words.append(f"language={given.language_model}")
        server = serving.Server(*words, program=given.program)
        try:
            start = time.monotonic()
            answered = run(server, given.cases, given.seed, list(good_bodies(given.language_model)))
            until = time.monotonic() + 30  # requests that were cut may still be read
            while server.metric("rushlight_request_memory_bytes") and time.monotonic() < until:
                time.sleep(0.02)
            assert server.metric("rushlight_request_memory_bytes") == 0
            memory = server.resident() / 1e6
        finally:
            status = server.end()
        assert status == 0 and not server.plain, (status, server.plain)
    took = time.monotonic() - start
    print(
        f"{given.cases} requests, {answered} answered, in {took:.0f} s; {memory:.0f} MB in memory at the end"
    )


if __name__ == "__main__":
    main()
