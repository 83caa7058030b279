"""A function that runs through graphs where it can, and as it is written where it cannot."""

import logging
import time

import rushlight as torch
from rushlight import _C
from rushlight.fx import Node

from . import config
from ._capture import capture, capturing
from ._guards import Guards
from .exc import BackendCompilerFailed, TorchDynamoException, Unsupported

__all__ = ["Compiled", "all_compiled"]

_breaks = logging.getLogger("torch.__graph_breaks")
_recompiles = logging.getLogger("torch.__recompiles")
_decisions = logging.getLogger("torch.__inductor")

all_compiled: list = []  # weak references to every Compiled, for reset()

torch._logging._read_environment()

_WAY_OUT = (
    "  The way out: move this out of the compiled function, mark the function that does it with "
    "@torch.compiler.disable and compile the rest, or compile without fullgraph=True, which then runs the "
    "function as it is written."
)


class Entry:
    """A graph, the calls it is for, and how it fares against the program itself."""

    def __init__(self, guards, run, trials):
        self.match, self.guards = guards.match, guards
        self.run = run
        self.call = None  # of a compiled graph: checks and run at once
        self.trials = trials
        self.pays = True

    @property
    def decided(self):
        return self.trials is None


class Trials:
    """Times of the first calls: the graph and the program itself in turn, with their backward passes."""

    _ROUNDS = ((0.05, 4), (0.001, 8), (0.0, 40))  # so many of each for calls above so many seconds

    def __init__(self, records=False):
        self.records = records
        self.times = [], []
        self.backward_times = [], []

    def next_is_compiled(self):
        if self.records and sum(map(len, self.backward_times)):
            return len(self.backward_times[1]) <= len(self.backward_times[0])
        return len(self.times[1]) <= len(self.times[0])

    def add(self, compiled, seconds):
        self.times[compiled].append(seconds)

    def watch_backward(self, compiled, result):
        """From when the gradient of a result arrives until the whole pass ends."""
        step = next((t.grad_fn for t in _tensors(result) if t.grad_fn is not None), None)
        if step is None:
            return
        times = self.backward_times[compiled]

        def begin(gradients):
            start = time.perf_counter()
            handle.remove()
            _C._engine_queue_callback(lambda: times.append(time.perf_counter() - start))

        handle = step.register_prehook(begin)

    def complete(self):
        counts = list(map(len, self.times))
        if min(counts) < 2:
            return False
        fastest = min(map(min, self.times))
        rounds = next(n for seconds, n in self._ROUNDS if fastest >= seconds)
        if any(self.backward_times) and min(counts) < 4 * rounds:  # later on, none is expected any more
            return min(map(len, self.backward_times)) >= rounds
        return min(counts) >= rounds

    def best(self):
        """(the program itself, the graph) in seconds."""
        plain, graph = min(self.times[0]), min(self.times[1])
        if all(self.backward_times):
            plain += min(self.backward_times[0])
            graph += min(self.backward_times[1])
        return plain, graph


