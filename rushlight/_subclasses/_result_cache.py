"""What operators gave of fake tensors, kept for later calls: shapes and strides, by those of the arguments.

A call that depends on anything else than the facts in its key goes past the cache, and is counted with the
reason why.
"""

import collections
import math
import sys
from dataclasses import dataclass
from typing import Any

import rushlight as torch
from rushlight import _C

__all__ = ["RESULTS", "CacheInfo", "CacheKeyState", "TensorMetadata", "extract_tensor_metadata", "setting"]

CacheInfo = collections.namedtuple("CacheInfo", "hits misses bypasses size")


@dataclass(frozen=True)
class TensorMetadata:
    """What of a tensor decides about results, and what of a result is kept."""

    dtype: torch.dtype
    shape: tuple
    stride: tuple
    device: torch.device
    layout: torch.layout
    memory_format: torch.memory_format | None
    storage_offset: int
    storage_bytes: int | None
    requires_grad: bool
    is_quantized: bool
    is_conj: bool
    is_neg: bool
    is_inference: bool
    is_sparse: bool
    is_coalesced: bool | None
    dense_dim: int | None
    sparse_dim: int | None


def extract_tensor_metadata(t):
    """The facts about a tensor."""
    strided = t.layout is torch.strided
    formats = (torch.contiguous_format, torch.channels_last, torch.channels_last_3d)
    fits = (f for f, dims in zip(formats, (None, 4, 5)) if dims in (None, t.dim()))
    form = next((f for f in fits if strided and t.is_contiguous(memory_format=f)), None)
    return TensorMetadata(
        dtype=t.dtype,
        shape=tuple(t.shape),
        stride=tuple(t.stride()) if strided else (),
        device=t.device,
        layout=t.layout,
        memory_format=form,
        storage_offset=t.storage_offset() if strided else 0,
        storage_bytes=t.untyped_storage().nbytes() if strided else None,
        requires_grad=t.requires_grad,
        is_quantized=t.is_quantized,
        is_conj=t.is_conj(),
        is_neg=t.is_neg(),
        is_inference=t.is_inference(),
        is_sparse=t.is_sparse,
        is_coalesced=t.is_coalesced() if t.is_sparse else None,
        dense_dim=t.dense_dim() if t.is_sparse else None,
        sparse_dim=t.sparse_dim() if t.is_sparse else None,
    )


class Bypass(Exception):
    """Why a call has no place in the cache."""

    def __init__(self, reason):
        super().__init__(reason)
        self.reason = reason


class CacheKeyState:
    """What is gathered while a key is made."""

    def __init__(self, shape_env=None):
        self.shape_env = shape_env


@dataclass(frozen=True)
class _Result:
    """One tensor that an operator gave: an argument itself, a view of one, or a tensor of its own."""

    argument: int | None = None  # position among the tensors of the arguments
    facts: TensorMetadata | None = None  # None: it is that argument


def setting(name):
    """A switch of `_dynamo.config`, all of which are off; nobody changed it before that was imported."""
    config = sys.modules.get("rushlight._dynamo.config")
    return config is not None and getattr(config, name)


class ResultCache:
    """The results of all modes of a process."""

    def __init__(self):
        self.results = {}
        self.clear()

    def clear(self):
        self.results.clear()
        self.hits = self.misses = 0
        self.bypasses = collections.Counter()

    def info(self):
        return CacheInfo(self.hits, self.misses, dict(self.bypasses), len(self.results))

    def call(self, mode, func, args, kwargs):
        """What an operator gives, or tensors of the kind that it gave before."""
        try:
            key = self.key(mode, CacheKeyState(mode.shape_env), func, args, kwargs)
        except Bypass as bypass:
            self.bypasses[bypass.reason] += 1
            return mode._run(func, args, kwargs)
        tensors = list(_tensors((args, kwargs)))
        known = self.results.get(key)
        if known is not None and _may_be_known(func, tensors, known[1]):
            self.bypasses["constant attribute"] += 1
            return mode._run(func, args, kwargs)
        if known is None:
            self.misses += 1
            made = mode._run(func, args, kwargs)
            self._keep(key, func, tensors, made)
            return made
        self.hits += 1
        made = _made_again(mode, func, tensors, known)
        if setting("fake_tensor_cache_crosscheck_enabled"):
            _compare(func, made, mode._run(func, args, kwargs))
        return made

    def key(self, mode, state, func, args, kwargs):
        """Everything that decides about what a call gives, or `Bypass`."""
        reason = _refusal(func)
        if reason is not None:
            raise Bypass(reason)
        parts: list = [func, torch.is_inference_mode_enabled(), torch.get_default_dtype()]
        _add(parts, mode, args)
        _add(parts, mode, kwargs)
        return tuple(parts)

    def _keep(self, key, func, tensors, made):
        results = made if isinstance(made, (list, tuple)) else (made,)
        if any(getattr(r, "constant", self) is not None for r in results):
            self.bypasses["not a tensor, or one of known numbers"] += 1
            return
        entries = [_entry(tensors, r) for r in results]
        if None in entries:
            self.bypasses["a view of another dtype"] += 1
            return
        again = [_from_entry(r.fake_mode, tensors, entry) for r, entry in zip(results, entries)]
        if any(extract_tensor_metadata(a) != extract_tensor_metadata(b) for a, b in zip(again, results)):
            self.bypasses["a result that shapes and strides do not tell"] += 1
            return
        self.results[key] = (type(made) if isinstance(made, (list, tuple)) else None), entries


