"""Calls of functions on other workers, now, later, and for a reference to the result."""

from __future__ import annotations

import os
from datetime import timedelta

from ...futures import Future
from ..rendezvous import rendezvous
from ..store import PrefixStore
from . import _rref, _state, _wire
from ._agent import Agent, RemoteException
from ._rref import RRef
from .constants import DEFAULT_SHUTDOWN_TIMEOUT, UNSET_RPC_TIMEOUT
from .options import TensorPipeRpcBackendOptions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

__all__ = [
    "RRef",
    "get_rpc_timeout",
    "get_worker_info",
    "init_rpc",
    "remote",
    "rpc_async",
    "rpc_sync",
    "shutdown",
]


def _require_initialized(func):
    """A function that raises unless this process joined a job by `init_rpc`."""
    from functools import wraps

    @wraps(func)
    def wrapper(*args, **kwargs):
        _state.agent()
        return func(*args, **kwargs)

    return wrapper


def _is_current_rpc_agent_set():
    return _state.current is not None


def _get_current_rpc_agent():
    return _state.agent()


def _all_gather(obj, worker_names=None, timeout=UNSET_RPC_TIMEOUT):
    """What every worker passes, by worker's name; all of them have to call this."""
    agent = _state.agent()
    seconds = agent.options.rpc_timeout if timeout == UNSET_RPC_TIMEOUT else timeout
    return agent.gather(obj, worker_names, seconds)


def _barrier(worker_names):
    """Wait until all these workers are here."""
    _all_gather(None, set(worker_names))


def init_rpc(name, backend=None, rank=-1, world_size=None, rpc_backend_options=None):
    """Join a job whose workers call each other's functions; returns when all of them are here.

    Args:
        name: of this worker, unlike all others.
        rank, world_size: number of this worker and of all; RANK and WORLD_SIZE if not given.
        rpc_backend_options: a TensorPipeRpcBackendOptions: limits, threads, meeting point (`env://`).

    Whoever may join runs code on all workers: the workers listen on the address at which they meet, and take
    connections only from those who know the secret that lies in the job's store.
    """
    if _state.current is not None:
        raise RuntimeError("RPC is already initialized")
    options = rpc_backend_options or TensorPipeRpcBackendOptions()
    if world_size is None and "WORLD_SIZE" not in os.environ:
        raise NotImplementedError("init_rpc: groups that workers may join later need world_size; pass it")
    limit = timedelta(seconds=options.rpc_timeout or 1800)
    meeting = rendezvous(
        options.init_method, rank, -1 if world_size is None else int(world_size), timeout=limit
    )
    store, rank, world_size = next(meeting)
    store.set_timeout(limit)
    _state.rounds = getattr(_state, "rounds", 0) + 1
    keys = PrefixStore(f"rpc/{_state.rounds}", store)
    from .. import autograd

    handlers = {**_HANDLERS, **_rref.HANDLERS, **autograd._HANDLERS}
    agent = Agent(name, rank, world_size, keys, options, handlers)
    _state.current = agent
    agent.barrier("ready", limit.total_seconds())


def shutdown(graceful: bool = True, timeout: float = DEFAULT_SHUTDOWN_TIMEOUT) -> None:
    """Leave the job; a graceful one waits until all workers want to, and no call is left under way."""
    agent = _state.agent()
    if graceful:
        for turn in ("first", "second"):  # what a call left behind may call once more
            agent.drain()
            agent.barrier(f"shutdown/{turn}", timeout)
    _state.current = None
    agent.close()
    _rref.owned.clear()


def get_worker_info(worker_name: str | None = None) -> Any:
    """The WorkerInfo of a worker, of this one by default."""
    agent = _state.agent()
    return agent.info if worker_name is None else agent.worker(worker_name)


def get_rpc_timeout() -> float:
    """The limit of calls in seconds."""
    return _state.agent().options.rpc_timeout


def _set_rpc_timeout(seconds):
    _state.agent().options.rpc_timeout = seconds


# --- asking


def _packed(value, to):
    """The parts of a message, and what autograd must know of it on the other side."""
    from .. import autograd

    recorder = autograd._Sender(to)
    with _state.sending():
        parts = _wire.pack(value, recorder.add)
    return recorder.finish(), parts


def _ask(kind, to, value, timeout, *details):
    agent = _state.agent()
    to = agent.worker(to)
    seconds = agent.options.rpc_timeout if timeout == UNSET_RPC_TIMEOUT else timeout
    trace, parts = _packed(value, to)
    return agent.ask(to, kind, (trace, *details), parts, seconds)


def _result(raw, owner, timeout=None):
    """The future of what an answer brings."""
    result = Future()

    def finish(done):
        from .. import autograd

        try:
            head, parts = done.value()
            if head[2] == "failed":
                raise _wire.unpack(parts, None).error()
            value = _wire.unpack(parts, autograd._Receiver(head[3], owner).take)
        except BaseException as error:
            return result.set_exception(error if isinstance(error, Exception) else RuntimeError(str(error)))
        result.set_result(value)

    raw.add_done_callback(finish)
    return result


