"""Devices: which there are, which one is current, and what is known of them."""

from functools import lru_cache

from rushlight import _C


def is_available():
    """Whether there is a CUDA device.

    Example:
        >>> torch.cuda.is_available() in (True, False)
        True
    """
    return device_count() > 0


def device_count():
    """The number of CUDA devices; 0 without the library, the driver or the hardware."""
    return _C._cuda_getDeviceCount()


def _require():
    """Fails as PyTorch does where there is no device, or where a forked child may not use it."""
    _C._cuda_getDevice()


def init():
    """Begins to use CUDA; everything that needs it does so by itself."""
    _require()


_lazy_init = init


def _lazy_call(callable, **kwargs):
    """Calls a function that needs a device; without one it is never due."""
    if device_count():
        callable()


def is_initialized():
    """Whether this process has used CUDA."""
    return _C._cuda_isInUse() and not _C._cuda_isInBadFork()


def _is_in_bad_fork():
    return _C._cuda_isInBadFork()


def current_device():
    """The number of this thread's current device."""
    return _C._cuda_getDevice()


def set_device(device):
    """Makes a device this thread's current one; a negative number changes nothing."""
    index = _index(device)
    if index >= 0:
        _C._cuda_setDevice(index)


def synchronize(device=None):
    """Waits for all work of a device, by default the current one."""
    _C._cuda_synchronize(_index(device))


def _index(device, optional=False):
    """The number of what names a device; for None -1, or with `optional` the current one's."""
    if device is None:
        return current_device() if optional else -1
    if isinstance(device, int):
        return device
    from rushlight import device as make

    found = make(device)
    if found.type != "cuda":
        raise ValueError(f"Expected a cuda device, but got: {found}")
    return _index(None, optional) if found.index is None else found.index


_get_device_index = _index


class _CudaDeviceProperties:
    """The facts of a CUDA device."""

    def __init__(self, facts):
        self.__dict__.update(facts)
        self.gcnArchName = self.name

    def __repr__(self):
        return (
            f"_CudaDeviceProperties(name='{self.name}', major={self.major}, minor={self.minor}, "
            f"total_memory={self.total_memory // 2**20}MB, "
            f"multi_processor_count={self.multi_processor_count}, uuid={self.uuid}, "
            f"pci_bus_id={self.pci_bus_id}, pci_device_id={self.pci_device_id}, "
            f"pci_domain_id={self.pci_domain_id}, L2_cache_size={self.L2_cache_size // 2**20}MB)"
        )


@lru_cache(None)
def _properties(index):
    return _CudaDeviceProperties(_C._cuda_getDeviceProperties(index))


def get_device_properties(device=None):
    """Name, memory, processors and more of a device."""
    _require()
    index = _index(device, True)
    if not 0 <= index < device_count():
        raise AssertionError("Invalid device id")
    return _properties(index)


def get_device_name(device=None):
    """The name of a device."""
    return get_device_properties(device).name


def get_device_capability(device=None):
    """The compute capability of a device: (9, 0)."""
    facts = get_device_properties(device)
    return facts.major, facts.minor


def can_device_access_peer(device, peer_device):
    """Whether one device can read another's memory."""
    _require()
    device, peer_device = _index(device, True), _index(peer_device, True)
    for index, name in ((device, "device"), (peer_device, "peer device")):
        if not 0 <= index < device_count():
            raise AssertionError(f"Invalid {name} id")
    return _C._cuda_canDeviceAccessPeer(device, peer_device)


def is_bf16_supported(including_emulation=True):
    """Whether the current device computes with bfloat16."""
    return is_available() and (including_emulation or get_device_properties().major >= 8)


def is_tf32_supported():
    """Whether the current device multiplies float32 matrices in TF32."""
    return is_available() and get_device_properties().major >= 8


def get_arch_list():
    """The architectures that the library was compiled for."""
    return _C._cuda_architectures().split() if is_available() else []


def get_gencode_flags():
    """nvcc's options for these architectures."""
    numbers = [a.partition("_")[2] for a in get_arch_list()]
    return " ".join(f"-gencode compute=compute_{n},code=sm_{n}" for n in numbers)


class device:
    """A context that selects a device; -1 and None select nothing."""

    def __init__(self, device):
        self.idx, self.prev_idx = _index(device), -1

    def __enter__(self):
        if self.idx >= 0:
            self.prev_idx = current_device()
            set_device(self.idx)

    def __exit__(self, *exc):
        if self.idx >= 0:
            set_device(self.prev_idx)
        return False


class device_of(device):
    """A context that selects the device of a tensor; nothing for a tensor on the CPU."""

    def __init__(self, obj):
        super().__init__(obj.get_device() if obj.is_cuda else None)
