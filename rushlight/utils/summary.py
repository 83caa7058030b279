"""What a model consists of: for every module the shape of its result, its parameters, its arithmetic, and the
memory that all this takes."""

from contextlib import ExitStack
from dataclasses import dataclass, field

import rushlight
from rushlight.utils import _pytree
from rushlight.utils.flop_counter import FlopCounterMode

__all__ = ["ModelSummary", "Row", "summary"]


@dataclass
class Row:
    """One call of one module."""

    path: str
    kind: str
    depth: int
    inputs: list = field(default_factory=list)  # shapes
    outputs: list = field(default_factory=list)
    parameters: int = 0  # its own, not its children's
    trainable: int = 0
    multiply_adds: int = 0  # its children's included
    output_bytes: int = 0
    is_leaf: bool = True
    is_again: bool = False  # its parameters have been counted in a row above


@dataclass
class ModelSummary:
    """The rows in the order of the calls, and their sums. Prints as a table."""

    rows: list
    total_params: int
    trainable_params: int
    total_mult_adds: int
    input_bytes: int
    forward_bytes: int  # results of the modules that have no children: what training keeps, roughly
    param_bytes: int
    depth: int = 3

    @property
    def total_bytes(self):
        return self.input_bytes + self.forward_bytes + self.param_bytes

    def __str__(self):
        return _table(self)

    __repr__ = __str__


def _shapes(value):
    return [tuple(t.shape) for t in _tensors(value)]


def _tensors(value):
    return [leaf for leaf in _pytree.tree_leaves(value) if isinstance(leaf, rushlight.Tensor)]


def _bytes(tensors):
    return sum(t.numel() * t.element_size() for t in tensors)


class _Recorder:
    """Hooks on every module that make its rows."""

    def __init__(self, model, counter):
        self.rows, self.counter, self.open = [], counter, []
        self.counted_modules, self.counted_parameters = set(), set()
        self.handles = []
        for path, module in model.named_modules():
            self.handles.append(module.register_forward_pre_hook(self._before(path), with_kwargs=True))
            self.handles.append(module.register_forward_hook(self._after, always_call=False))

    def _before(self, path):
        def hook(module, args, kwargs):
            row = Row(path or "(model)", type(module).__name__, len(self.open), _shapes((args, kwargs)))
            row.is_again = module in self.counted_modules
            row.is_leaf = next(module.children(), None) is None
            self.counted_modules.add(module)
            for p in module.parameters(recurse=False):
                if p in self.counted_parameters or isinstance(p, rushlight.nn.UninitializedParameter):
                    continue
                self.counted_parameters.add(p)
                row.parameters += p.numel()
                row.trainable += p.numel() if p.requires_grad else 0
            self.rows.append(row)
            self.open.append((row, self.counter.get_total_flops()))

        return hook

    def _after(self, module, args, output):
        row, flops = self.open.pop()
        row.multiply_adds = (self.counter.get_total_flops() - flops) // 2
        row.outputs, row.output_bytes = _shapes(output), _bytes(_tensors(output))

    def remove(self):
        for handle in self.handles:
            handle.remove()


def _make_inputs(model, input_size, dtypes, device):
    """Random tensors of the given sizes: one size, or a list of them."""
    sizes = [input_size] if all(isinstance(n, int) for n in input_size) else list(input_size)
    if device is None:
        first = next(model.parameters(), None)
        device = first.device if first is not None else rushlight.get_default_device()
    dtypes = dtypes or [rushlight.get_default_dtype()] * len(sizes)
    dtypes = [dtypes] * len(sizes) if isinstance(dtypes, rushlight.dtype) else dtypes
    if len(dtypes) != len(sizes):
        raise ValueError(f"summary: got {len(sizes)} sizes, but {len(dtypes)} dtypes")
    return [
        rushlight.rand(size, device=device).to(dtype)
        if dtype.is_floating_point or dtype.is_complex
        else rushlight.zeros(size, dtype=dtype, device=device)
        for size, dtype in zip(sizes, dtypes)
    ]


