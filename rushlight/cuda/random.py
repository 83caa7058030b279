"""Random numbers of CUDA devices: one stream a device. Without a device there is nothing to seed."""

import rushlight
from rushlight import _C
from rushlight.cuda._devices import _index, _require, device_count

__all__ = [
    "get_rng_state",
    "get_rng_state_all",
    "initial_seed",
    "manual_seed",
    "manual_seed_all",
    "seed",
    "seed_all",
    "set_rng_state",
    "set_rng_state_all",
]


def _generator(device=None):
    _require()
    return _C._cuda_defaultGenerator(_index(device, True))


def get_rng_state(device="cuda"):
    """The state of a device's stream as a uint8 tensor."""
    return _generator(device).get_state()


def get_rng_state_all():
    """The states of all devices' streams."""
    return [get_rng_state(i) for i in range(device_count())]


def set_rng_state(new_state, device="cuda"):
    """Continues a device's stream from a state."""
    if not isinstance(new_state, rushlight.Tensor):
        new_state = new_state.clone(memory_format=rushlight.contiguous_format)
    _generator(device).set_state(new_state)


def set_rng_state_all(new_states):
    """Continues all devices' streams from their states."""
    for i, state in enumerate(new_states):
        set_rng_state(state, i)


def manual_seed(seed):
    """Starts the current device's stream from a seed."""
    if device_count():
        _generator().manual_seed(int(seed))


def manual_seed_all(seed):
    """Starts all devices' streams from a seed."""
    _C._cuda_seedAll(int(seed))


def seed():
    """Starts the current device's stream from a seed that the system chooses."""
    if device_count():
        _generator().seed()


def seed_all():
    """The same for all devices, with one seed."""
    if device_count():
        first = _generator(0).seed()
        _C._cuda_seedAll(first)


def initial_seed():
    """The seed that the current device's stream started from."""
    return _generator().initial_seed()
