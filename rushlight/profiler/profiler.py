"""`torch.profiler.profile`: one profile, or by a schedule one for each part of a training loop."""

from __future__ import annotations

import json
import os
import sys
import time
import warnings
from enum import Enum
from typing import Any

from rushlight.autograd import profiler as _autograd_profiler
from rushlight.autograd._profiler_enums import ProfilerActivity

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

__all__ = ["ProfilerAction", "profile", "schedule", "supported_activities", "tensorboard_trace_handler"]

PROFILER_STEP_NAME = "ProfilerStep"


def supported_activities() -> set[ProfilerActivity]:
    """What can be observed here: CUDA where there is a device."""
    from rushlight import cuda

    return {ProfilerActivity.CPU} | ({ProfilerActivity.CUDA} if cuda.is_available() else set())


def _processes():
    """Which of several processes this one is, as tools that read a trace of each tell them apart; None where
    there are no process groups."""
    dist = sys.modules.get("rushlight.distributed")  # not imported: nobody has made a group
    if dist is None or not dist.is_available() or not dist.is_initialized():
        return None
    return {
        "backend": dist.get_backend(),
        "rank": dist.get_rank(),
        "world_size": dist.get_world_size(),
        "pg_count": dist.get_pg_count(),
        "pg_config": dist.distributed_c10d._get_all_pg_configs(),
    }


class _KinetoProfile:
    """A profile that is started and stopped by hand."""

    def __init__(
        self,
        *,
        activities=None,
        record_shapes=False,
        profile_memory=False,
        with_stack=False,
        with_flops=False,
        with_modules=False,
        experimental_config=None,
        execution_trace_observer=None,
        acc_events=False,
        custom_trace_id_callback=None,
        post_processing_timeout_s=None,
    ):
        self.activities = set(activities) if activities is not None else supported_activities()
        if not self.activities:
            raise AssertionError("No valid profiler activities found")
        self.record_shapes, self.profile_memory = record_shapes, profile_memory
        self.with_stack, self.with_flops, self.with_modules = with_stack, with_flops, with_modules
        self.acc_events = acc_events
        self.experimental_config = experimental_config
        self.execution_trace_observer = execution_trace_observer
        self.profiler = None
        self.preset_metadata, self._metadata = {}, {}

    def _observes_cuda(self):
        return ProfilerActivity.CUDA in self.activities and ProfilerActivity.CUDA in supported_activities()

    def start(self):
        self.prepare_trace()
        self.start_trace()

    def stop(self):
        self.stop_trace()

    def prepare_trace(self):
        begun = time.perf_counter_ns()
        if self.profiler is None or not self.acc_events:
            self.profiler = _autograd_profiler.profile(
                record_shapes=self.record_shapes,
                with_flops=self.with_flops,
                profile_memory=self.profile_memory,
                with_stack=self.with_stack,
                with_modules=self.with_modules,
                experimental_config=self.experimental_config,
                use_device="cuda" if self._observes_cuda() else None,
                acc_events=self.acc_events,
            )
        self.profiler._prepare_trace()
        self.profiler._stats.profiler_prepare_call_duration_us = (time.perf_counter_ns() - begun) / 1000
        self._metadata = {}

    def start_trace(self):
        recorder = self._started().profiler
        if self.execution_trace_observer is not None:
            self.execution_trace_observer.start()
        recorder._start_trace()
        if (processes := _processes()) is not None:
            self._metadata["distributedInfo"] = processes
        for key, value in self.preset_metadata.items():
            self.add_metadata_json(key, value)

    def stop_trace(self):
        self._started().profiler.__exit__(None, None, None)
        if self.execution_trace_observer is not None:
            self.execution_trace_observer.stop()

    def _started(self):
        if self.profiler is None:
            raise AssertionError("Profiler must be initialized before it is used; call start() first")
        return self

    def _stats(self):
        """What recording itself cost; None before it begins."""
        return None if self.profiler is None else self.profiler._stats

    def export_chrome_trace(self, path, use_python_export=False):
        """Write what chrome://tracing and Perfetto show; compressed if the path ends with ``.gz``."""
        self._started().profiler.export_chrome_trace(path, self._metadata)

    def export_html(self, path, title=None):
        """Write an HTML file that shows the trace, sums by operator and the memory; it needs nothing else.

        Beyond PyTorch, as is the name.
        """
        from rushlight import viz

        viz.trace(self, path, title=title)

    def _page_content(self):
        return self._started().profiler._page_content(self._metadata)

    def export_memory_timeline(self, path, device=None):
        """Write how much memory was in use for what, over time; needs ``profile_memory=True``.

        Args:
            path: ends in ``.html`` for a page that draws it, in ``.raw.json.gz`` for each event as ``[time in
                nanoseconds, action, bytes, category]``, else (``.json``, ``.json.gz``) ``[times, sizes]``
                with the bytes of each category at each time.
            device: the CPU; there is no memory of other devices.
        """
        if device not in (None, "cpu", "cpu:0"):
            raise ValueError(f"export_memory_timeline: only the CPU's memory is recorded, not {device}'s")
        timeline = self._started().profiler.memory_timeline()
        if str(path).endswith(".html"):
            timeline.export_html(path)
        elif str(path).endswith(".raw.json.gz"):
            timeline.export_raw(path)
        else:
            timeline.export(path)

    def export_stacks(self, path, metric="self_cpu_time_total"):
        """Write stacks and their times, as flame graph tools read them."""
        return self._started().profiler.export_stacks(path, metric)

    def toggle_collection_dynamic(self, enable, activities):
        """Stop or continue recording while the profile runs."""
        if self.profiler is not None:
            self.profiler.toggle_collection_dynamic(enable, activities)

    def key_averages(self, group_by_input_shape=False, group_by_stack_n=0, group_by_overload_name=False):
        """One sum for each operator, and for each tuple of shapes or innermost frames if asked for."""
        return self._started().profiler.key_averages(
            group_by_input_shape, group_by_stack_n, group_by_overload_name
        )

    def events(self):
        """All events in the order in which they began."""
        return self._started().profiler.events()

    def add_metadata(self, key, value):
        """Put a string into the trace."""
        self.add_metadata_json(key, json.dumps(value))

    def add_metadata_json(self, key, value):
        """Put a value, given as JSON, into the trace."""
        self._metadata[key] = json.loads(value)

    def preset_metadata_json(self, key, value):
        """As `add_metadata_json`, before the profile starts and for all its traces."""
        self.preset_metadata[key] = value


