"""The windows of `rushlight.signal.windows`: float64 formulas, rounded once."""

import math
from collections.abc import Iterable

import rushlight as torch


def _window(name, M, sym, formula, dtype, layout, device, requires_grad):
    """formula(n, N) at the points n of a window of N; of a periodic one the last point is left out."""
    dtype = torch.get_default_dtype() if dtype is None else dtype
    if M < 0:
        raise ValueError(f"{name} requires non-negative window length, got M={M}")
    if layout is not torch.strided:
        raise ValueError(f"{name} is implemented for strided tensors only, got: {layout}")
    if dtype not in (torch.float32, torch.float64):
        raise ValueError(f"{name} expects float32 or float64 dtypes, got: {dtype}")
    n = torch.arange(M, dtype=torch.float64, device=device)
    window = formula(n, M if sym or M == 1 else M + 1)
    return window.to(dtype).requires_grad_(requires_grad)


def exponential(
    M, *, center=None, tau=1.0, sym=True, dtype=None, layout=torch.strided, device=None, requires_grad=False
):
    """``exp(-|n - center| / tau)``."""
    if tau <= 0:
        raise ValueError(f"Tau must be positive, got: {tau} instead.")
    if sym and center is not None:
        raise ValueError("Center must be None for symmetric windows")

    def formula(n, N):
        middle = (N - 1) / 2 if center is None else center
        return torch.exp(-(n - middle).abs() / tau)

    return _window("exponential", M, sym, formula, dtype, layout, device, requires_grad)


def cosine(M, *, sym=True, dtype=None, layout=torch.strided, device=None, requires_grad=False):
    """``sin(pi (n + 1/2) / N)``."""

    def formula(n, N):
        return torch.sin(math.pi * (n + 0.5) / max(N, 1))

    return _window("cosine", M, sym, formula, dtype, layout, device, requires_grad)


def gaussian(M, *, std=1.0, sym=True, dtype=None, layout=torch.strided, device=None, requires_grad=False):
    """``exp(-x^2 / (2 std^2))``, x counted from the middle."""
    if std <= 0:
        raise ValueError(f"Standard deviation must be positive, got: {std} instead.")

    def formula(n, N):
        return torch.exp(-(((n - (N - 1) / 2) / std) ** 2) / 2)

    return _window("gaussian", M, sym, formula, dtype, layout, device, requires_grad)


def kaiser(M, *, beta=12.0, sym=True, dtype=None, layout=torch.strided, device=None, requires_grad=False):
    """``i0(beta sqrt(1 - (2 n / (N - 1) - 1)^2)) / i0(beta)``."""
    if beta < 0:
        raise ValueError(f"beta must be non-negative, got: {beta} instead.")

    def formula(n, N):
        if N <= 1:
            return torch.ones_like(n)
        root = (1 - (2 * n / (N - 1) - 1) ** 2).clamp(min=0).sqrt()
        return torch.i0(beta * root) / torch.i0(torch.tensor(float(beta), dtype=n.dtype, device=n.device))

    return _window("kaiser", M, sym, formula, dtype, layout, device, requires_grad)


def general_cosine(M, *, a, sym=True, dtype=None, layout=torch.strided, device=None, requires_grad=False):
    """``a[0] - a[1] cos(t) + a[2] cos(2 t) - ...`` for t from 0 to 2 pi."""
    if not isinstance(a, Iterable):
        raise TypeError("Coefficients must be a list/tuple")
    a = [float(c) for c in a]
    if not a:
        raise ValueError("Coefficients cannot be empty")

    def formula(n, N):
        if N <= 1:
            return torch.ones_like(n)
        t = 2 * math.pi * n / (N - 1)
        return sum((-c if i % 2 else c) * torch.cos(i * t) for i, c in enumerate(a))

    return _window("general_cosine", M, sym, formula, dtype, layout, device, requires_grad)


def general_hamming(
    M, *, alpha=0.54, sym=True, dtype=None, layout=torch.strided, device=None, requires_grad=False
):
    """``alpha - (1 - alpha) cos(t)`` for t from 0 to 2 pi."""
    return general_cosine(
        M,
        a=[alpha, 1.0 - alpha],
        sym=sym,
        dtype=dtype,
        layout=layout,
        device=device,
        requires_grad=requires_grad,
    )


def hamming(M, *, sym=True, dtype=None, layout=torch.strided, device=None, requires_grad=False):
    """`general_hamming` with alpha 0.54."""
    return general_hamming(M, sym=sym, dtype=dtype, layout=layout, device=device, requires_grad=requires_grad)


def hann(M, *, sym=True, dtype=None, layout=torch.strided, device=None, requires_grad=False):
    """Raised cosine: `general_hamming` with alpha 0.5."""
    return general_hamming(
        M, alpha=0.5, sym=sym, dtype=dtype, layout=layout, device=device, requires_grad=requires_grad
    )


def blackman(M, *, sym=True, dtype=None, layout=torch.strided, device=None, requires_grad=False):
    """`general_cosine` of 0.42, 0.5, 0.08."""
    return general_cosine(
        M,
        a=[0.42, 0.5, 0.08],
        sym=sym,
        dtype=dtype,
        layout=layout,
        device=device,
        requires_grad=requires_grad,
    )


def nuttall(M, *, sym=True, dtype=None, layout=torch.strided, device=None, requires_grad=False):
    """`general_cosine` of four terms with the least side lobes."""
    return general_cosine(
        M,
        a=[0.3635819, 0.4891775, 0.1365995, 0.0106411],
        sym=sym,
        dtype=dtype,
        layout=layout,
        device=device,
        requires_grad=requires_grad,
    )


def bartlett(M, *, sym=True, dtype=None, layout=torch.strided, device=None, requires_grad=False):
    """Triangle that is zero at its ends."""

    def formula(n, N):
        return torch.ones_like(n) if N <= 1 else 1 - (2 * n / (N - 1) - 1).abs()

    return _window("bartlett", M, sym, formula, dtype, layout, device, requires_grad)
