"""``make_tensor``: random tensors for tests."""

import math

import rushlight

_INTEGER_RANGE = {
    "uint8": (0, 2**8),
    "uint16": (0, 2**16),
    "uint32": (0, 2**32),
    "uint64": (0, 2**64),
    "int8": (-(2**7), 2**7),
    "int16": (-(2**15), 2**15),
    "int32": (-(2**31), 2**31),
    "int64": (-(2**63), 2**63),
}


def make_tensor(
    *shape,
    dtype,
    device,
    low=None,
    high=None,
    requires_grad=False,
    noncontiguous=False,
    exclude_zero=False,
    memory_format=None,
):
    """A tensor with values drawn evenly from ``[low, high)``; by default about -9 to 9, as far as the
    dtype goes."""
    if len(shape) == 1 and not isinstance(shape[0], int):
        shape = tuple(shape[0])
    inexact = dtype.is_floating_point or dtype.is_complex
    if noncontiguous and memory_format is not None:
        raise ValueError(
            "The parameters `noncontiguous` and `memory_format` are mutually exclusive, "
            f"but got noncontiguous={noncontiguous} and memory_format={memory_format}"
        )
    if requires_grad and not inexact:
        raise ValueError(
            f"`requires_grad=True` is not supported for boolean and integral dtypes, but got dtype={dtype}"
        )
    low, high = _interval(dtype, low, high)
    spread = noncontiguous and math.prod(shape) > 1
    result = _draw((*shape[:-1], shape[-1] * 2) if spread else shape, dtype, device, low, high)
    if spread:
        result = result[..., 1::2]
    elif memory_format is not None:
        result = result.clone(memory_format=memory_format)
    if exclude_zero:
        result[result == 0] = rushlight.finfo(dtype).tiny if inexact else 1
    return result.requires_grad_(requires_grad)


def _interval(dtype, low, high):
    name = str(dtype).rpartition(".")[2]
    if dtype.is_floating_point or dtype.is_complex:
        largest = rushlight.finfo(dtype).max
        default, bounds = (-9, 9), (-largest, largest)
    elif name == "bool":
        default = bounds = (0, 2)
    else:
        bounds = _INTEGER_RANGE[name]
        default = (max(-9, bounds[0]), 10)
    low, high = default[0] if low is None else low, default[1] if high is None else high
    if any(isinstance(end, float) and math.isnan(end) for end in (low, high)):
        raise ValueError(f"`low` and `high` cannot be NaN, but got low={low} and high={high}")
    if low == high and (dtype.is_floating_point or dtype.is_complex):
        import warnings

        warnings.warn(
            "Passing `low==high` to `torch.testing.make_tensor` for floating or complex types is deprecated "
            "since 2.1 and will be removed in 2.3. Usage of `low==high` can be replaced by `torch.full`.",
            FutureWarning,
            stacklevel=3,
        )
    elif low >= high:
        raise ValueError(f"`low` must be less than `high`, but got {low} >= {high}")
    if low >= bounds[1] or high <= bounds[0]:
        end = "]" if dtype.is_floating_point or dtype.is_complex else ")"
        raise ValueError(
            f"The value interval specified by `low` and `high` is [{low}, {high}), "
            f"but {dtype} only supports [{bounds[0]}, {bounds[1]}{end}"
        )
    low, high = max(low, bounds[0]), min(high, bounds[1])
    return (low, high) if dtype.is_floating_point or dtype.is_complex else (math.ceil(low), math.ceil(high))


def _draw(shape, dtype, device, low, high):
    if dtype.is_complex:
        result = rushlight.empty(shape, dtype=dtype, device=device)
        rushlight.view_as_real(result).uniform_(low, high)
        return result
    if dtype.is_floating_point:
        if dtype.itemsize == 1:
            return rushlight.empty(shape, device=device).uniform_(low, high).to(dtype)
        result = rushlight.empty(shape, dtype=dtype, device=device)
        return result.fill_(low) if low == high else result.uniform_(low, high)
    if dtype in (rushlight.uint16, rushlight.uint32, rushlight.uint64):
        high = min(high, 2**63 - 1)
        return rushlight.randint(low, high, shape, dtype=rushlight.int64, device=device).to(dtype)
    return rushlight.randint(low, high, shape, dtype=dtype, device=device)
