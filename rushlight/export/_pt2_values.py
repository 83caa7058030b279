"""Values as PyTorch's archives of programs write them: types as numbers, sizes with symbols, tensors."""

import ast
import math

import rushlight as torch

from .dynamic_shapes import Place

_DTYPES = {
    **dict(enumerate("uint8 int8 int16 int32 int64 float16 float32 float64".split(), 1)),
    **dict(enumerate("complex32 complex64 complex128 bool bfloat16".split(), 9)),
    **dict(enumerate("uint16 float8_e4m3fn float8_e5m2 float8_e4m3fnuz float8_e5m2fnuz".split(), 28)),
    **dict(enumerate("float8_e8m0fnu uint32 uint64".split(), 33)),
}
_LAYOUTS = dict(
    enumerate("sparse_coo sparse_csr sparse_csc sparse_bsr sparse_bsc _mkldnn strided".split(), 1)
)
_FORMATS = dict(enumerate("contiguous_format channels_last channels_last_3d preserve_format".split(), 1))
_INFINITIES = {"Infinity": math.inf, "-Infinity": -math.inf, "NaN": math.nan}


def _named(table, number, kind):
    found = getattr(torch, table.get(number, ""), None)
    if found is None:
        raise ValueError(f"the {kind} of number {number!r} is not known here")
    return found


def dtype_of(number):
    return _named(_DTYPES, number, "dtype")


def layout_of(number):
    return _named(_LAYOUTS, number, "layout")


def format_of(number):
    return _named(_FORMATS, number, "memory format")


def number_of(value):
    """The number that a dtype, layout or memory format has in archives."""
    table = {torch.dtype: _DTYPES, torch.layout: _LAYOUTS, torch.memory_format: _FORMATS}[type(value)]
    name = str(value).removeprefix("torch.")
    for number, known in table.items():
        if known == name:
            return number
    raise ValueError(f"{value} has no number in archives")


def device_of(record):
    return torch.device(record["type"], record.get("index"))


def device_record(device):
    return {"type": device.type, "index": device.index}


def float_of(value):
    return _INFINITIES[value] if isinstance(value, str) else float(value)


def float_record(value):
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


# PyTorch tells kinds of symbols by their first letter; sizes of inputs begin with s.
PREFIX = "s_"


def symbol_name(name):
    return name if name.startswith("s") else PREFIX + name


# --- sizes ------------------------------------------------------------------------------------------


class UnknownSize(Exception):
    """The size is known only when the program runs."""


def size_of(record):
    """A size in the example: the number itself, or what is noted beside an expression of symbols."""
    if "as_int" in record:
        return record["as_int"]
    hint = record["as_expr"].get("hint")
    if hint is None:
        raise UnknownSize(record["as_expr"]["expr_str"])
    return hint["as_int"]


def symbols_of(record):
    """The names of the symbols in a size."""
    if "as_expr" not in record:
        return set()
    calls = (n for n in ast.walk(_parsed(record)) if isinstance(n, ast.Call))
    return {c.args[0].value for c in calls if c.func.id == "Symbol"}


def place_of(record, leaf, dim):
    """A size as factor * symbol + offset; None if it is another function of symbols."""
    try:
        terms = _linear(_parsed(record).body)
    except _NotLinear:
        return None
    offset = terms.pop("", 0)
    if len(terms) != 1:
        return None
    ((symbol, factor),) = terms.items()
    return Place(leaf, dim, symbol, factor, offset) if factor > 0 else None


class _NotLinear(Exception):
    pass


def _parsed(record):
    return ast.parse(record["as_expr"]["expr_str"], mode="eval")


def _linear(node):
    """{symbol: factor}, with the constant under the empty name."""
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return {"": node.value}
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
        raise _NotLinear
    if node.func.id == "Symbol":
        return {node.args[0].value: 1}
    if node.func.id == "Integer":
        return {"": ast.literal_eval(node.args[0])}
    terms = [_linear(a) for a in node.args]
    if node.func.id == "Add":
        return {name: sum(t.get(name, 0) for t in terms) for name in {n for t in terms for n in t}}
    if node.func.id == "Mul":
        return _product(terms)
    raise _NotLinear


def _product(terms):
    varying = [t for t in terms if set(t) - {""}]
    if len(varying) > 1:
        raise _NotLinear
    factor = math.prod(t[""] for t in terms if not set(t) - {""})
    return {name: factor * c for name, c in (varying[0] if varying else {"": 1}).items()}


def size_record(value, polynomial=None):
    """A size for an archive; a polynomial of symbols says how it follows from the inputs'."""
    if polynomial is None or not any(polynomial.terms):
        return {"as_int": int(value)}
    terms = [_term_text(names, int(c)) for names, c in polynomial.terms.items()]
    text = terms[0] if len(terms) == 1 else f"Add({', '.join(terms)})"
    return {"as_expr": {"expr_str": text, "hint": {"as_int": int(value)}}}


def _term_text(names, factor):
    parts = [f"Symbol('{name}', positive=True, integer=True)" for name in sorted(names)]
    if factor != 1 or not parts:
        parts.insert(0, f"Integer({factor})")
    return parts[0] if len(parts) == 1 else f"Mul({', '.join(parts)})"


# --- tensors ----------------------------------------------------------------------------------------


def tensor_record(tensor, sizes=None):
    """What a tensor looks like; ``sizes`` are records in the place of its own."""
    return {
        "dtype": number_of(tensor.dtype),
        "sizes": sizes or [size_record(n) for n in tensor.shape],
        "requires_grad": tensor.requires_grad,
        "device": device_record(tensor.device),
        "strides": [size_record(n) for n in tensor.stride()],
        "storage_offset": size_record(tensor.storage_offset()),
        "layout": number_of(tensor.layout),
    }


def empty_like_record(record):
    """A tensor that looks as the record says, with the example's sizes."""
    made = torch.empty_strided(
        [size_of(s) for s in record["sizes"]],
        [size_of(s) for s in record["strides"]],
        dtype=dtype_of(record["dtype"]),
        device=device_of(record["device"]),
    )
    return made.requires_grad_() if record["requires_grad"] else made
