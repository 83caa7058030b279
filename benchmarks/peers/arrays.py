"""Work on arrays without any network: each row as NumPy and as PyTorch write it."""

from collections.abc import Callable, Mapping

SIZES = {"1e3": (1_000, 32), "1e6": (1_000_000, 1_000)}

# Of a vector `x` and its like `y`, positive `p`, integers `i` below the length, a mask, a matrix `m`, a
# symmetric positive `s` of 32 or 256 rows.
ROWS: Mapping[str, tuple[str, str]] = {
    "add": ("x + y", "x + y"),
    "multiply and add": ("x * y + 2.5", "x * y + 2.5"),
    "add in place": ("np.add(x, y, out=o)", "torch.add(x, y, out=o)"),
    "row added to matrix": ("m + m[0]", "m + m[0]"),
    "exp": ("np.exp(x)", "torch.exp(x)"),
    "sin": ("np.sin(x)", "torch.sin(x)"),
    "sqrt": ("np.sqrt(p)", "torch.sqrt(p)"),
    "power": ("p ** 1.7", "p ** 1.7"),
    "where": ("np.where(x > 0, x, y)", "torch.where(x > 0, x, y)"),
    "clip": ("x.clip(-1, 1)", "x.clip(-1, 1)"),
    "sum": ("x.sum()", "x.sum()"),
    "column means": ("m.mean(0)", "m.mean(0)"),
    "row deviations": ("m.std(1)", "m.std(1, correction=0)"),
    "argmax of rows": ("m.argmax(1)", "m.argmax(1)"),
    "cumsum": ("x.cumsum()", "x.cumsum(0)"),
    "sort": ("np.sort(x)", "torch.sort(x)[0]"),
    "argsort": ("np.argsort(x)", "torch.argsort(x)"),
    "quantile": ("np.quantile(x, 0.9)", "torch.quantile(x, 0.9)"),
    "unique": ("np.unique(i)", "torch.unique(i)"),
    "bincount": ("np.bincount(i)", "torch.bincount(i)"),
    "histogram": ("np.histogram(x, 50)", "torch.histogram(x, 50)"),
    "searchsorted": ("np.searchsorted(p, x)", "torch.searchsorted(p, x)"),
    "take": ("x[i]", "x[i]"),
    "mask": ("x[mask]", "x[mask]"),
    "put by mask": ("o[mask] = 0", "o[mask] = 0"),
    "transpose and copy": ("m.T.copy()", "m.T.contiguous()"),
    "concatenate": ("np.concatenate([x, y])", "torch.cat([x, y])"),
    "cast": ("x.astype(np.float32)", "x.to(torch.float32)"),
    "dot": ("x @ y", "x @ y"),
    "outer": ("np.outer(x[:999], y[:999])", "torch.outer(x[:999], y[:999])"),
    "einsum": ("np.einsum('ij,ij->i', m, m)", "torch.einsum('ij,ij->i', m, m)"),
    "matrix product": ("s @ s", "s @ s"),
    "solve": ("np.linalg.solve(s, s[0])", "torch.linalg.solve(s, s[0])"),
    "cholesky": ("np.linalg.cholesky(s)", "torch.linalg.cholesky(s)"),
    "eigenvalues": ("np.linalg.eigvalsh(s)", "torch.linalg.eigvalsh(s)"),
    "singular values": ("np.linalg.svd(s)", "torch.linalg.svd(s)"),
    "fft": ("np.fft.rfft(x)", "torch.fft.rfft(x)"),
    "normal numbers": ("random.standard_normal(n)", "torch.randn(n, dtype=x.dtype)"),
}


def numbers(size: str, tiny: bool) -> dict[str, object]:
    """The rows' operands as NumPy arrays of doubles and int64."""
    import numpy as np

    n, rows = SIZES["1e3"] if tiny else SIZES[size]
    random = np.random.default_rng(0)
    x, y = random.standard_normal((2, n))
    side = min(rows, 256)
    square = random.standard_normal((side, side))
    return {
        "x": x,
        "y": y,
        "p": np.sort(np.abs(x) + 0.1),
        "o": np.zeros(n),
        "i": random.integers(0, n, n),
        "mask": x > 0,
        "m": random.standard_normal((rows, n // rows)),
        "s": square @ square.T + side * np.eye(side),
    }


def statements(sizes, place: int, names: Callable[[str, bool], dict[str, object]]):
    """The rows of one library: `place` 0 NumPy, 1 PyTorch; `names` gives what their code names."""
    from ..case import Statement

    for size in SIZES:
        found = names(size, sizes(False, True))
        for row, codes in ROWS.items():
            yield Statement(f"{row}/{size}", codes[place], found)
