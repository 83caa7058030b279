"""Profiles of a piece of a program: which operators ran, for how long, and inside of what."""

from collections import defaultdict
from functools import wraps
from time import perf_counter_ns

from rushlight import _C
from rushlight.autograd import _execution_trace, profiler_util
from rushlight.autograd._profiler_enums import (
    ActiveProfilerType,
    DeviceType,
    ProfilerActivity,
    ProfilerStats,
    _state,
)
from rushlight.autograd._profiler_results import ProfilerResult
from rushlight.autograd._profiler_scopes import ModuleScopes, OtherThreads, known_blocks, record_calls
from rushlight.autograd._profiler_trace import Trace, make_events, trace_content
from rushlight.autograd.profiler_util import (
    EventList,
    FunctionEvent,
    FunctionEventAvg,
    Interval,
    Kernel,
    StringTable,
)

__all__ = [
    "DeviceType",
    "EventList",
    "FunctionEvent",
    "FunctionEventAvg",
    "Interval",
    "Kernel",
    "KinetoStepTracker",
    "ProfilerActivity",
    "StringTable",
    "emit_itt",
    "emit_nvtx",
    "kineto_available",
    "profile",
    "profiler_util",
    "record_function",
]


_is_profiler_enabled = False  # whether a profile records; programs that name many ranges ask it first


def kineto_available():
    """Whether `torch.profiler` works: it does."""
    return True


