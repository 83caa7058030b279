"""Sends damaged requests to a TCPStore's server, and damaged greetings to stores and workers with a token.

    PYTHONPATH=. python tests/fuzz/store_messages.py --messages 1000000

Half of the requests are right but for an operation, a count, a length or a value; the others are bytes. The
server answers or ends the connection: nothing is raised in it, no thread or descriptor stays, and another
client is served.
"""

import argparse
import os
import random
import socket
import struct
import sys
import threading
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent)]
sys.path.append(str(Path(__file__).resolve().parents[2]))  # behind a build that the caller puts on the path

import limits  # noqa: E402

from rushlight.distributed import _tcp_store as tcp  # noqa: E402
from rushlight.distributed.rpc import _wire  # noqa: E402

WORDS = (
    b"", b"a", b"b", b"0", b"1", b"-1", b"0.01", b"nan", b"inf", b"-inf", b"1e400", b"9" * 4299, b"9" * 5000,
    b"\xff\xfe", b"\0", b"a" * 300, b"-0", b" 7 ", b"1_000", "٣".encode(),
)  # fmt: skip
NUMBERS = (0, 1, 2, 3, 255, 1 << 20, (1 << 20) + 1, 1 << 28, (1 << 32) - 1)


class Server:
    """As much of a server as a connection sees."""

    def __init__(self, token=None):
        self.table, self.token = tcp._ServedTable(), token
        self.raised = []

    def serve(self, sock):
        try:
            tcp._Handler(sock, ("stranger", 0), self)
        except Exception as error:
            self.raised.append(error)
        finally:
            sock.close()


def request(rng):
    kind = rng.randrange(len(tcp._OPERATIONS)) if rng.random() < 0.9 else rng.randrange(256)
    strings = [rng.choice(WORDS) for _ in range(rng.choice((0, 1, 2, 2, 3, 3, 4, 6)))]
    count = len(strings) if rng.random() < 0.9 else rng.choice(NUMBERS)
    parts = [struct.pack("<BI", kind, count)]
    for string in strings:
        length = len(string) if rng.random() < 0.95 else rng.choice(NUMBERS)
        parts += [struct.pack("<I", length), string]
    return b"".join(parts)


def stream(rng):
    data = b"".join(request(rng) for _ in range(rng.randrange(1, 5)))
    if rng.random() < 0.3:
        data = bytearray(data)
        for _ in range(rng.randrange(1, 4)):
            data[rng.randrange(len(data))] = rng.randrange(256)
        data = bytes(data[: rng.randrange(len(data) + 1)])
    return rng.randbytes(rng.randrange(120)) if rng.random() < 0.05 else data


def exchange(serve, data):
    """What the other side does with these bytes, then the end of the connection."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        here = socket.create_connection(listener.getsockname(), timeout=30)
        there = listener.accept()[0]
    thread = threading.Thread(target=serve, args=(there,), daemon=True)
    thread.start()
    with here:
        try:
            here.sendall(data)
            here.shutdown(socket.SHUT_WR)
            while here.recv(1 << 16):
                pass
        except OSError:  # the other side hung up
            pass
    thread.join(30)
    return not thread.is_alive()


def fuzz(messages, seed):
    """(messages sent, what was wrong)"""
    rng, found, sent = random.Random(seed), [], 0
    server, guarded, secret = Server(), Server(b"token"), b"s" * _wire.SECRET_BYTES
    files = len(os.listdir("/proc/self/fd"))
    while sent < messages and len(found) < 20:
        data, sent = stream(rng), sent + 1
        chosen = rng.choice((server, server, server, guarded, None))
        if chosen is None:
            data, taken = rng.choice((data, secret + data, b"n" * 32 + data)), []
            ended = exchange(lambda sock, taken=taken: taken.append(_wire.identified(sock, secret)), data)
            if taken != [None]:
                found.append(f"a stranger is let in by {data!r}")
        else:
            if chosen is guarded:
                data = rng.choice((b"", struct.pack("<BI", tcp._IDENTIFY, 0))) + data
            ended = exchange(chosen.serve, data)
            found += [f"{type(e).__name__}: {e} raised by {data!r}" for e in chosen.raised]
            chosen.raised.clear()
            if guarded.table.values or guarded.table.queues:
                found.append(f"a stranger wrote with {data!r}")
        if not ended:
            found.append(f"no end after {data!r}")
        if len(server.table.values) > 1000:
            server.table.values.clear()
            server.table.queues.clear()
    server.table.set("kept", b"1")
    if server.table.get("kept", 1) != b"1" or len(os.listdir("/proc/self/fd")) > files:
        found.append("the server is not what it was")
    return sent, found


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--messages", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    limits.limit_memory()
    sent, found = fuzz(options.messages, options.seed)
    for text in found:
        print("FOUND", text[:600])
    print(f"{sent} messages, {len(found)} findings")
    return len(found) > 0


if __name__ == "__main__":
    sys.exit(main())
