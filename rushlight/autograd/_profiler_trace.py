"""From the recorder's tuples to events, and from events to a Chrome trace."""

import json
import os
import sys
from functools import lru_cache
from typing import NamedTuple

from rushlight import dtype
from rushlight._serialization.dtype_numbers import number_of
from rushlight.autograd._profiler_enums import DeviceType, RecordScope, _state
from rushlight.autograd._profiler_flops import count_flops
from rushlight.autograd.profiler_util import EventList, FunctionEvent, StringTable

__all__ = ["MEMORY_EVENT_NAME", "Trace", "make_events", "open_text", "trace_content", "write_trace"]

MEMORY_EVENT_NAME = "[memory]"

_OPERATOR, _NODE, _ENGINE, _RANGE, _MODULE, _CALL, _BUILTIN = range(7)
_FROM_PYTHON = (_MODULE, _CALL, _BUILTIN)
_SCOPES = {
    _NODE: RecordScope.BACKWARD_FUNCTION,
    _RANGE: RecordScope.USER_SCOPE,
    _MODULE: RecordScope.USER_SCOPE,
}
_BASE = 10**15  # times in a trace are relative to a second that files of one day share, to keep digits


class Trace(NamedTuple):
    """What a whole recording has in common."""

    started: int  # the recorder's clock, in nanoseconds
    wall_offset: int  # what to add for nanoseconds since 1970
    options: dict
    memory: list = []  # (time, thread, address, bytes); negative bytes were given back
    allocated_before: int = 0
    activities: list = []  # what devices did: _Activity's fields
    known: tuple = ({}, {})  # blocks whose use is known, at the beginning and at the end
    modules: list = []  # those that were called, by their numbers

    def place(self, time):
        """Where in a trace a time of the recorder's clock lies, in microseconds."""
        return ((self.started + self.wall_offset) % _BASE + time - self.started) / 1000


class _Record(NamedTuple):
    """One event as the recorder hands it out."""

    name: str
    kind: int
    thread: int
    start: int
    end: int
    parent: int
    sequence: int
    forward_thread: int
    bytes: int
    inputs: list
    outputs: list
    stack: list
    schema: str
    keywords: str
    line: int


class _Activity(NamedTuple):
    """Work of a device as the recorder hands it out."""

    name: str
    kind: int
    device: int
    stream: int
    start: int
    end: int
    bytes: int
    cause: int  # the thread and the place in its log of the call that asked for it; 0 if unknown


_ACTIVITY_CATEGORIES = ("kernel", "gpu_memcpy", "gpu_memset")


def _sizes(operand, field=1):
    """The sizes of an operand that is a tensor, or (field 2) its strides; a list of them for a list."""
    if isinstance(operand, list):
        return [part[field] for part in operand]
    return operand[field] if len(operand) > 1 else []


def _of_one(shape):
    """The sizes of a tensor; nothing of a list of tensors, as sums by shapes have it."""
    return [] if shape and isinstance(shape[0], list) else shape


def type_name(kind):
    """A dtype by its name in C++, as PyTorch's traces write it."""
    return _TYPE_NAMES.get(str(kind).removeprefix("torch."), str(kind))


def _type(operand):
    if isinstance(operand, list):
        return "TensorList"
    if len(operand) > 1:
        return type_name(operand[0])
    if isinstance(operand[0], (list, tuple)):
        return "ScalarList"
    return "Scalar" if isinstance(operand[0], (bool, int, float, complex, dtype)) else ""


def _concrete(operand):
    """The number, or the list of numbers, that an operand is; None for all else."""
    if isinstance(operand, list) or len(operand) > 1 or not _state.concrete_inputs:
        return None
    value = operand[0]
    return list(value) if isinstance(value, (list, tuple)) else value


def _shown(value):
    """A concrete operand as traces write it: numbers and lists of them."""
    if isinstance(value, dtype):
        return str(number_of(value))
    return str(value) if isinstance(value, (bool, int, float, complex, list)) else ""


_TYPE_NAMES = {
    "float32": "float",
    "float64": "double",
    "float16": "c10::Half",
    "bfloat16": "c10::BFloat16",
    "int64": "long int",
    "int32": "int",
    "uint8": "unsigned char",
    "complex64": "c10::complex<float>",
    "complex128": "c10::complex<double>",
}


