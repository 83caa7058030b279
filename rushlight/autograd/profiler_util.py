"""What a profile consists of: events, and lists of them that are summed up, printed and exported."""

from collections import defaultdict, namedtuple

from rushlight.autograd._profiler_enums import DeviceType
from rushlight.autograd._profiler_table import build_table, format_memory, format_share, format_time

__all__ = [
    "EventList",
    "FormattedTimesMixin",
    "FunctionEvent",
    "FunctionEventAvg",
    "Interval",
    "Kernel",
    "StringTable",
]

_format_time, _format_time_share, _format_memory = format_time, format_share, format_memory
_build_table = build_table

Kernel = namedtuple("Kernel", ["name", "device", "duration"])


class StringTable(defaultdict):
    """Gives every key back as its own value, so that equal strings are one object."""

    def __missing__(self, key):
        self[key] = key
        return key


class Interval:
    """From `start` to `end`, in microseconds since the profile began."""

    def __init__(self, start, end):
        self.start, self.end = start, end

    def elapsed_us(self):
        return self.end - self.start


def _formatted(attribute):
    return property(lambda self: format_time(getattr(self, attribute)))


def _renamed(old, new):
    def read(self):
        import warnings

        warnings.warn(f"`{old}` is deprecated, please use `{new}` instead.", FutureWarning, stacklevel=2)
        return getattr(self, new)

    return property(read)


class FormattedTimesMixin:
    """Averages and readable times of anything that counts calls and sums their times."""

    cpu_time_str = _formatted("cpu_time")
    device_time_str = _formatted("device_time")
    cpu_time_total_str = _formatted("cpu_time_total")
    device_time_total_str = _formatted("device_time_total")
    self_cpu_time_total_str = _formatted("self_cpu_time_total")
    self_device_time_total_str = _formatted("self_device_time_total")

    @property
    def cpu_time(self):
        return self.cpu_time_total / self.count if self.count else 0.0

    @property
    def device_time(self):
        return self.device_time_total / self.count if self.count else 0.0

    cuda_time = _renamed("cuda_time", "device_time")
    cuda_time_total = _renamed("cuda_time_total", "device_time_total")
    self_cuda_time_total = _renamed("self_cuda_time_total", "self_device_time_total")
    self_cuda_memory_usage = _renamed("self_cuda_memory_usage", "self_device_memory_usage")


