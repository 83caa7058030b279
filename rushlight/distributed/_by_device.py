"""Groups with a backend for each type of device, and calls that are made together."""

from contextlib import contextmanager

from ._errors import DistBackendError


def _by_first_tensor(name):
    def method(self, first, *args, **kwargs):
        tensor = first[0] if isinstance(first, (list, tuple)) else first
        return getattr(self.engine_of(tensor.device.type), name)(first, *args, **kwargs)

    method.__name__ = name
    return method


class EnginesByDevice:
    """The interface of an engine, with one of its own behind it for each type of device."""

    def __init__(self, engines):
        self.engines = engines  # by device type
        self.rank, self.size = self._first.rank, self._first.size

    @property
    def _first(self):
        return next(iter(self.engines.values()))

    def engine_of(self, device_type):
        if device_type not in self.engines:
            raise DistBackendError(
                f"No backend type associated with device type {device_type}: this group has "
                f"{', '.join(f'{kind}:{engine.name}' for kind, engine in self.engines.items())}"
            )
        return self.engines[device_type]

    all_reduce = _by_first_tensor("all_reduce")
    reduce = _by_first_tensor("reduce")
    broadcast = _by_first_tensor("broadcast")
    all_gather = _by_first_tensor("all_gather")
    all_gather_into = _by_first_tensor("all_gather_into")
    reduce_scatter = _by_first_tensor("reduce_scatter")
    gather = _by_first_tensor("gather")
    scatter = _by_first_tensor("scatter")
    all_to_all = _by_first_tensor("all_to_all")
    send = _by_first_tensor("send")
    receive = _by_first_tensor("receive")

    def barrier(self, async_op=False, timeout=None):
        return self._first.barrier(async_op, timeout)

    def submit(self, body):
        return self._first.submit(body)

    @property
    def timeout(self):
        return self._first.timeout

    @timeout.setter
    def timeout(self, timeout):
        for engine in self.engines.values():
            engine.timeout = timeout

    def watch_with(self, watch, group_name):
        for engine in self.engines.values():
            engine.watch_with(watch, group_name)

    def close(self):
        for engine in self.engines.values():
            engine.close()


class CoalescingManager:
    """The Works of a block of calls."""

    def __init__(self):
        self.works = []

    def append(self, work):
        if work:
            self.works.append(work)

    def wait(self):
        for work in self.works:
            work.wait()


@contextmanager
def coalescing_manager(group=None, device=None, async_ops=False):
    """Calls made inside reach the device as one launch at the end, where the backend can do that (NCCL).

    With `async_ops` the yielded manager's `wait` waits for them, else the end of the block does."""
    from .. import device as make_device
    from ._process_group import _group_or_default

    group, manager = _group_or_default(group), CoalescingManager()
    engine = group.engine
    if isinstance(engine, EnginesByDevice):
        kinds = [make_device(device).type] if device is not None else ["cuda", "cpu"]
        engine = next((engine.engines[kind] for kind in kinds if kind in engine.engines), engine)
    if hasattr(engine, "coalesced"):
        with engine.coalesced() as done:
            yield manager
        manager.works += done
    else:
        yield manager
    if not async_ops:
        manager.wait()
