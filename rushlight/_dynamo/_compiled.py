"""A function that runs through graphs where it can, and as it is written where it cannot."""

import logging

import rushlight as torch
from rushlight import _C
from rushlight.nn.parameter import is_lazy

from . import config
from ._arguments import distinct_leaves
from ._capture import capture, capturing
from ._dynamic import capture_sizes, symbols_of
from ._guards import Guards
from ._parts import Parts
from ._raised import as_written
from ._results import filler, form_of, runner
from ._sizes import Specialized
from ._trials import SizedTrials, Trials
from .exc import (
    BackendCompilerFailed,
    FailOnRecompileLimitHit,
    FillsTables,
    MayPass,
    ProgramRaises,
    TorchDynamoException,
    Unsupported,
)
from .utils import counters

__all__ = ["Compiled", "all_compiled"]

__capture__ = "skip"  # Note [Capture marks]

_faults = logging.getLogger("torch._dynamo")
_breaks = logging.getLogger("torch.__graph_breaks")
_recompiles = logging.getLogger("torch.__recompiles")
_decisions = logging.getLogger("torch.__inductor")

all_compiled: list = []  # weak references to every Compiled, for reset()

torch._logging._read_environment()

_MANY = 64  # calls on end
_WAY_OUT = (
    "  The way out: move this out of the compiled function, mark the function that does it with "
    "@torch.compiler.disable and compile the rest, or compile without fullgraph=True, which then runs the "
    "function as it is written."
)


class Entry:
    """A graph, the calls it is for, and how it fares against the program itself."""

    def __init__(self, captured, guards, run, trials):
        self.match, self.guards = guards.match, guards
        self.leaves = [leaf.kind for leaf in captured.leaves]
        self.shapes = [tuple(leaf.tensor.shape) for leaf in captured.leaves]
        self.captured = captured if config._keep_captures else None
        self.run = run
        self.effects = captured.effects
        self.needs_call = captured.goes_beyond
        self.call = None  # of a compiled graph: checks and run at once
        self.trials = trials
        self.pays = True
        self.key = None  # under which the decision is kept on disk

    @property
    def decided(self):
        return self.trials is None