class FunctionEvent(FormattedTimesMixin):
    """One call of an operator, one step of a backward pass, or one range that the program named."""

    self_device_memory_usage = 0
    count = 1
    same_call = None  # the event that stands for this one too
    kwinputs: dict = {}  # what the program said of a range by name
    caller_line, module_number = (
        0,
        -1,
    )  # of a call from Python: the line of the caller; of a module: which one
    activity = cause = None  # of work of a device: what is known of it, the call that asked for it

    def __init__(
        self,
        id,
        name,
        thread,
        start_us,
        end_us,
        overload_name=None,
        fwd_thread=None,
        input_shapes=None,
        stack=None,
        scope=0,
        use_device=None,
        cpu_memory_usage=0,
        device_memory_usage=0,
        is_async=False,
        is_remote=False,
        sequence_nr=-1,
        node_id=-1,
        device_type=DeviceType.CPU,
        device_index=0,
        is_legacy=False,
        flops=None,
        trace_name=None,
        concrete_inputs=None,
        is_user_annotation=False,
        input_dtypes=None,
        is_python_function=False,
        structured_input_shapes=None,
        structured_input_strides=None,
    ):
        self.id, self.node_id = id, node_id
        self.name = name
        self.overload_name = overload_name or ""
        self.trace_name = trace_name or name
        self.thread, self.fwd_thread = thread, fwd_thread
        self.time_range = Interval(start_us, end_us)
        self.input_shapes = input_shapes or []
        self.input_dtypes = input_dtypes or []
        self.structured_input_shapes = structured_input_shapes or self.input_shapes
        self.structured_input_strides = structured_input_strides or []
        self.concrete_inputs = concrete_inputs or []
        self.stack = stack or []
        self.scope, self.sequence_nr = scope, sequence_nr
        self.use_device, self.device_type, self.device_index = use_device, device_type, device_index
        self.cpu_memory_usage, self.device_memory_usage = cpu_memory_usage, device_memory_usage
        self.is_async, self.is_remote, self.is_legacy = is_async, is_remote, is_legacy
        self.is_user_annotation, self.is_python_function = is_user_annotation, is_python_function
        self.flops = flops
        self.kernels = []
        self.cpu_children = []
        self.cpu_parent = None

    def append_kernel(self, name, device, duration):
        self.kernels.append(Kernel(name, device, duration))

    def append_cpu_child(self, child):
        self.cpu_children.append(child)

    def set_cpu_parent(self, parent):
        self.cpu_parent = parent

    @property
    def key(self):
        return self.name

    @property
    def python_id(self):
        """The event's number if it is a call from Python, else -1."""
        return self.id if self.is_python_function else -1

    @property
    def python_parent_id(self):
        """Of a call from Python the number of the one that it was made by; -1 where there is none."""
        above = self.cpu_parent if self.is_python_function else None
        while above is not None and not above.is_python_function:
            above = above.cpu_parent
        return -1 if above is None else above.id

    @property
    def python_module_id(self):
        """The number of the module that was called; -1 of other events."""
        return self.module_number

    @property
    def activity_type(self):
        """What kind of event this is, as traces name it."""
        if self.device_type != DeviceType.CPU:
            return "kernel"
        if self.is_user_annotation:
            return "user_annotation"
        return "python_function" if self.is_python_function else "cpu_op"

    @property
    def cpu_time_total(self):
        return self.time_range.elapsed_us() if self.device_type == DeviceType.CPU else 0

    @property
    def device_time_total(self):
        """What devices did for this call and for what ran inside of it; for work of a device, its time."""
        if self.device_type != DeviceType.CPU:
            return self.time_range.elapsed_us()
        own = sum(kernel.duration for kernel in self.kernels)
        return own + sum(child.device_time_total for child in self.cpu_children)

    @property
    def self_device_time_total(self):
        return self.device_time_total - sum(child.device_time_total for child in self.cpu_children)

    @property
    def self_cpu_time_total(self):
        return self.cpu_time_total - sum(child.cpu_time_total for child in self.cpu_children)

    @property
    def self_cpu_memory_usage(self):
        return self.cpu_memory_usage - sum(child.cpu_memory_usage for child in self.cpu_children)

    def __repr__(self):
        return (
            f"<FunctionEvent id={self.id} name={self.name} device_type={self.device_type} "
            f"cpu_time={self.cpu_time_str} start_us={self.time_range.start} end_us={self.time_range.end} "
            f"cpu_children={[child.id for child in self.cpu_children]} thread={self.thread} "
            f"input_shapes={self.input_shapes} cpu_memory_usage={self.cpu_memory_usage} "
            f"seq_nr={self.sequence_nr}>"
        )


class FunctionEventAvg(FormattedTimesMixin):
    """Events of one key, added up."""

    _SUMS = (
        "cpu_time_total",
        "self_cpu_time_total",
        "device_time_total",
        "self_device_time_total",
        "cpu_memory_usage",
        "self_cpu_memory_usage",
        "device_memory_usage",
        "self_device_memory_usage",
        "count",
    )
    _SHARED = (
        "key",
        "node_id",
        "is_async",
        "is_remote",
        "cpu_parent",
        "cpu_children",
        "overload_name",
        "input_shapes",
        "stack",
        "scope",
        "device_type",
        "use_device",
        "is_legacy",
        "is_user_annotation",
    )

    def __init__(self):
        for name in self._SHARED:
            setattr(self, name, None)
        for name in self._SUMS:
            setattr(self, name, 0)
        self.flops = 0

    def add(self, other):
        """Count an event, or another sum of the same key."""
        if self.key is None:
            for name in self._SHARED:
                setattr(self, name, getattr(other, name))
        if not isinstance(other, (FunctionEvent, FunctionEventAvg)) or other.key != self.key:
            raise AssertionError(f"cannot add {other!r} to the events of {self.key!r}")
        for name in self._SUMS:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.flops += other.flops or 0
        return self

    def __iadd__(self, other):
        return self.add(other)

    def __repr__(self):
        return (
            f"<FunctionEventAvg key={self.key} self_cpu_time={self.self_cpu_time_total_str} "
            f"cpu_time={self.cpu_time_str}  self_device_time={self.self_device_time_total_str} "
            f"device_time={self.device_time_str} input_shapes={self.input_shapes} "
            f"cpu_memory_usage={self.cpu_memory_usage} device_memory_usage={self.device_memory_usage}>"
        )


