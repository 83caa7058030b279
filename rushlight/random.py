"""The default random stream: seeding it, and setting it aside."""

import sys
from contextlib import contextmanager

import rushlight
from rushlight._C import _cuda_seedAll, _thread_generator, default_generator

__all__ = [
    "fork_rng",
    "get_rng_state",
    "initial_seed",
    "manual_seed",
    "seed",
    "set_rng_state",
    "thread_safe_generator",
]


def _generator():
    """What this thread draws from by default: workers of a DataLoader that are threads have their own."""
    return _thread_generator() or default_generator


def set_rng_state(new_state):
    """Continue the CPU's stream from a state that ``get_rng_state`` returned."""
    _generator().set_state(new_state)


def get_rng_state():
    """The state of the CPU's stream as a uint8 tensor."""
    return _generator().get_state()


def manual_seed(seed):
    """Start the random streams of all devices anew; returns the CPU's generator."""
    seed = int(seed)
    _cuda_seedAll(seed)
    return _generator().manual_seed(seed)


def seed():
    """Start the random streams from a seed that the system chooses; returns it."""
    value = _generator().seed()
    _cuda_seedAll(value)
    return value


def initial_seed():
    """The seed that the CPU's stream started from."""
    return _generator().initial_seed()


@contextmanager
def fork_rng(devices=None, enabled=True, _caller="fork_rng", _devices_kw="devices", device_type="cuda"):
    """Put the random streams back afterwards as they were before."""
    if not enabled:
        yield
        return
    cpu = get_rng_state()
    module = sys.modules.get(f"rushlight.{rushlight.device(device_type).type}")
    if devices is None and module is not None and hasattr(module, "device_count"):
        devices = range(module.device_count())
    before = [(d, module.get_rng_state(d)) for d in devices or ()]
    try:
        yield
    finally:
        set_rng_state(cpu)
        for d, state in before:
            module.set_rng_state(state, d)


def thread_safe_generator():
    """The random number generator of this thread if it is a worker of a DataLoader, else None."""
    from rushlight.utils.data import get_worker_info

    worker = get_worker_info()
    if worker is None or getattr(worker, "worker_method", None) != "thread" or worker.rng is None:
        return None
    return worker.rng.torch_generator