class profile:
    """Records what this thread runs inside of a ``with`` block, backward passes included.

    Args:
        enabled: with False the block runs unobserved.
        record_shapes: keep the shapes of operands.
        with_flops: estimate floating-point operations of products and convolutions.
        profile_memory: keep how many bytes were allocated.
        with_stack: keep the Python frames that were running; calls of Python functions are events too.
        with_modules: the calls of modules are events too, named by their paths.

        experimental_config: with ``profile_all_threads`` the program's other threads are recorded too.

    ``use_device="cuda"`` adds what CUDA devices do. Where there are none, or no CUPTI, it warns.
    """

    _kind = ActiveProfilerType.KINETO

    def __init__(
        self,
        enabled=True,
        *,
        use_cuda=False,
        use_device=None,
        record_shapes=False,
        with_flops=False,
        profile_memory=False,
        with_stack=False,
        with_modules=False,
        use_kineto=False,
        use_cpu=True,
        experimental_config=None,
        acc_events=False,
        custom_trace_id_callback=None,
        post_processing_timeout_s=None,
        activity_filters=None,
    ):
        self.enabled, self.entered = enabled, False
        self.use_cpu = use_cpu
        self.use_device = "cuda" if use_cuda else None if use_device == "cpu" else use_device
        self.record_shapes = record_shapes or with_flops
        self.with_flops, self.profile_memory = with_flops, profile_memory
        self.with_stack, self.with_modules = with_stack, with_modules
        self.acc_events = acc_events
        self.profile_all_threads = getattr(experimental_config, "profile_all_threads", False)
        self._events = self._results = None
        self._accumulated = []
        if use_cuda:
            import warnings

            warnings.warn(
                "The attribute `use_cuda` will be deprecated soon, please use ``use_device = 'cuda'`` "
                "instead.",
                FutureWarning,
                stacklevel=2,
            )
        if self.use_device is not None and not (self.use_device == "cuda" and _C._cuda_getDeviceCount()):
            import warnings

            device = "CUDA" if use_cuda else use_device
            warnings.warn(f"{device} is not available, disabling {device} profiling", stacklevel=2)
            self.use_device = None

    def __enter__(self):
        if not self.enabled:
            return self
        if self.entered:
            raise RuntimeError("Profiler context manager is not reentrant")
        self._prepare_trace()
        self._start_trace()
        return self

    def _prepare_trace(self):
        begun = perf_counter_ns()
        self.entered = True
        self._stats = ProfilerStats()
        self._stats.profiler_prepare_call_duration_us = (perf_counter_ns() - begun) / 1000

    def _start_trace(self):
        global _is_profiler_enabled
        begun = perf_counter_ns()
        self.entered = _is_profiler_enabled = True
        _state.running = self._kind
        self._known = known_blocks() if self.profile_memory else {}
        self._modules = ModuleScopes(self.with_modules) if self.with_modules or self.with_stack else None
        _execution_trace.make_way()
        _C._profiler_start(
            self.record_shapes or bool(_execution_trace.running),
            self.profile_memory,
            self.with_stack,
            self.use_device is not None,
            self.profile_all_threads,
        )
        self._threads = OtherThreads(self.with_stack) if self.profile_all_threads else None
        if self.with_stack:
            record_calls(all_threads=True)
        self._stats.profiler_enable_call_duration_us = (perf_counter_ns() - begun) / 1000

    def __exit__(self, exc_type, exc_val, exc_tb):
        if not self.enabled or not self.entered:
            return False
        global _is_profiler_enabled
        begun = perf_counter_ns()
        logs, started, offset, memory, before, activities = _C._profiler_stop()
        self._stats.parse_kineto_call_duration_us = (perf_counter_ns() - begun) / 1000
        _is_profiler_enabled, _state.running = False, ActiveProfilerType.NONE
        if self._threads is not None:
            self._threads.remove()
        if self._modules is not None:
            self._modules.remove()
        known = (self._known, known_blocks() if self.profile_memory else {})
        options = {"profile_memory": self.profile_memory, "record_shapes": self.record_shapes}
        options |= {"with_stack": self.with_stack, "with_flops": self.with_flops}
        self._logs, self._events = logs, None
        modules = self._modules.called if self._modules is not None else []
        self._trace = Trace(started, offset, options, memory, before, activities, known, modules)
        self.entered = False
        self._stats.profiling_window_duration_sec = (begun - started) / 1e9
        self._stats.profiler_disable_call_duration_us = (perf_counter_ns() - begun) / 1000
        if _execution_trace.running:
            _execution_trace.hand_out(self.function_events)
            _execution_trace.go_on()
        if self.acc_events:
            self._accumulated += self.function_events
        return False

    def __repr__(self):
        return "<unfinished torch.autograd.profile>" if self._recorded() is None else repr(self._recorded())

    def __str__(self):
        return "<unfinished torch.autograd.profile>" if self._recorded() is None else str(self._recorded())

    def _recorded(self):
        if self._events is None and hasattr(self, "_logs"):
            begun = perf_counter_ns()
            self._events = make_events(self._logs, self._trace)
            del self._logs
            self._stats.number_of_events = len(self._events)
            self._stats.function_events_build_tree_call_duration_us = (perf_counter_ns() - begun) / 1000
        return self._events

    @property
    def kineto_results(self):
        """The events of the last block as tools read them, and their tree; None before there are any."""
        events = self._recorded()
        if events is None or self.entered:
            return None
        if self._results is None or self._results[0] is not events:
            self._results = events, ProfilerResult(events, self._trace)
        return self._results[1]

    @property
    def function_events(self):
        """The events of the last block; of all blocks with ``acc_events``."""
        events = self._recorded()
        if events is None or self.entered:
            raise RuntimeError("Profiler didn't finish running")
        return events

    def events(self):
        if not self.acc_events:
            return self.function_events
        return EventList(
            self._accumulated,
            profile_memory=self.profile_memory,
            with_flops=self.with_flops,
            trace=self._trace,
        )

    def table(self, *args, **kwargs):
        return self.function_events.table(*args, **kwargs)

    table.__doc__ = EventList.table.__doc__

    def export_chrome_trace(self, path, metadata=None, use_python_export=False):
        self.function_events.export_chrome_trace(path, metadata)

    export_chrome_trace.__doc__ = EventList.export_chrome_trace.__doc__

    def export_html(self, path, title=None):
        """Write an HTML file that shows the trace, sums by operator and the memory; it needs nothing else."""
        from rushlight import viz

        viz.trace(self, path, title=title)

    def memory_timeline(self):
        """The blocks of memory of the last recording, by what they were for."""
        if not self.profile_memory:
            raise AssertionError("memory timelines require profile_memory=True")
        from rushlight.profiler._memory_profiler import MemoryTimeline

        return MemoryTimeline(self.function_events, self._trace)

    def _page_content(self, metadata=None):
        """What `rushlight.viz.trace` shows."""
        events = self.function_events
        content = trace_content(events, self._trace._replace(memory=[]), metadata or {})
        return content | ({"memory": self.memory_timeline().blocks_for_page()} if self.profile_memory else {})

    def export_stacks(self, path, metric="self_cpu_time_total"):
        if not self.with_stack:
            raise AssertionError("export_stacks() requires with_stack=True")
        return self.function_events.export_stacks(path, metric)

    def toggle_collection_dynamic(self, enabled, activities):
        """Stop or continue recording this thread inside of the block."""
        if ProfilerActivity.CPU in set(activities):
            _C._profiler_set_thread(enabled)

    def key_averages(self, group_by_input_shape=False, group_by_stack_n=0, group_by_overload_name=False):
        return self.events().key_averages(group_by_input_shape, group_by_stack_n, group_by_overload_name)

    key_averages.__doc__ = EventList.key_averages.__doc__

    def total_average(self):
        return self.function_events.total_average()

    total_average.__doc__ = EventList.total_average.__doc__

    @property
    def self_cpu_time_total(self):
        return self.function_events.self_cpu_time_total


