"""The CPU as a device, with the functions that accelerators have. Work is done when a call returns."""

from rushlight import _C
from rushlight._errors.absent import NoEvent, NoStream

Stream, Event = NoStream, NoEvent


def is_available():
    return True


def device_count():
    return 1


def current_device():
    return "cpu"


def set_device(device):
    """There is one CPU."""


def synchronize(device=None):
    """Nothing is ever pending."""


def current_stream(device=None):
    return Stream()


class stream:
    """A context that selects a stream; the CPU has one."""

    def __init__(self, stream):
        self.stream = stream

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        return None


StreamContext = stream


def get_capabilities():
    """An immutable mapping of what the processor can do, as Linux reports it.

    A bool for each extension of its architecture (``avx2``, ``sve``), the number of cores and sockets, and
    the sizes of the caches in bytes.
    """
    from rushlight._extension.cpu_capabilities import capabilities

    return capabilities()


def empty_cache():
    """Give idle memory back to the system."""
    _C._cpu_empty_cache()


def memory_stats():
    """What the allocator holds."""
    return _C._cpu_memory_stats()


def __getattr__(name):
    if name == "amp":
        from importlib import import_module

        return import_module("rushlight.cpu.amp")
    if name.startswith("_is_") and name.endswith("_supported"):
        from rushlight._extension import cpu_names

        return getattr(cpu_names, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
