"""A store that one process serves to the others over TCP.

A request is an operation's number, a count and as many byte strings; a reply a status and one byte string.
Nothing that arrives is ever unpickled or evaluated, and the length of every request is limited. Where
RUSHLIGHT_STORE_TOKEN is set, both sides show that they know it before anything else (_handshake.py).
"""

import os
import select
import socket
import socketserver
import struct
import threading
import time
import weakref
from datetime import timedelta
from multiprocessing.connection import wait

from . import _handshake
from ._errors import DistNetworkError, DistStoreError, QueueEmptyError
from .store import OwnStore, Table, to_bytes

_LIMIT = 1 << 28  # bytes of one request
_STRINGS = 1 << 20  # of one request
_IDENTIFY = 255  # no operation: the client wants to show that it knows the token
_TOKEN = "RUSHLIGHT_STORE_TOKEN"
_OK, _FAILED, _TIMED_OUT, _EMPTY = range(4)
_ERRORS = {_FAILED: DistStoreError, _TIMED_OUT: DistStoreError, _EMPTY: QueueEmptyError}


_ARRIVED = "init/"  # the key that counts the processes that use a store
_LONGEST = 10 * 86400  # seconds; the system's clock of such waits ends at 24 days, beyond there is no limit


def _send(connection, kind, strings):
    parts = [struct.pack("<BI", kind, len(strings))]
    for string in strings:
        parts += [struct.pack("<I", len(string)), string]
    connection.sendall(b"".join(parts))


def _receive_exactly(connection, count):
    pieces = bytearray()
    while len(pieces) < count:
        piece = connection.recv(min(count - len(pieces), 1 << 20))
        if not piece:
            raise ConnectionError("the other side closed the connection")
        pieces += piece
    return bytes(pieces)


def _receive(connection):
    kind, count = struct.unpack("<BI", _receive_exactly(connection, 5))
    if count > _STRINGS:
        raise ConnectionError(f"message of {count} parts refused")
    strings, total = [], 0
    for _ in range(count):
        (length,) = struct.unpack("<I", _receive_exactly(connection, 4))
        total += length
        if total > _LIMIT:
            raise ConnectionError(f"message of {total} bytes refused")
        strings.append(_receive_exactly(connection, length))
    return kind, strings


def _number(value):
    return str(value).encode()


def _seconds(string):
    value = float(string)
    if not abs(value) < 1e10:
        raise ValueError(f"{value} is no time in seconds")
    return value


def _keys(strings):
    return [string.decode() for string in strings]


# What the server does for each operation: (table, strings) -> bytes.
def _set(table, key, value):
    table.set(key.decode(), value)


def _append(table, key, value):
    table.append(key.decode(), value)


def _get(table, key, seconds):
    return table.get(key.decode(), _seconds(seconds))


def _wait(table, seconds, *keys):
    table.wait(_keys(keys), _seconds(seconds))


def _add(table, key, amount):
    return _number(table.add(key.decode(), int(amount)))


def _check(table, *keys):
    return _number(int(table.check(_keys(keys))))


def _compare_set(table, key, expected, desired):
    return table.compare_set(key.decode(), expected, desired)


def _delete(table, key):
    return _number(int(table.delete(key.decode())))


def _count(table):
    return _number(len(table.values))


def _list(table):
    return b"\0".join(key.encode() for key in list(table.values) if key != _ARRIVED)


def _push(table, key, value):
    table.push(key.decode(), value)


def _pop(table, key, seconds):
    return table.pop(key.decode(), _seconds(seconds))


def _queue_length(table, key):
    return _number(len(table.queues.get(key.decode(), ())))


_OPERATIONS = [_set, _append, _get, _wait, _add, _check, _compare_set, _delete, _count, _list, _push, _pop]
_OPERATIONS += [_queue_length]


class _ServedTable(Table):
    """The table of a server: waits of a client end when the client is gone."""

    def __init__(self):
        super().__init__()
        self._served = threading.local()

    def named(self, key):
        return f"/{key}"  # in messages, as PyTorch's: its server keeps its own keys beside those of users

    def serve(self, connection):
        """From now on this thread works for the client at the other end."""
        self._served.connection = connection

    def _still_wanted(self):
        connection = getattr(self._served, "connection", None)
        if connection is None:
            return True
        if hasattr(select, "POLLRDHUP"):  # also where a request that was sent before is not read yet
            watch = select.poll()
            watch.register(connection, select.POLLRDHUP)
            return not watch.poll(0)
        try:
            return connection.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT) != b""
        except BlockingIOError:  # nothing to read: a client that waits
            return True
        except OSError:
            return False


