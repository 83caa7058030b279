"""Runs rows: turns samples into tensors of either library, and compares."""

import functools
import gzip
import hashlib
import importlib.util
import json
import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from rows import Given, Quantized, Sparse

import rushlight

DEVICE = os.environ.get("RUSHLIGHT_TEST_DEVICE")  # where our side computes; see test_device.py
GOLDEN = Path(__file__).with_name("golden.json.gz")
HAVE_ORACLE = importlib.util.find_spec("torch") is not None
TOLERANCE = {
    "float16": (2e-3, 1e-3),
    "bfloat16": (1.6e-2, 1e-5),
    "float32": (1.3e-6, 1e-5),
    "float64": (1e-7, 1e-7),
    "complex64": (1.3e-6, 1e-5),
    "complex128": (1e-7, 1e-7),
}


@functools.cache
def oracle():
    """PyTorch, or None where it is not installed."""
    if not HAVE_ORACLE:
        return None
    import torch

    return None if torch is rushlight else torch


def maker(row, dtype, seed=0):
    """make(*shape, low=, high=): an array in the row's domain."""
    rng = np.random.default_rng(_seed(row.name, seed))

    def make(*shape, low=None, high=None):
        low = row.domain[0] if low is None else low
        high = row.domain[1] if high is None else high
        if dtype == "bool":
            return np.asarray(rng.random(shape) < 0.5)
        if dtype in ("float16", "bfloat16", "float32", "float64"):
            return np.asarray(rng.uniform(low, high, shape))
        if dtype.startswith("complex"):
            return np.asarray(rng.uniform(low, high, shape) + 1j * rng.uniform(low, high, shape))
        low, high = int(np.ceil(low)), int(np.floor(high))
        low = max(low, 0) if dtype.startswith("u") else low
        return np.asarray(rng.integers(low, max(high, 1) + 1, shape))

    return make


def _seed(name, seed):
    return sum(ord(c) * 31**i for i, c in enumerate(name)) % 2**31 + seed


def to_tensor(module, array, dtype, requires_grad=False):
    values = array.tolist() if isinstance(array, np.ndarray) else array
    t = module.tensor(values, dtype=getattr(module, dtype))
    if isinstance(array, np.ndarray) and t.shape != array.shape:
        t = t.reshape(array.shape)
    if DEVICE and module is rushlight:
        t = t.to(DEVICE)
    return t.requires_grad_() if requires_grad else t


def convert(module, value, dtype, requires_grad=False, layout=None):
    """Arrays become tensors: of `dtype` when they hold numbers of its kind, of their own type otherwise."""
    if isinstance(value, Sparse):
        dense = convert(module, value.values, dtype)
        return getattr(dense, f"to_sparse_{value.layout}")(*value.args)
    if isinstance(value, Quantized):
        x, kind = module.tensor(value.values.tolist()), getattr(module, value.dtype)
        if value.axis is None:
            return module.quantize_per_tensor(x, value.scale, value.zero_point, kind)
        parts = module.tensor(value.scale), module.tensor(value.zero_point)
        return module.quantize_per_channel(x, *parts, value.axis, kind)
    if isinstance(value, np.ndarray):
        own = str(value.dtype)
        keep = own == "bool" or (own.startswith("int") and not dtype.startswith(("int", "uint")))
        keep |= own.startswith("complex") and not dtype.startswith("complex")
        kind = own if keep else dtype
        tensor = to_tensor(module, value, kind, requires_grad and not keep)
        return layout(tensor) if layout and not keep else tensor
    if isinstance(value, (list, tuple)) and any(isinstance(v, (np.ndarray, Quantized)) for v in value):
        return type(value)(convert(module, v, dtype, requires_grad, layout) for v in value)
    if isinstance(value, str) and value.startswith("dtype:"):
        return getattr(module, value[6:])
    return value


def arguments(module, sample, dtype, **options):
    args = tuple(convert(module, a, dtype, **options) for a in sample.args)
    return args, {k: convert(module, v, dtype, **options) for k, v in sample.kwargs.items()}


def resolve(module, name):
    """The function of that name, a "Tensor.x" being called as a method or read as an attribute.

    Each call draws the same random numbers. An in-place form writes to a copy, which it gives back.
    """
    method = name.startswith("Tensor.")
    found = getattr(module.Tensor, name[7:]) if method else functools.reduce(getattr, name.split("."), module)
    attribute = method and not callable(found)
    writes = name.endswith("_") and not name.endswith("__")

    def call(*args, **kwargs):
        module.manual_seed(0)
        if writes:
            args = (_copied(args[0]), *args[1:])
        if not method:
            result = found(*args, **kwargs)
        else:  # by the operand's own class, which may be another
            result = getattr(args[0], name[7:])
            result = result if attribute else result(*args[1:], **kwargs)
        return args[0] if writes and result is None else result

    return call


def _copied(value):
    return [v.clone() for v in value] if isinstance(value, (list, tuple)) else value.clone()


def flatten(result):
    """The tensors and numbers of a result."""
    if isinstance(result, (list, tuple)):
        return [leaf for item in result for leaf in flatten(item)]
    return [result]


def tensors_in(result):
    return [leaf for leaf in flatten(result) if hasattr(leaf, "requires_grad")]


