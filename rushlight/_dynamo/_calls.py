"""Calls that autograd records as one step: of an `autograd.Function`, of a custom operator with a derivative.

A graph has the operators that such a call runs, its backward pass those that the step's own backward runs.
Where operators record themselves, a copy of the graph has the call in their place.
"""

import itertools
import operator
import weakref
from dataclasses import dataclass, field

import rushlight as torch
from rushlight._library.autograd import AutogradKernel
from rushlight.autograd.function import Function, FunctionCtx
from rushlight.fx import Graph

from ._reachable import is_constant
from .exc import Unsupported

__all__ = ["Calls", "Recorded"]

__capture__ = "skip"  # Note [Capture marks]


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
    function: object
    args: tuple
    kwargs: dict
    forward: tuple  # functions of the program that it runs
    backward: tuple  # and those that its backward pass runs
    results: list = field(default_factory=list)  # (path, fake) of each tensor in what it returns
    last: object = None  # the last node of the graph that is a part of it
    steps: list = field(default_factory=list)  # of autograd, that results come from


class Calls:
    """The calls of one capture."""

    def __init__(self, recorder):
        self.recorder = recorder
        self.made: list = []
        self.frame = None  # of the outermost call that runs now
        self.now = None  # that call, if it is recorded

    def see(self, frame, event, value):
        """A frame of one of `codes` begins or ends."""
        if event == "call" and self.frame is None:
            self.frame = frame
            if self.recorder.records and torch.is_grad_enabled():
                self.now = _Call(*codes[frame.f_code](frame.f_locals))
                self._visit(self.now.forward)
        elif event == "return" and frame is self.frame:
            call, self.frame, self.now = self.now, None, None
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
        """A node, with those that take its results apart, is a part of the call that runs."""
        call = self.now
        if call is not None:
            node.meta["call"], call.last = call, node
            for part in node.users:
                self.note(part)

    def _finish(self, call, value):
        for path, tensor in _tensors(value):
            call.results.append((path, tensor))
            if tensor.requires_grad and isinstance(tensor.grad_fn, FunctionCtx):
                call.steps.append(tensor.grad_fn)
        if call.steps:
            self.made.append(call)

    def holds(self, step):
        """Whether a step of autograd is one of these calls."""
        return any(step is one for call in self.made for one in call.steps)

    def collapsed(self, graph, is_known):
        """A copy of the graph in which each call is one node; `is_known` tells of objects that the program
        finds by itself."""
        ends = {call.last: call for call in self.made}
        made, copies = Graph(), {}
        for node in graph.nodes:
            if node.meta.get("call") in self.made:
                if node in ends:
                    self._write(ends[node], made, copies, is_known)
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
            if not is_constant(value) and not isinstance(value, type) and not is_known(value):
                raise Unsupported(f"{call.function} is given an object that the program makes")
            return value

        args = tuple(map(translated, call.args))
        kwargs = {name: translated(value) for name, value in call.kwargs.items()}
        node = made.create_node("call_function", Recorded.of(call.function), args, kwargs)
        parts = {(): node}
        for path, tensor in call.results:
            for depth in range(len(path)):
                if path[: depth + 1] not in parts:
                    taken = parts[path[:depth]], path[depth]
                    parts[path[: depth + 1]] = made.create_node("call_function", operator.getitem, taken)
            copies[self.recorder.node_for(tensor)] = parts[path]
            parts[path].meta["val"] = tensor


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


# code whose calls are steps -> what a _Call is made of, out of a frame's variables
codes = {
    Function.apply.__func__.__code__: _of_function,  # type: ignore[attr-defined]
    AutogradKernel.__call__.__code__: _of_operator,
}