def _make_event(number, record, trace, strings):
    if record.kind in (_CALL, _BUILTIN):
        return _make_call(number, record, trace, strings)
    shapes = [_sizes(operand) for operand in record.inputs]
    results = [_sizes(operand) for operand in record.outputs]
    event = FunctionEvent(
        id=number,
        name=strings[record.name],
        thread=record.thread,
        start_us=(record.start - trace.started) / 1000,
        end_us=(record.end - trace.started) / 1000,
        fwd_thread=record.forward_thread if record.kind in (_NODE, _ENGINE) else 0,
        input_shapes=[_of_one(shape) for shape in shapes] if trace.options["record_shapes"] else [],
        structured_input_shapes=shapes if trace.options["record_shapes"] else [],
        input_dtypes=[_type(operand) for operand in record.inputs],
        concrete_inputs=[_concrete(operand) for operand in record.inputs],
        stack=record.stack,
        scope=int(_SCOPES.get(record.kind, RecordScope.FUNCTION)),
        cpu_memory_usage=record.bytes if trace.options["profile_memory"] else 0,
        sequence_nr=record.sequence if record.kind != _MODULE else -1,
        is_user_annotation=record.kind == _RANGE,
        is_python_function=record.kind == _MODULE,
        flops=count_flops(record.name, shapes, results) if trace.options["with_flops"] else None,
    )
    if trace.options["record_shapes"]:
        event.structured_input_strides = [_sizes(operand, 2) for operand in record.inputs]
    event.operands = record.inputs, record.outputs, record.schema
    if record.keywords:
        event.kwinputs = json.loads(record.keywords)
    if record.kind == _MODULE:
        event.module_number = record.sequence
    return event


def _make_call(number, record, trace, strings):
    """The event of a call of a Python function, or of one that Python has in C."""
    event = FunctionEvent(
        id=number,
        name=strings[record.name if record.kind == _BUILTIN else _below_path(record.name)],
        thread=record.thread,
        start_us=(record.start - trace.started) / 1000,
        end_us=(record.end - trace.started) / 1000,
        cpu_memory_usage=record.bytes if trace.options["profile_memory"] else 0,
        is_python_function=True,
    )
    event.caller_line = record.line
    return event


@lru_cache(maxsize=4096)
def _below_path(name):
    """A file by its path below the longest entry of `sys.path`, as imports name it."""
    entries = [
        entry.rstrip("/") + "/" for entry in sys.path if entry and name.startswith(entry.rstrip("/") + "/")
    ]
    return name[len(max(entries, key=len)) :] if entries else name


def _link(events, records):
    """Give every event its parent. What ran alone in a call of the same name is that call, seen twice."""
    for event, record in zip(events, records):
        above = record.parent
        # A range that a function opens is open after it; one that it closes ends before it.
        while above >= 0 and events[above].time_range.end < event.time_range.end:
            above = records[above].parent
        if above >= 0:
            parent = events[above]
            event.set_cpu_parent(parent)
            parent.append_cpu_child(event)
    for event in events:
        if event.is_python_function:
            continue  # a function that calls itself is two calls
        while len(event.cpu_children) == 1 and event.cpu_children[0].name == event.name:
            inner = event.cpu_children[0]
            event.cpu_children = inner.cpu_children
            for child in event.cpu_children:
                child.set_cpu_parent(event)
            inner.cpu_parent = inner
            inner.same_call = event
    return [event for event in events if event.cpu_parent is not event]


def _count_once(events):
    """A call whose parts were counted is not counted again."""
    counted_inside = set()
    for event in reversed(events):
        if event.id in counted_inside:
            event.flops = None
        elif event.flops is None:
            continue
        if event.cpu_parent is not None:
            counted_inside.add(event.cpu_parent.id)


def _memory_outside(events, trace, strings):
    """An event for each block that was made or given back while no recorded operator ran."""
    covered = 0.0  # the end of what began before
    recorded = (event for event in events if not event.is_python_function)
    starts = sorted((event.time_range.start, event.time_range.end) for event in recorded)
    coming = 0
    for time, thread, _, bytes in trace.memory:
        at = (time - trace.started) / 1000
        while coming < len(starts) and starts[coming][0] <= at:
            covered = max(covered, starts[coming][1])
            coming += 1
        if at > covered:
            yield FunctionEvent(
                id=0,
                name=strings[MEMORY_EVENT_NAME],
                thread=thread,
                start_us=at,
                end_us=at,
                cpu_memory_usage=bytes,
            )