def rpc_async(
    to: Any,
    func: Callable[..., Any],
    args: tuple[Any, ...] | None = None,
    kwargs: dict[str, Any] | None = None,
    timeout: float = UNSET_RPC_TIMEOUT,
) -> Future:
    """Call func(*args, **kwargs) on a worker (its name, number or WorkerInfo); a future of the result.

    `timeout` in seconds is the call's limit, 0 none. Errors of the function are raised by `wait`."""
    _check_callable(func)
    to = _state.agent().worker(to)
    raw = _ask("call", to, (func, tuple(args or ()), dict(kwargs or {})), timeout)
    return _result(raw, to)


def rpc_sync(
    to: Any,
    func: Callable[..., Any],
    args: tuple[Any, ...] | None = None,
    kwargs: dict[str, Any] | None = None,
    timeout: float = UNSET_RPC_TIMEOUT,
) -> Any:
    """Call func(*args, **kwargs) on a worker and wait for the result."""
    return rpc_async(to, func, args, kwargs, timeout).wait()


def remote(
    to: Any,
    func: Callable[..., Any],
    args: tuple[Any, ...] | None = None,
    kwargs: dict[str, Any] | None = None,
    timeout: float = UNSET_RPC_TIMEOUT,
) -> RRef:
    """Call func(*args, **kwargs) on a worker, which keeps the result; returns a reference to it."""
    _check_callable(func)
    agent = _state.agent()
    to, rref_id = agent.worker(to), _rref.new_id()
    call = func, tuple(args or ()), dict(kwargs or {})
    if to == agent.info:
        kept = _rref.owned[rref_id] = _rref._Owned()
        reference = RRef._of(to, rref_id)
        agent._pool.run(_run_local, call, kept.future)
        return reference
    raw = _ask("remote", to, call, timeout, rref_id)
    reference = RRef._of(to, rref_id)
    reference._created = raw
    return reference


def _check_callable(func):
    if not callable(func):
        raise TypeError("function should be callable.")


def _fetch(reference, timeout):
    return _result(_ask("fetch", reference.owner(), None, timeout, reference._id), reference.owner())


# --- answering


def _run(call, done):
    """Run a call; done(value, error) is told, now or when the future comes that the function gives."""
    function, args, kwargs = call
    try:
        value = function(*args, **kwargs)
        if hasattr(function, "_wrapped_async_rpc_function"):
            value = _state.Later(value)
        if isinstance(value, _state.Later):
            if not isinstance(value.future, Future):
                raise RuntimeError(
                    "Functions decorated with @rpc.async_function must return a torch.futures.Future object, "
                    f"but got {type(value.future)}"
                )
            value.future.add_done_callback(lambda future: _tell(future, done))
            return
    except BaseException as error:
        return done(None, error)
    done(value, None)


def _tell(future, done):
    try:
        value = future.value()
    except BaseException as error:
        return done(None, error)
    done(value, None)


def _run_local(call, future):
    _run(call, lambda value, error: _settle(future, value, error))


def _settle(future, value, error):
    if error is None:
        future.set_result(value)
    else:
        future.set_exception(error if isinstance(error, Exception) else RuntimeError(str(error)))


def _answer_with(agent, answer, value, error, caller, context):
    from .. import autograd

    with autograd._inside(context):
        try:
            if error is None:
                trace, parts = _packed(value, caller)
                return answer(("returned", trace), parts)
        except BaseException as problem:
            error = problem
    answer(("failed",), _wire.pack(RemoteException(agent.info, error), lambda tensor: None))


def _on_call(agent, answer, head, parts):
    from .. import autograd

    (trace,) = head
    caller, context = agent.worker(trace[0]), trace[1]
    with autograd._inside(context):
        call = _wire.unpack(parts, autograd._Receiver(trace, caller).take)
        _run(call, lambda value, error: _answer_with(agent, answer, value, error, caller, context))


def _on_remote(agent, answer, head, parts):
    from .. import autograd

    trace, rref_id = head
    kept = _rref.owned[rref_id] = _rref._Owned()
    caller, context = agent.worker(trace[0]), trace[1]

    def run():
        with autograd._inside(context):
            try:
                call = _wire.unpack(parts, autograd._Receiver(trace, caller).take)
            except BaseException as error:
                return _settle(kept.future, None, error)
            _run(call, lambda value, error: _settle(kept.future, value, error))

    agent._pool.run(run)
    answer()


def _on_fetch(agent, answer, head, parts):
    trace, rref_id = head
    caller, context = agent.worker(trace[0]), trace[1]
    if rref_id not in _rref.owned:
        raise RuntimeError(f"RRef {rref_id} is not known to its owner any more")

    def finish(future):
        try:
            value, error = future.value(), None
        except BaseException as problem:
            value, error = None, problem
        agent._pool.run(_answer_with, agent, answer, value, error, caller, context)

    _rref.owned[rref_id].future.add_done_callback(finish)


_HANDLERS = {
    "call": (_on_call, "pool"),
    "remote": (_on_remote, "inline"),
    "fetch": (_on_fetch, "inline"),
}
