"""How two sides of a connection show each other that they know a secret, which itself is not sent.

Each side draws a number and answers the other's with a hash that only the secret gives. Who does not know it
is told nothing, and no other byte that it sends is looked at.
"""

import hmac
import secrets
import time

_SIZE = 32  # bytes of a number, and of an answer
SECONDS = 10  # for all of it: a stranger that is silent, or slow, holds up no one but itself


def _answer(secret, side, *numbers):
    return hmac.digest(secret, side + b"".join(numbers), "sha256")


def _exactly(sock, count, deadline):
    data = b""
    while len(data) < count:
        left = deadline - time.monotonic()
        if left <= 0:
            raise ConnectionError("the other side did not identify itself in time")
        sock.settimeout(left)
        piece = sock.recv(count - len(data))
        if not piece:
            raise ConnectionError("the other side closed the connection before it identified itself")
        data += piece
    return data


def connecting(sock, secret):
    """The part of the side that connected; raises ConnectionError for strangers."""
    deadline = time.monotonic() + SECONDS
    mine = secrets.token_bytes(_SIZE)
    sock.sendall(mine)
    theirs, shown = _exactly(sock, _SIZE, deadline), _exactly(sock, _SIZE, deadline)
    if not hmac.compare_digest(shown, _answer(secret, b"accepting", mine, theirs)):
        raise ConnectionError("the other side has another secret")
    sock.sendall(_answer(secret, b"connecting", mine, theirs))
    sock.settimeout(None)


def accepting(sock, secret):
    """The part of the side that was connected to; raises ConnectionError for strangers."""
    deadline = time.monotonic() + SECONDS
    theirs, mine = _exactly(sock, _SIZE, deadline), secrets.token_bytes(_SIZE)
    sock.sendall(mine + _answer(secret, b"accepting", theirs, mine))
    if not hmac.compare_digest(_exactly(sock, _SIZE, deadline), _answer(secret, b"connecting", theirs, mine)):
        raise ConnectionError("the other side has another secret")
    sock.settimeout(None)