class EventList(list):
    """Events in the order in which they began."""

    def __init__(self, *args, use_device=None, profile_memory=False, with_flops=False, trace=None):
        super().__init__(*args)
        self._use_device, self._profile_memory, self._with_flops = use_device, profile_memory, with_flops
        self._trace = trace

    def __str__(self):
        return self.table()

    @property
    def self_cpu_time_total(self):
        return sum(event.self_cpu_time_total for event in self)

    def table(
        self,
        sort_by=None,
        row_limit=100,
        max_src_column_width=75,
        max_name_column_width=55,
        max_shapes_column_width=80,
        header=None,
        top_level_events_only=False,
        time_unit=None,
    ):
        """The events as a table.

        Args:
            sort_by: the column by which to sort, largest first, such as ``cpu_time_total``,
                ``self_cpu_time_total``, ``cpu_memory_usage`` or ``count``; None keeps the order.
            row_limit: how many rows to show; all if negative.
            top_level_events_only: leave out what ran inside of something else.
            time_unit: ``s``, ``ms`` or ``us`` for all times; None chooses for each.
        """
        return build_table(
            self,
            sort_by=sort_by,
            row_limit=row_limit,
            max_src_column_width=max_src_column_width,
            max_name_column_width=max_name_column_width,
            max_shapes_column_width=max_shapes_column_width,
            header=header,
            profile_memory=self._profile_memory,
            with_flops=self._with_flops,
            top_level_events_only=top_level_events_only,
            time_unit=time_unit,
        )

    def key_averages(self, group_by_input_shapes=False, group_by_stack_n=0, group_by_overload_name=False):
        """One sum for each name, and for each tuple of shapes or each innermost frames if asked for."""
        sums = defaultdict(FunctionEventAvg)
        for event in self:
            key = (event.key, event.scope, event.is_user_annotation, event.device_type)
            key += (str(event.input_shapes),) if group_by_input_shapes else ()
            key += tuple(event.stack[:group_by_stack_n]) if group_by_stack_n > 0 else ()
            sums[key].add(event)
        for total in sums.values():
            total.stack = total.stack[:group_by_stack_n] if group_by_stack_n > 0 else []
            total.input_shapes = total.input_shapes if group_by_input_shapes else ""
        return EventList(
            sums.values(),
            use_device=self._use_device,
            profile_memory=self._profile_memory,
            with_flops=self._with_flops,
        )

    def total_average(self):
        """All events added up."""
        total = FunctionEventAvg()
        for event in self:
            part = FunctionEventAvg().add(event)
            part.key = total.key = "Total"
            total.add(part)
        return total

    def supported_export_stacks_metrics(self):
        return ["self_cpu_time_total", "self_cuda_time_total", "self_xpu_time_total"]

    def export_stacks(self, path, metric):
        """Write one line for each stack and its time, as flame graph tools read it."""
        if metric not in self.supported_export_stacks_metrics():
            raise ValueError(
                f"metric should be one of: {self.supported_export_stacks_metrics()}, but got {metric!r}"
            )
        own = metric == "self_cpu_time_total"
        with open(path, "w", encoding="utf-8") as file:
            for event in self:
                value = int(event.self_cpu_time_total if own else event.self_device_time_total)
                if event.stack and value > 0:
                    frames = ";".join(frame.translate(_PLAIN) for frame in reversed(event.stack))
                    file.write(f"{frames} {value}\n")

    def export_chrome_trace(self, path, metadata=None):
        """Write what chrome://tracing and Perfetto show; compressed if the path ends with ``.gz``."""
        from rushlight.autograd._profiler_trace import write_trace

        if self._trace is None:
            raise RuntimeError("export_chrome_trace: sums have no times; export the profile itself")
        write_trace(path, self, self._trace, metadata or {})


_PLAIN = str.maketrans(" ;\t\n", "____")