def _tensors(value):
    """The tensors in what a program returned."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (list, tuple, dict)):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _tensors(item)


class Compiled:
    """What `torch.compile` makes of a function."""

    _WORTH = 0.98  # a graph that takes more of the program's time than this is not worth its checks

    def __init__(self, function, backend, fullgraph=False, measure=None, name=None):
        self.function, self.backend, self.fullgraph = function, backend, fullgraph
        self.name = name or getattr(function, "__qualname__", type(function).__qualname__)
        self.measured = measure
        self.entries: list[Entry] = []
        self.failures = 0
        self.reason = None  # why the program runs as it is written, for good
        self.on_give_up = None
        self.fast = None  # the last graph that was found to pay

    def __call__(self, *args, **kwargs):
        if self.fast is not None:
            result = self.fast(args, kwargs)
            if result is not NotImplemented:
                return result
        if self.reason is not None:
            return self.function(*args, **kwargs)
        for entry in self.entries:
            inputs = entry.match(args, kwargs)
            if type(inputs) is list:
                if entry.trials is None:
                    if not entry.pays:
                        return self.function(*args, **kwargs)
                    self.fast = entry.call
                    return entry.run(inputs)
                return self._try(entry, inputs, args, kwargs)
        return self._first_call(args, kwargs)

    def _first_call(self, args, kwargs):
        """A call that no graph is for."""
        stance = torch.compiler._stance()
        if capturing() or config.disable or stance == "force_eager" or torch.compiler.is_exporting():
            return self.function(*args, **kwargs)
        if not _C._GuardSet.is_plain() and not self.fullgraph:  # as long as a mode or a transform watches
            return self.function(*args, **kwargs)
        if self.entries:
            if stance == "fail_on_recompile":
                raise RuntimeError(f"{self.name} would be compiled again, which the stance forbids")
            if stance == "eager_on_recompile":
                return self.function(*args, **kwargs)
            self._tell_recompile(args, kwargs)
            if len(self.entries) >= min(config.cache_size_limit, config.recompile_limit):
                return self._over_limit(args, kwargs)
        try:
            entry = self.compile(args, kwargs)
        except Unsupported as error:
            return self._fall_back(error, args, kwargs)
        inputs = entry.match(args, kwargs)
        if type(inputs) is not list:
            why = entry.guards.explain(inputs)
            return self._fall_back(Unsupported(f"its graph does not match its own call: {why}"), args, kwargs)
        self.entries.append(entry)
        return entry.run(inputs)

    def compile(self, args, kwargs):
        """The entry for a call."""
        captured = capture(self.function, args, kwargs)
        guards = Guards(self.function, captured, args, kwargs)
        examples = captured.example_inputs
        try:
            program = self.backend(captured.module, examples)
        except TorchDynamoException:
            raise
        except Exception as error:
            raise BackendCompilerFailed(
                f"backend={_name(self.backend)!r} raised:\n{type(error).__name__}: {error}"
            ) from error
        rest = [tensor for tensor, _ in captured.held] + captured.constants
        trials = Trials(captured.records) if self._measures() else None
        if hasattr(program, "bind"):
            form = _form(captured.output)
            graph = program.bind(rest, form, guards.set)
            entry = Entry(guards, graph.run if form != "l" else _filler(graph.run, captured.output), trials)
            entry.call = graph.call if form != "l" else None
        else:
            entry = Entry(guards, _runner(program, rest, captured.output), trials)
        entry.captured = captured if config._keep_captures else None
        return entry

    def _measures(self):
        if self.measured is not None:
            return self.measured
        from rushlight._inductor import config as settings

        return getattr(self.backend, "opts_out", False) and settings.measure

    def _try(self, entry, inputs, args, kwargs):
        trials = entry.trials
        compiled = trials.next_is_compiled()
        start = time.perf_counter()
        if compiled:
            entry.match(args, kwargs)  # which is part of what a graph costs
            result = entry.run(inputs)
        else:
            result = self.function(*args, **kwargs)
        trials.add(compiled, time.perf_counter() - start)
        if trials.records:
            trials.watch_backward(compiled, result)
        if trials.complete():
            plain, graph = trials.best()
            entry.trials, entry.pays = None, graph <= self._WORTH * plain
            _decisions.info("%s: %.4g ms as a graph, %.4g ms as written", self.name, 1e3 * graph, 1e3 * plain)
            if not entry.pays and len(self.entries) == 1:
                self.give_up(
                    f"as a graph it takes {1e3 * graph:.4g} ms, as it is written {1e3 * plain:.4g} ms"
                )
        return result

    def _fall_back(self, error, args, kwargs):
        if self.fullgraph:
            raise Unsupported(f"{self.name} cannot be compiled as one graph: {error}\n{_WAY_OUT}") from error
        _breaks.info("%s runs as it is written: %s", self.name, error)
        self.failures += 1
        if self.failures > 1 or not self.entries:
            self.give_up(str(error))
        return self.function(*args, **kwargs)

    def _over_limit(self, args, kwargs):
        message = (
            f"{self.name} was compiled {len(self.entries)} times, which is the limit "
            "(torch._dynamo.config.recompile_limit)"
        )
        if self.fullgraph:
            raise Unsupported(f"{message}; fullgraph=True leaves no other way to run it")
        _recompiles.info("%s; other calls run as it is written", message)
        return self.function(*args, **kwargs)

    def _tell_recompile(self, args, kwargs):
        if _recompiles.isEnabledFor(logging.INFO):
            reasons = dict.fromkeys(e.guards.explain(e.match(args, kwargs)) for e in self.entries)
            _recompiles.info("%s is compiled again: %s", self.name, "; ".join(reasons))

    def give_up(self, reason):
        """From now on the program runs as it is written."""
        self.reason, self.fast = reason, None
        if self.on_give_up is not None:
            self.on_give_up()

    def _what_is_compiled(self):
        return self.function

    def reset(self):
        self.entries, self.failures, self.reason, self.fast = [], 0, None, None


def _name(backend):
    return getattr(backend, "compiler_name", getattr(backend, "__name__", type(backend).__name__))


def _form(output):
    """What a program returns: a tensor, a tuple of tensors, or something else, filled from a list."""
    if isinstance(output, Node):
        return "t"
    return "u" if type(output) is tuple and all(isinstance(item, Node) for item in output) else "l"


def _filler(run, output):
    return lambda inputs: _fill(output, iter(run(inputs)))


def _runner(program, rest, output):
    """A function of the list of input tensors that returns what the program returns."""

    def values(inputs):
        return program(*inputs, *rest)

    form = _form(output)
    if form == "t":
        return lambda inputs: values(inputs)[0]
    if form == "u":
        return lambda inputs: tuple(values(inputs))
    return _filler(values, output)


def _fill(template, values):
    """The program's result, with tensors in place of nodes."""
    if isinstance(template, Node):
        return next(values)
    if isinstance(template, dict):
        return {k: _fill(v, values) for k, v in template.items()}
    if isinstance(template, tuple) and hasattr(template, "_fields"):
        return type(template)(*(_fill(v, values) for v in template))
    if type(template) in (list, tuple):
        return type(template)(_fill(v, values) for v in template)
    return template
