"""The MPS device. This build does not have it."""

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

current_allocated_memory = refuse("MPS", "getCurrentAllocatedMemory")
driver_allocated_memory = refuse("MPS", "getDriverAllocatedMemory")
recommended_max_memory = refuse("MPS", "getRecommendedMaxMemory")
get_rng_state = set_rng_state = refuse("MPS", "getDefaultGenerator")
synchronize = refuse("MPS", "deviceSynchronize")
current_device = set_device = refuse("MPS")
