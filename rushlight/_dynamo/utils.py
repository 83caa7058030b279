"""What packages ask the compiler's front end for."""

import contextlib
import functools
import sys
from collections import Counter, defaultdict

__all__ = ["clone_input", "counters", "disable_cache_limit", "is_compile_supported", "same", "warn_once"]

# Numbers by subject that back ends and passes of packages count here.
counters: defaultdict = defaultdict(Counter)


def clone_input(x, *, dtype=None):
    """A copy of a tensor that is a leaf of its own, with its strides and whether it requires gradients."""
    import rushlight as torch

    with torch.no_grad():
        made = torch.empty_strided(x.shape, x.stride(), dtype=dtype or x.dtype, device=x.device)
        made.copy_(x)
    return made.requires_grad_(x.requires_grad)


def is_compile_supported(device_type):
    """Whether functions of tensors on a device can be compiled: on none."""
    return False


@functools.cache
def warn_once(msg, stacklevel=1):
    """A warning that is given once in a process."""
    import warnings

    warnings.warn(msg, stacklevel=stacklevel + 2)


@contextlib.contextmanager
def disable_cache_limit():
    """While it lasts, a function may be compiled for any number of shapes and settings."""
    from rushlight._dynamo import config

    limits = (
        "cache_size_limit",
        "recompile_limit",
        "accumulated_cache_size_limit",
        "accumulated_recompile_limit",
    )
    before = {name: getattr(config, name) for name in limits}
    for name in limits:
        setattr(config, name, sys.maxsize)
    try:
        yield
    finally:
        for name, value in before.items():
            setattr(config, name, value)


def same(ref, res, fp64_ref=None, cos_similarity=False, tol=1e-4, equal_nan=False, exact_dtype=True):
    """Whether two results are alike: tensors within `tol`, in the same containers; None gradients too.

    With ``fp64_ref``, the same results in double precision, tensors outside of `tol` may be as far from these
    as `ref` is, by twice and a little. With ``cos_similarity`` tensors count by their direction.
    """
    import rushlight as torch

    def alike(a, b, exact):
        if isinstance(a, torch.Tensor):
            return _same_tensors(a, b, exact, cos_similarity, tol, equal_nan, exact_dtype)
        if isinstance(a, dict) and isinstance(b, dict):
            if a.keys() != b.keys():
                raise AssertionError(f"keys mismatch {set(a)} == {set(b)}")
            return all(alike(a[k], b[k], None if exact is None else exact[k]) for k in a)
        if isinstance(a, (list, tuple)):
            if not isinstance(b, (list, tuple)) or len(a) != len(b):
                return False
            return all(map(alike, a, b, [None] * len(a) if exact is None else exact))
        if isinstance(a, float):
            return isinstance(b, float) and (abs(a - b) <= tol * max(1.0, abs(a)) or (a != a and b != b))
        return type(a) is type(b) and a == b

    return alike(ref, res, fp64_ref)


def _same_tensors(ref, res, exact, cos_similarity, tol, equal_nan, exact_dtype):
    import rushlight as torch

    if not isinstance(res, torch.Tensor) or ref.shape != res.shape:
        return False
    if exact_dtype and ref.dtype is not res.dtype:
        return False
    if not (ref.is_floating_point() or ref.is_complex()):
        return torch.equal(ref, res.to(ref.dtype))
    kind = torch.complex128 if ref.is_complex() else torch.float64
    ref, res = ref.detach().to(kind), res.detach().to(kind)
    if cos_similarity:
        flat = torch.nn.functional.cosine_similarity(ref.flatten(), res.flatten(), dim=0, eps=1e-6)
        return torch.equal(ref, res) or bool(flat.abs() >= 0.99)
    if torch.allclose(ref, res, atol=tol, rtol=tol, equal_nan=equal_nan):
        return True
    if exact is None:
        return False

    def distance(x):
        return (x - exact.detach().to(kind)).abs().square().mean().sqrt()

    return bool(distance(res) <= 2 * distance(ref) + tol / 10)
