"""`ExecutionTraceObserver`: writes what ran as a graph of calls with their operands, for tools that replay
it.

The events are those of the profiler. An observer without a profile runs the recorder itself; beside a profile
it takes what that records, so that both name a call by the same number."""

from __future__ import annotations

import json
import os
import time
from typing import NamedTuple

from rushlight import _C, dtype
from rushlight._serialization.dtype_numbers import number_of
from rushlight.autograd._profiler_trace import Trace, make_events, type_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["ExecutionTraceObserver"]

_SCHEMA = "1.1.1-chakra.0.0.4"
_ROOT = 1  # the number of the process's node
_THREAD_SCOPE = 7

running: list[ExecutionTraceObserver] = []  # those that started and have not stopped


class ExecutionTraceObserver:
    """Writes an execution trace: a JSON file of calls, what each was given and gave, and what called it.

    >>> observer = ExecutionTraceObserver().register_callback("trace.json")
    >>> observer.start()
    >>> model(batch)
    >>> observer.stop()
    >>> observer.unregister_callback()  # completes the file

    As ``execution_trace_observer`` of a `torch.profiler.profile` it runs while that records.
    """

    def __init__(self) -> None:
        self._registered = self._execution_trace_running = False
        self.output_file_path: str | None = None
        self._alone = False  # it started the recorder itself

    def __del__(self) -> None:
        self.unregister_callback()

    @staticmethod
    def build_execution_trace_obs_from_env() -> ExecutionTraceObserver | None:
        """An observer that writes to a temporary file, if ``ENABLE_PYTORCH_EXECUTION_TRACE=1``; else None."""
        if os.environ.get("ENABLE_PYTORCH_EXECUTION_TRACE", "0") != "1":
            return None
        import tempfile

        handle, path = tempfile.mkstemp(".et.json")
        os.close(handle)
        return ExecutionTraceObserver().register_callback(path)

    def register_callback(self, output_file_path: str) -> ExecutionTraceObserver:
        """Say which file to write; returns the observer."""
        if not self._registered:
            open(output_file_path, "w").close()  # an unusable path is an error here
            self.output_file_path, self._registered = os.fspath(output_file_path), True
            self._graph = _Graph()
        return self

    def unregister_callback(self) -> None:
        """Stop, and complete the file."""
        self.stop()
        if self._registered and self.output_file_path is not None:
            self._registered = False
            with open(self.output_file_path, "w", encoding="utf-8") as file:
                json.dump(self._graph.content(), file)

    cleanup = unregister_callback

    @property
    def is_registered(self) -> bool:
        """Whether there is a file to write."""
        return self._registered

    def is_running(self) -> bool:
        """Whether calls are recorded."""
        return self._execution_trace_running

    def start(self) -> None:
        """Begin to record, or go on."""
        if self._registered and not self._execution_trace_running:
            self._execution_trace_running = True
            running.append(self)
            self._begin_alone()

    def stop(self) -> None:
        """Stop recording; `start` goes on."""
        if self._execution_trace_running:
            self._end_alone()
            self._execution_trace_running = False
            running.remove(self)
            go_on()

    def get_output_file_path(self) -> str | None:
        """The file that is written, once it was said."""
        return self.output_file_path

    def _begin_alone(self):
        """Run the recorder, unless a profile or another observer does."""
        if not _C._profiler_enabled() and not any(other._alone for other in running):
            _C._profiler_start(True, False, False)
            self._alone = True

    def _end_alone(self):
        """Hand out what the recorder saw to all observers that run."""
        if self._alone:
            self._alone = False
            logs, started, offset, *_ = _C._profiler_stop()
            options = dict.fromkeys(("profile_memory", "with_stack", "with_flops"), False)
            trace = Trace(started, offset, options | {"record_shapes": True})
            hand_out(make_events(logs, trace))


def make_way():
    """A profile is about to record: observers take from it."""
    for observer in list(running):
        observer._end_alone()


def hand_out(events):
    """Add events of a recording that has ended to each graph that is being made."""
    for observer in running:
        observer._graph.add(events)


def go_on():
    """What recorded has ended: an observer that runs longer records alone."""
    for observer in running[:1]:
        observer._begin_alone()


class _Operand(NamedTuple):
    """A tensor as the recorder hands it out."""

    dtype: Any
    sizes: list
    strides: list
    tensor: int
    storage: int
    offset: int
    device: Any