def variables(module, row, sample, dtype):
    """The sample's floating operands as leaves, and the operator as a function of these."""
    leaves = []

    def take(value):
        if isinstance(value, np.ndarray):
            tensor = convert(module, value, dtype)
            if isinstance(value, Given) or not (tensor.is_floating_point() or tensor.is_complex()):
                return tensor
            leaves.append(tensor.requires_grad_())
            return _Place(len(leaves) - 1)
        if isinstance(value, (list, tuple)):
            return type(value)(map(take, value))
        if isinstance(value, dict):
            return {k: take(v) for k, v in value.items()}
        return convert(module, value, dtype)

    def put(value, tensors):
        if isinstance(value, _Place):
            return tensors[value.index]
        if isinstance(value, (list, tuple)):
            return type(value)(put(v, tensors) for v in value)
        return {k: put(v, tensors) for k, v in value.items()} if isinstance(value, dict) else value

    args, kwargs = take(sample.args), take(sample.kwargs)
    function = resolve(module, row.name)
    return leaves, lambda tensors: function(*put(args, tensors), **put(kwargs, tensors))


@dataclass(frozen=True)
class _Place:
    """Where a variable stands among the arguments."""

    index: int


def numbers(leaf):
    if hasattr(leaf, "detach"):
        leaf = leaf.detach()
        leaf = leaf.dequantize() if leaf.is_quantized else leaf
        if "strided" not in str(leaf.layout):
            leaf = leaf.to_dense()
        if getattr(leaf, "_is_zerotensor", bool)():  # PyTorch's zeros without memory
            leaf = leaf.new_zeros(leaf.shape)
        if str(leaf.dtype).endswith("bfloat16"):
            leaf = leaf.float()
        return np.array(leaf.tolist()).reshape(tuple(leaf.shape))
    return np.asarray(leaf)


def dtype_name(leaf):
    return str(leaf.dtype).removeprefix("torch.") if hasattr(leaf, "dtype") else type(leaf).__name__


def compare(row, dtype, mine, theirs):
    mine, theirs = flatten(mine), flatten(theirs)
    assert len(mine) == len(theirs), f"{len(mine)} results, expected {len(theirs)}"
    for a, b in zip(mine, theirs):
        assert dtype_name(a) == dtype_name(b), f"dtype {dtype_name(a)}, expected {dtype_name(b)}"
        assert tuple(getattr(a, "shape", ())) == tuple(getattr(b, "shape", ()))
        # What is recorded has 12 digits.
        close(row, dtype_name(b), numbers(a), numbers(b), 1e-11 if isinstance(b, Recorded) else 0)


def close(row, dtype, mine, theirs, digits=0):
    rtol, atol = TOLERANCE.get(dtype, (0, 0))
    rtol, atol = max(row.rtol or rtol, digits), row.atol or atol
    np.testing.assert_allclose(mine, theirs, rtol=rtol, atol=atol, equal_nan=True)


def answer(module, row, sample, dtype):
    """What a library returns for a sample, or the exception that it raises."""
    args, kwargs = arguments(module, sample, dtype)
    try:
        return resolve(module, row.name)(*args, **kwargs)
    except (RuntimeError, TypeError, ValueError, IndexError, AttributeError) as error:
        return error


# --- golden values: what the oracle answered when they were recorded ----------------------------


class Recorded:
    """A recorded tensor, to compare() as good as one."""

    is_quantized, layout = False, "torch.strided"

    def __init__(self, dtype, shape, values):
        self.dtype, self.shape = dtype, tuple(shape)
        self.values = [complex(*v) for v in values] if dtype.startswith("complex") else values

    def detach(self):
        return self

    float = detach  # values are Python's numbers

    def tolist(self):
        return np.array(self.values).reshape(self.shape).tolist()


@functools.cache
def _golden():
    return json.loads(gzip.decompress(GOLDEN.read_bytes())) if GOLDEN.exists() else {}


def digest(sample):
    """Tells samples apart: what was recorded for other inputs is no reference."""
    text = repr((_plain(sample.args), sorted(_plain(sample.kwargs).items())))
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def _plain(value):
    if isinstance(value, np.ndarray):
        return (str(value.dtype), value.shape, value.tolist())
    if isinstance(value, dict):
        return {key: _plain(v) for key, v in value.items()}
    return [_plain(v) for v in value] if isinstance(value, (list, tuple)) else value


def golden(row, dtype):
    """The recorded results of a row by the digest of the sample."""
    found = _golden().get(f"{row.name}|{dtype}", {})
    return {
        key: [Recorded(*leaf) if isinstance(leaf, list) else leaf for leaf in leaves]
        for key, leaves in found.items()
    }


def _recordable(leaf):
    """A result as JSON, to 12 digits; None where it is too large for a compact file."""
    if isinstance(leaf, (bool, int, float)):
        return leaf
    if not hasattr(leaf, "detach") or leaf.numel() > 64:
        return None
    values = numbers(leaf).ravel()
    if values.dtype.kind == "c":
        rounded = [[float(f"{v.real:.12g}"), float(f"{v.imag:.12g}")] for v in values]
    elif values.dtype.kind == "f":
        rounded = [float(f"{v:.12g}") for v in values]
    else:
        rounded = values.tolist()
    return [dtype_name(leaf), list(leaf.shape), rounded]


def record(rows, samples_per_row=4):
    """Write the golden file from the oracle: one dtype of each kind that a row takes."""
    torch, found = oracle(), {}
    for row in rows:
        kept = [dtype for dtype in ("float64", "int64", "complex128") if dtype in row.dtypes]
        for dtype in kept or row.dtypes[:1]:
            results = {}
            for sample in row.samples(maker(row, dtype)):
                result = answer(torch, row, sample, dtype)
                leaves = None if isinstance(result, Exception) else [_recordable(v) for v in flatten(result)]
                if leaves and None not in leaves and len(results) < samples_per_row:
                    results[digest(sample)] = leaves
            if results:
                found.setdefault(f"{row.name}|{dtype}", {}).update(results)
    text = json.dumps(found, separators=(",", ":"), sort_keys=True).encode()
    GOLDEN.write_bytes(gzip.compress(text, 9, mtime=0))
    return sum(map(len, found.values()))
