"""Runs rushlight-serve for tests: on a free port, ended with the test, with nothing left behind."""

import contextlib
import http.client
import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import threading
import time

import pytest

import rushlight as torch

PROGRAM = pathlib.Path(torch.__file__).parent / "bin" / "rushlight-serve"
needs_server = pytest.mark.skipif(not PROGRAM.exists(), reason="rushlight-serve is not built here")


class Server:
    """A running server; `log` are the lines of its log so far, as dicts."""

    def __init__(self, *words, program=PROGRAM, **environment):
        self.process = subprocess.Popen(
            [str(program), "--port", "0", *map(str, words)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, **environment},
        )
        self.log, self.plain = [], []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        line = self.process.stdout.readline()
        if "://" not in line:
            self.process.wait(30)
            self._reader.join(10)
            raise RuntimeError("".join(self.plain) or f"no address: {line!r}")
        self.url = line.split()[1]
        self.port = int(self.url.rsplit(":", 1)[1])

    def _read(self):
        for line in self.process.stderr:
            if line.startswith("{"):
                self.log.append(json.loads(line))
            else:
                self.plain.append(line)

    def logged(self, seconds=10, **members):
        """The first line of the log with these members, which may still have to come."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            for line in list(self.log):
                if members.items() <= line.items():
                    return line
            time.sleep(0.02)
        raise AssertionError(f"no line with {members} in {self.log}")

    def connect(self, timeout=30):
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)

    def raw(self, data=b"", timeout=30):
        """A socket after it sent these bytes."""
        s = socket.create_connection(("127.0.0.1", self.port), timeout=timeout)
        s.sendall(data)
        return s

    def ask(self, path, body=None, method=None, **headers):
        """(status, what the answer holds, its headers)"""
        connection = self.connect()
        try:
            if body is not None and not isinstance(body, bytes):
                body = json.dumps(body).encode()
            names = {name.replace("_", "-"): value for name, value in headers.items()}
            connection.request(method or ("GET" if body is None else "POST"), path, body, names)
            answer = connection.getresponse()
            data = answer.read()
            is_json = answer.headers.get("Content-Type") == "application/json" and data
            if is_json and not answer.headers.get("Inference-Header-Content-Length"):
                data = json.loads(data)
            return answer.status, data, answer.headers
        finally:
            connection.close()

    def infer(self, model, *tensors, **more):
        """Asks by JSON; tensors are (name, datatype, shape, data)."""
        names = ("name", "datatype", "shape", "data")
        body = {"inputs": [dict(zip(names, t, strict=True)) for t in tensors], **more}
        return self.ask(f"/v2/models/{model}/infer", body)

    def metric(self, name):
        """The sum of a metric's values."""
        text = self.ask("/metrics")[1].decode()
        values = re.findall(rf"^{name}(?:\{{.*\}})? (\S+)$", text, re.MULTILINE)
        return sum(map(float, values))

    def resident(self):
        """Bytes in memory."""
        with open(f"/proc/{self.process.pid}/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE")

    def end(self, sent=signal.SIGTERM, timeout=40):
        """The status after a signal."""
        if self.process.poll() is None:
            self.process.send_signal(sent)
        try:
            status = self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise
        self._reader.join(10)
        self.process.stdout.close()
        self.process.stderr.close()
        return status


@contextlib.contextmanager
def serving(*words, **environment):
    server = Server(*words, **environment)
    try:
        yield server
        status = server.end()
        assert status == 0 and not server.plain, (status, server.plain)
    finally:
        if server.process.poll() is None:
            server.end(signal.SIGKILL)


def refused(*words, **environment):
    """What a server says that does not start: one line."""
    done = subprocess.run(
        [PROGRAM, "--port", "0", *map(str, words)],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, **environment},
    )
    assert done.returncode == 1 and not done.stdout, done
    lines = [line for line in done.stderr.splitlines() if not line.startswith("{")]
    assert len(lines) == 1 and lines[0].startswith("rushlight-serve: "), done.stderr
    return lines[0].removeprefix("rushlight-serve: ")