class _Graph:
    """The nodes of one file. Calls, tensors and storages are numbered in one row."""

    def __init__(self):
        self.started, self.wall = time.monotonic_ns() // 1000, time.strftime("%Y-%m-%d %H:%M:%S")
        self.nodes, self.numbers, self.threads, self.count = [], {}, {}, _ROOT
        self.nodes.append(self.node("[pytorch|profiler|execution_trace|process]", _ROOT, _ROOT))

    def fresh(self):
        self.count += 1
        return self.count

    def number(self, kind, address):
        key = kind, address
        if key not in self.numbers:
            self.numbers[key] = self.fresh()
        return self.numbers[key]

    def add(self, events):
        numbers = {}
        for event in events:
            if not hasattr(event, "operands"):  # work of devices, memory
                continue
            if event.thread not in self.threads:
                thread = self.threads[event.thread] = self.fresh()
                name = "[pytorch|profiler|execution_trace|thread]"
                self.nodes.append(self.node(name, thread, _ROOT, tid=len(self.threads)))
            caller = numbers.get(id(event.cpu_parent), self.threads[event.thread])
            number = numbers[id(event)] = self.fresh()
            inputs, outputs, schema = event.operands
            self.nodes.append(
                self.node(
                    event.name,
                    number,
                    caller,
                    inputs,
                    outputs,
                    rf_id=event.id,
                    seq_id=event.sequence_nr,
                    scope=event.scope,
                    tid=list(self.threads).index(event.thread) + 1,
                    op_schema=f"aten::{schema}" if schema and event.name.startswith("aten::") else schema,
                )
            )

    def node(self, name, number, caller, inputs=(), outputs=(), **facts):
        facts = _FACTS | {"scope": _THREAD_SCOPE if number == _ROOT or "thread]" in name else 0} | facts
        return {
            "id": number,
            "name": name,
            "ctrl_deps": caller,
            "inputs": self.operands(inputs),
            "outputs": self.operands(outputs),
            "attrs": [
                {"name": key, "type": _KINDS.get(key, "uint64"), "value": value}
                for key, value in facts.items()
            ],
        }

    def operands(self, operands):
        columns = ("values", "shapes", "types", "strides")
        rows = [self.operand(operand) for operand in operands]
        return {name: [row[i] for row in rows] for i, name in enumerate(columns)}

    def operand(self, operand):
        """(value, shape, type, strides) of an argument or a result."""
        if isinstance(operand, list):
            parts = [self.operand(part) for part in operand]
        elif len(operand) == 1 and isinstance(operand[0], (list, tuple)):
            parts = [self.operand((item,)) for item in operand[0]]
        elif len(operand) == 1:
            return _scalar_row(operand[0])
        else:
            return self.tensor_row(_Operand(*operand))
        values, shapes, types, strides = ([row[i] for row in parts] for i in range(4))
        return values, shapes, f"GenericList[{','.join(types)}]", strides

    def tensor_row(self, t):
        count = 1
        for size in t.sizes:
            count *= size
        value = [self.number("tensor", t.tensor), self.number("storage", t.storage), t.offset, count]
        return [*value, t.dtype.itemsize, str(t.device)], t.sizes, f"Tensor({type_name(t.dtype)})", t.strides

    def content(self):
        return {
            "schema": _SCHEMA,
            "pid": os.getpid(),
            "time": self.wall,
            "start_ts": self.started,
            "nodes": self.nodes,
            "finish_ts": time.monotonic_ns() // 1000,
        }


_FACTS = {
    "rf_id": 0,
    "fw_parent": 0,
    "seq_id": -1,
    "scope": 0,
    "tid": 0,
    "fw_tid": 0,
    "op_schema": "",
    "kernel_backend": "",
    "kernel_file": "",
}
_KINDS = {"seq_id": "int64", **dict.fromkeys(("op_schema", "kernel_backend", "kernel_file"), "string")}
_TYPES = {bool: "Bool", int: "Int", float: "Double", complex: "ComplexDouble", str: "String"}


def _scalar_row(value):
    """The row of what is no tensor. JSON has no infinity: such numbers are text."""
    if value is None:
        return "<None>", [], "None", []
    value = number_of(value) if isinstance(value, dtype) else value
    kind = _TYPES.get(type(value))
    if kind == "Double" and value - value != 0 or kind == "ComplexDouble":
        value = str(value)
    if kind is None:
        kind, value = type(value).__name__.capitalize(), str(value).removeprefix("torch.")
    return value, [], kind, []