class _Handler(socketserver.BaseRequestHandler):
    """One client's connection."""

    def handle(self):
        self.request.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.server.table.serve(self.request)
        try:
            if self.server.token is not None and not self._identified(self.server.token):
                return
            while True:
                kind, strings = _receive(self.request)
                _send(self.request, *self._answer(kind, strings))
        except OSError:
            return

    def _identified(self, token):
        """Whether the client knows the token; of one that does not, five bytes are read."""
        self.request.settimeout(_handshake.SECONDS)
        kind, count = struct.unpack("<BI", _receive_exactly(self.request, 5))
        if kind != _IDENTIFY or count:
            _send(self.request, _FAILED, [f"this store asks for a token: set {_TOKEN}".encode()])
            self.request.shutdown(socket.SHUT_WR)
            self.request.recv(1 << 16)  # unread bytes would take the answer back
            return False
        _send(self.request, _OK, [b""])
        _handshake.accepting(self.request, token)
        return True

    def _answer(self, kind, strings):
        try:
            result = _OPERATIONS[kind](self.server.table, *strings)
        except QueueEmptyError as error:
            return _EMPTY, [str(error).encode()]
        except DistStoreError as error:
            return _TIMED_OUT, [str(error).encode()]
        except (LookupError, TypeError, ValueError) as error:
            return _FAILED, [f"malformed request: {error}".encode()]
        return _OK, [result or b""]


class _Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True
    request_queue_size = 4096

    def __init__(self, host, port, listening=None, token=None):
        self.table, self.users, self.token = _ServedTable(), 0, token
        family, address = _bind_address(host, port)
        self.address_family = family
        super().__init__(address, _Handler, bind_and_activate=False)
        if listening is not None:
            self.socket.close()
            self.socket = socket.socket(fileno=os.dup(listening))
            self.server_address = self.socket.getsockname()
        else:
            if family == socket.AF_INET6:
                self.socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
            self.server_bind()
        self.server_activate()
        threading.Thread(target=self.serve_forever, args=(0.1,), daemon=True, name="TCPStore").start()


def _bind_address(host, port):
    """All addresses of this host, as the others may know it by another one; IPv6 too where there is IPv6."""
    if socket.has_ipv6:
        try:
            with socket.socket(socket.AF_INET6):
                return socket.AF_INET6, ("::", port)
        except OSError:
            pass
    return socket.AF_INET, ("", port)