def make_events(logs, trace):
    """The events of all threads. What had not ended when the recording did is left out."""
    made, causes = [], {}
    strings = StringTable()
    for log in logs:
        records = [_Record(*entry) for entry in log]
        stop = max((max(r.start, r.end) for r in records), default=0)
        # An event that is still open ends with the recording.
        records = [r if r.end >= 0 else r._replace(end=stop) for r in records]
        events = [_make_event(0, r, trace, strings) for r in records]
        if records:
            causes |= {records[0].thread << 32 | place: event for place, event in enumerate(events)}
        made += _link(events, records)
    if trace.options["profile_memory"]:
        made += _memory_outside(made, trace, strings)
    made += _device_events(trace, causes, strings)
    made.sort(key=lambda event: event.time_range.start)
    for number, event in enumerate(made, 1):
        event.id = number
    if trace.options["with_flops"]:
        _count_once(made)
    return EventList(
        made,
        profile_memory=trace.options["profile_memory"],
        with_flops=trace.options["with_flops"],
        use_device="cuda" if trace.activities else None,
        trace=trace,
    )


def _device_events(trace, causes, strings):
    """Events of what devices did. Each is counted by the call that asked for it, too."""
    for activity in (_Activity(*entry) for entry in trace.activities):
        start, end = ((t - trace.started) / 1000 for t in (activity.start, activity.end))
        event = FunctionEvent(
            id=0,
            name=strings[activity.name],
            thread=activity.stream,
            start_us=start,
            end_us=end,
            use_device="cuda",
            device_type=DeviceType.CUDA,
            device_index=activity.device,
            is_async=True,
        )
        event.activity, event.cause = activity, causes.get(activity.cause)
        while event.cause is not None and event.cause.same_call is not None:
            event.cause = event.cause.same_call
        if event.cause is not None:
            event.cause.append_kernel(event.name, activity.device, end - start)
        yield event


# --- Chrome traces


def _arguments(event):
    args = {"External id": event.id, "Record function id": event.id, "Ev Idx": event.id - 1}
    if event.sequence_nr >= 0:
        args["Sequence number"] = event.sequence_nr
        args["Fwd thread id"] = event.fwd_thread
    if event.structured_input_shapes:
        args["Input Dims"] = event.structured_input_shapes
        args["Input type"] = event.input_dtypes
        args["Input Strides"] = event.structured_input_strides
        args["Concrete Inputs"] = [_shown(value) for value in event.concrete_inputs]
        args |= event.kwinputs
    if event.is_python_function:
        above = event.python_parent_id
        args |= {"Python id": event.python_id, "Python parent id": above if above >= 0 else None}
        if event.module_number >= 0:
            args["Python module id"] = event.module_number
    if event.stack:
        args["Call stack"] = ";".join(event.stack)
    if event.flops is not None:
        args["Flops"] = event.flops
    if event.cpu_memory_usage:
        args["Bytes"] = event.cpu_memory_usage
    return args


def _flows(events, place):
    """Arrows from an operator to the step of the backward pass that it led to."""
    if not _state.forward_links:
        return
    forward, count = {}, 0
    for event in events:
        if event.scope == RecordScope.FUNCTION and event.name.startswith("aten::") and event.sequence_nr >= 0:
            forward[event.sequence_nr] = event  # the innermost one recorded it
    for event in events:
        origin = forward.get(event.sequence_nr)
        if event.scope == RecordScope.BACKWARD_FUNCTION and origin is not None:
            count += 1
            common = {"id": count, "cat": "fwdbwd", "name": "fwdbwd"}
            yield {"ph": "s", **common, **place(origin)}
            yield {"ph": "f", "bp": "e", **common, **place(event)}


def _trace_events(events, trace):
    pid = os.getpid()
    offset = (trace.started + trace.wall_offset) % _BASE / 1000

    def place(event):
        return {"pid": pid, "tid": event.thread, "ts": event.time_range.start + offset}

    yield {"ph": "M", "name": "process_name", "pid": pid, "tid": 0, "args": {"name": "python"}}
    yield from _device_trace([e for e in events if e.device_type != DeviceType.CPU], place, offset)
    events = [event for event in events if event.device_type == DeviceType.CPU]
    for thread in sorted({event.thread for event in events}):
        name = f"thread {thread} (python)"
        yield {"ph": "M", "name": "thread_name", "pid": pid, "tid": thread, "args": {"name": name}}
    for event in events:
        if event.name == MEMORY_EVENT_NAME:  # below, with its address
            continue
        yield {
            "ph": "X",
            "cat": event.activity_type,
            "name": event.trace_name,
            **place(event),
            "dur": event.cpu_time_total,
            "args": _arguments(event),
        }
    yield from _flows(events, place)
    yield from _memory_events(trace, pid)
    yield from _window(events, trace, offset)