class record_function:
    """Names a block of code, or a function that it decorates, in profiles.

    >>> with torch.autograd.profiler.record_function("forward"):
    ...     loss = model(x).sum()
    """

    def __init__(self, name, args=None):
        self.name, self.args = name, args
        self.run_callbacks_on_exit = True
        self._ranges = []

    def __enter__(self):
        if self.args is None:
            self._ranges.append(_C._profiler_enter(self.name))
        else:
            values = self.args if type(self.args) is tuple else (self.args,)
            self._ranges.append(_C._profiler_enter(self.name, values, ""))
        return self

    def __exit__(self, exc_type, exc_value, traceback):
        range = self._ranges.pop()
        if self.run_callbacks_on_exit:
            _C._profiler_exit(range)

    def __call__(self, func):
        @wraps(func)
        def inside(*args, **kwargs):
            with type(self)(self.name, self.args):
                return func(*args, **kwargs)

        return inside

    def _call_end_callbacks_on_future(self, fut):
        """Let the range end when the future does instead of with the block."""
        if not self.run_callbacks_on_exit:
            raise RuntimeError("_call_end_callbacks_on_future can only be called once.")
        self.run_callbacks_on_exit = False
        range = self._ranges[-1]

        def end(future):
            _C._profiler_exit(range)
            return future.value()

        return fut.then(end)


def _record_function_enter(name, args=None):
    """Begins a range; as `torch.ops.profiler._record_function_enter` it can be a node of a graph."""
    return record_function(name, args).__enter__()


def _record_function_exit(handle):
    """Ends the range that `_record_function_enter` began."""
    handle.__exit__(None, None, None)


def _record_function_with_args_enter(name, *args):
    """Begins a range of which traces of operands keep the arguments."""
    return record_function(name, args).__enter__()


_record_function_with_args_exit = _record_function_exit

_record_function_enter_new = _record_function_enter

for _function in (_record_function_enter, _record_function_exit):
    _function.__module__ = "torch._ops.profiler"
_record_function_exit._RecordFunction = _record_function_exit  # type: ignore[attr-defined]  # as an overload


class _Annotations:
    """Marks ranges for a vendor's profiler, which this build does not know."""

    _library = ""

    def __init__(self, enabled=True, record_shapes=False):
        self.enabled, self.record_shapes, self.entered = enabled, record_shapes, False

    def __enter__(self):
        if self.enabled:
            raise RuntimeError(f"{self._library} is not available; use torch.profiler.profile instead")
        return self

    def __exit__(self, exc_type, exc_val, exc_tb):
        return False


class emit_nvtx(_Annotations):
    __doc__ = _Annotations.__doc__
    _library = "NVTX: torch not compiled with CUDA enabled; it"


class emit_itt(_Annotations):
    __doc__ = _Annotations.__doc__
    _library = "ITT: torch not compiled with ITT enabled; it"


class KinetoStepTracker:
    """One step number for several callers that each count their own steps."""

    _current_step = 0
    _step_dict: dict = defaultdict(int)

    @classmethod
    def init_step_count(cls, requester):
        cls._step_dict[requester] = cls._current_step

    @classmethod
    def erase_step_count(cls, requester):
        return cls._step_dict.pop(requester, None) is not None

    @classmethod
    def increment_step(cls, requester):
        cls._step_dict[requester] = cls._step_dict.get(requester, cls._current_step) + 1
        cls._current_step = max(cls._current_step, *cls._step_dict.values())
        return cls._current_step

    @classmethod
    def current_step(cls):
        return cls._current_step
