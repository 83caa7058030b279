"""Random numbers in tests: calls that draw the same, and blocks that leave the streams as they were."""

from contextlib import contextmanager

import rushlight
from rushlight import _C

__all__ = ["freeze_rng_state", "wrapper_set_seed"]


def _device_module():
    present = rushlight.accelerator.current_accelerator(True)
    return None if present is None else rushlight.get_device_module(present.type)


@contextmanager
def freeze_rng_state():
    """Afterwards the random streams of the CPU and of the accelerator are as they were before."""
    from rushlight.utils._mode_utils import no_dispatch

    module = _device_module()
    with no_dispatch(), _C._DisableFuncTorch():
        state = rushlight.get_rng_state()
        device_state = module and module.get_rng_state()
    try:
        yield
    finally:
        with no_dispatch(), _C._DisableFuncTorch():
            if module:
                module.set_rng_state(device_state)
            rushlight.set_rng_state(state)


def wrapper_set_seed(op, *args, **kwargs):
    """``op(*args, **kwargs)`` with the seed 42; the streams are as before afterwards."""
    with freeze_rng_state():
        rushlight.manual_seed(42)
        return op(*args, **kwargs)
