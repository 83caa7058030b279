"""Calls that autograd records as one step: of an `autograd.Function`, of a custom operator with a derivative.

A graph has the operators that such a call runs, its backward pass those that the step's own backward runs.
Where operators record themselves, a copy of the graph has the call in their place.
"""

import contextlib
import functools
import itertools
import operator
import weakref
from collections.abc import Callable
from dataclasses import dataclass, field
from types import MethodType

import rushlight as torch
from rushlight._library.autograd import AutogradKernel
from rushlight.autograd.function import Function, FunctionCtx
from rushlight.fx import Graph
from rushlight.utils.checkpoint import _in_graph, checkpoint

from ._reachable import is_constant
from .exc import Unsupported

__all__ = ["DEVICES", "Calls", "Recorded", "codes"]

__capture__ = "skip"  # Note [Capture marks]


DEVICES = "cpu", "cuda"
_numbers = itertools.count()
_recorded: weakref.WeakValueDictionary = weakref.WeakValueDictionary()  # of each function there is one


class Recorded:
    """A node's target: a call that is one step of autograd."""

    def __init__(self, function):
        self._op = function
        self.__name__ = self.__qualname__ = f"call{next(_numbers)}"  # in a module's source no two may be one
        self.__module__ = __name__

    @classmethod
    def of(cls, function):
        found = _recorded.get(function)
        if found is None:
            found = _recorded[function] = cls(function)
        return found

    def __call__(self, *args, **kwargs):
        return self._op(*args, **kwargs)

    def __deepcopy__(self, memo):
        return self


@dataclass(eq=False)
class _Call:
    autocast: tuple  # the settings where it was made
    function: Callable
    args: tuple
    kwargs: dict
    forward: tuple  # functions of the program that it runs
    backward: tuple | None  # and those that its backward pass runs; None: a checkpoint
    results: list = field(default_factory=list)  # (path, fake) of each tensor in what it returns
    last: object = None  # the last node of the graph that is a part of it
    steps: list = field(default_factory=list)  # of autograd, that results come from


class Calls:
    """The calls of one capture, and its checkpoints."""

    def __init__(self, recorder):
        self.recorder = recorder
        self.made: list = []
        self.checkpoints: list = []
        self.now = self.region = None  # the outermost call and checkpoint that run, if they are recorded
        self._frames: dict = {}  # what runs -> its frame

    def see(self, frame, event, value):
        """A frame of one of `codes` begins or ends."""
        kind = "region" if frame.f_code is _CHECKPOINT else "now"
        if event == "call" and kind not in self._frames:
            self._frames[kind] = frame
            if self.recorder.records and torch.is_grad_enabled():
                call = _Call(_autocast(), *codes[frame.f_code](frame.f_locals))
                setattr(self, kind, call)
                self._visit(call.forward)
        elif event == "return" and self._frames.get(kind) is frame:
            call = getattr(self, kind)
            del self._frames[kind]
            setattr(self, kind, None)
            if call is not None:
                self._finish(call, value)

    def _visit(self, functions):
        for function in functions:
            self.recorder.reachable.visit(function, getattr(function, "__qualname__", "a derivative"))

    def visit_backward(self):
        """The functions of the program that backward passes are about to run."""
        for call in self.made:
            self._visit(call.backward)

    def note(self, node):
        """A node, with those that take its results apart, is a part of what runs."""
        for key, call in (("call", self.now), ("again", self.region)):
            if call is not None:
                node.meta[key], call.last = call, node
        for part in node.users:
            self.note(part)

    def _finish(self, call, value):
        for path, tensor in _tensors(value):
            call.results.append((path, tensor))
            if tensor.requires_grad and isinstance(tensor.grad_fn, FunctionCtx):
                call.steps.append(tensor.grad_fn)
        if call.backward is None:
            self.checkpoints.append(call)
        elif call.steps:
            self.made.append(call)

    def holds(self, step):
        """Whether a step of autograd is one of these calls."""
        return any(step is one for call in self.made for one in call.steps)

    def collapsed(self, graph, is_known, checkpoints):
        """A copy of the graph in which each call is one node, and each checkpoint too, if they shall be;
        `is_known` tells of objects that the program finds by itself."""
        whole = {*self.made, *(self.checkpoints if checkpoints else ())}
        made, copies = Graph(), {}
        for node in graph.nodes:
            call = next((c for c in (node.meta.get("again"), node.meta.get("call")) if c in whole), None)
            if call is not None:
                if node is call.last:
                    self._write(call, made, copies, is_known)
            elif node.op == "output" or all(n in copies for n in node.all_input_nodes):
                copies[node] = made.node_copy(node, lambda n: _found(copies, n))
        return made

    def _write(self, call, made, copies, is_known):
        def translated(value):
            if isinstance(value, torch.Tensor):
                return _found(copies, self.recorder.node_for(value))
            if type(value) in (list, tuple):
                return type(value)(map(translated, value))
            if type(value) is dict:
                return {key: translated(item) for key, item in value.items()}
            if not is_constant(value):
                raise Unsupported(f"{call.function} is given an object in a container")
            return value

        objects = []
        args, kwargs = list(call.args), dict(call.kwargs)
        for key, value in (*enumerate(args), *list(kwargs.items())):
            place = args if isinstance(key, int) else kwargs
            if isinstance(value, (torch.Tensor, list, tuple, dict)) or is_constant(value):
                place[key] = translated(value)
            elif _is_lasting(value, is_known):
                objects.append((key, value))
                place[key] = None
            else:
                raise Unsupported(f"{call.function} is given an object that the program makes")
        target = Recorded.of(_Again(call.function, call.autocast, tuple(objects)))
        node = made.create_node("call_function", target, tuple(args), kwargs)
        parts = {(): node}
        for path, tensor in call.results:
            for depth in range(len(path)):
                if path[: depth + 1] not in parts:
                    taken = parts[path[:depth]], path[depth]
                    parts[path[: depth + 1]] = made.create_node("call_function", operator.getitem, taken)
            copies[self.recorder.node_for(tensor)] = parts[path]
            parts[path].meta["val"] = tensor


