"""The XPU device. This build does not have it."""

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


def _answer(value):
    return lambda *args, **kwargs: value


can_device_access_peer = is_bf16_supported = is_current_stream_capturing = is_tf32_supported = _answer(False)
memory_allocated = memory_reserved = max_memory_allocated = max_memory_reserved = _answer(0)
reset_peak_memory_stats = reset_accumulated_memory_stats = seed_all = set_rng_state_all = _answer(None)
get_gencode_flags = _answer("")


def get_arch_list():
    return []


def get_rng_state_all():
    return []


def memory_stats(device=None):
    return {}


get_device_name = get_device_capability = get_device_properties = mem_get_info = refuse("XPU")
synchronize = current_device = set_device = get_rng_state = set_rng_state = refuse("XPU")