class ProfilerAction(Enum):
    """What a profiler does during one step."""

    NONE = 0
    WARMUP = 1
    RECORD = 2
    RECORD_AND_SAVE = 3
    DEVICE_STOPPED = 4


def schedule(
    *, wait: int, warmup: int, active: int, repeat: int = 0, skip_first: int = 0, skip_first_wait: int = 0
) -> Callable[[int], ProfilerAction]:
    """A schedule of cycles: some steps idle, some to warm up, some recorded.

    Args:
        repeat: after how many cycles to stop; 0 never stops.
        skip_first: steps before the first cycle.
        skip_first_wait: if not 0, the first cycle does not wait.
    """
    if min(wait, warmup, repeat, skip_first) < 0 or active <= 0:
        raise AssertionError(
            f"Invalid profiler schedule arguments. Got wait={wait} (need >= 0), warmup={warmup} (need >= 0), "
            f"active={active} (need > 0), repeat={repeat} (need >= 0), skip_first={skip_first} (need >= 0)."
        )
    if warmup == 0:
        warnings.warn("Profiler won't be using warmup, this can skew profiler results", stacklevel=2)

    def action(step):
        if step < 0:
            raise AssertionError(f"Step must be non-negative. Got {step}.")
        if step < skip_first:
            return ProfilerAction.NONE
        step -= skip_first
        if skip_first_wait != 0:
            step += wait
        cycle, at = divmod(step, wait + warmup + active)
        if (repeat > 0 and cycle >= repeat) or at < wait:
            return ProfilerAction.NONE
        if at < wait + warmup:
            return ProfilerAction.WARMUP
        last = at == wait + warmup + active - 1
        return ProfilerAction.RECORD_AND_SAVE if last else ProfilerAction.RECORD

    return action


def _default_schedule_fn(_):
    return ProfilerAction.RECORD


def tensorboard_trace_handler(
    dir_name: str, worker_name: str | None = None, use_gzip: bool = False, use_python_export: bool = False
) -> Callable[..., None]:
    """For ``on_trace_ready``: writes each trace to a file of its own where TensorBoard's plug-in looks."""
    import socket

    def write(prof):
        try:
            os.makedirs(dir_name, exist_ok=True)
        except OSError as error:
            raise RuntimeError(f"Can't create directory: {dir_name}") from error
        worker = worker_name or f"{socket.gethostname()}_{os.getpid()}"
        # Nanoseconds: two traces must not have one name.
        name = f"{worker}.{time.time_ns()}.pt.trace.json" + (".gz" if use_gzip else "")
        prof.export_chrome_trace(os.path.join(dir_name, name), use_python_export=use_python_export)

    return write


