"""Streams and events of any device. On the CPU all work is done when its call returns, so both are always
ready; they keep what they were asked for and measure time."""

import time

import rushlight
from rushlight import _C
from rushlight._command.names import show_from

__all__ = ["AcceleratorError", "Event", "Stream"]


class AcceleratorError(RuntimeError):
    """An error of a device that is not the CPU, with its code."""

    def __init__(self, *args):
        super().__init__(*args)
        self.error_code = None


def _device(device, what):
    """The device that was meant, with its number; the accelerator where there is one, else the CPU."""
    if device is None:
        device = "cuda" if _C._cuda_getDeviceCount() else "cpu"
    device = rushlight.device(device)
    if device.type in ("cpu", "meta"):
        return device
    if device.type != "cuda" or not _C._cuda_getDeviceCount():
        raise RuntimeError(f"{what}: PyTorch is not linked with support for {device.type} devices")
    return rushlight.device("cuda", _C._cuda_getDevice() if device.index is None else device.index)


class Stream:
    """An in-order queue of work on a device.

    >>> with torch.Stream("cpu") as stream:
    ...     y = x * 2
    """

    def __init__(self, device=None, *, priority=0, stream_id=None, device_index=None, device_type=None):
        if device is None and device_type is not None and stream_id is not None:
            device = rushlight.device("cuda", device_index) if device_type == 1 else "cpu"
        self.device = _device(device, "Stream")
        self._number = None  # the core's, of a stream on a device
        self._before = []
        if self.device.type == "cuda":
            if stream_id is None:
                self._number = _C._cuda_makeStream(self.device.index, priority)
            else:
                self._number = stream_id or _C._cuda_defaultStream(self.device.index)
        self._priority = priority

    @property
    def stream_id(self):
        return 0 if self._is_default() else self._number

    @property
    def device_index(self):
        return -1 if self.device.index is None else self.device.index

    @property
    def device_type(self):
        return 0 if self._number is None else 1

    @property
    def priority(self):
        return self._priority if self._number is None else _C._cuda_streamInfo(self._number)[1]

    @property
    def native_handle(self):
        """The stream as the device's own library knows it."""
        return 0 if self._number is None else _C._cuda_streamInfo(self._number)[2]

    def _is_default(self):
        return self._number is None or self._number == _C._cuda_defaultStream(self.device.index)

    def query(self):
        """Whether all work is done."""
        return self._number is None or _C._cuda_streamQuery(self._number)

    def synchronize(self):
        """Wait for all work."""
        if self._number is not None:
            _C._cuda_streamSynchronize(self._number)

    def is_capturing(self):
        """Whether the work is being recorded into a graph."""
        return self._number is not None and _C._cuda_isCapturing(self._number)

    def wait_event(self, event):
        """Let what follows wait for an event."""
        event.wait(self)

    def wait_stream(self, stream):
        """Let what follows wait for what another stream was given."""
        self.wait_event(stream.record_event())

    def record_event(self, event=None):
        """Mark this place in the queue."""
        event = Event(self.device) if event is None else event
        event.record(self)
        return event

    def __enter__(self):
        if self._number is not None:
            self._before.append((_C._cuda_getDevice(), _C._cuda_currentStream(self.device.index)))
            _C._cuda_setDevice(self.device.index)
            _C._cuda_setStream(self._number)
        return self

    def __exit__(self, exc_type, exc_value, traceback):
        if self._number is not None:
            device, stream = self._before.pop()
            _C._cuda_setStream(stream)
            _C._cuda_setDevice(device)

    def _identity(self):
        return self.device, self._number

    def __eq__(self, other):
        return isinstance(other, Stream) and self._identity() == other._identity()

    def __hash__(self):
        return hash(self._identity())

    def __repr__(self):
        return (
            f"torch.Stream device_type={self.device.type}, device_index={self.device_index}, "
            f"stream_id={self.stream_id}"
        )


class Event:
    """A mark in a stream, for waiting and for measuring time."""

    def __init__(self, device=None, *, enable_timing=False, blocking=False, interprocess=False):
        self.device = _device(device, "Event")
        self.enable_timing, self.blocking, self.interprocess = enable_timing, blocking, interprocess
        self._handle = None  # of an event on a device, once it was recorded
        self._recorded = None

    @property
    def event_id(self):
        return self._handle or 0

    def _make(self, device):
        return _C._cuda_makeEvent(device, self.enable_timing, self.blocking)

    def record(self, stream=None):
        """Mark the present place in a stream."""
        if self.device.type != "cuda":
            self._recorded = time.perf_counter_ns()
            return
        if stream is None:
            number, device = _C._cuda_currentStream(self.device.index), self.device
        else:
            number, device = stream._number, stream.device
        if number is None:
            raise RuntimeError(f"Event: a stream of {device} cannot record an event of {self.device}")
        if self._handle is None:
            self.device = device
            self._handle = self._make(device.index)
        elif device != self.device:
            raise RuntimeError(
                f"Event device {self.device.index} does not match recording stream's device {device.index}."
            )
        _C._cuda_recordEvent(self._handle, number)
        self._recorded = number

    def query(self):
        """Whether all work before the mark is done."""
        return self._handle is None or _C._cuda_eventQuery(self._handle)

    def wait(self, stream=None):
        """Let a stream, by default the current one, wait for this."""
        if self._handle is None:
            return
        number = _C._cuda_currentStream(-1) if stream is None else stream._number
        if number is None:
            self.synchronize()  # the CPU's work is given out by the waiting thread
        else:
            _C._cuda_waitEvent(self._handle, number)

    def synchronize(self):
        """Wait for all work before the mark."""
        if self._handle is not None:
            _C._cuda_eventSynchronize(self._handle)

    def elapsed_time(self, end_event):
        """Milliseconds from this mark to another; both need ``enable_timing``."""
        if not (self.enable_timing and end_event.enable_timing):
            raise ValueError("Both events must be created with argument 'enable_timing=True'.")
        if self._recorded is None or end_event._recorded is None:
            raise ValueError("Both events must be recorded before calculating elapsed time.")
        if self._handle is None:
            return (end_event._recorded - self._recorded) / 1e6
        if not (self.query() and end_event.query()):
            raise ValueError("Both events must be completed before calculating elapsed time.")
        return _C._cuda_elapsedTime(self._handle, end_event._handle)

    def __del__(self):
        if getattr(self, "_handle", None) is not None:
            _C._cuda_releaseEvent(self._handle)

    def __repr__(self):
        index = -1 if self.device.index is None else self.device.index
        return (
            f"torch.Event device_type={self.device.type}, device_index={index}, "
            f"event_flag={int(self.enable_timing)}, event_id={self.event_id}"
        )


show_from("", AcceleratorError, Event, Stream)