def _is_lasting(value, is_known):
    """Whether an object that is no tensor is there without a run of the program."""
    if isinstance(value, functools.partial):
        parts = value.func, *value.args, *value.keywords.values()
        return all(_is_lasting(part, is_known) for part in parts)
    if isinstance(value, MethodType):
        return is_known(value.__self__)
    return is_constant(value) or isinstance(value, type) or is_known(value)


def _found(copies, node):
    if node not in copies:
        raise Unsupported("the program uses what an autograd.Function computed, but did not return")
    return copies[node]


def _tensors(value, path=()):
    """(path, tensor) of the tensors in what a call returned."""
    if isinstance(value, torch.Tensor):
        yield path, value
    elif isinstance(value, (tuple, list)):
        for i, item in enumerate(value):
            yield from _tensors(item, (*path, i))


@dataclass(frozen=True)
class _Again:
    """Calls a function as the program called it."""

    function: Callable
    autocast: tuple  # (device, whether, dtype) of each
    objects: tuple  # (position or name, value) of arguments that a graph's source cannot name

    def __call__(self, *given, **kwargs):
        args = list(given)
        for key, value in self.objects:
            if isinstance(key, int):
                args[key] = value
            else:
                kwargs[key] = value
        with contextlib.ExitStack() as stack:
            for device, enabled, dtype in self.autocast:
                stack.enter_context(torch.autocast(device, dtype, enabled))
            return self.function(*args, **kwargs)


def _autocast():
    return tuple((d, torch.is_autocast_enabled(d), torch.get_autocast_dtype(d)) for d in DEVICES)


def _of_function(variables):
    cls = variables["cls"]
    forward, backward = (cls.forward, cls.setup_context), (cls.backward, cls.vjp)
    return cls.apply, variables["args"], variables["kwargs"], forward, backward


def _of_operator(variables):
    kernel = variables["self"]
    return (
        kernel.overload,
        variables["args"],
        variables["kwargs"],
        (kernel.setup_context,),
        (kernel.derivative,),
    )


def _of_checkpoint(variables):
    given, options = (variables["function"], *variables["args"]), {"use_reentrant": False}
    return checkpoint, given, {**variables["kwargs"], **options}, (), None


_CHECKPOINT = _in_graph.__code__
# code whose calls are seen -> what a _Call is made of, out of a frame's variables
codes = {
    Function.apply.__func__.__code__: _of_function,  # type: ignore[attr-defined]
    AutogradKernel.__call__.__code__: _of_operator,
    _CHECKPOINT: _of_checkpoint,
}
