"""How tensors print."""

import math
from contextlib import contextmanager, nullcontext
from types import SimpleNamespace

import rushlight

__all__ = ["get_printoptions", "printoptions", "set_printoptions"]

PRINT_OPTS = SimpleNamespace(precision=4, threshold=1000, edgeitems=3, linewidth=80, sci_mode=None)

_PROFILES = {
    "default": {"precision": 4, "threshold": 1000, "edgeitems": 3, "linewidth": 80},
    "short": {"precision": 2, "threshold": 1000, "edgeitems": 2, "linewidth": 80},
    "full": {"precision": 4, "threshold": math.inf, "edgeitems": 3, "linewidth": 80},
}


def set_printoptions(
    precision=None, threshold=None, edgeitems=None, linewidth=None, profile=None, sci_mode=None
):
    """Set how tensors print.

    Args:
        precision: digits after the point.
        threshold: number of elements from which the middle is left out.
        edgeitems: elements shown at each end of a dimension then.
        linewidth: characters in a line.
        profile: "default", "short" or "full"; the other arguments override it. Others change nothing.
        sci_mode: True or False for or against scientific notation, None to choose by the values.
    """
    vars(PRINT_OPTS).update(_PROFILES.get(profile, {}))
    given = {"precision": precision, "threshold": threshold, "edgeitems": edgeitems, "linewidth": linewidth}
    vars(PRINT_OPTS).update((name, value) for name, value in given.items() if value is not None)
    PRINT_OPTS.sci_mode = sci_mode


def get_printoptions():
    """The current options as a dict."""
    return dict(vars(PRINT_OPTS))


@contextmanager
def printoptions(**kwargs):
    """Set options, as ``set_printoptions`` does, within a context."""
    before = get_printoptions()
    set_printoptions(**{**before, **kwargs})
    try:
        yield
    finally:
        vars(PRINT_OPTS).update(before)


class _PlainFormatter:
    """Integers and booleans, aligned to the right."""

    def __init__(self, values):
        self.width = max((len(str(v)) for v in values), default=1)

    def format(self, value):
        return str(value).rjust(self.width)


class _FloatFormatter:
    """Real numbers in one style for all: whole, fixed or scientific, as the range of the values asks."""

    def __init__(self, values):
        self.style, self.width = "whole", 1
        finite = [v for v in values if v != 0 and math.isfinite(v)]
        if not finite:
            return
        largest, smallest = max(map(abs, finite)), min(map(abs, finite))
        whole = all(v == math.ceil(v) for v in finite)
        wide = largest / smallest > 1000.0 or largest > 1e8 or (not whole and smallest < 1e-4)
        scientific = wide if PRINT_OPTS.sci_mode is None else PRINT_OPTS.sci_mode
        self.style = "scientific" if scientific else "whole" if whole else "fixed"
        self.width = max(len(self._text(v)) for v in finite)

    def _text(self, value):
        if self.style == "scientific":
            return f"{value:.{PRINT_OPTS.precision}e}"
        if self.style == "fixed":
            return f"{value:.{PRINT_OPTS.precision}f}"
        return f"{value:.0f}." if math.isfinite(value) else f"{value:.0f}"

    def format(self, value):
        return self._text(value).rjust(self.width)


class _ComplexFormatter:
    """Real and imaginary part, each in the style of its kind."""

    def __init__(self, values):
        self._real = _FloatFormatter([v.real for v in values])
        self._imag = _FloatFormatter([v.imag for v in values])
        self.width = self._real.width + self._imag.width + 1

    def format(self, value):
        real, imag = self._real.format(value.real), self._imag.format(value.imag).lstrip()
        return f"{real}{'' if imag[0] in '+-' else '+'}{imag}j"


def _shown(tensor, summarize):
    """The values to print as nested lists, with an Ellipsis where some are left out."""
    edge = PRINT_OPTS.edgeitems
    if not summarize or tensor.dim() == 0:
        return tensor.tolist()
    n = tensor.size(0)
    cut = n > 2 * edge
    if tensor.dim() == 1:
        return tensor[:edge].tolist() + [...] + tensor[n - edge :].tolist() if cut else tensor.tolist()
    if not cut:
        return [_shown(tensor[i], True) for i in range(n)]
    head, tail = range(edge), range(n - edge, n)
    return [_shown(tensor[i], True) for i in head] + [...] + [_shown(tensor[i], True) for i in tail]


