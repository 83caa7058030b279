"""What rushlight-serve refuses, survives and never loses: sizes, slow clients, keys, TLS, ends, new files."""

import http.client
import json
import os
import shutil
import signal
import socket
import ssl
import subprocess
import threading
import time

import pytest
from serving import PROGRAM, Server, needs_server, refused, serving

import rushlight as torch
from rushlight import nn
from rushlight.export import Dim, save_file

pytestmark = needs_server
X = ("x", "FP32", [1, 4], [1, 2, 3, 4])


class Scale(nn.Module):
    def __init__(self, factor):
        super().__init__()
        self.factor = nn.Parameter(torch.tensor(float(factor)))

    def forward(self, x):
        return x * self.factor


class Slow(nn.Module):
    """Takes some time for each of its products."""

    def __init__(self, size=700, times=60):
        super().__init__()
        self.weight, self.times = nn.Parameter(torch.eye(size)), times

    def forward(self, x):
        y = self.weight
        for _ in range(self.times):
            y = y @ self.weight
        return x * y[0, 0]


def save(module, path, largest=64):
    save_file(
        module.eval(), path, (torch.ones(2, 4),), dynamic_shapes=({0: Dim("N", max=largest)},), optimize=False
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    save(Scale(2), folder / "scale.rl")
    save(Slow(), folder / "slow.rl")
    return folder


@pytest.fixture(scope="module")
def server(folder):
    with serving(folder / "scale.rl", "--max-body", "64K", "--max-header", "4K") as running:
        yield running


def settles(server, name, most=0):
    """Whether a metric falls to `most`: what an answered request held is given back a moment later."""
    until = time.monotonic() + 20
    while server.metric(name) > most and time.monotonic() < until:
        time.sleep(0.05)
    return server.metric(name) <= most


def alive(server):
    status, answer, _ = server.infer("scale", X)
    return status == 200 and answer["outputs"][0]["data"] == [2, 4, 6, 8]


# --- sizes and forms of requests


def answer_to(server, data, close=False):
    """All that comes back for these bytes."""
    with server.raw(data) as s:
        if close:
            s.shutdown(socket.SHUT_WR)
        parts = []
        while part := s.recv(65536):
            parts.append(part)
    return b"".join(parts)


@pytest.mark.parametrize(
    "data, status",
    [
        (b"nonsense\r\n\r\n", 400),
        (b"GET / HTTP/9.9\r\n\r\n", 400),
        (b"GET /v2 HTTP/1.1\r\nHost: x\r\nBad Header: 1\r\n\r\n", 400),
        (b"GET /v2 HTTP/1.1\r\n" + b"A: b\r\n" * 2000 + b"\r\n", 431),
        (b"GET /" + b"a" * 10000 + b" HTTP/1.1\r\n\r\n", 431),
        (b"POST /v2/models/scale/infer HTTP/1.1\r\nContent-Length: 70000\r\n\r\n", 413),
        (b"POST /v2/models/scale/infer HTTP/1.1\r\nContent-Length: -1\r\n\r\n", 400),
        (b"POST /v2/models/scale/infer HTTP/1.1\r\nContent-Length: 99999999999999999999\r\n\r\n", 400),
        (b"POST /v2/models/scale/infer HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", 400),
        (b"POST /v2/models/scale/infer HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nZZ\r\n", 400),
        (
            b"POST /v2/models/scale/infer HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n20000\r\n"
            + b"a" * 0x20000,
            413,
        ),
    ],
)
def test_malformed_and_large_requests_are_one_answer(server, data, status):
    answer = answer_to(server, data)
    assert answer.startswith(b"HTTP/1.1 %d " % status), answer[:200]
    body = json.loads(answer.partition(b"\r\n\r\n")[2])
    assert list(body) == ["error"]
    assert alive(server)


def test_paths_methods_and_encodings(server):
    assert server.ask("/none")[0] == 404
    status, _, headers = server.ask("/v2/models/scale/infer")
    assert status == 405 and headers["Allow"] == "POST"
    assert server.ask("/v2/models/scale/infer", b"x", Content_Encoding="gzip")[0] == 415
    assert server.ask("/v2/models/%73cale/ready")[0] == 200
    assert server.ask("/v2/models/scale/infer", b"{}", Inference_Header_Content_Length="9")[0] == 400


def test_expectations_and_pipelines_are_served(server):
    body = json.dumps({"inputs": [dict(zip(("name", "datatype", "shape", "data"), X, strict=True))]}).encode()
    head = b"POST /v2/models/scale/infer HTTP/1.1\r\nContent-Length: %d\r\n" % len(body)
    with server.raw(head + b"Expect: 100-continue\r\n\r\n") as s:
        assert s.recv(1000).startswith(b"HTTP/1.1 100 ")
        s.sendall(body)
        assert s.recv(1000).startswith(b"HTTP/1.1 200 ")
    with server.raw((head + b"\r\n" + body) * 3 + b"GET /v2 HTTP/1.1\r\nConnection: close\r\n\r\n") as s:
        answer = b""
        while part := s.recv(65536):
            answer += part
    assert answer.count(b"HTTP/1.1 200 ") == 4


def test_nothing_of_a_request_reaches_the_log_unescaped(server):
    server.ask("/a%0a%1b[31mred%00%22%ff?secret=1", X_Request_Id='"}\\')
    line = server.logged(path='/a\n\x1b[31mred\0"\ufffd')
    assert line["status"] == 404 and line["id"] == '"}\\' and "secret" not in json.dumps(line)


def test_slow_and_half_closed_clients_disturb_nobody(server):
    slow = [server.raw(b"POST /v2/models/scale/infer HTTP/1.1\r\nContent-Le") for _ in range(50)]
    half = [
        server.raw(b"POST /v2/models/scale/infer HTTP/1.1\r\nContent-Length: 100\r\n\r\n{") for _ in range(20)
    ]
    for s in half:
        s.shutdown(socket.SHUT_WR)
    start = time.monotonic()
    assert alive(server) and time.monotonic() - start < 5
    for s in slow + half:
        s.close()
    assert settles(server, "rushlight_connections", 2)
    assert settles(server, "rushlight_request_memory_bytes")


# --- too much of everything


def test_more_requests_than_the_queue_holds_are_told_to_come_again(folder):
    with serving(folder / "slow.rl", "--queue", "2", "--batch", "1") as server:
        statuses, retry = [], []

        def ask():
            status, _, headers = server.infer("slow", X)
            statuses.append(status)
            retry.append(headers.get("Retry-After"))

        threads = [threading.Thread(target=ask) for _ in range(12)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        assert set(statuses) == {200, 503} and statuses.count(200) >= 2
        assert all((s == 503) == (r is not None and int(r) > 0) for s, r in zip(statuses, retry, strict=True))
        assert server.infer("slow", X)[0] == 200
        assert server.metric("rushlight_model_refused_total") == statuses.count(503)


def test_requests_that_the_memory_does_not_hold_are_told_to_come_again(folder):
    with serving(folder / "scale.rl", "--memory", "200K") as server:
        status, answer, headers = server.ask("/v2/models/scale/infer", b" " * 150_000)
        assert status == 503 and "memory" in answer["error"] and headers["Retry-After"]
        assert alive(server) and settles(server, "rushlight_request_memory_bytes")


def test_more_connections_than_allowed_are_refused(folder):
    with serving(folder / "scale.rl", "--connections", "5") as server:
        held = [server.raw() for _ in range(5)]
        until = time.monotonic() + 10
        while time.monotonic() < until:
            with server.raw() as s:
                if s.recv(100).startswith(b"HTTP/1.1 503 "):
                    break
        else:
            raise AssertionError("all were taken")
        for s in held:
            s.close()
        time.sleep(0.3)
        assert alive(server)


def test_deadlines_and_lost_clients_free_the_queue(folder):
    with serving(folder / "slow.rl", "--batch", "1", "--deadline", "30") as server:
        busy = threading.Thread(target=lambda: [server.infer("slow", X) for _ in range(3)])
        busy.start()
        time.sleep(0.2)
        start = time.monotonic()
        status, answer, _ = server.infer("slow", X, parameters={"timeout": 1})
        assert status in (200, 504)
        statuses = {server.infer("slow", X, parameters={"timeout": 1})[0] for _ in range(3)}
        assert 504 in statuses | {status} and time.monotonic() - start < 25
        body = json.dumps(
            {"inputs": [dict(zip(("name", "datatype", "shape", "data"), X, strict=True))]}
        ).encode()
        head = b"POST /v2/models/slow/infer HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % len(body)
        lost = [server.raw(head + body) for _ in range(8)]
        time.sleep(0.1)
        for s in lost:
            s.close()
        server.logged(status=499, seconds=20)
        busy.join()
        until = time.monotonic() + 20
        while server.metric("rushlight_model_dropped_total") < 1 and time.monotonic() < until:
            time.sleep(0.1)
        assert server.metric("rushlight_model_dropped_total") >= 1
        assert server.infer("slow", X)[0] == 200


# --- who may ask


def test_keys_are_wanted_where_there_are_any(folder, tmp_path):
    keys = tmp_path / "keys"
    keys.write_text("first-key\n\n second-key \n")
    with serving(folder / "scale.rl", "--api-key-file", keys, RUSHLIGHT_API_KEYS="third,fourth") as server:
        for open_path in ("/v2/health/live", "/v2/health/ready", "/"):
            assert server.ask(open_path)[0] == 200
        for path in ("/v2", "/metrics", "/v1/models", "/stats", "/v2/models/scale"):
            status, _, headers = server.ask(path)
            assert status == 401 and headers["WWW-Authenticate"] == "Bearer"
        for key in ("first-key", "second-key", "third", "fourth"):
            assert server.ask("/v2", Authorization=f"Bearer {key}")[0] == 200
            assert server.ask("/v2", X_Api_Key=key)[0] == 200
        for key in ("", "first", "first-key-", "first-kez", "third,fourth"):
            assert server.ask("/v2", Authorization=f"Bearer {key}")[0] == 401
        # The body of a stranger is not even read.
        assert answer_to(
            server, b"POST /v2/models/scale/infer HTTP/1.1\r\nContent-Length: 9\r\n\r\n"
        ).startswith(b"HTTP/1.1 401 ")


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    if shutil.which("openssl") is None:
        pytest.skip("no openssl to make a certificate with")
    folder = tmp_path_factory.mktemp("tls")
    words = "req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost".split()
    words += ["-addext", "subjectAltName=IP:127.0.0.1"]
    files = ["-keyout", folder / "key.pem", "-out", folder / "cert.pem"]
    subprocess.run(["openssl", *words, *files], check=True, capture_output=True)
    return folder / "cert.pem", folder / "key.pem"


def test_tls(folder, certificate):
    cert, key = certificate
    try:
        with serving(folder / "scale.rl", "--cert", cert, "--key", key) as server:
            assert server.url.startswith("https://")
            context = ssl.create_default_context(cafile=cert)
            server.connect = lambda timeout=30: http.client.HTTPSConnection(
                "127.0.0.1", server.port, timeout=timeout, context=context
            )
            assert alive(server)
            with server.raw(b"GET / HTTP/1.1\r\n\r\n") as s:  # no TLS: the connection ends
                s.settimeout(20)
                assert not s.recv(100).startswith(b"HTTP")
            context.maximum_version = ssl.TLSVersion.TLSv1_2
            assert alive(server)
        assert "TLS with" in refused(folder / "scale.rl", "--cert", key, "--key", cert)
        assert "both --cert and --key" in refused(folder / "scale.rl", "--cert", cert)
    except RuntimeError as error:
        if "built without OpenSSL" not in str(error):
            raise
        pytest.skip("rushlight-serve was built without OpenSSL")


# --- beginnings and ends


def test_a_server_that_cannot_start_says_why_in_one_line(folder, tmp_path, server):
    damaged = tmp_path / "damaged.rl"
    damaged.write_bytes((folder / "scale.rl").read_bytes()[:-5])
    assert "damaged.rl" in refused(damaged)
    assert "cannot open" in refused(tmp_path / "none.rl")
    taken = refused(folder / "scale.rl", "--port", server.port)
    assert taken == f"cannot listen on 127.0.0.1 port {server.port}: Address already in use"
    assert refused() == "no model is given; see rushlight-serve --help"
    assert "unknown option --nothing" in refused(folder / "scale.rl", "--nothing")
    assert "--batch needs a number" in refused(folder / "scale.rl", "--batch", "many")
    assert "--host needs an address" in refused(folder / "scale.rl", "--host", "nowhere.invalid")
    assert "two models are called 'scale'" in refused(folder / "scale.rl", folder / "scale.rl")
    assert "holds no key" in refused(folder / "scale.rl", "--api-key-file", os.devnull)
    missing = tmp_path / "keys"
    said = refused(folder / "scale.rl", "--api-key-file", missing)
    assert said == f"cannot read the keys in '{missing}': No such file or directory"
    assert "'a/b' can't be a model's name" in refused(f"a/b={folder / 'scale.rl'}")


def test_it_ends_when_what_is_under_way_is_answered(folder):
    server = Server(folder / "slow.rl", "--batch", "1")
    answers = []
    threads = [threading.Thread(target=lambda: answers.append(server.infer("slow", X)[0])) for _ in range(4)]
    idle = server.connect()
    idle.request("GET", "/v2")
    idle.getresponse().read()
    for t in threads:
        t.start()
    until = time.monotonic() + 20
    while server.metric("rushlight_requests_in_flight") < 5 and time.monotonic() < until:
        time.sleep(0.01)
    server.process.send_signal(signal.SIGTERM)
    server.logged(event="ending")
    idle.request("GET", "/v2/health/ready")  # on a connection that is still open
    answer = idle.getresponse()
    assert answer.status == 503 and answer.headers["Connection"] == "close"
    with pytest.raises(OSError):
        server.raw()
    for t in threads:
        t.join()
    assert server.end() == 0 and answers == [200] * 4


def test_it_starts_again_at_once_after_it_was_killed(folder):
    server = Server(folder / "scale.rl")
    assert alive(server)
    server.end(signal.SIGKILL)
    start = time.monotonic()
    with serving(folder / "scale.rl", "--port", str(server.port)) as again:
        assert again.port == server.port and alive(again)
        assert time.monotonic() - start < 5  # 0.1 s where nothing else runs


def test_a_full_disk_or_closed_log_stops_nothing(folder):
    with open("/dev/full", "w") as full:
        process = subprocess.Popen(
            [PROGRAM, "--port", "0", folder / "scale.rl"],
            stdout=subprocess.PIPE,
            stderr=full,
            text=True,
        )
    try:
        port = int(process.stdout.readline().rsplit(":", 1)[1])
        for _ in range(20):
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
            connection.request("GET", "/v2")
            assert connection.getresponse().status == 200
            connection.close()
    finally:
        process.terminate()
        assert process.wait(30) == 0
        process.stdout.close()


# --- new files


def test_a_new_file_is_served_without_a_lost_request(folder, tmp_path):
    path = tmp_path / "model.rl"
    save(Scale(1), path)
    with serving(path, "--reload", "0.05") as server:
        results, stop = [], threading.Event()

        def ask():
            while not stop.is_set():
                status, answer, _ = server.infer("model", X)
                results.append(answer["outputs"][0]["data"][0] if status == 200 else status)

        threads = [threading.Thread(target=ask) for _ in range(3)]
        for t in threads:
            t.start()
        for factor in (2, 3, 4):
            save(Scale(factor), path)
            until = time.monotonic() + 20
            while results[-1:] != [factor] and time.monotonic() < until:
                time.sleep(0.01)
            assert results[-1] == factor
        stop.set()
        for t in threads:
            t.join()
        assert set(results) == {1, 2, 3, 4}
        assert server.metric("rushlight_model_reloads_total") == 3


def test_a_damaged_new_file_leaves_the_old_one_in_place(folder, tmp_path):
    path = tmp_path / "model.rl"
    save(Scale(2), path)
    with serving(path, "--reload", "0.05") as server:
        (tmp_path / "half").write_bytes(path.read_bytes()[:100])
        os.replace(tmp_path / "half", path)
        assert "model.rl" in server.logged(event="reload")["message"]
        assert server.infer("model", X)[1]["outputs"][0]["data"] == [2, 4, 6, 8]
        assert "model.rl" in server.ask("/stats")[1]["models"][0]["problem"]
        os.remove(path)
        assert server.infer("model", X)[0] == 200
        save(Scale(5), path)
        server.logged(event="loaded", model="model")
        until = time.monotonic() + 20
        while server.ask("/stats")[1]["models"][0]["problem"] and time.monotonic() < until:
            time.sleep(0.05)
        assert server.infer("model", X)[1]["outputs"][0]["data"] == [5, 10, 15, 20]
