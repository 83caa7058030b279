"""What NVIDIA's management library knows: load, temperature, power."""

from rushlight.cuda._devices import _index


def library():
    """The module pynvml, ready to use."""
    try:
        import pynvml
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "nvidia-ml-py does not seem to be installed or it can't be imported."
        ) from error
    pynvml.nvmlInit()
    return pynvml


def _handle(device):
    nvml = library()
    return nvml, nvml.nvmlDeviceGetHandleByIndex(_index(device, True))


def utilization(device=None):
    """Percent of the last second in which a kernel ran."""
    nvml, handle = _handle(device)
    return nvml.nvmlDeviceGetUtilizationRates(handle).gpu


def memory_usage(device=None):
    """Percent of the last second in which memory was read or written."""
    nvml, handle = _handle(device)
    return nvml.nvmlDeviceGetUtilizationRates(handle).memory


def device_memory_used(device=None):
    """Bytes of a device's memory that anybody holds."""
    nvml, handle = _handle(device)
    return nvml.nvmlDeviceGetMemoryInfo(handle).used


def temperature(device=None):
    """Degrees Celsius."""
    nvml, handle = _handle(device)
    return nvml.nvmlDeviceGetTemperature(handle, 0)


def power_draw(device=None):
    """Milliwatts."""
    nvml, handle = _handle(device)
    return nvml.nvmlDeviceGetPowerUsage(handle)


def clock_rate(device=None):
    """Megahertz of the processors."""
    nvml, handle = _handle(device)
    return nvml.nvmlDeviceGetClockInfo(handle, 1)