def _refusal(func):
    """Why the results of an operator are not kept, or None."""
    traits = func.traits
    if func.namespace not in ("aten", "prims", "prim"):
        return "non-builtin"
    if traits.reads_values:
        return "data dependent output"
    if traits.data_dependent_shape:
        return "dynamic output shape"
    if traits.reshaping != "none":
        return "inplace view"
    writes = [a.is_write for a in func._schema.arguments]
    if any(writes[1:]):
        return "writes to more than its first argument"
    return None


_PLAIN = (int, float, complex, bool, str, torch.dtype, torch.device, torch.layout, torch.memory_format)


def _add(parts, mode, value):
    """What of an argument decides, flat; numbers that are equal and of different types differ."""
    if isinstance(value, torch.Tensor):
        if getattr(value, "fake_mode", None) is not mode:
            raise Bypass("not our fake")
        if value.layout is not torch.strided or getattr(value, "size_numbers", None) is not None:
            raise Bypass("not a strided tensor of known sizes")
        place = value.shape, value.stride(), value.storage_offset(), value.untyped_storage().nbytes()
        flags = value.requires_grad, value.is_conj(), value.is_neg(), value.is_inference(), value.is_quantized
        parts += (value.dtype, value.device, *place, *flags)
    elif isinstance(value, (list, tuple)):
        parts += (type(value), len(value))
        for item in value:
            _add(parts, mode, item)
    elif isinstance(value, dict):
        parts += (dict, len(value))
        for name, item in value.items():
            parts.append(name)
            _add(parts, mode, item)
    elif value is None or isinstance(value, _PLAIN):
        parts += (type(value), repr(value) if isinstance(value, (float, complex)) else value)  # NaN is itself
    else:
        raise Bypass(f"an argument of type {type(value).__name__}")


def _tensors(value: Any):
    """The fake tensors among arguments or results."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _tensors(item)
    elif isinstance(value, dict):
        yield from _tensors(list(value.values()))


def _entry(tensors, made):
    """How to make a result again, or None: a view of other elements is not made by shapes."""
    same = next((i for i, t in enumerate(tensors) if t is made), None)
    if same is not None:
        return _Result(same)
    storage = made.untyped_storage()._cdata
    shared = (i for i, t in enumerate(tensors) if t.untyped_storage()._cdata == storage)
    i = next(shared, None)
    facts = extract_tensor_metadata(made)
    return _Result(i, facts) if i is None or tensors[i].dtype == made.dtype else None


def _may_be_known(func, tensors, entries):
    """Whether single numbers are computed of known ones, or known numbers get a view."""
    if any(t.constant is None for t in tensors):
        return False
    return func.is_view or any(e.facts is None or math.prod(e.facts.shape) <= 1 for e in entries)


def _made_again(mode, func, tensors, known):
    kind, entries = known
    if func._schema.is_mutable:
        mode.fake_tensor_converter.forget_constant(tensors[0])
    made = [_from_entry(mode, tensors, entry) for entry in entries]
    return made[0] if kind is None else kind(made)


def _from_entry(mode, tensors, entry):
    facts = entry.facts
    if facts is None:
        return tensors[entry.argument]
    with _C._DisableTorchDispatch():
        if entry.argument is None:
            meta = torch.empty_strided(facts.shape, facts.stride, dtype=facts.dtype, device="meta")
        else:
            whole = _C._as_meta(tensors[entry.argument])
            meta = whole.as_strided(facts.shape, facts.stride, facts.storage_offset)
    return mode.from_meta(meta, facts.device)


def _compare(func, made, expected):
    """The result that was kept must be what the operator gives."""
    for a, b in zip(_tensors(made), _tensors(expected), strict=True):
        mine, right = extract_tensor_metadata(a), extract_tensor_metadata(b)
        if mine != right:
            raise RuntimeError(
                f"FakeTensor cache crosscheck failure: {func} gave {right}, and the cache has {mine}"
            )


RESULTS = ResultCache()
