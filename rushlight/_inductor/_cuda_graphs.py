"""`mode="reduce-overhead"`: a compiled graph on a device becomes a CUDA graph, one call for the host."""

import logging
import threading

import rushlight as torch

from ._passes import storage_of, written_by

__all__ = ["Recorded", "recordable"]

_decisions = logging.getLogger("torch.__inductor")
_WARM = 2  # runs as they are before one is recorded: libraries make their handles and plans meanwhile


def recordable(graph, first_state):
    """Why runs of a graph without gradients cannot be recorded; None if they can.

    Its inputs before position `first_state` are arguments: what is recorded takes copies of them.
    """
    placeholders = [n for n in graph.nodes if n.op == "placeholder"]
    if any(n.meta["val"].device.type == "cpu" for n in placeholders):
        return "an input is on the CPU, where numbers are read while it is recorded"
    arguments = {storage_of(n) for n in placeholders[:first_state]}
    if any(storage_of(target) in arguments for n in graph.nodes for target in written_by(n)):
        return "it writes to an argument"
    given = {storage_of(n) for n in placeholders}
    if any(storage_of(n) in given for n in graph.output_node().all_input_nodes):
        return "a result shares memory with an input"
    return None


class Recorded:
    """A program whose bound graphs are recorded."""

    _boxed_call = True

    def __init__(self, program):
        self.program = program

    def texts(self):
        """All that runs, as text."""
        return [*self.program.texts(), "recorded"]

    def bind(self, rest, form="l", guards=None):
        return _Recording(self.program.bind(rest, form), rest, guards)

    def __call__(self, inputs):
        return self.program(inputs)


class _Recording:
    """Runs of one graph: as they are at first, then recorded, once for each place of the state."""

    def __init__(self, graph, rest, guards):
        self.graph, self.rest, self.guards = graph, rest, guards
        self.lock = threading.Lock()
        self.runs = 0
        self.recorded = self.stream = self.places = None
        self.refused = False

    def call(self, args, kwargs):
        """The results for a call that the graph is for, or NotImplemented."""
        inputs = self.guards.match(args, kwargs)
        return self.run(inputs) if type(inputs) is list else NotImplemented

    def run(self, inputs):
        if self.refused or torch.cuda.is_current_stream_capturing() or not self.lock.acquire(blocking=False):
            return self.graph.run(inputs)
        try:
            return self._run(inputs)
        finally:
            self.lock.release()

    def _run(self, inputs):
        stream = torch.cuda.current_stream()
        if self.runs < _WARM or stream != (self.stream or stream):  # copies and results are of one stream
            self.runs += 1
            return self.graph.run(inputs)
        places = [tensor.data_ptr() for tensor in self.rest]
        if self.recorded is None or self.places != places:
            try:
                self._record(inputs)
            except RuntimeError as error:
                self.refused = True
                _decisions.info("a graph could not be recorded: %s", error)
                return self.graph.run(inputs)
            self.stream, self.places = stream, places
        else:
            for mine, given in zip(self.inputs, inputs):
                mine.copy_(given, non_blocking=True)
        self.recorded.replay()
        if isinstance(self.results, torch.Tensor):
            return self.results.clone()
        return type(self.results)(result.clone() for result in self.results)

    def _record(self, inputs):
        self.inputs = [tensor.clone() for tensor in inputs]
        recorded = torch.cuda.CUDAGraph()
        with torch.cuda.graph(recorded, capture_error_mode="thread_local"):
            self.results = self.graph.run(self.inputs)
        self.recorded = recorded
