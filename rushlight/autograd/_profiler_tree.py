"""The classes of the tree that a finished profile gives to tools: what ran, and what it was given."""

from dataclasses import dataclass, field
from enum import Enum
from typing import Any

__all__: list[str] = []


class _EventType(Enum):
    """What kind of thing an entry of the tree is."""

    TorchOp = 0
    Backend = 1
    Vulkan = 2
    Allocation = 3
    OutOfMemory = 4
    PyCall = 5
    PyCCall = 6
    Kineto = 7
    PythonGC = 8


@dataclass
class _TensorMetadata:
    """A tensor that an operator was given: its form, and numbers that name it and its memory."""

    dtype: Any
    sizes: list
    strides: list
    id: int = 0
    storage_data_ptr: int = 0
    device: Any = None
    layout: Any = None

    impl_ptr = property(lambda self: self.id)


@dataclass
class _ExtraFields_TorchOp:
    """An operator, a step of a backward pass, or a range that the program named."""

    name: str
    sequence_number: int
    scope: Any
    inputs: list = field(default_factory=list)
    allow_tf32_cublas: bool = False


@dataclass
class _ExtraFields_Allocation:
    """A block of memory that was made, or given back: then `alloc_size` is negative."""

    ptr: int
    alloc_size: int
    total_allocated: int
    device: Any
    id: int = 0
    total_reserved: int = 0


@dataclass
class _PyFrameState:
    """A place in a program."""

    function_name: str
    file_name: str = ""
    line_number: int = 0


@dataclass
class _NNModuleInfo:
    """The module that was called."""

    cls_name: str
    self_ptr: int = 0
    cls_ptr: int = 0
    parameters: list = field(default_factory=list)


@dataclass
class _ExtraFields_PyCall:
    """A call of a Python function, or of a module."""

    callsite: _PyFrameState
    caller: _PyFrameState
    module: _NNModuleInfo | None = None
    optimizer: Any = None


@dataclass
class _ExtraFields_PyCCall:
    """A call of a function that Python has in C."""

    caller: _PyFrameState


@dataclass
class _ExtraFields_Kineto:
    """Work of a device."""


class _ProfilerEvent:
    """One entry of the tree."""

    def __init__(self, id, name, tag, extra_fields, start_tid, start_time_ns, end_time_ns, correlation_id=0):
        self.id, self.name, self.overload_name = id, name, ""
        self.tag, self.extra_fields = tag, extra_fields
        self.start_tid, self.start_time_ns, self.end_time_ns = start_tid, start_time_ns, end_time_ns
        self.correlation_id = correlation_id
        self.parent: _ProfilerEvent | None = None
        self.children: list[_ProfilerEvent] = []

    typed = property(lambda self: (self.tag, self.extra_fields))
    duration_time_ns = property(lambda self: self.end_time_ns - self.start_time_ns)

    def __repr__(self):
        return f"<_ProfilerEvent {self.name} ({self.tag.name}), {len(self.children)} children>"
