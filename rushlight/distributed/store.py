"""Key-value stores in which the processes of a job find each other.

Keys are strings, values bytes (strings are encoded). `get` and `wait` block until somebody else has set the
keys; after `timeout` they raise `DistStoreError`. `TCPStore` and `FileStore` have modules of their own.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from datetime import timedelta

from rushlight._command.names import show_from

from ._errors import DistStoreError, QueueEmptyError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["HashStore", "PrefixStore", "Store"]


def to_bytes(value: Any):
    return (
        value.encode() if isinstance(value, str) else bytes(memoryview(value))
    )  # no numbers: those are sizes


def check_timeout(timeout):
    if not isinstance(timeout, timedelta):
        raise TypeError(f"Expected timeout argument to be of type datetime.timedelta, got {timeout}")
    return timeout


class Store:
    """The base of all stores, also of those that programs write.

    A subclass gives `set`, `get`, `add`, `check`, `wait`, `compare_set`, `delete_key` and `num_keys`. One
    that can do more (`append`; `multi_get`, `multi_set` as one request) says so by `has_extended_api`. What
    is not given raises NotImplementedError. Values reach the methods as bytes through a `PrefixStore`.
    """

    def __init__(self) -> None:
        self._timeout = timedelta(seconds=300)

    @property
    def timeout(self) -> timedelta:
        return self._timeout

    def set_timeout(self, timeout):
        """Limit for every later `get` and `wait`."""
        self._timeout = check_timeout(timeout)

    def _lacks(self, method):
        return NotImplementedError(f"{type(self).__name__} does not implement Store.{method}")

    def set(self, key: str, value: Any) -> None:
        raise self._lacks("set")

    def get(self, key: str) -> bytes:
        raise self._lacks("get")

    def add(self, key: str, amount: int) -> int:
        raise self._lacks("add")

    def append(self, key: str, value: Any) -> None:
        raise self._lacks("append")

    def check(self, keys: list[str]) -> bool:
        raise self._lacks("check")

    def compare_set(self, key: str, expected: Any, desired: Any) -> bytes:
        raise self._lacks("compare_set")

    def delete_key(self, key: str) -> bool:
        raise self._lacks("delete_key")

    def num_keys(self) -> int:
        raise self._lacks("num_keys")

    def list_keys(self) -> list[str]:
        raise self._lacks("list_keys")

    def wait(self, keys, timeout=None):
        """Block until all keys are set; raises DistStoreError after `timeout` (default: the store's)."""
        raise self._lacks("wait")

    def queue_push(self, key: str, value: Any) -> None:
        raise self._lacks("queue_push")

    def queue_pop(self, key: str, block: bool = True) -> bytes:
        raise self._lacks("queue_pop")

    def queue_len(self, key: str) -> int:
        raise self._lacks("queue_len")

    def barrier(self, key, world_size, timeout=None):
        """Block until `world_size` workers have called it with this `key`."""
        if self.add(f"{key}/arrived", 1) == world_size:
            self.set(f"{key}/complete", "1")
        wait_within(self, [f"{key}/complete"], timeout)

    def multi_get(self, keys):
        return [self.get(key) for key in keys]

    def multi_set(self, keys, values):
        for key, value in zip(keys, values, strict=True):
            self.set(key, value)

    def has_extended_api(self) -> bool:
        return False

    def clone(self):
        """Another handle of the same contents, for another thread."""
        return self


class OwnStore(Store):
    """The base of this package's stores: `_wait_seconds(keys, seconds)` waits."""

    def wait(self, keys, timeout=None):
        if isinstance(keys, str):
            raise TypeError(
                f"wait(): keys must be a list of strings, got the string {keys!r}; pass [{keys!r}]"
            )
        self._wait_seconds(list(keys), check_timeout(timeout or self.timeout).total_seconds())

    def _wait_seconds(self, keys, seconds):
        raise self._lacks("wait")

    def has_extended_api(self) -> bool:
        return True


def wait_within(store: Any, keys: list[str], timeout=None):
    """`store.wait`, with a timeout only where there is one: stores of programs may take keys alone."""
    if timeout is None:
        store.wait(keys)
    else:
        store.wait(keys, timeout)


_LOOK_EVERY = 2.0  # seconds after which a wait looks whether it is still wanted


class Table:
    """The contents of a store inside one process, safe for threads."""

    def __init__(self) -> None:
        self.values = {}
        self.queues = {}
        self.changed = threading.Condition()

    def set(self, key: str, value: Any) -> None:
        with self.changed:
            self.values[key] = value
            self.changed.notify_all()

    def append(self, key: str, value: Any) -> None:
        with self.changed:
            self.values[key] = self.values.get(key, b"") + value
            self.changed.notify_all()

    def add(self, key: str, amount: int) -> int:
        with self.changed:
            try:
                total = int(self.values.get(key, b"0")) + amount
            except ValueError:
                raise DistStoreError(f"add: the value of key {key!r} is not a number") from None
            self.values[key] = str(total).encode()
            self.changed.notify_all()
            return total

    def compare_set(self, key: str, expected: Any, desired: Any) -> bytes:
        """Set when the present value is `expected`, or when there is none and `expected` is empty."""
        with self.changed:
            current = self.values.get(key)
            if current == expected or (current is None and not expected):
                self.values[key] = desired
                self.changed.notify_all()
            return self.values.get(key, expected)

    def named(self, key: str) -> str:
        """A key as messages show it."""
        return key

    def _still_wanted(self):
        """Whether somebody still waits for what this thread waits for."""
        return True

    def _wait_for(self, condition, seconds):
        """Whether it comes true in time; `changed` must be held."""
        deadline = time.monotonic() + seconds
        while not self.changed.wait_for(condition, min(_LOOK_EVERY, deadline - time.monotonic())):
            if time.monotonic() >= deadline or not self._still_wanted():
                return False
        return True

    def wait(self, keys: list[str], seconds) -> None:
        with self.changed:
            if not self._wait_for(lambda: all(k in self.values for k in keys), seconds):
                raise timed_out([self.named(key) for key in keys], seconds)

    def wait_for_count(self, key: str, amount: int, seconds) -> int:
        """Wait until the number under this key is `amount` or more; what it is when the wait ends."""

        def count():
            return int(self.values.get(key, b"0"))

        with self.changed:
            self._wait_for(lambda: count() >= amount, seconds)
            return count()

    def get(self, key: str, seconds) -> bytes:
        self.wait([key], seconds)
        with self.changed:
            return self.values[key]

    def check(self, keys: list[str]) -> bool:
        return all(key in self.values for key in keys)

    def delete(self, key: str):
        with self.changed:
            return self.values.pop(key, None) is not None

    def push(self, key: str, value: Any):
        with self.changed:
            self.queues.setdefault(key, deque()).append(value)
            self.changed.notify_all()

    def pop(self, key: str, seconds):
        with self.changed:
            if not self._wait_for(lambda: self.queues.get(key), seconds):
                raise QueueEmptyError(f"queue {key!r} is empty")
            return self.queues[key].popleft()


def timed_out(keys: list[str], seconds):
    return DistStoreError(f"wait timeout after {round(seconds * 1000)}ms, keys: {', '.join(keys)}")


class HashStore(OwnStore):
    """A store for the threads of one process."""

    def __init__(self) -> None:
        super().__init__()
        self._table = Table()

    def set(self, key: str, value: Any) -> None:
        self._table.set(key, to_bytes(value))

    def get(self, key: str) -> bytes:
        return self._table.get(key, self.timeout.total_seconds())

    def add(self, key: str, amount: int) -> int:
        return self._table.add(key, amount)

    def append(self, key: str, value: Any) -> None:
        self._table.append(key, to_bytes(value))

    def check(self, keys: list[str]) -> bool:
        return self._table.check(keys)

    def compare_set(self, key: str, expected: Any, desired: Any) -> bytes:
        return self._table.compare_set(key, to_bytes(expected), to_bytes(desired))

    def delete_key(self, key: str) -> bool:
        return self._table.delete(key)

    def num_keys(self) -> int:
        return len(self._table.values)

    def list_keys(self) -> list[str]:
        return list(self._table.values)

    def queue_push(self, key: str, value: Any) -> None:
        self._table.push(key, to_bytes(value))

    def queue_pop(self, key: str, block: bool = True) -> bytes:
        return self._table.pop(key, self.timeout.total_seconds() if block else 0)

    def queue_len(self, key: str) -> int:
        return len(self._table.queues.get(key, ()))

    def _wait_seconds(self, keys, seconds):
        self._table.wait(keys, seconds)


class PrefixStore(Store):
    """Another store, all keys behind a prefix: what several users of one store need."""

    def __init__(self, prefix: str, store: Any) -> None:
        super().__init__()
        if store is None:
            raise ValueError("store argument cannot be None")
        self.prefix, self.underlying_store = prefix, store

    @property
    def _underlying_non_prefix_store(self):
        below = self.underlying_store
        return below._underlying_non_prefix_store if isinstance(below, PrefixStore) else below

    @property
    def timeout(self) -> timedelta:
        return self.underlying_store.timeout

    def set_timeout(self, timeout: timedelta | None) -> None:
        self.underlying_store.set_timeout(timeout)

    def _key(self, key):
        return f"{self.prefix}/{key}"

    def set(self, key: str, value: Any) -> None:
        self.underlying_store.set(self._key(key), to_bytes(value))

    def get(self, key: str) -> bytes:
        return self.underlying_store.get(self._key(key))

    def add(self, key: str, amount: int) -> int:
        return self.underlying_store.add(self._key(key), amount)

    def append(self, key: str, value: Any) -> None:
        self.underlying_store.append(self._key(key), to_bytes(value))

    def check(self, keys: list[str]) -> bool:
        return self.underlying_store.check([self._key(key) for key in keys])

    def compare_set(self, key: str, expected: Any, desired: Any) -> bytes:
        return self.underlying_store.compare_set(self._key(key), to_bytes(expected), to_bytes(desired))

    def delete_key(self, key: str) -> bool:
        return self.underlying_store.delete_key(self._key(key))

    def num_keys(self) -> int:
        return self.underlying_store.num_keys()

    def queue_push(self, key: str, value: Any) -> None:
        self.underlying_store.queue_push(self._key(key), value)

    def queue_pop(self, key: str, block: bool = True) -> bytes:
        return self.underlying_store.queue_pop(self._key(key), block)

    def queue_len(self, key: str) -> int:
        return self.underlying_store.queue_len(self._key(key))

    def list_keys(self) -> list[str]:
        begin = self._key("")
        return [key.removeprefix(begin) for key in self.underlying_store.list_keys() if key.startswith(begin)]

    def multi_get(self, keys):
        return self.underlying_store.multi_get([self._key(key) for key in keys])

    def multi_set(self, keys, values):
        values = [to_bytes(value) for value in values]
        self.underlying_store.multi_set([self._key(key) for key in keys], values)

    def has_extended_api(self) -> bool:
        return self.underlying_store.has_extended_api()

    def wait(self, keys, timeout=None):
        wait_within(self.underlying_store, [self._key(key) for key in keys], timeout)

    def clone(self):
        return PrefixStore(self.prefix, self.underlying_store.clone())

    def __getattr__(self, name):
        if name == "_disconnect":  # only stores with a connection have it
            return self.underlying_store._disconnect
        raise AttributeError(name)


def poll(ready, seconds, keys: list[str], interval=0.01):
    """Ask until `ready()`; raises DistStoreError when the time is over."""
    deadline = time.monotonic() + seconds
    while not ready():
        if time.monotonic() > deadline:
            raise timed_out(keys, seconds)
        time.sleep(interval)


show_from("distributed.distributed_c10d", PrefixStore, Store)
