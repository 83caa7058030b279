"""The accelerator of this machine, whichever it is: a CUDA device, or none."""

from rushlight import _C


def _cuda():
    """The module of the accelerator; PyTorch's error where there is none."""
    if not is_available():
        raise RuntimeError("Cannot access accelerator device when none is available.")
    from rushlight import cuda

    return cuda


def is_available():
    """Whether this machine has an accelerator."""
    return _C._cuda_getDeviceCount() > 0


def current_accelerator(check_available=False):
    """The device type of the accelerator, or None."""
    from rushlight import device

    return device("cuda") if is_available() else None


def device_count():
    """How many there are."""
    return _C._cuda_getDeviceCount()


def current_device_index():
    """The number of this thread's current device."""
    return _cuda().current_device()


def set_device_index(device):
    """Makes a device this thread's current one."""
    _cuda().set_device(device)


current_device_idx, set_device_idx = current_device_index, set_device_index


def get_device_capability(device=None):
    """What a device computes with."""
    import rushlight

    _cuda()
    dtypes = (rushlight.float16, rushlight.bfloat16, rushlight.float32, rushlight.float64, rushlight.bool)
    whole = (rushlight.uint8, rushlight.int8, rushlight.int16, rushlight.int32, rushlight.int64)
    return {"supported_dtypes": {*dtypes, *whole}}


def current_stream(device=None):
    """The stream that work of this thread goes to."""
    return _cuda().current_stream(device)


def set_stream(stream):
    """Selects a stream and its device."""
    _cuda().set_stream(stream)


def synchronize(device=None):
    """Waits for all work of a device."""
    _cuda().synchronize(device)


def empty_cache():
    """Gives the memory that no tensor holds back to the driver."""
    _cuda().empty_cache()


def empty_host_cache():
    """Page-locked memory stays with this process."""
    _cuda()


def memory_stats(device_index=None):
    """The counters of a device's allocator."""
    return _cuda().memory_stats(device_index)


def memory_allocated(device_index=None):
    """Bytes that tensors hold."""
    return _cuda().memory_allocated(device_index)


def max_memory_allocated(device_index=None):
    """The most bytes that tensors held."""
    return _cuda().max_memory_allocated(device_index)


def memory_reserved(device_index=None):
    """Bytes that the allocator holds."""
    return _cuda().memory_reserved(device_index)


def max_memory_reserved(device_index=None):
    """The most bytes that the allocator held."""
    return _cuda().max_memory_reserved(device_index)


def reset_peak_memory_stats(device_index=None):
    """Peaks begin anew."""
    _cuda().reset_peak_memory_stats(device_index)


def reset_accumulated_memory_stats(device_index=None):
    """Totals begin anew."""
    _cuda().reset_accumulated_memory_stats(device_index)


def get_memory_info(device_index=None):
    """Free and total bytes of a device."""
    return _cuda().mem_get_info(device_index)


class device_index:
    """A context that selects a device; None selects nothing."""

    def __init__(self, device):
        self.device = device

    def __enter__(self):
        if self.device is not None:
            self.previous = current_device_index()
            set_device_index(self.device)

    def __exit__(self, *exc):
        if self.device is not None:
            set_device_index(self.previous)