class TCPStore(OwnStore):
    """The store of a job: `is_master=True` serves it at `host_name:port`, the others connect to it.

    Args:
        host_name, port: where the server is; port 0 lets the server choose a free one (see `.port`).
        world_size: how many processes use the store; None when that is not known beforehand.
        timeout: limit for connecting and for every `get` and `wait`.
        wait_for_workers: whether the constructor returns only when all `world_size` processes are here.
        master_listen_fd: a socket that listens already, for the server.

    Whoever reaches the port may read and write, unless RUSHLIGHT_STORE_TOKEN is set to the same text in the
    environment of all processes: then server and clients show each other that they know it.

    Raises:
        DistNetworkError: the server cannot be reached in time, its port is taken, or it has another token.
    """

    _token: str | None = None  # of one store, in the place of the environment's

    def __init__(
        self,
        host_name,
        port,
        world_size=None,
        is_master=False,
        timeout=timedelta(seconds=300),
        wait_for_workers=True,
        multi_tenant=False,
        master_listen_fd=None,
        use_libuv=True,
    ):
        super().__init__()
        self.set_timeout(timeout)
        if world_size == 0:
            raise ValueError("TCPStore world size cannot be 0")
        self.host, self.port, self.libuvBackend = host_name, port, use_libuv
        self._lock, self._connection, self._pid = threading.Lock(), None, None
        self._server = self._serve(multi_tenant, master_listen_fd) if is_master else None
        self._connect()
        if wait_for_workers and world_size is not None and world_size > 0:
            self._wait_for_workers(world_size)

    def __repr__(self):
        client = "<nullptr>"
        if self._connection is not None:
            own, peer = self._connection.getsockname(), self._connection.getpeername()
            addresses = ", ".join(
                f"{name}=[{at[0]}]:{at[1]}" for name, at in (("addr", own), ("remote", peer))
            )
            client = f"TCPClient(SocketImpl(fd={self._connection.fileno()}, {addresses}))"
        server = f"TCPServer(port={self.port})" if self._server else "<nullptr>"
        return f"TCPStore(client={client}, server={server})"

    _servers: dict = {}  # by port, for several stores of one process

    def _serve(self, multi_tenant, listening):
        server = self._servers.get(self.port) if multi_tenant else None
        if server is None:
            try:
                server = _Server(self.host, self.port, listening, self._secret())
            except OSError as error:
                raise DistNetworkError(
                    "The server socket has failed to listen on any local network address. port: "
                    f"{self.port}, {error.strerror} (EADDRINUSE: another process uses it; choose "
                    "another, or 0 for a free one)"
                ) from None
            self._servers[server.server_address[1]] = server
        self.port = server.server_address[1]
        server.users += 1
        weakref.finalize(self, _let_go, server).atexit = False
        return server

    def _connect(self):
        deadline = time.monotonic() + self.timeout.total_seconds()
        host = "localhost" if self._server else self.host
        pause = 0.01
        while True:
            try:
                connection = socket.create_connection((host, self.port), timeout=5)
                break
            except OSError as error:
                if time.monotonic() + pause > deadline:
                    limit = round(self.timeout.total_seconds() * 1000)
                    raise DistNetworkError(
                        f"The client socket has timed out after {limit}ms "
                        f"while trying to connect to ({self.host}, {self.port}): {error}"
                    ) from None
                time.sleep(pause)
                pause = min(2 * pause, 0.5)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        _notice_silence(connection)
        connection.settimeout(None)
        secret = self._secret()
        if secret is not None:
            try:
                self._identify(connection, secret)
            except OSError as error:
                connection.close()
                raise DistNetworkError(
                    f"TCPStore: the server at ({self.host}, {self.port}) does not know the token of "
                    f"{_TOKEN}, which must be the same in all processes: {error}"
                ) from None
        self._connection, self._pid = connection, os.getpid()

    @classmethod
    def _with_token(cls, token, *args, **options):
        store = cls.__new__(cls)
        store._token = token
        store.__init__(*args, **options)  # type: ignore[misc]
        return store

    def _secret(self):
        token = self._token or os.environ.get(_TOKEN)
        return token.encode() if token else None

    @staticmethod
    def _identify(connection, secret):
        connection.settimeout(_handshake.SECONDS)
        _send(connection, _IDENTIFY, [])
        status, _ = _receive(connection)
        if status != _OK:
            raise ConnectionError("it has none")
        _handshake.connecting(connection, secret)

    def _wait_for_workers(self, world_size):
        """Be counted; the server's process waits until all are, of as many jobs as have come so far."""
        arrived = self.add(_ARRIVED, 1)
        if self._server is None:
            return
        seconds, wanted = self.timeout.total_seconds(), -(-arrived // world_size) * world_size
        present = self._server.table.wait_for_count(_ARRIVED, wanted, seconds)
        if present < wanted:
            raise DistStoreError(
                f"Timed out after {round(seconds)} seconds waiting for clients. "
                f"{present - wanted + world_size}/{world_size} clients joined."
            )

    def _ask(self, operation, *strings, seconds=None):
        """Send a request and return the reply; `seconds`: how long the server itself may wait."""
        with self._lock:
            if self._pid != os.getpid():  # after a fork the parent's connection is the parent's
                self._connect()
            try:
                _send(self._connection, _OPERATIONS.index(operation), strings)
                if seconds is not None:
                    if not wait([self._connection], seconds + 10 if seconds < _LONGEST else None):
                        raise ConnectionError("no answer")
                status, (reply,) = _receive(self._connection)
            except OSError as error:
                raise DistNetworkError(
                    f"TCPStore: lost the server at ({self.host}, {self.port}): {error}; it has ended, or the "
                    "network is interrupted"
                ) from None
        if status != _OK:
            raise _ERRORS.get(status, DistStoreError)(reply.decode())
        return reply

    def set(self, key, value):
        self._ask(_set, key.encode(), to_bytes(value))

    def append(self, key, value):
        self._ask(_append, key.encode(), to_bytes(value))

    def get(self, key):
        seconds = self.timeout.total_seconds()
        return self._ask(_get, key.encode(), _number(seconds), seconds=seconds)

    def add(self, key, amount):
        return int(self._ask(_add, key.encode(), _number(amount)))

    def check(self, keys):
        return self._ask(_check, *(key.encode() for key in keys)) == b"1"

    def compare_set(self, key, expected, desired):
        return self._ask(_compare_set, key.encode(), to_bytes(expected), to_bytes(desired))

    def delete_key(self, key):
        return self._ask(_delete, key.encode()) == b"1"

    def num_keys(self):
        return int(self._ask(_count))

    def list_keys(self):
        return [key.decode() for key in self._ask(_list).split(b"\0") if key]

    def queue_push(self, key, value):
        self._ask(_push, key.encode(), to_bytes(value))

    def queue_pop(self, key, block=True):
        seconds = self.timeout.total_seconds() if block else 0
        return self._ask(_pop, key.encode(), _number(seconds), seconds=seconds)

    def queue_len(self, key):
        return int(self._ask(_queue_length, key.encode()))

    def _wait_seconds(self, keys, seconds):
        self._ask(_wait, _number(seconds), *(key.encode() for key in keys), seconds=seconds)

    def _disconnect(self):
        """Ends what another thread awaits with this handle."""
        try:
            self._connection.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass

    def clone(self):
        """A connection of its own, so that a blocking `get` here does not hold up the other."""
        return self._with_token(
            self._token, self.host, self.port, timeout=self.timeout, wait_for_workers=False
        )


def _notice_silence(connection):
    """Let a connection fail when the other host does not answer any more: a cut cable sends no farewell."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    options = {"TCP_KEEPIDLE": 10, "TCP_KEEPINTVL": 4, "TCP_KEEPCNT": 5, "TCP_USER_TIMEOUT": 30_000}
    for name, value in options.items():
        if hasattr(socket, name):
            connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


def _let_go(server):
    server.users -= 1
    if server.users == 0:
        TCPStore._servers.pop(server.server_address[1], None)
        server.shutdown()
        server.server_close()
