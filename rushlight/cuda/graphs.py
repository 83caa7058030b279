"""CUDA graphs: work is recorded once and then given to the device as a whole."""

import gc

import rushlight
from rushlight import _C
from rushlight.cuda import memory, streams
from rushlight.cuda._devices import synchronize
from rushlight.cuda._graphed import make_graphed_callables
from rushlight.cuda.streams import is_current_stream_capturing

__all__ = ["CUDAGraph", "graph", "graph_pool_handle", "is_current_stream_capturing", "make_graphed_callables"]

_MODES = {"global": 0, "thread_local": 1, "relaxed": 2}


def graph_pool_handle():
    """The name of a pool that several graphs may share, if they run in the order they were recorded in."""
    if not _C._cuda_getDeviceCount():
        raise RuntimeError("Tried to instantiate dummy base class _graph_pool_handle")
    return _C._cuda_newPool(), 0


class CUDAGraph:
    """What a stream was given, recorded: ``replay`` gives it again, to the same memory."""

    def __init__(self, keep_graph=False):
        if not _C._cuda_getDeviceCount():
            raise RuntimeError("Tried to instantiate dummy base class CUDAGraph")
        self._handle = self._pool = self._stream = None
        self._drawn = 0  # random numbers a thread draws in one run

    def capture_begin(self, pool=None, capture_error_mode="global"):
        """Records what the current stream is given from now on; nothing of it runs."""
        if capture_error_mode not in _MODES:
            raise RuntimeError(
                "Unknown capture error mode. Expected `global`, `thread_local`, or `relaxed`, got "
                f"{capture_error_mode}"
            )
        if self._handle is not None or self._stream is not None:
            raise RuntimeError(
                "This CUDAGraph instance already owns a captured graph. To capture a new graph, "
                "create a new instance."
            )
        stream = streams.current_stream()
        if stream._is_default():
            raise RuntimeError(
                "CUDA graphs must be captured on a non-default stream. (However, after capture, it's ok to "
                "replay them on the default stream.)"
            )
        self._device = stream.device.index
        # Random operators of the graph start from what lies here when it runs.
        self._random_base = rushlight.empty(2, dtype=rushlight.int64, device=stream.device)
        self._pool = _C._cuda_newPool() if pool is None else pool[0]
        _C._cuda_beginPool(self._device, self._pool)
        try:
            _C._cuda_beginCapture(stream._number, _MODES[capture_error_mode])
        except BaseException:
            self._end_pool()
            raise
        self._stream = stream
        _C._cuda_beginGraphDraws(self._device, self._random_base.data_ptr())

    def _end_pool(self):
        _C._cuda_endPool(self._device)
        _C._cuda_releasePool(self._device, self._pool)
        self._pool = None

    def capture_end(self):
        """Ends the recording."""
        if self._stream is None:
            raise RuntimeError("capture_end: no capture is under way")
        stream, self._stream = self._stream, None
        self._drawn = _C._cuda_endGraphDraws(self._device)
        try:
            self._handle = _C._cuda_endCapture(stream._number)
        except BaseException:
            self._end_pool()
            raise
        _C._cuda_endPool(self._device)

    def replay(self):
        """Gives the current stream the recorded work; random operators go on in the device's stream."""
        if self._handle is None:
            raise RuntimeError("Called CUDAGraph::replay without a preceding successful capture.")
        if self._drawn:
            generator = _C._cuda_defaultGenerator(self._device)
            seed, offset = generator.initial_seed(), generator.get_offset()
            self._random_base[0] = seed - 2**64 if seed >= 2**63 else seed
            self._random_base[1] = offset
            generator.set_offset(offset + self._drawn)
        _C._cuda_launchGraph(self._handle, _C._cuda_currentStream(self._device))

    def reset(self):
        """Forgets the recording and gives its memory up."""
        if getattr(self, "_handle", None) is not None:
            _C._cuda_releaseGraph(self._handle)
            _C._cuda_releasePool(self._device, self._pool)
            self._handle = self._pool = None

    def pool(self):
        """The pool of the graph's memory, for graphs that share it."""
        return self._pool, 0

    def __del__(self):
        self.reset()


class graph:
    """A context that records a CUDAGraph on a stream of its own.

    Args:
        cuda_graph: where to record.
        pool: of ``graph_pool_handle`` or another graph's ``pool()``; by default a new one.
        stream: to record on.
        capture_error_mode: "global", "thread_local" or "relaxed": whose forbidden calls are errors.
    """

    default_capture_stream = None

    def __init__(self, cuda_graph, pool=None, stream=None, capture_error_mode="global", **kwargs):
        if stream is None:
            if graph.default_capture_stream is None:
                graph.default_capture_stream = streams.Stream()
            stream = graph.default_capture_stream
        self.cuda_graph, self.pool, self.capture_stream = cuda_graph, pool, stream
        self.capture_error_mode = capture_error_mode
        self.stream_ctx = streams.StreamContext(stream)

    def __enter__(self):
        synchronize()
        gc.collect()
        memory.empty_cache()
        self.stream_ctx.__enter__()
        try:
            self.cuda_graph.capture_begin(self.pool, self.capture_error_mode)
        except BaseException:
            self.stream_ctx.__exit__(None, None, None)
            raise

    def __exit__(self, kind, error, trace):
        try:
            self.cuda_graph.capture_end()
        except RuntimeError:
            if error is None:
                raise
            # What was refused, and spoilt the recording, is on its way to the program.
        finally:
            self.stream_ctx.__exit__(kind, error, trace)
