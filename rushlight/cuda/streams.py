"""Streams and events of CUDA devices."""

import rushlight
from rushlight import _C
from rushlight._extension import streams as _streams
from rushlight.cuda._devices import _index, _require

__all__ = ["Event", "ExternalStream", "Stream"]


def _dummy(self, name):
    if not _C._cuda_getDeviceCount():
        stream = name == "Stream"  # PyTorch words the two apart
        said = (
            "torch.cuda.Stream requires CUDA support"
            if stream
            else f"Tried to instantiate dummy base class {name}"
        )
        raise RuntimeError(said)


class Stream(_streams.Stream):
    """A queue of work on a CUDA device; what two streams are given may run at the same time.

    Args:
        device: where, by default the current device.
        priority: lower numbers run first, see ``priority_range``.
    """

    def __init__(self, device=None, priority=0, *, stream_id=None, device_index=None, device_type=None):
        _dummy(self, "Stream")
        if device is None and device_index is not None:
            device = device_index
        super().__init__(
            rushlight.device("cuda", _index(device, True)), priority=priority, stream_id=stream_id
        )

    @classmethod
    def _of(cls, number):
        """The stream of the core's number."""
        stream = cls.__new__(cls)
        stream._number, stream._before, stream._priority = number, [], 0
        stream.device = rushlight.device("cuda", _C._cuda_streamInfo(number)[0])
        return stream

    @property
    def cuda_stream(self):
        """The stream as the CUDA runtime knows it."""
        return self.native_handle

    _as_parameter_ = cuda_stream

    @staticmethod
    def priority_range():
        """The least and the greatest priority."""
        _require()
        return _C._cuda_priorityRange()

    def record_event(self, event=None):
        event = Event() if event is None else event
        event.record(self)
        return event

    def __cuda_stream__(self):
        return 0, self.cuda_stream

    def __repr__(self):
        return f"<torch.cuda.Stream device={self.device} cuda_stream={self.cuda_stream:#x}>"

    __eq__, __hash__ = _streams.Stream.__eq__, _streams.Stream.__hash__


class ExternalStream(Stream):
    """A stream that another library made and keeps alive."""

    def __init__(self, stream_ptr, device=None, **kwargs):
        _dummy(self, "Stream")
        number = _C._cuda_externalStream(_index(device, True), stream_ptr)
        super().__init__(_C._cuda_streamInfo(number)[0], stream_id=number)


class Event(_streams.Event):
    """A mark in a CUDA stream.

    Args:
        enable_timing: whether it measures time.
        blocking: whether ``synchronize`` gives the processor away while it waits.
        interprocess: whether other processes may wait for it, by its ``ipc_handle``; it measures no time.
    """

    def __init__(self, enable_timing=False, blocking=False, interprocess=False, external=False):
        _dummy(self, "Event")
        if interprocess and enable_timing:
            raise ValueError("torch.cuda.Event: an event shared between processes measures no time")
        super().__init__("cuda", enable_timing=enable_timing, blocking=blocking, interprocess=interprocess)

    @classmethod
    def from_ipc_handle(cls, device, handle):
        """The event of another process, by what its ``ipc_handle`` gave there."""
        event = cls(interprocess=True)
        event.device = rushlight.device("cuda", _index(device, True))
        event._handle = _C._cuda_openEvent(event.device.index, handle)
        return event

    def _make(self, device):
        if self.interprocess:
            return _C._cuda_makeSharedEvent(device, self.blocking)
        return super()._make(device)

    @property
    def cuda_event(self):
        """The event as the CUDA runtime knows it."""
        return self._handle or 0

    _as_parameter_ = cuda_event

    def ipc_handle(self):
        """Bytes by which another process opens this event; it needs ``interprocess``."""
        if not self.interprocess:
            raise RuntimeError("torch.cuda.Event: ipc_handle needs an event with interprocess=True")
        if self._handle is None:  # another process may open it before it is first recorded
            self.device = rushlight.device("cuda", _index(self.device, True))
            self._handle = self._make(self.device.index)
        return _C._cuda_eventHandle(self._handle)

    def __repr__(self):
        return (
            f"<torch.cuda.Event {self.cuda_event:#x}>" if self._handle else "<torch.cuda.Event uninitialized>"
        )


class StreamContext:
    """A context that selects a stream and its device; None selects nothing."""

    def __init__(self, stream):
        self.stream = stream

    def __enter__(self):
        if self.stream is not None:
            self.stream.__enter__()

    def __exit__(self, *exc):
        if self.stream is not None:
            self.stream.__exit__(*exc)


def stream(stream):
    """A context that selects a stream and its device; None selects nothing."""
    return StreamContext(stream)


def current_stream(device=None):
    """The stream that work of this thread goes to."""
    _require()
    return Stream._of(_C._cuda_currentStream(_index(device, True)))


def default_stream(device=None):
    """The stream that work goes to unless another one was selected."""
    _require()
    return Stream._of(_C._cuda_defaultStream(_index(device, True)))


def set_stream(stream):
    """Selects a stream until another one is selected; ``torch.cuda.stream`` is the better way."""
    if stream is not None:
        _require()
        _C._cuda_setDevice(stream.device_index)
        _C._cuda_setStream(stream._number)


def get_stream_from_external(data_ptr, device=None):
    """A stream that another library made."""
    _require()
    return ExternalStream(data_ptr, device)


def is_current_stream_capturing():
    """Whether the current stream's work is being recorded into a graph."""
    return bool(_C._cuda_getDeviceCount()) and _C._cuda_isCapturing(_C._cuda_currentStream(-1))
