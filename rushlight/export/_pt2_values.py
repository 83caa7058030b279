"""Values as PyTorch's archives of programs write them: types as numbers, sizes with symbols, tensors."""

import math

import rushlight as torch

from ._pt2_sizes import SizeWriter

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
_PLAIN = SizeWriter({})
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


# --- tensors ----------------------------------------------------------------------------------------


def tensor_record(tensor, shapes=_PLAIN):
    """What a tensor looks like; ``shapes`` writes its sizes and strides."""
    sizes, strides = shapes.shape(tensor)
    return {
        "dtype": number_of(tensor.dtype),
        "sizes": sizes,
        "requires_grad": tensor.requires_grad,
        "device": device_record(tensor.device),
        "strides": strides,
        "storage_offset": {"as_int": tensor.storage_offset()},
        "layout": number_of(tensor.layout),
    }


def empty_like_record(record, size_of):
    """A tensor that looks as the record says, with the sizes that ``size_of`` reads."""
    made = torch.empty_strided(
        [int(size_of(s)) for s in record["sizes"]],
        [int(size_of(s)) for s in record["strides"]],
        dtype=dtype_of(record["dtype"]),
        device=device_of(record["device"]),
    )
    return made.requires_grad_() if record["requires_grad"] else made
