"""The table that a profile prints."""

from rushlight.autograd._profiler_enums import DeviceType

_SECOND, _MILLISECOND = 1e6, 1e3
_UNITS = {"s": _SECOND, "ms": _MILLISECOND, "us": 1.0}
_COLUMN = 12
_GAP = 2

# What rows may be sorted by; times on a device are what PyTorch once called CUDA times.
_SORT_KEYS = {
    name: name.replace("cuda", "device").replace("xpu", "device").replace("privateuse1", "device")
    for device in ("cpu", "cuda", "xpu", "privateuse1", "device")
    for name in (
        f"{device}_time",
        f"{device}_time_total",
        f"self_{device}_time_total",
        f"{device}_memory_usage",
        f"self_{device}_memory_usage",
    )
} | {"count": "count"}


def format_time(us, unit=None):
    if unit is None:
        unit = "s" if us >= _SECOND else "ms" if us >= _MILLISECOND else "us"
    if unit not in _UNITS:
        raise ValueError(f"time_unit must be None, 's', 'ms' or 'us', but got {unit!r}")
    return f"{us / _UNITS[unit]:.3f}{unit}"


def format_share(part, whole):
    return f"{part * 100.0 / whole:.2f}%" if whole else "NaN"


def format_memory(nbytes):
    for exponent, unit in ((3, "GB"), (2, "MB"), (1, "KB")):
        if abs(nbytes) >= 1024**exponent:
            return f"{nbytes / 1024**exponent:.2f} {unit}"
    return f"{nbytes} B"


def _shorten(text, width):
    return text if width is None or width <= 3 or len(text) <= width else text[: width - 3] + "..."


class _Columns:
    """Columns one after another: a heading, a width, and what a row shows there."""

    def __init__(self):
        self.headings, self.widths, self.cells = [], [], []

    def add(self, heading, width, cell, limit=None):
        self.headings.append(_shorten(heading, limit))
        self.widths.append(width)
        self.cells.append(cell)

    def line(self, texts):
        return "".join(f"{text:>{width}}" + " " * _GAP for text, width in zip(texts, self.widths))

    def rule(self):
        return "".join("-" * width + " " * _GAP for width in self.widths)

    def row(self, event):
        return self.line([cell(event) for cell in self.cells])


def _column_width(texts, limit):
    width = max((len(text) for text in texts), default=0) + 4
    return width if limit is None else min(width, limit)


def _flops_scale(events):
    """The largest unit that leaves the greatest count at one or more."""
    most = max((event.flops or 0 for event in events), default=0)
    for exponent, prefix in ((15, "P"), (12, "T"), (9, "G"), (6, "M"), (3, "K")):
        if most >= 10**exponent:
            return 10**exponent, prefix
    return 1, ""


def _columns(events, total_us, options):
    columns = _Columns()
    unit = options["time_unit"]
    limit = options["max_name_column_width"]
    columns.add(
        "Name",
        _column_width([e.key for e in events], limit),
        lambda e: _shorten(e.key, limit),
    )
    columns.add("Self CPU %", _COLUMN, lambda e: format_share(e.self_cpu_time_total, total_us))
    columns.add("Self CPU", _COLUMN, lambda e: format_time(e.self_cpu_time_total, unit))
    columns.add("CPU total %", _COLUMN, lambda e: format_share(e.cpu_time_total, total_us))
    columns.add("CPU total", _COLUMN, lambda e: format_time(e.cpu_time_total, unit))
    columns.add("CPU time avg", _COLUMN, lambda e: format_time(e.cpu_time, unit))
    if options["device_total"]:
        whole = options["device_total"]
        columns.add("Self CUDA", _COLUMN, lambda e: format_time(e.self_device_time_total, unit))
        columns.add("Self CUDA %", _COLUMN, lambda e: format_share(e.self_device_time_total, whole))
        columns.add("CUDA total", _COLUMN, lambda e: format_time(e.device_time_total, unit))
        columns.add("CUDA time avg", _COLUMN, lambda e: format_time(e.device_time, unit))
    if options["profile_memory"]:
        columns.add("CPU Mem", _COLUMN, lambda e: format_memory(e.cpu_memory_usage))
        columns.add("Self CPU Mem", _COLUMN, lambda e: format_memory(e.self_cpu_memory_usage))
    columns.add("# of Calls", _COLUMN, lambda e: str(e.count))
    if any(e.input_shapes for e in events):
        limit_shapes = options["max_shapes_column_width"]
        columns.add(
            "Input Shapes",
            _column_width([str(e.input_shapes) for e in events], limit_shapes),
            lambda e: _shorten(str(e.input_shapes), limit_shapes),
        )
    if any(e.stack for e in events):
        limit_source = options["max_src_column_width"]
        width = _column_width([frame for e in events for frame in e.stack[:1]], limit_source)
        columns.add("Source Location", width, lambda e: _shorten(e.stack[0] if e.stack else "", limit_source))
    if options["with_flops"]:
        scale, prefix = _flops_scale(events)
        heading = f"Total {prefix}FLOPs"
        columns.add(heading, len(heading) + 2, lambda e: f"{e.flops / scale:.3f}" if e.flops else "--")
    return columns


def _sorted(events, sort_by):
    if sort_by is None:
        return list(events)
    if sort_by not in _SORT_KEYS:
        raise ValueError(f"sort_by should be one of {', '.join(sorted(_SORT_KEYS))}, but got {sort_by!r}")
    return sorted(events, key=lambda e: getattr(e, _SORT_KEYS[sort_by]), reverse=True)


def build_table(
    events,
    sort_by=None,
    header=None,
    row_limit=100,
    max_src_column_width=75,
    max_name_column_width=55,
    max_shapes_column_width=80,
    with_flops=False,
    profile_memory=False,
    top_level_events_only=False,
    time_unit=None,
):
    """The events as text: one row each, in the order asked for."""
    if not events:
        return ""
    options = dict(locals())
    # Of what runs inside of a range the range's own time is not counted again.
    total = sum(e.self_cpu_time_total for e in events)
    # What a device did is told twice: as an event of its own, and by the operator that asked for it.
    options["device_total"] = sum(
        e.self_device_time_total for e in events if e.device_type not in (None, DeviceType.CPU)
    )
    columns = _columns(events, total, options)
    lines = [columns.rule(), columns.line(columns.headings), columns.rule()]
    if header is not None:
        lines[:0] = ["-" * len(lines[0].rstrip()), header]
    shown = [e for e in _sorted(events, sort_by) if not (top_level_events_only and e.cpu_parent is not None)]
    lines += [columns.row(e) for e in (shown if row_limit < 0 else shown[:row_limit])]
    if top_level_events_only:
        lines.append("This report only display top-level ops statistics")
    lines += [columns.rule(), f"Self CPU time total: {format_time(total, time_unit)}"]
    if options["device_total"]:
        lines.append(f"Self CUDA time total: {format_time(options['device_total'], time_unit)}")
    return "\n".join(lines) + "\n"
