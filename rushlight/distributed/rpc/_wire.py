"""How calls travel: frames on sockets, objects pickled, tensors beside them as plain bytes.

At the start of a connection both sides show that they know the job's secret, which the workers share through
their store (_handshake.py); without it nothing that arrives is unpickled.
"""

import copyreg
import io
import pickle
import socket
import struct
import threading

from ... import Tensor, empty, frombuffer, strided
from .. import _handshake

_HEAD = struct.Struct("<QI")
_LENGTH = struct.Struct("<Q")
_LIMIT = 1 << 40  # bytes of one part
SECRET_BYTES = 32
_local = threading.local()


def _take_tensor(index, dtype, shape, requires_grad):
    """The tensor in the buffer of a message that this thread is reading."""
    data = _local.buffers[index]
    tensor = frombuffer(data, dtype=dtype).view(shape) if len(data) else empty(shape, dtype=dtype)
    if requires_grad:
        return _local.received(tensor)
    return tensor


class _Pickler(pickle.Pickler):
    def __init__(self, file, sent):
        super().__init__(file, pickle.HIGHEST_PROTOCOL)
        self.dispatch_table = copyreg.dispatch_table.copy()
        self.dispatch_table[Tensor] = self._tensor
        self.buffers, self._sent = [], sent

    def _tensor(self, tensor):
        if tensor.layout is not strided or not tensor.is_cpu:
            return tensor.__reduce_ex__(pickle.HIGHEST_PROTOCOL)
        if tensor.requires_grad:
            self._sent(tensor)
        flat = tensor.detach().resolve_conj().contiguous()
        if flat.storage_offset() or flat.untyped_storage().nbytes() != flat.nbytes:
            flat = flat.clone()
        self.buffers.append(memoryview(flat.untyped_storage()) if flat.numel() else b"")
        return _take_tensor, (len(self.buffers) - 1, flat.dtype, tuple(flat.shape), tensor.requires_grad)


def pack(value, sent):
    """Bytes and buffers for an object; `sent(tensor)` is told of tensors that require gradients."""
    file = io.BytesIO()
    pickler = _Pickler(file, sent)
    pickler.dump(value)
    return [file.getbuffer(), *pickler.buffers]


def unpack(parts, received):
    """The object; `received(tensor)` gives what stands for a tensor that requires gradients."""
    before = getattr(_local, "buffers", None), getattr(_local, "received", None)
    _local.buffers, _local.received = parts[1:], received
    try:
        return pickle.loads(parts[0])
    finally:
        _local.buffers, _local.received = before


class Connection:
    """A socket that carries frames: a head, which is a tuple of plain values, and parts of bytes."""

    def __init__(self, sock):
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._socket, self._sending = sock, threading.Lock()

    def send(self, head, parts=()):
        head = pickle.dumps(head, pickle.HIGHEST_PROTOCOL)
        lengths = b"".join(_LENGTH.pack(len(part)) for part in parts)
        with self._sending:
            self._socket.sendall(_HEAD.pack(len(head), len(parts)) + lengths + head)
            for part in parts:
                self._socket.sendall(part)

    def receive(self):
        """The next head and its parts; raises OSError at the end of the connection."""
        size, count = _HEAD.unpack(self._exactly(_HEAD.size))
        lengths = [_LENGTH.unpack(self._exactly(_LENGTH.size))[0] for _ in range(count)]
        if max(lengths, default=0) > _LIMIT:
            raise ConnectionError(f"message of {max(lengths)} bytes refused")
        head = pickle.loads(self._exactly(size))
        return head, [self._exactly(length) for length in lengths]

    def _exactly(self, count):
        data = bytearray(count)
        view, at = memoryview(data), 0
        while at < count:
            n = self._socket.recv_into(view[at:])
            if n == 0:
                raise ConnectionError("the other side closed the connection")
            at += n
        return data

    def close(self):
        try:
            self._socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self._socket.close()


def connect(host, port, secret, seconds):
    sock = socket.create_connection((host, port), timeout=seconds)
    try:
        _handshake.connecting(sock, secret)
    except BaseException:
        sock.close()
        raise
    return Connection(sock)


def identified(sock, secret):
    """The connection, or None if its other side does not know the secret."""
    try:
        _handshake.accepting(sock, secret)
        return Connection(sock)
    except OSError:
        sock.close()
        return None