_RECORDS = (ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE)


class profile(_KinetoProfile):
    """Observes a training loop.

    Args:
        activities: what to observe, `supported_activities()` unless given: the CPU, and CUDA devices.
        schedule: what to do at which step, usually from `schedule`; by default all is recorded.
        on_trace_ready: called with this object each time a recording is complete.
        record_shapes, profile_memory, with_stack, with_flops: what to keep of every event.
        with_modules: the calls of modules are events too, named by their paths.
        experimental_config: ``_ExperimentalConfig(profile_all_threads=True)`` records the program's other
            threads too, those that run and those that begin.

    >>> with profile(schedule=schedule(wait=1, warmup=1, active=2), on_trace_ready=report) as prof:
    ...     for batch in loader:
    ...         train(batch)
    ...         prof.step()
    """

    def __init__(
        self,
        *,
        activities: Iterable[ProfilerActivity] | None = None,
        schedule: Callable[[int], ProfilerAction] | None = None,
        on_trace_ready: Callable[..., Any] | None = None,
        record_shapes: bool = False,
        profile_memory: bool = False,
        with_stack: bool = False,
        with_flops: bool = False,
        with_modules: bool = False,
        experimental_config: Any = None,
        execution_trace_observer: Any = None,
        acc_events: bool = False,
        use_cuda: bool | None = None,
        custom_trace_id_callback: Callable[[], str] | None = None,
        post_processing_timeout_s: float | None = None,
    ) -> None:
        super().__init__(
            activities=activities,
            record_shapes=record_shapes,
            profile_memory=profile_memory,
            with_stack=with_stack,
            with_flops=with_flops,
            with_modules=with_modules,
            experimental_config=experimental_config,
            execution_trace_observer=execution_trace_observer,
            acc_events=acc_events,
        )
        if use_cuda is not None:
            warnings.warn("`use_cuda` is deprecated, use `activities` argument instead", FutureWarning, 2)
        self.schedule = schedule or _default_schedule_fn
        self.record_steps = schedule is not None
        self.on_trace_ready = on_trace_ready
        self.step_num = 0
        self.current_action = self.schedule(0)
        self.step_rec_fn: Any = None
        self.custom_trace_id_callback = custom_trace_id_callback

    def __enter__(self) -> profile:
        self.start()
        return self

    def __exit__(self, exc_type: Any, exc_val: Any, exc_tb: Any) -> None:
        self.stop()
        if self.execution_trace_observer:
            self.execution_trace_observer.cleanup()

    def start(self) -> None:
        self._transit(ProfilerAction.NONE, self.current_action)
        self._open_step()

    def stop(self) -> None:
        self._close_step()
        self._transit(self.current_action, None)

    def step(self) -> None:
        """Tell the profiler that the next step of the loop begins."""
        self._close_step()
        before = self.current_action
        self.step_num += 1
        self.current_action = self.schedule(self.step_num)
        self._transit(before, self.current_action)
        self._open_step()

    def set_custom_trace_id_callback(self, callback: Callable[[], str]) -> None:
        self.custom_trace_id_callback = callback

    def get_trace_id(self) -> str | None:
        """What the callback for trace ids says, if there is one."""
        return self.custom_trace_id_callback() if self.custom_trace_id_callback else None

    def _open_step(self):
        if self.record_steps:
            self.step_rec_fn = _autograd_profiler.record_function(f"{PROFILER_STEP_NAME}#{self.step_num}")
            self.step_rec_fn.__enter__()

    def _close_step(self):
        if self.step_rec_fn is not None:
            self.step_rec_fn.__exit__(None, None, None)
            self.step_rec_fn = None

    def _transit(self, before, after):
        """End what `before` did, as far as `after` does not go on with it, and begin what `after` does."""
        saves = before is ProfilerAction.RECORD_AND_SAVE or (before in _RECORDS and after is None)
        goes_on = before is ProfilerAction.RECORD and after in _RECORDS
        if before in _RECORDS and not goes_on:
            if not saves:
                warnings.warn(f"Incorrect schedule: RECORD followed by {after.name}", stacklevel=3)
            self.stop_trace()
            if saves:
                self._trace_ready()
        if after is ProfilerAction.WARMUP:
            self.prepare_trace()
        if after in _RECORDS and not goes_on:
            if before is not ProfilerAction.WARMUP:
                self.prepare_trace()
            self.start_trace()

    def _trace_ready(self):
        if self.on_trace_ready:
            self.on_trace_ready(self)
