"""Profiles of training loops: schedules, traces for Chrome and TensorBoard, tables."""

from rushlight._command.submodules import submodules_of
from rushlight.autograd._execution_trace import ExecutionTraceObserver
from rushlight.autograd._profiler_enums import DeviceType, ProfilerActivity, RecordScope, _ExperimentalConfig
from rushlight.autograd.profiler import KinetoStepTracker, kineto_available, record_function
from rushlight.profiler import itt
from rushlight.profiler.profiler import (
    ProfilerAction,
    _KinetoProfile,
    profile,
    schedule,
    supported_activities,
    tensorboard_trace_handler,
)

__all__ = [
    "DeviceType",
    "ExecutionTraceObserver",
    "KinetoStepTracker",
    "ProfilerAction",
    "ProfilerActivity",
    "RecordScope",
    "itt",
    "kineto_available",
    "profile",
    "record_function",
    "schedule",
    "supported_activities",
    "tensorboard_trace_handler",
]

__getattr__ = submodules_of(__name__)
