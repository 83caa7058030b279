"""Capture by running: a program runs once on fake tensors, which have no values it could branch on, and the
operators it calls become a graph. Python around them is observed; see `_observer` and `_reachable`.
"""

import contextlib
import gc
import sys
import threading
from dataclasses import dataclass, field

import rushlight as torch
from rushlight import _C, compiler
from rushlight._subclasses._fake_history import begins_history
from rushlight.autograd.function import BackwardCFunction, FunctionCtx
from rushlight.fx import Graph, GraphModule
from rushlight.nn.modules import module as _module

from ._arguments import Copies, Effect, Held, Leaf, each_once, find_leaves
from ._backward import Backward, NoBackward
from ._calls import DEVICES, codes
from ._grad_state import GradState
from ._observer import Interruption, Observer
from ._reachable import Reachable, is_constant, is_part_of_program
from ._recorder import Recorder, Whole, identifier
from ._results import begin_record, collect, fill_record, is_record
from .exc import FillsTables, MayPass, ProgramRaises, Unsupported

__all__ = ["Capture", "capture", "capturing"]

__capture__ = "skip"  # Note [Capture marks]

_lock = threading.RLock()
_thread = threading.local()


def capturing():
    """The capture that runs on this thread, or None."""
    return getattr(_thread, "capture", None)


@dataclass
class Capture:
    """A program as a graph of operators, and what that graph took for granted."""

    reachable: Reachable
    graph: Graph
    leaves: list  # tensors among the arguments: the graph's first inputs
    held: list = field(default_factory=list)  # tensors of Python's state: the inputs after these
    constants: list = field(default_factory=list)  # tensors that the program made of numbers: the last inputs
    output: object = None  # what to return: containers, with nodes for tensors
    effects: list = field(default_factory=list)  # what to do to objects of the call
    apart: list = field(default_factory=list)  # objects of the call that must be several
    replaced: list = field(default_factory=list)  # tensors of Python's state that the program replaces
    records: bool = False  # autograd records what runs
    module: GraphModule | None = None
    backward: object = None  # a Backward of _backward.py: traces the backward pass
    as_called: GraphModule | None = None  # the module, with calls that are steps of autograd as one node each

    @property
    def goes_beyond(self):
        """Whether what it returns or changes may be an object of the call, or of the program's state."""
        return bool(self.apart or self.effects)

    @property
    def results(self):
        """All that is made of what a graph returns."""
        return [self.output, [effect.contents for effect in self.effects]] if self.effects else self.output

    @property
    def device(self):
        """The type of device that it runs on: ``"cpu"``, or that of its tensors elsewhere."""
        types = {tensor.device.type for tensor in self.example_inputs} - {"cpu"}
        return next(iter(types), "cpu")

    @property
    def example_inputs(self):
        return [leaf.tensor for leaf in self.leaves] + [tensor for tensor, _ in self.held] + self.constants


def _check_tensor(tensor, what):
    if type(tensor) not in (torch.Tensor, torch.nn.Parameter) or tensor.layout is not torch.strided:
        raise Unsupported(f"{what} is a {type(tensor).__qualname__} of layout {tensor.layout}")
    if tensor.device.type not in DEVICES:
        raise Unsupported(f"{what} is on the device {tensor.device}")


def _check_devices(tensors):
    """A graph runs on the CPU, or on one device besides."""
    devices = {tensor.device for tensor in tensors} - {torch.device("cpu")}
    if len(devices) > 1:
        raise Unsupported(f"its tensors are on several devices: {', '.join(sorted(map(str, devices)))}")
    if any(device.index != torch.cuda.current_device() for device in devices):
        raise Unsupported(f"its tensors are on {devices.pop()}, which is not the current device")


