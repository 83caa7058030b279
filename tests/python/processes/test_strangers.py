"""Who does not know a job's token is not listened to, and holds up nobody: stores and RPC."""

import contextlib
import os
import socket
import struct
import subprocess
import sys
import threading
import time
from datetime import timedelta
from pathlib import Path

import pytest

from rushlight import distributed as dist
from rushlight.distributed import _handshake, _recorder
from rushlight.distributed.rpc import _wire

pytestmark = pytest.mark.timeout(120)
SHORT = timedelta(seconds=20)
ROOT = Path(__file__).parents[3]


def store(**options):
    return dist.TCPStore("127.0.0.1", options.pop("port", 0), timeout=SHORT, **options)


@contextlib.contextmanager
def token(value):
    before = os.environ.pop("RUSHLIGHT_STORE_TOKEN", None)
    if value is not None:
        os.environ["RUSHLIGHT_STORE_TOKEN"] = value
    try:
        yield
    finally:
        os.environ.pop("RUSHLIGHT_STORE_TOKEN", None)
        if before is not None:
            os.environ["RUSHLIGHT_STORE_TOKEN"] = before


@pytest.fixture
def guarded():
    with token("the right one"):
        server = store(is_master=True)
        server.set("kept", b"1")
        yield server


def test_a_token_opens_a_store(guarded):
    client = store(port=guarded.port)
    client.set("a", b"2")
    assert guarded.get("a") == b"2" and client.clone().get("kept") == b"1"


def test_strangers_cannot_read_or_write_a_store(guarded):
    with token(None):
        stranger = store(port=guarded.port)
        with pytest.raises(dist.DistStoreError, match="RUSHLIGHT_STORE_TOKEN"):
            stranger.set("kept", b"2")
    with token("a wrong one"), pytest.raises(dist.DistNetworkError, match="another secret|closed"):
        store(port=guarded.port)
    assert guarded.get("kept") == b"1"


def test_a_store_without_token_is_no_store_of_ours():
    with token(None):
        server = store(is_master=True)
    with token("the right one"), pytest.raises(dist.DistNetworkError, match="does not know the token"):
        store(port=server.port)


def test_an_impostor_learns_nothing(guarded):
    """It may pass on what it saw, and does not know the answer to another number."""
    with socket.create_connection(("127.0.0.1", guarded.port)) as stranger:
        stranger.sendall(struct.pack("<BI", 255, 0) + b"n" * 32)
        shown = b""
        while len(shown) < 9 + 64:
            shown += stranger.recv(4096)
        stranger.sendall(shown[-32:])
        with contextlib.suppress(ConnectionError):
            assert stranger.recv(4096) == b""


@pytest.mark.parametrize("bytes_sent", [b"", b"\xff", b"GET / HTTP/1.1\r\n\r\n", b"\x00" * 5, b"\xff" * 400])
def test_strangers_that_stay_hold_up_nobody(guarded, bytes_sent):
    with contextlib.ExitStack() as opened:
        for _ in range(20):
            stranger = opened.enter_context(socket.create_connection(("127.0.0.1", guarded.port)))
            stranger.sendall(bytes_sent)
        started = time.monotonic()
        assert store(port=guarded.port).get("kept") == b"1"
        assert time.monotonic() - started < 5


def test_requests_have_a_limit():
    with token(None):
        server = store(is_master=True)
    for head in (struct.pack("<BI", 0, 1 << 27), struct.pack("<BII", 0, 2, 1 << 29)):
        with socket.create_connection(("127.0.0.1", server.port)) as stranger:
            stranger.sendall(head)
            stranger.settimeout(20)
            assert stranger.recv(1) == b""
    server.set("a", b"1")
    assert server.get("a") == b"1"


def test_rpc_does_not_listen_to_strangers():
    secret = b"s" * _wire.SECRET_BYTES
    with socket.create_server(("127.0.0.1", 0)) as listener:
        for sent in (b"x" * 96, secret + struct.pack("<QI", 1 << 60, 0), b""):
            with socket.create_connection(listener.getsockname()) as stranger:
                stranger.sendall(sent)
                stranger.shutdown(socket.SHUT_WR)
                assert _wire.identified(listener.accept()[0], secret) is None
        taken = []
        thread = threading.Thread(target=lambda: taken.append(_wire.identified(listener.accept()[0], secret)))
        thread.start()
        connection = _wire.connect(*listener.getsockname(), secret, 20)
        thread.join(20)
        taken[0].send(("head", 1))
        assert connection.receive() == (("head", 1), [])


def test_slow_strangers_are_let_go(monkeypatch):
    monkeypatch.setattr(_handshake, "SECONDS", 0.2)
    here, there = socket.socketpair()
    with here, there, pytest.raises(OSError):
        _handshake.accepting(here, b"secret")


def test_the_launcher_gives_its_job_a_token(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(
        "import os, rushlight.distributed as dist\n"
        "dist.init_process_group('gloo')\n"
        "found = [None, None]\n"
        "dist.all_gather_object(found, os.environ['RUSHLIGHT_STORE_TOKEN'])\n"
        "assert found[0] == found[1] and len(found[0]) == 64\n"
        "del os.environ['RUSHLIGHT_STORE_TOKEN']\n"
        "try:\n"
        "    dist.TCPStore(os.environ['MASTER_ADDR'], int(os.environ['MASTER_PORT'])).get('x')\n"
        "except dist.DistStoreError as error:\n"
        "    assert 'asks for a token' in str(error), error\n"
        "else:\n"
        "    raise AssertionError('a stranger was let in')\n"
        "dist.destroy_process_group()\n"
    )
    command = [sys.executable, "-m", "rushlight.distributed.run", "--standalone", "--nproc-per-node", "2"]
    with token(None):
        ran = subprocess.run([*command, str(program)], capture_output=True, text=True, timeout=100)
    assert ran.returncode == 0, ran.stderr[-3000:]


def test_damaged_requests():
    """A short run of tests/fuzz/store_messages.py, and what longer ones found."""
    sys.path.insert(0, str(ROOT / "tests" / "fuzz"))
    import store_messages

    sent, found = store_messages.fuzz(300, seed=1)
    assert sent == 300 and found == []
    server = store_messages.Server()
    for seconds in (b"inf", b"nan", b"-inf", b"9" * 400):
        request = struct.pack("<BII", 2, 2, 1) + b"a" + struct.pack("<I", len(seconds)) + seconds
        # The request that follows is not read before the wait ends.
        assert store_messages.exchange(server.serve, request + request) and server.raised == []


def test_groups_that_are_gone_are_not_remembered():
    if dist.is_initialized():
        dist.destroy_process_group()
    for _ in range(150):
        dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
        dist.destroy_process_group()
    assert len(_recorder.groups) <= 101
