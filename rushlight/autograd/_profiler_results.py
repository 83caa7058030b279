"""What tools ask a finished profile for: a list of events, and the tree of what ran inside of what."""

import itertools
import re

from rushlight import device, strided
from rushlight.autograd import _profiler_tree as tree
from rushlight.autograd._profiler_enums import DeviceType, RecordScope
from rushlight.autograd._profiler_trace import MEMORY_EVENT_NAME, write_trace

__all__ = ["ProfilerResult"]

_numbers = itertools.count(1)  # of calls, over all profiles of the process


class _KinetoEvent:
    """A call, or work of a device; everything is asked for by a call."""

    def __init__(self, event, start, number, linked):
        self._event, self._start = event, start
        self._number, self._linked = number, linked

    def name(self):
        return self._event.name

    def start_ns(self):
        return self._start

    def duration_ns(self):
        return round(self._event.time_range.elapsed_us() * 1000)

    def end_ns(self):
        return self._start + self.duration_ns()

    def correlation_id(self):
        return self._number

    def linked_correlation_id(self):
        """Of work of a device the number of the call that asked for it."""
        return self._linked

    def device_type(self):
        return self._event.device_type

    def device_index(self):
        return self._event.device_index

    def device_resource_id(self):
        return self._event.thread

    def start_thread_id(self):
        return self._event.thread

    def end_thread_id(self):
        return self._event.thread

    def fwd_thread_id(self):
        return self._event.fwd_thread or 0

    def sequence_nr(self):
        return self._event.sequence_nr

    def scope(self):
        return self._event.scope

    def overload_name(self):
        return self._event.overload_name

    def shapes(self):
        return self._event.input_shapes

    def dtypes(self):
        return self._event.input_dtypes

    def concrete_inputs(self):
        return self._event.concrete_inputs

    def kwinputs(self):
        return self._event.kwinputs

    def stack(self):
        return self._event.stack

    def flops(self):
        return self._event.flops or 0

    def nbytes(self):
        return self._event.activity.bytes if self._event.activity is not None else 0

    def is_async(self):
        return self._event.is_async

    def is_user_annotation(self):
        return self._event.is_user_annotation

    def is_python_function(self):
        return self._event.is_python_function

    def is_hidden_event(self):
        return False

    def activity_type(self):
        return self._event.activity_type

    def structured_input_shapes(self):
        return self._event.structured_input_shapes

    def structured_input_strides(self):
        return self._event.structured_input_strides

    def python_id(self):
        return self._event.python_id

    def python_parent_id(self):
        return self._event.python_parent_id

    def python_module_id(self):
        return self._event.python_module_id

    def __repr__(self):
        return f"<_KinetoEvent {self.name()}>"


class ProfilerResult:
    """The events of a finished profile under the names of PyTorch's `kineto_results`."""

    def __init__(self, events, trace):
        self._trace, self._events = trace, events
        self._recorded = [e for e in events if e.name != MEMORY_EVENT_NAME]
        self._ids = {e: next(_numbers) for e in self._recorded}
        self._made = None

    def trace_start_ns(self):
        """When the recording began, in nanoseconds since 1970."""
        return self._trace.started + self._trace.wall_offset

    def save(self, path):
        """Write what chrome://tracing shows."""
        write_trace(path, self._events, self._trace, {})

    def _at(self, microseconds):
        return self.trace_start_ns() + round(microseconds * 1000)

    def events(self):
        """All events in the order in which they began."""
        if self._made is None:
            self._made = [
                _KinetoEvent(e, self._at(e.time_range.start), self._ids[e], self._ids.get(e.cause, 0))
                for e in self._recorded
            ]
        return self._made

    def experimental_event_tree(self):
        """The calls that ran inside of no other; each has its `children`."""
        nodes = {e: self._node(e) for e in self._recorded}
        for event, node in nodes.items():
            if event.cpu_parent in nodes:
                node.parent = nodes[event.cpu_parent]
                node.parent.children.append(node)
        every = [*nodes.values(), *self._blocks(list(nodes.values()))]
        for node in every:
            node.children.sort(key=lambda child: child.start_time_ns)
        return sorted((n for n in every if n.parent is None), key=lambda n: n.start_time_ns)

    def _node(self, event):
        places = self._at(event.time_range.start), self._at(event.time_range.end)
        kind, fields = _kind_of(event, self._trace.modules)
        number = self._ids[event]
        return tree._ProfilerEvent(number, event.name, kind, fields, event.thread, *places, number)

    def _blocks(self, nodes):
        """An entry for each block of memory that was made or given back, inside of the call that did it."""
        total, open_calls = self._trace.allocated_before, {}
        begun = iter(sorted(nodes, key=lambda node: node.start_time_ns))
        coming = next(begun, None)
        for time, thread, address, size in sorted(self._trace.memory):
            at, total = time + self._trace.wall_offset, total + size
            while coming is not None and coming.start_time_ns <= at:
                open_calls.setdefault(coming.start_tid, []).append(coming)
                coming = next(begun, None)
            fields = tree._ExtraFields_Allocation(address, size, total, device("cpu"))
            kind = tree._EventType.Allocation
            node = tree._ProfilerEvent(next(_numbers), MEMORY_EVENT_NAME, kind, fields, thread, at, at)
            calls = open_calls.get(thread, [])
            while calls and calls[-1].end_time_ns < at:
                calls.pop()
            if calls:
                node.parent = calls[-1]
                calls[-1].children.append(node)
            yield node


def _kind_of(event, modules):
    if event.device_type != DeviceType.CPU:
        return tree._EventType.Kineto, tree._ExtraFields_Kineto()
    if event.is_python_function:
        return _call(event, modules)
    inputs = [_input(operand) for operand in getattr(event, "operands", ((),))[0]]
    scope = RecordScope(event.scope)
    fields = tree._ExtraFields_TorchOp(event.name, event.sequence_nr, scope, inputs)
    return tree._EventType.TorchOp, fields


def _call(event, modules):
    caller = _place(event.cpu_parent, event.caller_line)
    if event.name.startswith("<built-in "):
        return tree._EventType.PyCCall, tree._ExtraFields_PyCCall(caller)
    module = None
    if event.module_number >= 0:
        module = modules[event.module_number]
    elif event.scope == RecordScope.USER_SCOPE:  # a module that can not be told from others
        module = tree._NNModuleInfo(re.sub(r".*[ (](\w+)\)?$", r"\1", event.name))
    if event.scope == RecordScope.USER_SCOPE:
        site = tree._PyFrameState("__call__"), tree._PyFrameState("_call_impl")
        return tree._EventType.PyCall, tree._ExtraFields_PyCall(*site, module)
    return tree._EventType.PyCall, tree._ExtraFields_PyCall(_place(event), caller)


def _place(event, line=None):
    """Where a function is, or the line of it that calls another."""
    while event is not None and not event.is_python_function:
        event = event.cpu_parent
    found = re.fullmatch(r"(.*)\((\d+)\): (.*)", event.name) if event is not None else None
    if found is None:
        return tree._PyFrameState("", "", line or 0)
    return tree._PyFrameState(found[3], found[1], int(found[2]) if line is None else line)


def _input(operand):
    """A tensor's form, a list of those, or the value that an operator was given."""
    if isinstance(operand, list):
        return [_input(part) for part in operand]
    if len(operand) == 1:
        return operand[0] if isinstance(operand[0], (bool, int, float, complex)) else None
    kind, sizes, strides, number, storage, _, place = operand
    return tree._TensorMetadata(kind, sizes, strides, number, storage, place, strided)