class Compiled(_C._CompiledCall):
    """What `torch.compile` makes of a function."""

    def __init__(self, function, backend, fullgraph=False, dynamic=None, measure=None, name=None, parts=None):
        super().__init__()
        self.function, self.backend, self.fullgraph = function, backend, fullgraph
        self.dynamic = dynamic  # whether sizes stay open: None once they changed, True at once, False never
        self.writes = False  # whether some graph writes to what outlives it
        self.one_size = set()  # places (input, dimension) of sizes that could not stay open
        self.name = name or getattr(function, "__qualname__", type(function).__qualname__)
        self.measured = measure
        self.entries: list[Entry] = []
        self.failures = self.passed = 0
        self.came_again = False
        self.reason = None  # why the program runs as it is written, for good
        self.whole = parts is None  # a program itself, and no part of one
        self.parts = Parts(self) if parts is None else parts
        self.written = function  # runs the program as it is written
        self.watcher = (
            None  # watcher(whether): told when the program shall run as it is written, or not any more
        )
        self.force_eager(torch.compiler._stance() == "force_eager")

    def force_eager(self, on):
        """Whether everything runs as it is written; graphs are kept for later."""
        self.eager, self.fast = on, None
        self.direct = self.function if on else self.written if self.reason is not None else None

    def _slow_call(self, args, kwargs):
        """A call that neither the last graph is for nor the function as it is."""
        for entry in self.entries:
            inputs = entry.match(args, kwargs)
            if type(inputs) is list:
                if entry.trials is None:
                    if not entry.pays:
                        self._passed()
                        return self.function(*args, **kwargs)
                    self.fast = entry.call
                    return self._run(entry, inputs, args, kwargs)
                return self._try(entry, inputs, args, kwargs)
        return self._first_call(args, kwargs)

    def _run(self, entry, inputs, args, kwargs):
        try:
            if not entry.needs_call:
                return entry.run(inputs)
            return self._run_with_call(entry, inputs, args, kwargs)
        except Exception as error:
            failed = error
        return self._graph_failed(failed, args, kwargs)

    def _run_with_call(self, entry, inputs, args, kwargs):
        """Run a graph, and do to the objects of the call what the program does."""
        targets = [effect.target.find(args, kwargs) for effect in entry.effects]
        result = entry.run(inputs, args, kwargs)
        if entry.effects:
            result, contents = result
            for effect, target, new in zip(entry.effects, targets, contents):
                effect.apply(target, new)
        return result

    def _graph_failed(self, error, args, kwargs):
        """What the program itself says where its graph raised: an error of its own, or a result."""
        if self.writes or not _is_ours(self.backend):
            raise error
        result = self.function(*args, **kwargs)
        self._tell_fault(error)
        self.give_up(f"its graph raised {_line(error)}, which the program does not")
        return result

    def _first_call(self, args, kwargs):
        """A call that no graph is for."""
        stance = torch.compiler._stance()
        if capturing() or config.disable or torch.compiler.is_exporting():
            return self.function(*args, **kwargs)
        if isinstance(self.function, torch.nn.Module) and any(map(is_lazy, self.function.parameters())):
            return self.function(*args, **kwargs)  # which gives its parameters their shapes
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
            entry = self._compile_sizes(args, kwargs) or self.compile(args, kwargs)
        except Unsupported as error:
            refusal, breaks = error, True
        except Exception as error:  # a fault of the compiler's own: the program must not stop for it
            ours = _is_ours(self.backend) or not isinstance(error, BackendCompilerFailed)
            if not ours and not config.suppress_errors:
                raise
            self._tell_fault(error)
            refusal, breaks = Unsupported(f"the compiler failed: {_line(error)}"), False
        else:
            refusal = None
        if self._may_pass(refusal):
            self.came_again = True  # what it does once is done now: the next call is captured
            if isinstance(refusal, FillsTables):
                return self.function(*args, **kwargs)
            self._tell_break(refusal)
            return self._split(args, kwargs)(*args, **kwargs)
        if refusal is not None:  # outside of the handlers: the program's own errors have no context of ours
            return self._fall_back(refusal, args, kwargs, breaks)
        inputs = entry.match(args, kwargs)
        if type(inputs) is not list:
            why = entry.guards.explain(inputs)
            return self._fall_back(Unsupported(f"its graph does not match its own call: {why}"), args, kwargs)
        self.entries.append(entry)
        counters["stats"]["unique_graphs"] += 1
        if not entry.pays:
            if len(self.entries) == 1:
                self.give_up("an earlier process found that the graph does not pay")
            return self.function(*args, **kwargs)
        return self._run(entry, inputs, args, kwargs)

    def _may_pass(self, refusal):
        """Whether a later call, which finds what this one did, may be captured."""
        kind = FillsTables if self.fullgraph else MayPass
        return isinstance(refusal, kind) and not self.came_again

    def compile(self, args, kwargs):
        """The entry for a call, and for others of its sizes."""
        captured = capture(self.function, args, kwargs)
        guards = Guards(captured, args, kwargs)
        return self._entry(captured, guards, self._program(captured))

    def _compile_sizes(self, args, kwargs):
        """The entry for a call and for others of many sizes; None where its graph is for one size."""
        opens = getattr(self.backend, "opts_out", False) and config.dynamic_shapes
        if not opens or self.dynamic is False:
            return None
        leaves = distinct_leaves(args, kwargs)
        kinds = [leaf.kind for leaf in leaves]
        known = next((entry for entry in reversed(self.entries) if entry.leaves == kinds), None)
        if known is not None and not config.automatic_dynamic_shapes:
            return None
        places = symbols_of(leaves, known, everywhere=self.dynamic is True and known is None)
        if not places or self.one_size.intersection(places):
            return None
        from rushlight._inductor._join import joined

        try:
            captures, points, symbols = capture_sizes(self.function, args, kwargs, leaves, places)
            for captured in captures:
                captured.module.meta["sizes change"] = True
            sources = {name: place for place, name in reversed(places.items())}  # the first of each
            program = joined([self._program(captured) for captured in captures], points, sources)
        except Specialized as error:
            _recompiles.info("%s is compiled for one size of each input: %s", self.name, error)
            if known is not None:
                self.one_size.update(places)
            return None
        entry = self._entry(captures[0], Guards(captures[0], args, kwargs, symbols), program)
        _recompiles.info("%s is compiled for sizes of %s", self.name, symbols)
        return entry

    def _program(self, captured):
        """What the back end makes of a capture."""
        try:
            module = captured.module if _is_ours(self.backend) else captured.as_called
            return self.backend(module, captured.example_inputs)
        except TorchDynamoException:
            raise
        except Exception as error:
            raise BackendCompilerFailed(
                f"backend={_name(self.backend)!r} raised:\n{type(error).__name__}: {error}"
            ) from error

    def _entry(self, captured, guards, program):
        self.writes |= any(map(_writes, captured.graph.nodes))
        rest = [tensor for tensor, _ in captured.held] + captured.constants
        trials = None
        if self._measures():
            kind = Trials if guards.symbols is None else SizedTrials
            trials = kind(captured.records, captured.device)
        output = captured.results
        if hasattr(program, "bind"):
            form = "l" if captured.goes_beyond else form_of(output)
            graph = program.bind(rest, form, guards.set)
            entry = Entry(captured, guards, graph.run if form != "l" else filler(graph.run, output), trials)
            entry.call = graph.call if form != "l" else None
        else:
            entry = Entry(captured, guards, runner(program, rest, output, captured.goes_beyond), trials)
        if trials is not None and hasattr(program, "texts"):
            self._recall(entry, program.texts())
        return entry

    def _measures(self):
        if self.measured is not None:
            return self.measured
        from rushlight._inductor import config as settings

        return getattr(self.backend, "opts_out", False) and settings.measure

    def _recall(self, entry, texts):
        """Use the decision that an earlier process came to, if one did."""
        from rushlight._inductor import _decision_cache

        entry.key = _decision_cache.key_of(self.name, texts)
        known = None if entry.key is None else _decision_cache.load(entry.key)
        if known is not None:
            entry.trials, entry.pays = None, known
            _decisions.info("%s: %s, as found earlier", self.name, "a graph" if known else "as written")

    def _passed(self):
        """One more call whose graph does not pay: many on end, of a program without one that does, tell that
        the trials of its other graphs will not be finished."""
        self.passed += 1
        if self.passed >= _MANY and not any(entry.decided and entry.pays for entry in self.entries):
            self.give_up("its graphs do not pay")

    def _try(self, entry, inputs, args, kwargs):
        trials, self.passed = entry.trials, 0
        trials.select(inputs)
        compiled = trials.next_is_compiled()
        start = trials.now()
        if compiled:
            entry.match(args, kwargs)  # which is part of what a graph costs
            result = self._run(entry, inputs, args, kwargs)
            if self.reason is not None:  # the graph failed
                return result
        else:
            result = self.function(*args, **kwargs)
        trials.add(compiled, start)
        if trials.records:
            trials.watch_backward(compiled, result)
        if trials.complete():
            (plain, graph), entry.pays = trials.best(), trials.pays()
            entry.trials = None
            if entry.key is not None and trials.is_clear():
                from rushlight._inductor import _decision_cache

                _decision_cache.store(entry.key, entry.pays)
            _decisions.info("%s: %.4g ms as a graph, %.4g ms as written", self.name, 1e3 * graph, 1e3 * plain)
            if not entry.pays and len(self.entries) == 1:
                self.give_up(
                    f"as a graph it takes {1e3 * graph:.4g} ms, as it is written {1e3 * plain:.4g} ms"
                )
        return result

    def _tell_fault(self, error):
        """One line for the log that is on without being asked for."""
        _faults.warning("%s runs as it is written: the compiler failed: %s", self.name, _line(error))

    def _tell_break(self, error):
        _breaks.info("%s runs as it is written: %s", self.name, error)
        counters["graph_break"][str(error)] += 1

    def _fall_back(self, error, args, kwargs, breaks=False):
        """Run a call that no graph is for. If the program itself says so, its modules get graphs instead."""
        raises = isinstance(error, ProgramRaises)
        result = as_written(self.function, args, kwargs, self.name, self.fullgraph) if raises else None
        if self.fullgraph:
            raise Unsupported(f"{self.name} cannot be compiled as one graph: {error}\n{_WAY_OUT}") from error
        self._tell_break(error)
        self.failures += 1
        if self.failures > 1 or not self.entries:
            if breaks:
                self._split(args, kwargs)
            self.give_up(str(error))
        return result if raises else self.written(*args, **kwargs)

    def _over_limit(self, args, kwargs):
        message = (
            f"{self.name} was compiled {len(self.entries)} times, which is the limit "
            "(torch._dynamo.config.recompile_limit)"
        )
        if self.fullgraph:
            raise FailOnRecompileLimitHit(f"{message}; fullgraph=True leaves no other way to run it")
        _recompiles.info("%s; other calls run as it is written", message)
        if any(
            entry.effects for entry in self.entries
        ):  # what it changes, such as a list that grows, goes on
            self.parts.split(self.function, args, kwargs)
            self.give_up(message)
            return self.written(*args, **kwargs)
        return self.function(*args, **kwargs)

    def _tell_recompile(self, args, kwargs):
        if _recompiles.isEnabledFor(logging.INFO):
            reasons = dict.fromkeys(e.guards.explain(e.match(args, kwargs)) for e in self.entries)
            _recompiles.info("%s is compiled again: %s", self.name, "; ".join(reasons))

    def _split(self, args, kwargs):
        """Give the modules that a call of the program calls graphs; what runs the program with these."""
        self.parts.split(self.function, args, kwargs)
        return self._with_parts()

    def _with_parts(self):
        return self.parts.run(self.function) if self.whole else self.function

    def give_up(self, reason):
        """From now on the program runs as it is written."""
        self.written = self._with_parts()
        self.reason, self.fast, self.direct = reason, None, self.written
        if self.watcher is not None and self.written is self.function:
            self.watcher(True)

    def without_parts(self):
        """None of its modules runs through graphs any more."""
        if self.reason is not None:
            self.give_up(self.reason)

    def _what_is_compiled(self):
        return self.function

    def reset(self):
        self.entries, self.failures, self.passed, self.reason = [], 0, 0, None
        self.written = self.function
        if self.whole:
            self.parts.clear()
        self.came_again = False
        self.one_size = set()
        self.force_eager(self.eager)
        if self.watcher is not None:
            self.watcher(False)


def _is_ours(backend):
    return getattr(backend, "opts_out", False)


def _writes(node):
    schema = getattr(node.target, "_schema", None)
    return schema is not None and schema.is_mutable


def _line(error):
    """An error as one line."""
    return " ".join(f"{type(error).__name__}: {error}".split())


def _name(backend):
    return getattr(backend, "compiler_name", getattr(backend, "__name__", type(backend).__name__))
