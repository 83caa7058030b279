"""The XPU device. This build does not have it."""

from rushlight._absent import (  # noqa: F401
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
from rushlight.cuda import (  # noqa: F401
    _NeedsCuda,
    can_device_access_peer,
    get_arch_list,
    get_gencode_flags,
    get_rng_state_all,
    is_bf16_supported,
    is_current_stream_capturing,
    is_tf32_supported,
    max_memory_allocated,
    max_memory_reserved,
    memory_allocated,
    memory_reserved,
    memory_stats,
    reset_accumulated_memory_stats,
    reset_peak_memory_stats,
    seed_all,
    set_rng_state_all,
)

get_device_name = get_device_capability = get_device_properties = mem_get_info = refuse("XPU")
synchronize = current_device = set_device = get_rng_state = set_rng_state = refuse("XPU")
