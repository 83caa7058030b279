"""Cases of the fuzzer: an operator's sample row, varied in dtype, layout, sizes and values."""

import random
import sys
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python" / "ops"))

from engine import maker  # noqa: E402
from loader import RECORDS, ROWS, refusal  # noqa: E402

FLOATS = ("float16", "bfloat16", "float32", "float64")
OTHERS = ("bool", "uint8", "int8", "int16", "int32", "int64", "complex64", "complex128")
LAYOUTS = ("contiguous", "transposed", "strided", "offset", "expanded")
SPECIAL = (0.0, -0.0, 1.0, -1.0, 0.5, 1e-3, 1e4, float("inf"), float("-inf"), float("nan"))
USABLE = [row for row in ROWS if refusal(row, "fuzz") is None]


@dataclass(frozen=True)
class Operand:
    """One tensor: an array, the dtype it gets and how it lies in memory."""

    array: np.ndarray
    dtype: str
    layout: str = "contiguous"


@dataclass(frozen=True)
class Case:
    name: str
    args: tuple
    kwargs: dict
    seed: str


def is_pointwise(name):
    records = RECORDS.get(name, [])
    return bool(records) and all(r["family"] == "pointwise" for r in records)


def make(seed, index):
    """The case of that number; the same on every machine."""
    rng = random.Random(f"{seed}/{index}")
    row = rng.choice(USABLE)
    dtype = rng.choice(row.dtypes if rng.random() < 0.3 else FLOATS if rng.random() < 0.6 else OTHERS)
    numbers = maker(row, "float64" if dtype in FLOATS else dtype, rng.randrange(1 << 16))
    sample = rng.choice(list(row.samples(numbers)))
    free = is_pointwise(row.name)
    vary = lambda value: varied(value, dtype, rng, free)
    args = tuple(map(vary, sample.args))
    return Case(row.name, args, {k: vary(v) for k, v in sample.kwargs.items()}, f"{seed}/{index}")


def varied(value, dtype, rng, free):
    """Arrays become operands; where an operator takes any shapes and values, those change too."""
    if isinstance(value, (list, tuple)) and any(isinstance(v, np.ndarray) for v in value):
        return type(value)(varied(v, dtype, rng, free) for v in value)
    if isinstance(value, np.generic):
        value = np.asarray(value)
    if not isinstance(value, np.ndarray):
        return value
    index_like = value.dtype.kind in "ib" and dtype in FLOATS + ("complex64", "complex128")
    kind = str(value.dtype) if index_like else dtype
    if free and rng.random() < 0.1:
        kind = rng.choice(FLOATS + OTHERS)
    if free:
        value = resized(value, rng)
    if free and rng.random() < 0.15 and value.dtype.kind == "f" and value.size:
        value = value.copy()
        value.flat[rng.randrange(value.size)] = rng.choice(SPECIAL)
    return Operand(value, kind, rng.choice(LAYOUTS) if rng.random() < 0.6 else "contiguous")


def resized(value, rng):
    """Some dimension cut to one element, to none, or repeated, or one more in front."""
    if value.ndim and rng.random() < 0.3:
        axis = rng.randrange(value.ndim)
        count = rng.choice((0, 1, 1, 1, value.shape[axis]))
        value = value.take(range(min(count, value.shape[axis])), axis)
    if rng.random() < 0.1:
        value = value[None]
    if value.ndim and rng.random() < 0.05:
        value = np.repeat(value, 40, axis=-1)  # past the width of vectors
    return value


def laid_out(module, operand):
    """The operand as a tensor of a library."""
    array = operand.array
    if operand.dtype.startswith(("uint", "int", "bool")):
        with np.errstate(all="ignore"):
            array = np.nan_to_num(array.real if array.dtype.kind == "c" else array, posinf=3, neginf=-3)
            array = np.abs(array) if operand.dtype.startswith("u") else array
    if array.dtype.kind == "c" and not operand.dtype.startswith("complex"):
        array = array.real
    t = module.tensor(array.tolist(), dtype=getattr(module, operand.dtype)).reshape(array.shape)
    if operand.layout == "transposed" and t.dim() > 1:
        return t.transpose(0, -1).contiguous().transpose(0, -1)
    if operand.layout == "strided":
        wide = module.zeros(*t.shape, 2, dtype=t.dtype)
        wide[..., 0] = t
        return wide[..., 0]
    if operand.layout == "offset":
        room = module.zeros(t.numel() + 3, dtype=t.dtype)
        room[3:] = t.reshape(-1)
        return room[3:].view(t.shape)
    if operand.layout == "expanded" and t.dim() and t.shape[0] > 1 and array.size:
        return t[:1].expand(t.shape)
    return t


def tensors(module, value):
    if isinstance(value, Operand):
        return laid_out(module, value)
    if isinstance(value, (list, tuple)):
        return type(value)(tensors(module, v) for v in value)
    if isinstance(value, str) and value.startswith("dtype:"):
        return getattr(module, value[6:])
    return value


# --- shrinking ----------------------------------------------------------------------------------


def simpler(operand):
    """Operands with less to look at."""
    if operand.layout != "contiguous":
        yield replace(operand, layout="contiguous")
    for axis, size in enumerate(operand.array.shape):
        if size > 1:
            yield replace(operand, array=operand.array.take(range(size // 2), axis))
            yield replace(operand, array=operand.array.take(range(size // 2, size), axis))
    if operand.array.dtype.kind == "f" and operand.array.size:
        rounded = np.round(operand.array)
        if not np.array_equal(rounded, operand.array, equal_nan=True):
            yield replace(operand, array=rounded)


def smaller(value):
    if isinstance(value, Operand):
        yield from simpler(value)
    elif isinstance(value, (list, tuple)) and any(isinstance(v, Operand) for v in value):
        for i, v in enumerate(value):
            for new in smaller(v):
                yield type(value)([*value[:i], new, *value[i + 1 :]])


def shrunk(case, fails, attempts=200):
    """The smallest case that still fails which one change at a time leads to."""
    progress = True
    while progress and attempts > 0:
        progress = False
        candidates = [
            replace(case, kwargs={k: v for k, v in case.kwargs.items() if k != key}) for key in case.kwargs
        ]
        for i, value in enumerate(case.args):
            candidates += [
                replace(case, args=(*case.args[:i], v, *case.args[i + 1 :])) for v in smaller(value)
            ]
        for candidate in candidates:
            attempts -= 1
            if attempts > 0 and fails(candidate):
                case, progress = candidate, True
                break
    return case


def program(case):
    """The case as lines that can be pasted."""

    def text(value):
        if isinstance(value, Operand):
            t = f"torch.tensor({value.array.tolist()}, dtype=torch.{value.dtype})"
            if value.array.size == 0:
                t += f".reshape({value.array.shape})"
            return t + ("" if value.layout == "contiguous" else f"  # {value.layout}\n")
        if isinstance(value, (list, tuple)):
            inner = ", ".join(map(text, value))
            return f"[{inner}]" if isinstance(value, list) else f"({inner},)"
        return f"torch.{value[6:]}" if isinstance(value, str) and value.startswith("dtype:") else repr(value)

    given = [*map(text, case.args), *(f"{k}={text(v)}" for k, v in case.kwargs.items())]
    call = f"torch.{case.name}" if not case.name.startswith("Tensor.") else f"torch.Tensor.{case.name[7:]}"
    return f"{call}({', '.join(given)})  # case {case.seed}"