def _leaves(values):
    if isinstance(values, list):
        for v in values:
            yield from _leaves(v)
    elif values is not ...:
        yield values


def _layout(values, depth, formatter, indent):
    """Nested lists as lines of text within the line width."""
    if depth == 0:
        return formatter.format(values)
    if depth > 1:
        parts = ["..." if v is ... else _layout(v, depth - 1, formatter, indent + 1) for v in values]
        return "[" + ("," + "\n" * (depth - 1) + " " * (indent + 1)).join(parts) + "]"
    texts = [" ..." if v is ... else formatter.format(v) for v in values]
    per_line = max(1, (PRINT_OPTS.linewidth - indent) // (formatter.width + 2))
    lines = [", ".join(texts[i : i + per_line]) for i in range(0, len(texts), per_line)]
    return "[" + (",\n" + " " * (indent + 1)).join(lines) + "]"


def _kind_of(tensor):
    if tensor.is_complex():
        return _ComplexFormatter
    return _FloatFormatter if tensor.is_floating_point() else _PlainFormatter


class _Formatter:
    """How one number prints among those of a tensor; packages align their own output by it."""

    def __init__(self, tensor):
        self._of_kind = _kind_of(tensor)(list(_leaves(tensor.detach().reshape(-1).tolist())))

    def width(self):
        return self._of_kind.width

    def format(self, value):
        return self._of_kind.format(value)


def _contents(tensor, indent):
    if tensor.numel() == 0:
        return "[]"
    summarize = tensor.numel() > PRINT_OPTS.threshold
    values = _shown(tensor, summarize)
    return _layout(values, tensor.dim(), _kind_of(tensor)(list(_leaves(values))), indent)


_tensor_str = _contents  # the name by which packages print values alone
_COMPLEX_OF = {"float16": "complex32", "float32": "complex64", "float64": "complex128"}


def _is_default_dtype(dtype):
    default = rushlight.get_default_dtype()
    if dtype in (default, rushlight.int64, rushlight.bool):
        return True
    return str(dtype).rpartition(".")[2] == _COMPLEX_OF.get(str(default).rpartition(".")[2])


def _suffixes(tensor):
    """What follows the values: whatever is not as one would assume."""
    suffixes, dtype = [], tensor.dtype
    if tensor.is_quantized:
        return _quantized_suffixes(tensor)
    if tensor.device.type != "cpu":
        suffixes.append(f"device='{tensor.device}'")
    if tensor.is_meta or tensor.numel() == 0:
        if tensor.is_meta or tensor.dim() != 1:
            suffixes.append(f"size={tuple(tensor.shape)}")
        if dtype != rushlight.get_default_dtype():
            suffixes.append(f"dtype={dtype}")
    elif not _is_default_dtype(dtype):
        suffixes.append(f"dtype={dtype}")
    if tensor.layout != rushlight.strided:
        suffixes.append(f"layout={tensor.layout}")
    if tensor.requires_grad:
        suffixes.append(_grad_suffix(tensor))
    if rushlight._C._dual_level_depth() and (tangent := rushlight._C._unpack_dual(tensor)[1]) is not None:
        suffixes.append(f"tangent={tangent}")
    return suffixes


def _quantized_suffixes(tensor):
    """What integers stand for."""
    parts = {"size": tuple(tensor.shape), "dtype": tensor.dtype, "quantization_scheme": tensor.qscheme()}
    if tensor.qscheme() == rushlight.per_tensor_affine:
        parts.update(scale=tensor.q_scale(), zero_point=tensor.q_zero_point())
    else:
        parts.update(
            scale=tensor.q_per_channel_scales(),
            zero_point=tensor.q_per_channel_zero_points(),
            axis=tensor.q_per_channel_axis(),
        )
    return [f"{name}={value}" for name, value in parts.items()]


def _grad_suffix(tensor):
    try:
        grad_fn = tensor.grad_fn
    except RuntimeError:  # a view whose base was changed in a forbidden way has no valid node
        return "grad_fn=<Invalid>"
    return "requires_grad=True" if grad_fn is None else f"grad_fn=<{type(grad_fn).__name__}>"


def _with_suffixes(text, suffixes, indent, force_newline=False):
    length = len(text) - text.rfind("\n") + 1
    for i, suffix in enumerate(suffixes):
        if (force_newline and i == 0) or length + len(suffix) + 2 > PRINT_OPTS.linewidth:
            text += ",\n" + " " * indent + suffix
            length = indent + len(suffix)
        else:
            text += ", " + suffix
            length += len(suffix) + 2
    return text + ")"


_add_suffixes = _with_suffixes  # the name by which subclasses of packages print theirs


_BITS = {f"{kind}{bits}" for kind in ("int", "uint") for bits in range(1, 8)}


def _numbers(tensor):
    """What to print for a tensor whose elements are no plain numbers: what they stand for, or their bits."""
    if tensor.is_quantized:
        return tensor.dequantize()
    name = str(tensor.dtype).rpartition(".")[2]
    if name in _BITS or name.startswith(("bits", "float4")):
        return tensor.view(rushlight.uint16 if tensor.dtype.itemsize == 2 else rushlight.uint8)
    return tensor


def _no_modes():
    """Printing reads numbers; no mode, one of fake tensors for instance, has a say in it."""
    if not rushlight._C._len_torch_dispatch_stack():
        return nullcontext()
    from rushlight.utils._python_dispatch import _disable_current_modes

    return _disable_current_modes()


def _str(self, *, tensor_contents=None):
    """The repr of a tensor."""
    functorch = rushlight._C._functorch
    if functorch.is_functorch_wrapped_tensor(self):
        return _transformed(self, functorch)
    plain = type(self) is rushlight.Tensor or _is_parameter(type(self))
    prefix = "tensor(" if plain else type(self).__name__ + "("
    suffixes = _suffixes(self)
    if tensor_contents is None:
        with rushlight.no_grad(), _no_modes():
            if self.layout != rushlight.strided:
                return _sparse_str(self.detach(), prefix, suffixes)
            tensor_contents = "..." if self.is_meta else _contents(_bare(_numbers(self)), len(prefix))
    text = _with_suffixes(prefix + tensor_contents, suffixes, len(prefix))
    return f"Parameter({text})" if not plain and _is_flagged_parameter(self) else text


_str_intern = _str


_PARTS = {
    "torch.sparse_coo": ("_indices", "_values"),
    "torch.sparse_csr": ("crow_indices", "col_indices", "values"),
    "torch.sparse_csc": ("ccol_indices", "row_indices", "values"),
    "torch.sparse_bsr": ("crow_indices", "col_indices", "values"),
    "torch.sparse_bsc": ("ccol_indices", "row_indices", "values"),
}


def _sparse_str(tensor, prefix, suffixes):
    """The parts of a sparse tensor, one below the other."""
    texts = []
    for part in _PARTS[str(tensor.layout)]:
        name, content = part.lstrip("_"), getattr(tensor, part)()
        head = f"{name}=tensor("
        indent = len(prefix) + len(head)
        text = head + _contents(_bare(content), indent)
        shown = [f"size={tuple(content.shape)}"] if content.numel() == 0 else []
        texts.append(_with_suffixes(text, shown, indent))
    text = prefix + (",\n" + " " * len(prefix)).join(texts)
    facts = [f"size={tuple(tensor.shape)}", f"nnz={tensor._nnz()}", *suffixes]
    return _with_suffixes(text, facts, len(prefix), force_newline=tensor.layout == rushlight.sparse_coo)


def _transformed(tensor, functorch):
    """A tensor inside a function transform, with what it stands for."""
    level = functorch.maybe_get_level(tensor)
    inner = functorch.get_unwrapped(tensor)
    text = "\n".join("    " + line for line in repr(inner).split("\n"))
    if functorch.is_batchedtensor(tensor):
        place = f"lvl={level}, bdim={functorch.maybe_get_bdim(tensor)}"
        return f"BatchedTensor({place}, value=\n{text}\n)"
    place = f"lvl={level}" if level >= 0 else "dead"
    return f"GradTrackingTensor({place}, value=\n{text}\n)"


def _is_parameter(cls):
    """Asked without importing ``nn``: printing a tensor does not need it."""
    return cls.__name__ == "Parameter" and cls.__module__.endswith("nn.parameter")


def _is_flagged_parameter(tensor):
    """Whether a tensor of a class of its own is a parameter: by its class or by its flag."""
    return any(map(_is_parameter, type(tensor).__mro__)) or getattr(tensor, "_is_param", False) is True


def _bare(tensor):
    """The values as a plain tensor, in a dtype that Python has numbers for."""
    tensor = tensor.detach()
    if type(tensor) is not rushlight.Tensor:
        tensor = tensor.as_subclass(rushlight.Tensor)
    return tensor.float() if str(tensor.dtype).startswith("torch.float8") else tensor