def _window(events, trace, offset):
    """When recording began and ended, which readers of PyTorch's traces look for at the end."""
    begin = min([offset, *(trace.place(m[0]) for m in trace.memory)])
    ends = [offset + event.time_range.end for event in events] + [trace.place(m[0]) for m in trace.memory]
    end = max([begin, *ends])
    span = {"pid": "Spans", "tid": "PyTorch Profiler"}
    yield {"ph": "X", "cat": "Trace", "name": "PyTorch Profiler (0)", **span, "ts": begin, "dur": end - begin}
    yield {"ph": "M", "name": "process_sort_index", "pid": "Spans", "tid": 0, "args": {"sort_index": 1 << 29}}
    start = {"pid": "Traces", "tid": "Trace PyTorch Profiler", "ts": begin}
    yield {"ph": "i", "s": "g", "name": "Iteration Start: PyTorch Profiler", **start}
    yield {"ph": "i", "s": "g", "name": "Record Window End", "pid": "", "tid": "", "ts": end + 1}


def _device_trace(events, place, offset):
    """Devices are processes of the trace, streams their threads; arrows lead from calls to their work."""
    for device in sorted({event.device_index for event in events}):
        yield {"ph": "M", "name": "process_name", "pid": device, "tid": 0, "args": {"name": f"GPU {device}"}}
    for device, stream in sorted({(event.device_index, event.thread) for event in events}):
        name = {"name": f"stream {stream}"}
        yield {"ph": "M", "name": "thread_name", "pid": device, "tid": stream, "args": name}
    for number, event in enumerate(events, 1):
        activity = event.activity
        at = {"pid": activity.device, "tid": activity.stream, "ts": event.time_range.start + offset}
        args = {"device": activity.device, "stream": activity.stream, "correlation": number}
        if activity.bytes:
            args["bytes"] = activity.bytes
        if event.cause is not None:
            args["External id"] = event.cause.id
        category = _ACTIVITY_CATEGORIES[activity.kind]
        duration = event.device_time_total
        yield {"ph": "X", "cat": category, "name": event.name, **at, "dur": duration, "args": args}
        if event.cause is not None:
            common = {"id": number, "cat": "ac2g", "name": "ac2g"}
            yield {"ph": "s", **common, **place(event.cause)}
            yield {"ph": "f", "bp": "e", **common, **at}


def _memory_events(trace, pid):
    """An instant for every block, as PyTorch's traces have it, and a counter, which Perfetto draws."""
    total = trace.allocated_before
    for time, thread, address, bytes in trace.memory:
        total += bytes
        at = {"pid": pid, "tid": thread, "ts": trace.place(time)}
        args = {"Total Allocated": total, "Bytes": bytes, "Addr": address, "Device Id": -1, "Device Type": 0}
        yield {"ph": "i", "cat": "cpu_instant_event", "s": "t", "name": MEMORY_EVENT_NAME, **at, "args": args}
        yield {"ph": "C", "name": "CPU memory", "pid": pid, "ts": at["ts"], "args": {"allocated": total}}


def trace_content(events, trace, metadata, name="profile"):
    """A trace in Chrome's format."""
    wall = trace.started + trace.wall_offset
    return {
        "schemaVersion": 1,
        "deviceProperties": [],
        **{name: int(on) for name, on in trace.options.items() if on},
        **metadata,
        "displayTimeUnit": "ms",
        "baseTimeNanoseconds": wall - wall % _BASE,
        "traceName": name,
        "traceEvents": list(_trace_events(events, trace)),
    }


def write_trace(path, events, trace, metadata):
    content = trace_content(events, trace, metadata, str(path))
    with open_text(path) as file:
        json.dump(content, file)


def open_text(path):
    """A file to write text to; compressed if the name ends with ``.gz``."""
    if str(path).endswith(".gz"):
        import gzip

        return gzip.open(path, "wt", encoding="utf-8")
    return open(path, "w", encoding="utf-8")