def _run(model, args, kwargs):
    """The rows of one call, which leaves the model and the random numbers as they were."""
    modes = {module: module.training for module in model.modules()}
    counter = FlopCounterMode(display=False)
    with ExitStack() as stack:
        stack.enter_context(rushlight.random.fork_rng())
        stack.enter_context(rushlight.no_grad())
        recorder = _Recorder(model, counter)
        stack.callback(recorder.remove)
        for module, mode in modes.items():
            stack.callback(setattr, module, "training", mode)
        model.eval()
        stack.enter_context(counter)
        model(*args, **kwargs)
    return recorder.rows


def summary(model, input_size=None, *, input_data=None, dtypes=None, device=None, depth=3):
    """Call a model once, in evaluation mode and without gradients, and tell what it consists of.

    Args:
        input_size: the size of the input with its batch dimension, or a list of sizes for several inputs;
            a tensor, or several, is taken for ``input_data``.
        input_data: instead of a size the input itself: a tensor, a tuple of arguments or a dict of them.
            With neither, only parameters are listed.
        dtypes: of the inputs that are made up.
        depth: how many levels of modules the table shows.

    >>> print(torch.summary(model, (1, 3, 224, 224)))
    """
    if input_size is not None and input_data is not None:
        raise ValueError("summary: give input_size or input_data, not both")
    if _tensors(input_size):
        input_size, input_data = None, input_size
    args, kwargs = (), {}
    if isinstance(input_data, dict):
        kwargs = input_data
    elif input_data is not None:
        args = tuple(input_data) if isinstance(input_data, (tuple, list)) else (input_data,)
    elif input_size is not None:
        with rushlight.random.fork_rng():
            args = tuple(_make_inputs(model, input_size, dtypes, device))
    called = input_size is not None or input_data is not None
    rows = _run(model, args, kwargs) if called else _without_call(model)
    parameters = [p for p in model.parameters() if not isinstance(p, rushlight.nn.UninitializedParameter)]
    return ModelSummary(
        rows=rows,
        total_params=sum(p.numel() for p in parameters),
        trainable_params=sum(p.numel() for p in parameters if p.requires_grad),
        total_mult_adds=rows[0].multiply_adds if called else 0,
        input_bytes=_bytes(_tensors((args, kwargs))),
        forward_bytes=sum(row.output_bytes for row in rows if row.is_leaf),
        param_bytes=_bytes(parameters),
        depth=depth,
    )


def _without_call(model):
    recorder = _Recorder(model, FlopCounterMode(display=False))
    recorder.remove()
    for path, module in model.named_modules():
        recorder._before(path)(module, (), {})
        recorder.rows[-1].depth = path.count(".") + 1 if path else 0
    return recorder.rows


# --- the table

_HEADINGS = ("Module", "Output shape", "Parameters", "Multiply-adds")


def _cells(row):
    shapes = ", ".join(str(list(shape)) for shape in row.outputs) or "--"
    own = "(again)" if row.is_again else f"{row.parameters:,}" if row.parameters else "--"
    name = "  " * row.depth + f"{row.path.rpartition('.')[2]} ({row.kind})"
    return name, shapes, own, f"{row.multiply_adds:,}" if row.multiply_adds else "--"


def _size(count):
    for exponent, unit in ((3, "GB"), (2, "MB"), (1, "kB")):
        if count >= 1000**exponent:
            return f"{count / 1000**exponent:.2f} {unit}"
    return f"{count} bytes"


def _table(result):
    rows = [_cells(row) for row in result.rows if row.depth <= result.depth]
    widths = [max(len(cells[i]) for cells in [_HEADINGS, *rows]) for i in range(4)]

    def line(cells):
        left = "  ".join(cell.ljust(width) for cell, width in zip(cells[:2], widths))
        return left + "  " + "  ".join(cell.rjust(width) for cell, width in zip(cells[2:], widths[2:]))

    rule = "=" * (sum(widths) + 6)
    frozen = result.total_params - result.trainable_params
    return "\n".join(
        [
            rule,
            line(_HEADINGS),
            rule,
            *(line(cells).rstrip() for cells in rows),
            rule,
            f"Parameters: {result.total_params:,} ({result.trainable_params:,} trainable, {frozen:,} frozen)",
            f"Multiply-adds: {result.total_mult_adds:,}",
            f"Memory: {_size(result.total_bytes)} (input {_size(result.input_bytes)}, results "
            f"{_size(result.forward_bytes)}, parameters {_size(result.param_bytes)})",
            rule,
        ]
    )
