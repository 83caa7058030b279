"""Messages between a loader and one of its workers.

A socket that keeps the bounds of messages carries them, so that a process killed in the middle of one never
leaves half of it. Tensors travel as places in shared memory, and so does what is too long for the socket.
"""

import io
import pickle
import socket
from collections import deque
from multiprocessing.reduction import ForkingPickler

import rushlight
from rushlight.multiprocessing import reductions

_BUFFER = 1 << 16
_PLAIN, _SHARED = b"p", b"s"


def _shared_copy(data):
    """A storage in shared memory that holds the bytes."""
    storage = rushlight.UntypedStorage._new_shared(len(data))
    memoryview(storage)[:] = data
    return storage


def pack(message, longest):
    """The bytes to send for an object."""
    buffer = io.BytesIO()
    buffer.write(_PLAIN)
    ForkingPickler(buffer, pickle.HIGHEST_PROTOCOL).dump(message)
    if buffer.tell() <= longest:
        return buffer.getbuffer()
    packed = _shared_copy(buffer.getbuffer()[1:])
    return _SHARED + bytes(ForkingPickler.dumps(reductions.reduce_storage(packed)))


def unpack(data):
    """The object that was packed."""
    if data[:1] == _PLAIN:
        return pickle.loads(data[1:])
    rebuild, args = pickle.loads(data[1:])
    return pickle.loads(memoryview(rebuild(*args)))


class Channel:
    """One end of a connection; `longest` bounds what one message takes of the socket's buffer."""

    def __init__(self, sock, longest):
        self.socket = sock
        self._longest = longest
        self._waiting = deque()  # packed messages that did not fit into the socket yet
        self._buffer = None

    @staticmethod
    def pair(outstanding):
        """Two ends, each of which may have so many messages on their way."""
        # Half of the usual buffer of 208 KiB: the system counts more than the bytes of a message.
        longest = max(512, min(_BUFFER - 1, (100 << 10) // (outstanding + 1)))
        return [Channel(s, longest) for s in socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)]

    def fileno(self):
        return self.socket.fileno()

    def send(self, message):
        """Waits until the other side has room."""
        self.socket.sendall(pack(message, self._longest))

    def post(self, message):
        """Sends without waiting: what does not fit now is sent by a later :meth:`flush`."""
        self._waiting.append(pack(message, self._longest))
        self.flush()

    def flush(self):
        while self._waiting:
            try:
                self.socket.send(self._waiting[0], socket.MSG_DONTWAIT)
            except BlockingIOError:
                return
            except (BrokenPipeError, ConnectionResetError):
                self._waiting.clear()  # its end is noticed where answers are awaited
                return
            self._waiting.popleft()

    def receive(self, wait=True):
        """The next message. Raises EOFError if the other side is gone, BlockingIOError if nothing is there
        and `wait` is false."""
        if self._buffer is None:
            self._buffer = memoryview(bytearray(_BUFFER))
        try:
            n = self.socket.recv_into(self._buffer, 0, 0 if wait else socket.MSG_DONTWAIT)
        except ConnectionResetError:
            n = 0
        if n == 0:
            raise EOFError("the other side is gone")
        return unpack(self._buffer[:n])

    def shut(self):
        """Ends the connection for both sides, whoever else has inherited it."""
        try:
            self.socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self.close()

    def close(self):
        self.socket.close()

    def __reduce__(self):
        return Channel, (self.socket, self._longest)
