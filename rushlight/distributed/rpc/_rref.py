"""References to values that live on other workers, counted by their owners.

An owner keeps a value as long as some worker holds a reference: references on one worker count one by one.
Whoever sends a reference on first tells the owner, and waits until it knows: no count can fall to zero in
between.
"""

from __future__ import annotations

import itertools
import weakref
from functools import partial

from ...futures import Future
from . import _state
from .constants import UNSET_RPC_TIMEOUT
from .functions import async_execution

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_numbers = itertools.count()


def new_id():
    return _state.agent().info.id, next(_numbers)


class _Owned:
    """A value of this worker's, and how many references to it there are."""

    def __init__(self):
        self.future, self.count = Future(), 1


owned: dict = {}  # id -> _Owned


def _retain(agent, answer, head, parts):
    owned[head[0]].count += 1
    answer()


def release(rref_id):
    kept = owned.get(rref_id)
    if kept is not None:
        kept.count -= 1
        if kept.count == 0:
            del owned[rref_id]


def _release(agent, answer, head, parts):
    release(head[0])
    answer()


def _let_go(agent, owner, rref_id):
    if _state.current is not agent:
        return  # that job is over
    if owner == agent.info:
        release(rref_id)
    else:
        agent.post(owner, "release", (rref_id,))


class RRef:
    """A reference to a value on a worker: `RRef(value)` makes one to a value of this worker's."""

    def __init__(self, value: Any, type_hint: Any = None) -> None:
        rref_id = new_id()
        kept = owned[rref_id] = _Owned()
        kept.future.set_result(value)
        self._set(_state.agent().info, rref_id)

    @classmethod
    def _of(cls, owner, rref_id):
        """The reference of an id that was counted already."""
        rref = cls.__new__(cls)
        rref._set(owner, rref_id)
        return rref

    def _set(self, owner, rref_id):
        self._owner, self._id = owner, rref_id
        self._created = None
        weakref.finalize(self, _let_go, _state.agent(), owner, rref_id).atexit = False

    def owner(self) -> Any:
        """The WorkerInfo of the worker that has the value."""
        return self._owner

    def owner_name(self) -> str:
        return self._owner.name

    def is_owner(self) -> bool:
        return self._owner == _state.agent().info

    def confirmed_by_owner(self) -> bool:
        return self.is_owner() or self._created is None or self._created.done()

    def local_value(self) -> Any:
        """The value; RuntimeError on workers that do not own it."""
        if not self.is_owner():
            raise RuntimeError(
                f"For {self}, can't call localValue() on user {_state.agent().info}. Call it on owner "
                f"{self._owner}"
            )
        return owned[self._id].future.wait()

    def to_here(self, timeout: float = UNSET_RPC_TIMEOUT) -> Any:
        """A copy of the value, or the value itself on the worker that owns it."""
        from .api import _fetch

        return self.local_value() if self.is_owner() else _fetch(self, timeout).wait()

    def _get_future(self):
        return owned[self._id].future if self.is_owner() else self._created

    def _get_type(self, timeout=UNSET_RPC_TIMEOUT, blocking=True):
        from .api import rpc_async

        future = rpc_async(self._owner, _type_of, (self,), timeout=timeout)
        return future.wait() if blocking else future

    def rpc_sync(self, timeout: float = UNSET_RPC_TIMEOUT) -> Any:
        """`rref.rpc_sync().method(...)` calls a method of the value where it is, and gives the result."""
        from .api import rpc_sync

        return _Proxy(self, rpc_sync, timeout)

    def rpc_async(self, timeout: float = UNSET_RPC_TIMEOUT) -> Any:
        """The same, giving a future."""
        from .api import rpc_async

        return _Proxy(self, rpc_async, timeout)

    def remote(self, timeout: float = UNSET_RPC_TIMEOUT) -> Any:
        """The same, giving a reference to the result."""
        from .api import remote

        return _Proxy(self, remote, timeout)

    def backward(self, dist_autograd_ctx_id: int = -1, retain_graph: bool = False) -> None:
        """Gradients of the value, a tensor of one element: of a distributed pass if a context is given."""
        if dist_autograd_ctx_id == -1:
            if not self.is_owner():
                raise RuntimeError("RRef.backward: a value of another worker needs a dist_autograd_ctx_id")
            return self.local_value().backward(retain_graph=retain_graph)
        from .api import rpc_sync

        return rpc_sync(self._owner, _backward, (self, dist_autograd_ctx_id, retain_graph))

    def _serialize(self):
        agent = _state.agent()
        if self.is_owner():
            owned[self._id].count += 1
        else:
            agent.ask(self._owner, "retain", (self._id,)).wait()
        return self._owner, self._id

    @classmethod
    def _deserialize(cls, data):
        return cls._of(*data)

    def __reduce__(self):
        if not _state.is_sending():
            raise RuntimeError(
                "Can not pickle rref in python pickler, rref can only be pickled when using RPC"
            )
        return _received, self._serialize()

    def __repr__(self) -> str:
        kind = "OwnerRRef" if self.is_owner() else "UserRRef"
        return f"{kind}(RRefId = GloballyUniqueId(created_on={self._id[0]}, local_id={self._id[1]}))"


def _received(owner, rref_id):
    return RRef._of(owner, rref_id)


def _type_of(rref):
    return type(rref.local_value())


def _backward(rref, context_id, retain_graph):
    from .. import autograd

    autograd.backward(context_id, [rref.local_value()], retain_graph)


def _invoke(rref, name, args, kwargs):
    return getattr(rref.local_value(), name)(*args, **kwargs)


_invoke_async = async_execution(_invoke)


class _Proxy:
    """Calls of methods where the value is."""

    def __init__(self, rref, how, timeout):
        self._rref, self._how, self._timeout = rref, how, timeout

    def __getattr__(self, name):
        return partial(self._call, name)

    def _call(self, name, *args, **kwargs):
        return self._how(
            self._rref.owner(), _invoke_marked, args=(self._rref, name, args, kwargs), timeout=self._timeout
        )


def _invoke_marked(rref, name, args, kwargs):
    """The method's result, or the future of it if the method is marked with async_execution."""
    method = getattr(rref.local_value(), name)
    result = method(*args, **kwargs)
    return _state.Later(result) if hasattr(method, "_wrapped_async_rpc_function") else result


HANDLERS = {"retain": (_retain, "inline"), "release": (_release, "inline")}