def capture(function, args, kwargs, shapes=None, watch=None):
    """Run a function without effect, and return its graph; `Unsupported` tells why there is none.

    ``shapes`` are those of arguments (by their ids) that are traced at others, ``watch`` a `Watch` that sees
    what the program does with sizes.
    """
    if not _C._GuardSet.is_plain():
        raise Unsupported("a mode or a function transform watches the program")
    with _lock:
        leaves = find_leaves(args, kwargs)
        for leaf in leaves:
            _check_tensor(leaf.tensor, f"argument {leaf.root!r}")
            if vars(leaf.tensor):
                raise Unsupported(f"argument {leaf.root!r} has attributes of its own")
        reachable = Reachable()
        reachable.visit(function, getattr(function, "__qualname__", type(function).__qualname__))
        for name, value in vars(_module).items():
            if name.startswith("_global_") and isinstance(value, dict):
                reachable.visit(value, f"the hooks of all modules ({name})")
        made = _Run(reachable, leaves, shapes or {}, watch).run(function, args, kwargs)
        if made.backward is not None:
            made.backward.recorder.forget()
        return made


class _Run:
    """One run of a program for capture: nothing it does to Python's state remains."""

    def __init__(self, reachable, leaves, shapes, watch):
        self.reachable, self.leaves = reachable, leaves
        self.observer = Observer(reachable)
        self.recorder = Recorder(reachable, self.observer, shapes)
        self.watch = watch
        self.made = {}  # id of an object that the program returns -> (it, the same with nodes for tensors)
        self.observer.steps, self.observer.see_step = codes, self.recorder.calls.see
        if watch is not None:
            watch.connect(self.recorder)

    def run(self, function, args, kwargs):
        fakes = {}
        for leaf in self.leaves:
            if id(leaf.tensor) not in fakes:
                name = leaf.root if isinstance(leaf.root, str) else f"arg{leaf.root}"
                fakes[id(leaf.tensor)], node = self.recorder.add_input(
                    identifier(f"{name}_{len(fakes)}"), leaf.tensor
                )
                self.recorder.held[id(leaf.tensor)] = leaf.tensor, "argument", fakes[id(leaf.tensor)], node
        self.copies = Copies(self.recorder.fake_of)
        fake_args = tuple(self.copies.of(value, i) for i, value in enumerate(args))
        fake_kwargs = {name: self.copies.of(value, name) for name, value in kwargs.items()}
        self.reachable.given = self.copies.known
        for root, value in (*enumerate(args), *kwargs.items()):
            self._visit_modules(value, f"argument {root!r}")
        self.reachable.visit((fake_args, fake_kwargs), "arguments")
        random_state = torch.random.get_rng_state()
        surroundings = _surroundings()
        try:
            result = self._observed(function, fake_args, fake_kwargs)
            change = self.reachable.first_change()
            self.replaced = self.reachable.replaced() if change is not None else {}
            if change is not None and not self.replaced:
                kind = FillsTables if self.reachable.only_fills_tables() else Unsupported
                raise kind(f"the program changes {change}")
            if _surroundings() != surroundings:
                raise Unsupported("the program changes settings of torch")
            return self._finish(result)
        finally:
            self.recorder.fakes.fake_tensor_converter.forget()  # users would notice
            _restore_surroundings(surroundings)
            self.reachable.restore()
            for tensor, version in self.recorder.versions:
                _C._set_version(tensor, version)
            torch.random.set_rng_state(random_state)

    def _visit_modules(self, value, label):
        """Modules among the arguments are state, with labels of their own, as those the program names."""
        if is_part_of_program(value):
            self.reachable.visit(value, label)
        elif isinstance(value, (list, tuple, dict)):
            for key, item in value.items() if isinstance(value, dict) else enumerate(value):
                self._visit_modules(item, f"{label}[{key!r}]")

    def _finish_calls(self, made):
        """The graph with calls as they are; and the backward passes that their steps have in Python, which
        are watched as the program is."""
        labels, calls = self.reachable.labels, self.recorder.calls
        _check_checkpoints(made.graph)

        def collapsed(checkpoints):
            graph = calls.collapsed(made.graph, lambda value: id(value) in labels, checkpoints)
            return GraphModule(torch.nn.Module(), graph)

        made.as_called = made.module.meta["calls"] = collapsed(False)
        if calls.checkpoints:
            made.module.meta["checkpoints"] = None
            with contextlib.suppress(Unsupported):
                made.module.meta["checkpoints"] = collapsed(True)
        if made.backward is not None and calls.made:
            if self.replaced or not self._prepare_backward(made.backward):
                made.backward = None  # its steps run as they are written

    def _prepare_backward(self, backward):
        """Trace what backward passes do in Python; whether that is no more than computing."""
        before, _thread.capture = capturing(), self
        state = self.reachable.state()
        self.observer.only = BackwardCFunction.apply.__code__
        try:
            self.recorder.calls.visit_backward()
            with self.observer:
                backward.prepare()
            known = self.reachable.first_change() is None
        except (NoBackward, Interruption, Unsupported):
            known = False
        finally:
            _thread.capture = before
        if not known:  # what it read is not looked at before a run
            self.reachable.restore()
            self.reachable.return_to(state)
        return known

    def _observed(self, function, args, kwargs):
        collects = gc.isenabled()
        gc.disable()  # finalizers of other objects are not part of the program
        before, _thread.capture = capturing(), self
        try:
            whole = Whole(self.recorder)
            watched = self.watch or contextlib.nullcontext()
            state = GradState(self.recorder) if self.recorder.records else contextlib.nullcontext()
            with (
                state,
                compiler._capturing_program(),
                whole,
                self.recorder.fakes,
                self.recorder,
                self.observer,
                watched,
            ):
                return _C._with_parts(None, function, *args, **kwargs)
        except Interruption as stop:
            kind = MayPass if self.observer.interrupted_by_call else Unsupported
            raise kind(stop.reason) from None
        except Unsupported:
            raise
        except Exception as error:
            if self.observer.interruption:
                raise Unsupported(self.observer.interruption) from error
            raise ProgramRaises(f"{type(error).__name__} while it was captured: {error}") from error
        finally:
            _thread.capture = before
            if collects:
                gc.enable()
            if self.observer.interruption:
                sys.setprofile(self.observer.before)

    def _finish(self, result):
        recorder = self.recorder
        if self.observer.interruption:
            raise Unsupported(self.observer.interruption)
        for tensor, label, fake, _ in recorder.held.values():
            shape = recorder.shapes.get(id(tensor), tensor.shape)
            if fake.requires_grad != tensor.requires_grad or fake.shape != shape:
                raise Unsupported(f"the program changes what {label} is")
        output = self._output(result)  # which may make inputs of tensors that no operator takes
        effects = self.copies.effects(self._output)
        replaced = [
            Leaf(Held(table), (key,), tensor) for (_, key), (table, tensor) in (self.replaced or {}).items()
        ]
        for leaf in replaced:
            table, key = leaf.root.object, leaf.steps[0]
            effects.append(Effect(leaf.root, {key: self._output(table[key])}))
        distinct = each_once(self.leaves + [leaf for leaf in replaced if id(leaf.tensor) in recorder.held])
        leaf_ids = {id(leaf.tensor) for leaf in distinct}
        made = Capture(self.reachable, recorder.graph, distinct)
        made.output, made.effects, made.replaced = output, effects, replaced
        held = [entry for key, entry in recorder.held.items() if key not in leaf_ids]
        for tensor, label, _, _ in held:
            _check_tensor(tensor, label)
        made.held = [(tensor, label) for tensor, label, _, _ in held]
        made.constants = [tensor for tensor, _, _ in recorder.constants.values()]
        _check_devices(made.example_inputs)
        _order_inputs(recorder, [recorder.held[id(leaf.tensor)][3] for leaf in distinct], held)
        if len(made.effects) > len(replaced) or self.copies.has_objects:
            made.apart = self._apart(made.effects)
        places: dict = {}
        collect(made.results, places)
        nodes = list(places)
        recorder.graph.erase_node(recorder.anchor)
        recorder.graph.output(tuple(nodes))
        made.records = torch.is_grad_enabled() and any(t.requires_grad for t in made.example_inputs)
        if made.records:
            self._check_autograd(nodes)
            made.backward = Backward(recorder, nodes)
        made.module = GraphModule(torch.nn.Module(), recorder.graph)
        made.as_called = made.module.meta["calls"] = made.module
        if recorder.calls.made or recorder.calls.checkpoints:
            self._finish_calls(made)
        made.module.meta["backward"] = made.backward
        made.module.meta["state"] = len(distinct)  # where the inputs begin that are no arguments
        return made

    def _apart(self, effects):
        """Containers and objects of the call: each is written to alone, and not found otherwise."""
        if effects and self.copies.shared:
            raise Unsupported("the program changes an argument that may be another one too")
        for _, value, given, _ in self.copies.known.values():
            if id(value) in self.reachable.labels:
                raise Unsupported(f"argument {given.root!r} is {self.reachable.labels[id(value)]} as well")
        return [(value, given) for _, value, given, _ in self.copies.known.values()]

    def _output(self, value):
        """What the program returned, with nodes in place of tensors."""
        if isinstance(value, torch.Tensor):
            known = self.recorder.nodes.get(id(value))
            return known[1] if known else self.recorder.nodes[id(self.recorder.fake_of(value))][1]
        if is_constant(value) or isinstance(value, type):
            return value
        if type(value) is tuple or (isinstance(value, tuple) and hasattr(value, "_fields")):
            items = [self._output(item) for item in value]
            return type(value)(*items) if hasattr(value, "_fields") else tuple(items)
        if id(value) in self.copies.known:
            return self.copies.known[id(value)][2]
        record = type(value) not in (list, dict)
        if not record or is_record(value):
            if id(value) in self.made:
                return self.made[id(value)][1]
            if id(value) in self.reachable.labels:
                raise Unsupported(f"the program returns {self.reachable.labels[id(value)]} itself")
            if type(value) is dict and not all(map(is_constant, value)):
                raise Unsupported("the program returns a dict whose keys are no constants")
            made = begin_record(value)
            self.made[id(value)] = value, made
            if record:
                return fill_record(made, value, self._output)
            if type(value) is dict:
                made.update({k: self._output(v) for k, v in value.items()})
            else:
                made.extend(map(self._output, value))
            return made
        cls = type(value)
        raise Unsupported(f"the program returns an object of type {cls.__module__}.{cls.__qualname__}")

    def _check_autograd(self, nodes):
        """Running the operators again must record what the program records."""
        if self.observer.enters_inference_mode:
            raise Unsupported("the program switches to inference mode")
        pending, seen = [node.meta["val"].grad_fn for node in nodes], set()
        while pending:
            step = pending.pop()
            if step is None or step in seen:
                continue
            seen.add(step)
            if begins_history(step):
                continue
            if isinstance(step, FunctionCtx) and not self.recorder.calls.holds(step):
                raise Unsupported(f"the program calls an autograd.Function ({step.name()})")
            pending += [next_step for next_step, _ in step.next_functions]


