"""The accelerator of this machine, whichever it is. This build has none."""

from rushlight._absent import refuse


def is_available():
    return False


def current_accelerator(check_available=False):
    return None


def device_count():
    return 0


def synchronize(device=None):
    """Nothing is ever pending."""


def empty_cache():
    """Nothing is cached."""


def memory_allocated(device_index=None):
    return 0


max_memory_allocated = memory_reserved = max_memory_reserved = memory_allocated


def memory_stats(device_index=None):
    return {}


def reset_peak_memory_stats(device_index=None):
    """Nothing was counted."""


class device_index:
    """A context that selects a device; None selects nothing."""

    def __init__(self, device):
        self.device = device

    def __enter__(self):
        return None

    def __exit__(self, *exc):
        return None


get_memory_info = current_device_index = current_device_idx = set_device_index = set_device_idx = refuse(
    "an accelerator"
)
current_stream = set_stream = get_device_capability = refuse("an accelerator")
