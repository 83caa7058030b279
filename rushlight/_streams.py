"""Streams and events of any device. On the CPU all work is done when its call returns, so both are always
ready; they keep what they were asked for and measure time."""

import time

import rushlight

__all__ = ["AcceleratorError", "Event", "Stream"]


class AcceleratorError(RuntimeError):
    """An error of a device that is not the CPU, with its code."""

    def __init__(self, *args):
        super().__init__(*args)
        self.error_code = None


def _device(device):
    device = rushlight.device("cpu" if device is None else device)
    if device.type not in ("cpu", "meta"):
        raise RuntimeError(f"Stream: this build has no device of type {device.type}; use the CPU's")
    return device


class Stream:
    """An in-order queue of work on a device.

    >>> with torch.Stream("cpu") as stream:
    ...     y = x * 2
    """

    def __init__(self, device=None, *, priority=0, stream_id=0, device_index=0, device_type=0):
        self.device = _device(device)
        self.priority, self.stream_id = priority, stream_id
        self.device_index, self.device_type = device_index, device_type
        self.native_handle = 0

    def query(self):
        """Whether all work is done."""
        return True

    def synchronize(self):
        """Wait for all work."""

    def wait_event(self, event):
        """Let what follows wait for an event."""
        event.wait(self)

    def wait_stream(self, other):
        """Let what follows wait for what another stream was given."""
        self.wait_event(other.record_event())

    def record_event(self, event=None):
        """Mark this place in the queue."""
        event = Event(self.device) if event is None else event
        event.record(self)
        return event

    def __enter__(self):
        return self

    def __exit__(self, exc_type, exc_value, traceback):
        return None

    def _identity(self):
        return self.device, self.stream_id

    def __eq__(self, other):
        return isinstance(other, Stream) and self._identity() == other._identity()

    def __hash__(self):
        return hash(self._identity())

    def __repr__(self):
        return f"torch.Stream device_type={self.device.type}, device_index=0, stream_id={self.stream_id}"


class Event:
    """A mark in a stream, for waiting and for measuring time."""

    def __init__(self, device=None, *, enable_timing=False, blocking=False, interprocess=False):
        self.device = _device(device)
        self.enable_timing, self.blocking, self.interprocess = enable_timing, blocking, interprocess
        self.event_id = 0
        self._recorded = None

    def record(self, stream=None):
        """Mark the present place in a stream."""
        self._recorded = time.perf_counter_ns()

    def query(self):
        """Whether all work before the mark is done."""
        return True

    def wait(self, stream=None):
        """Let a stream wait for this."""

    def synchronize(self):
        """Wait for all work before the mark."""

    def elapsed_time(self, end_event):
        """Milliseconds from this mark to another; both need ``enable_timing``."""
        if not (self.enable_timing and end_event.enable_timing):
            raise ValueError("Both events must be created with argument 'enable_timing=True'.")
        if self._recorded is None or end_event._recorded is None:
            raise ValueError("Both events must be recorded before calculating elapsed time.")
        return (end_event._recorded - self._recorded) / 1e6

    def __repr__(self):
        return f"torch.Event device_type={self.device.type}, device_index=0, event_id={self.event_id}"
