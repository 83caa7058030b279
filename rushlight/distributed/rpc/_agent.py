"""One worker of a job of remote calls: it asks the others, and answers them.

A call goes out on a connection that the caller opened, and so does its answer come back: what one worker
sends to another arrives in order. Each connection has a thread that reads it; others' functions run on a
pool of threads.
"""

import heapq
import itertools
import pickle
import queue
import secrets
import socket
import threading
import time
import traceback
from datetime import timedelta

from ...futures import Future
from . import _wire


class WorkerInfo:
    """Name and number of a worker."""

    def __init__(self, name, id):
        self.name, self.id = name, id

    def __eq__(self, other):
        return isinstance(other, WorkerInfo) and (self.name, self.id) == (other.name, other.id)

    def __hash__(self):
        return hash((self.name, self.id))

    def __repr__(self):
        return f"WorkerInfo(id={self.id}, name={self.name})"


class RemoteException:
    """What was raised by a function, on its way back to the caller."""

    def __init__(self, worker, error):
        self.kind = type(error)
        text = "".join(traceback.format_exception(error))
        self.text = f"On {worker!r}:\n{error!r}\n{text}"

    def error(self):
        try:
            return self.kind(self.text)
        except Exception:
            return RuntimeError(self.text)


class _Threads:
    """Runs functions on up to `most` threads, which start as they are needed."""

    def __init__(self, most):
        self._most, self._tasks = most, queue.SimpleQueue()
        self._threads, self._idle, self._lock = 0, 0, threading.Lock()

    def run(self, function, *args):
        with self._lock:
            self._tasks.put((function, args))
            if self._idle > 0:
                self._idle -= 1
            elif self._threads < self._most:
                self._threads += 1
                threading.Thread(target=self._serve, daemon=True, name="rpc-pool").start()

    def _serve(self):
        while (task := self._tasks.get()) is not None:
            task[0](*task[1])
            del task
            with self._lock:
                if self._tasks.empty():
                    self._idle += 1

    def stop(self):
        for _ in range(self._threads):
            self._tasks.put(None)


class _Limits:
    """Fails futures whose time is over; one thread for all of them."""

    def __init__(self):
        self._heap, self._changed, self._order = [], threading.Condition(), itertools.count()
        self._ended = False
        threading.Thread(target=self._serve, daemon=True, name="rpc-limits").start()

    def add(self, seconds, expire):
        with self._changed:
            heapq.heappush(self._heap, (time.monotonic() + seconds, next(self._order), expire))
            self._changed.notify()

    def stop(self):
        with self._changed:
            self._ended = True
            self._changed.notify()

    def _serve(self):
        while True:
            with self._changed:
                if self._ended:
                    return
                wait = self._heap[0][0] - time.monotonic() if self._heap else None
                if wait is None or wait > 0:
                    self._changed.wait(wait)
                    continue
                expire = heapq.heappop(self._heap)[2]
            expire()


class _Peer:
    """The connection on which this worker asks another one, and the answers it awaits."""

    def __init__(self, info, connection, agent):
        self.info, self.connection, self._agent = info, connection, agent
        self.pending, self.lost, self._lock = {}, None, threading.Lock()
        threading.Thread(target=self._read, daemon=True, name=f"rpc-from-{info.name}").start()

    def ask(self, kind, details, parts, seconds):
        """A future of (head, parts) of the answer."""
        number, future = next(self._agent.numbers), Future()
        with self._lock:
            if self.lost is not None:
                raise self.lost
            self.pending[number] = future
        if seconds > 0:
            self._agent.limits.add(seconds, lambda: self._expire(number, seconds))
        try:
            self.connection.send((kind, number, *details), parts)
        except OSError as error:
            self._lose(error)
        return future

    def _expire(self, number, seconds):
        future = self.pending.pop(number, None)
        if future is not None:
            future.set_exception(
                RuntimeError(
                    f"RPC ran for more than set timeout ({round(seconds * 1000)} ms) and will now be marked "
                    f"with an error; it was sent to {self.info.name}"
                )
            )

    def _read(self):
        try:
            while True:
                head, parts = self.connection.receive()
                future = self.pending.pop(head[1], None)
                if future is not None:
                    future.set_result((head, parts))
                del head, parts, future
        except OSError as error:
            self._lose(error)

    def _lose(self, error):
        with self._lock:
            if self.lost is None:
                self.lost = RuntimeError(
                    f"RPC: worker {self.info.name} has ended, or is out of reach ({error})"
                )
            waiting, self.pending = self.pending, {}
        for future in waiting.values():
            future.set_exception(self.lost)