def _check_checkpoints(graph):
    """What a checkpoint writes to, it writes to in each run: only what it made itself may be such."""
    from rushlight._inductor._passes import storage_of, written_by

    given = {storage_of(node) for node in graph.nodes if "again" not in node.meta}
    for node in graph.nodes:
        if "again" in node.meta and any(storage_of(target) in given for target in written_by(node)):
            raise Unsupported("a checkpoint writes to what it did not make")


def _order_inputs(recorder, leaf_nodes, held):
    """Placeholders: arguments, then what Python's state holds, then constants."""
    order = leaf_nodes + [entry[3] for entry in held] + [node for _, _, node in recorder.constants.values()]
    for node in order:
        recorder.anchor.prepend(node)


def _surroundings():
    return (
        torch.is_grad_enabled(), torch.is_inference_mode_enabled(), torch.get_default_dtype(),
        [(torch.is_autocast_enabled(d), torch.get_autocast_dtype(d)) for d in DEVICES],
        torch.is_autocast_cache_enabled(),
        torch.are_deterministic_algorithms_enabled(), torch.get_num_threads(),
        torch.is_batch_invariant_enabled(),
    )  # fmt: skip


def _restore_surroundings(before):
    torch._C._set_grad_enabled(before[0])
    torch.set_default_dtype(before[2])
    for device, (enabled, dtype) in zip(DEVICES, before[3]):
        torch.set_autocast_enabled(device, enabled)
        torch.set_autocast_dtype(device, dtype)
    torch.set_autocast_cache_enabled(before[4])
