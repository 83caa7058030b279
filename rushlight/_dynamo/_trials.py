"""Whether a graph pays: the first calls run the graph and the program itself in turn, and are timed."""

import time

import rushlight as torch
from rushlight import _C

__all__ = ["SizedTrials", "Trials"]


class Trials:
    """Times of the first calls, their backward passes included.

    Two clocks run: on a busy machine others take time from a call, so that its processor time tells more;
    with several threads, or on a device, the time that passes does.
    """

    _ROUNDS = ((0.05, 4), (0.001, 8), (0.0, 40))  # so many of each for calls above so many seconds
    _WORTH = 0.98  # a graph that takes more of the program's time than this is not worth its checks
    _NOISE = 1.03
    _MARGIN = 0.03  # a decision this far from the limit will not turn over

    def __init__(self, records=False, device="cpu"):
        self.records = records
        self.on_device = device != "cpu"
        self.times = [], []  # of the program, of the graph: pairs of what the clocks said
        self.backward_times = [], []

    def select(self, inputs):
        """A call with these inputs comes next."""

    def now(self):
        """(time that passes, time of the processors) in seconds, once a device has done its work."""
        if self.on_device:
            torch.cuda.synchronize()
        return time.perf_counter(), time.process_time()

    def next_is_compiled(self):
        if self.records and sum(map(len, self.backward_times)):
            return len(self.backward_times[1]) <= len(self.backward_times[0])
        return len(self.times[1]) <= len(self.times[0])

    def add(self, compiled, start):
        self.times[compiled].append(self._since(start))

    def _since(self, start):
        return tuple(end - begin for begin, end in zip(start, self.now()))

    def watch_backward(self, compiled, result):
        """From when the gradient of a result arrives until the whole pass ends."""
        step = next((t.grad_fn for t in _tensors(result) if t.grad_fn is not None), None)
        if step is None:
            return
        times = self.backward_times[compiled]

        def begin(gradients):
            start = self.now()
            handle.remove()
            _C._engine_queue_callback(lambda: times.append(self._since(start)))

        handle = step.register_prehook(begin)

    def complete(self):
        counts = list(map(len, self.times))
        if min(counts) < 2:
            return False
        fastest = min(passed for times in self.times for passed, _ in times)
        rounds = next(n for seconds, n in self._ROUNDS if fastest >= seconds)
        if any(self.backward_times) and min(counts) < 4 * rounds:  # later on, none is expected any more
            return min(map(len, self.backward_times)) >= rounds
        return min(counts) >= rounds

    def best(self, clock=None):
        """(the program itself, the graph) in seconds, by the clock that decides first."""
        clock = int(self._by_processor()) if clock is None else clock
        plain, graph = (min(t[clock] for t in times) for times in self.times)
        if all(self.backward_times):
            plain += min(t[clock] for t in self.backward_times[0])
            graph += min(t[clock] for t in self.backward_times[1])
        return plain, graph

    def pays(self):
        """Whether one clock says that the graph is faster, and none that it is slower."""
        shares = [graph / max(plain, 1e-9) for plain, graph in map(self.best, (0, 1))]
        if self._by_processor() or self.on_device:
            return shares[self._by_processor()] <= self._WORTH
        return min(shares) <= self._WORTH and max(shares) <= self._NOISE

    def _by_processor(self):
        return torch.get_num_threads() == 1 and not self.on_device

    def is_clear(self):
        """Whether other runs are likely to say the same."""
        clocks = (0,) if self.on_device else (0, 1)
        shares = [graph / max(plain, 1e-9) for plain, graph in map(self.best, clocks)]
        return max(shares) <= self._WORTH - self._MARGIN or min(shares) >= self._WORTH + self._MARGIN


class SizedTrials(Trials):
    """The same for a graph of many sizes: times are compared at each of them, and their sums decide."""

    _MOST = 400  # calls that end the trials, if sizes hardly ever come again: the graph stays

    def __init__(self, records=False, device="cpu"):
        super().__init__(records, device)
        self.of_sizes = {}
        self.calls = 0

    def select(self, inputs):
        sizes = tuple(tensor.shape for tensor in inputs)
        if sizes not in self.of_sizes:
            self.of_sizes[sizes] = Trials(self.records, "cuda" if self.on_device else "cpu")
        self.now_tried = self.of_sizes[sizes]
        self.times, self.backward_times = self.now_tried.times, self.now_tried.backward_times
        self.calls += 1

    def _of_both(self):
        """Trials of the sizes at which the program and the graph ran."""
        tried = [t for t in self.of_sizes.values() if all(t.times)]
        return [t for t in tried if any(t.backward_times) == all(t.backward_times)]

    def complete(self):
        tried = self._of_both()
        if any(t.complete() for t in tried) or self.calls >= self._MOST:
            return True
        fastest = min((passed for t in tried for times in t.times for passed, _ in times), default=0)
        rounds = next(n for seconds, n in self._ROUNDS if fastest >= seconds)
        return sum(min(map(len, t.times)) for t in tried) >= rounds + len(tried)

    def best(self, clock=None):
        clock = int(self._by_processor()) if clock is None else clock
        pairs = [t.best(clock) for t in self._of_both()] or [(0.0, 0.0)]
        return tuple(map(sum, zip(*pairs)))

    def is_clear(self):
        return bool(self._of_both()) and super().is_clear()


def _tensors(value):
    """The tensors in what a program returned."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (list, tuple, dict)):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _tensors(item)
    elif hasattr(value, "__dict__"):
        yield from _tensors(vars(value))