class Agent:
    """`handlers`: kind of request -> (function(agent, request), "inline", "pool" or "thread")."""

    def __init__(self, name, rank, size, store, options, handlers):
        self.info, self.size, self.options = WorkerInfo(name, rank), size, options
        self.numbers, self.limits = itertools.count(), _Limits()
        self._store, self._handlers = store, handlers
        self._pool = _Threads(getattr(options, "num_worker_threads", 16))
        self._peers, self._opening, self._incoming = {}, threading.Lock(), set()
        self.running, self._changed = 0, threading.Condition()
        self._posted, self._turns = queue.SimpleQueue(), {}
        self._meet()
        threading.Thread(target=self._accept, daemon=True, name="rpc-accept").start()
        threading.Thread(target=self._send_posted, daemon=True, name="rpc-post").start()

    # --- who is there

    def _meet(self):
        store, rank = self._store, self.info.id
        host = _own_address(store)
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._listener = socket.create_server((host, 0), family=family, backlog=1024)
        if rank == 0:
            store.set("secret", secrets.token_bytes(_wire.SECRET_BYTES))
        store.set(f"worker/{rank}", f"{host} {self._listener.getsockname()[1]} {self.info.name}")
        self.workers, self._addresses = {}, {}
        for other in range(self.size):
            address, port, name = store.get(f"worker/{other}").decode().split(" ", 2)
            if name in self.workers:
                self._listener.close()
                raise RuntimeError(f"RPC worker name {name} is not unique.")
            self.workers[name] = WorkerInfo(name, other)
            self._addresses[other] = address, int(port)
        self._secret = store.get("secret")

    def worker(self, to):
        """The WorkerInfo for a name, a rank or a WorkerInfo."""
        if isinstance(to, WorkerInfo):
            return to
        if isinstance(to, str):
            if to not in self.workers:
                raise RuntimeError(f"Unknown destination worker {to}; there are {sorted(self.workers)}")
            return self.workers[to]
        if isinstance(to, int) and not isinstance(to, bool):
            for info in self.workers.values():
                if info.id == to:
                    return info
            raise RuntimeError(f"Unknown destination worker {to}: there are {self.size} workers")
        raise ValueError(f"Cannot get WorkerInfo from name {to}")

    # --- asking

    def ask(self, to, kind, details=(), parts=(), seconds=0):
        with self._opening:
            peer = self._peers.get(to.id)
            if peer is None:
                try:
                    connection = _wire.connect(*self._addresses[to.id], self._secret, 30)
                except OSError as error:
                    raise RuntimeError(
                        f"RPC: worker {to.name} has ended, or is out of reach ({error})"
                    ) from None
                peer = self._peers[to.id] = _Peer(to, connection, self)
        return peer.ask(kind, details, parts, seconds)

    def post(self, to, kind, details):
        """Ask later and for no answer; may be called at any moment, even by the garbage collector."""
        self._posted.put((to, kind, details))

    def _send_posted(self):
        while (message := self._posted.get()) is not None:
            try:
                self.ask(*message)
            except RuntimeError:
                pass  # there is nobody left to tell

    def outstanding(self):
        return sum(len(peer.pending) for peer in list(self._peers.values()))

    # --- answering

    def _accept(self):
        while True:
            try:
                sock, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(sock,), daemon=True, name="rpc-serve").start()

    def _serve(self, sock):
        connection = _wire.identified(sock, self._secret)
        if connection is None:
            return
        self._incoming.add(connection)
        try:
            while True:
                head, parts = connection.receive()
                function, where = self._handlers[head[0]]
                with self._changed:
                    self.running += 1
                if where == "inline":
                    self._run(function, connection, head, parts)
                elif where == "pool":
                    self._pool.run(self._run, function, connection, head, parts)
                else:
                    threading.Thread(
                        target=self._run, args=(function, connection, head, parts), daemon=True
                    ).start()
                del head, parts
        except OSError:
            self._incoming.discard(connection)
            connection.close()

    def _run(self, function, connection, head, parts):
        """The function answers at once by what it returns, (details, parts), or later through `answer`."""

        def answer(details=(), answered=()):
            with self._changed:
                self.running -= 1
                self._changed.notify_all()
            try:
                connection.send(("answer", head[1], *details), answered)
            except OSError:
                pass  # the caller is gone

        try:
            function(self, answer, head[2:], parts)
        except BaseException as error:
            answer(("failed",), _wire.pack(RemoteException(self.info, error), lambda tensor: None))

    # --- the end

    def drain(self):
        """Wait until no call of ours is under way and none of others is running."""
        while self.outstanding() or self.running:
            with self._changed:
                self._changed.wait(0.01)

    def barrier(self, name, seconds):
        """Wait for all workers; 0 seconds: as long as it takes."""
        store = self._store
        store.set(f"{name}/{self.info.id}", b"1")
        keys = [f"{name}/{rank}" for rank in range(self.size)]
        store.wait(keys, _limit(seconds))

    def gather(self, value, names, seconds):
        """What every worker of these passes, by name; of all workers if `names` is None."""
        names = sorted(self.workers if names is None else names)
        if self.info.name not in names:
            raise RuntimeError(f"{self.info.name} is not one of the workers {names} that gather")
        turn = self._turns.get(tuple(names), 0)
        self._turns[tuple(names)] = turn + 1
        keys = [f"gather/{turn}/{len(names)}/{'+'.join(names)}/{name}" for name in names]
        self._store.set(keys[names.index(self.info.name)], pickle.dumps(value))
        self._store.wait(keys, _limit(seconds))
        return {name: pickle.loads(self._store.get(key)) for name, key in zip(names, keys, strict=True)}

    def close(self):
        self.limits.stop()
        self._posted.put(None)
        self._pool.stop()
        self._listener.close()
        for peer in list(self._peers.values()):
            peer.connection.close()
        for connection in list(self._incoming):
            connection.close()


def _limit(seconds):
    """A timeout for stores; 0 seconds mean none."""
    return timedelta(seconds=seconds) if seconds > 0 else timedelta(days=3650)


def _own_address(store):
    """The address by which this host is known where the workers meet."""
    while hasattr(store, "underlying_store"):
        store = store.underlying_store
    if getattr(store, "_server", None) is not None:
        return socket.getaddrinfo(store.host, None, type=socket.SOCK_STREAM)[0][4][0]
    connection = getattr(store, "_connection", None)
    if connection is not None:
        return connection.getsockname()[0].removeprefix("::ffff:")
    return "127.0.0.1"
