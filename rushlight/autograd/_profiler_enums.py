"""The small vocabularies of the profiler."""

import json
import traceback
from dataclasses import dataclass, field
from enum import Enum, IntEnum

from rushlight import _C
from rushlight.autograd._profiler_tree import (
    _EventType,
    _ExtraFields_Allocation,
    _ExtraFields_Kineto,
    _ExtraFields_PyCall,
    _ExtraFields_PyCCall,
    _ExtraFields_TorchOp,
    _NNModuleInfo,
    _ProfilerEvent,
    _PyFrameState,
    _TensorMetadata,
)

__all__ = [
    "DeviceType",
    "ProfilerActivity",
    "RecordScope",
    "_EventType",
    "_ExtraFields_Allocation",
    "_ExtraFields_Kineto",
    "_ExtraFields_PyCCall",
    "_ExtraFields_PyCall",
    "_ExtraFields_TorchOp",
    "_NNModuleInfo",
    "_ProfilerEvent",
    "_PyFrameState",
    "_TensorMetadata",
]


class DeviceType(IntEnum):
    """Where something ran; the numbers are PyTorch's."""

    CPU = 0
    CUDA = 1
    MKLDNN = 2
    HIP = 6
    XLA = 9
    MPS = 13
    Meta = 14
    HPU = 15
    XPU = 12
    MTIA = 18
    PrivateUse1 = 20

    def __str__(self):
        return f"DeviceType.{self.name}"

    __repr__ = __str__


class ProfilerActivity(Enum):
    """What a profiler looks at."""

    CPU = 0
    XPU = 1
    MTIA = 2
    CUDA = 3
    HPU = 4
    PrivateUse1 = 5

    def __str__(self):
        return f"ProfilerActivity.{self.name}"


class RecordScope(IntEnum):
    """What kind of thing an event is."""

    FUNCTION = 0
    BACKWARD_FUNCTION = 1
    USER_SCOPE = 7


class ActiveProfilerType(Enum):
    """Which interface records this process."""

    NONE = 0
    LEGACY = 1
    KINETO = 2
    NVTX = 3
    ITT = 4


@dataclass
class ProfilerStats:
    """What a profile itself cost."""

    profiling_window_duration_sec: float = 0
    number_of_events: int = 0
    profiler_prepare_call_duration_us: float = 0
    profiler_enable_call_duration_us: float = 0
    profiler_disable_call_duration_us: float = 0
    parse_kineto_call_duration_us: float = 0
    function_events_build_tree_call_duration_us: float = 0


class _State:
    """What holds for all profiles: which one runs, and what their events and traces leave out."""

    running = ActiveProfilerType.NONE
    concrete_inputs = forward_links = True


_state = _State()


def _set_record_concrete_inputs_enabled_val(on):
    """Whether events keep numbers that operators were given, where they keep shapes."""
    _state.concrete_inputs = bool(on)


def _set_fwd_bwd_enabled_val(on):
    """Whether traces have arrows from operators to the steps of the backward pass."""
    _state.forward_links = bool(on)


class _RecordFunctionFast:
    """A named range with values that shapes and traces show.

    >>> with torch._C._profiler._RecordFunctionFast("kernel", [x, y], {"grid": "(1, 1)"}):
    ...     launch(x, y)
    """

    def __init__(self, name, input_values=None, keyword_values=None):
        if not isinstance(name, str):
            raise TypeError("_RecordFunctionFast: the name must be a string")
        self.name, self.values, self._range = name, tuple(input_values or ()), None
        plain = {k: v for k, v in (keyword_values or {}).items() if isinstance(v, (bool, int, float, str))}
        self.keywords = json.dumps(plain) if plain else ""

    def __enter__(self):
        self._range = _C._profiler_enter(self.name, self.values, self.keywords)

    def __exit__(self, *error):
        range, self._range = self._range, None
        _C._profiler_exit(range)


@dataclass
class _ExperimentalConfig:
    """PyTorch's further options; of them `profile_all_threads` means something on the CPU."""

    profiler_metrics: list[str] = field(default_factory=list)
    profiler_measure_per_kernel: bool = False
    verbose: bool = False
    performance_events: list[str] = field(default_factory=list)
    enable_cuda_sync_events: bool = False
    adjust_profiler_step: bool = False
    disable_external_correlation: bool = False
    profile_all_threads: bool = False
    capture_overload_names: bool = False
    record_python_gc_info: bool = False
    expose_kineto_event_metadata: bool = False
    custom_profiler_config: str = ""
    adjust_timestamps: bool = False
    trace_only: bool = False


def gather_traceback(python, script, cpp):
    """The caller's stack, to be read later by `symbolize_tracebacks`."""
    return traceback.extract_stack()[:-1] if python else []


def symbolize_tracebacks(tracebacks):
    """Each frame of some stacks as a dict with its name, file and line, the innermost first."""
    return [
        [{"name": f.name, "filename": f.filename, "line": f.lineno} for f in reversed(stack)]
        for stack in tracebacks
    ]
