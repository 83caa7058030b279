"""The MTIA device. This build does not have it."""

from rushlight._errors.absent import (  # noqa: F401
    _is_in_bad_fork,
    device_count,
    empty_cache,
    is_available,
    is_initialized,
    manual_seed,
    manual_seed_all,
    refuse,
    seed,
)

synchronize = current_device = refuse("MTIA", "getCurrentDevice")
set_device = refuse("MTIA", "setCurrentDevice")
get_rng_state = set_rng_state = refuse("MTIA")
