"""What the tests of devices ask about the one they run on, emulated or real."""

import ctypes
import os

import pytest

import rushlight as torch

_library = os.environ.get("RUSHLIGHT_CUDA_LIBRARY", "")
emulated = ctypes.CDLL(_library) if "emulated" in _library else None
only_emulated = pytest.mark.skipif(emulated is None, reason="asks the emulated device what it did")
several = torch.cuda.device_count() > 1
needs_two = pytest.mark.skipif(not several, reason="one device")


def kernels(events):
    """The names of kernels in a trace: the library's own on the emulated device, else the compiler's."""
    return [event["name"] for event in events if event.get("cat") == "kernel"]
