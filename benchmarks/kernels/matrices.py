"""Products of matrices by size, dtype and layout; decompositions; Fourier transforms."""

import torch

from ..case import Case
from .data import normals

DOUBLE = torch.float64


def matmul(left, right, dtype="float32", transposed=False):
    a, b = normals(*left, dtype=dtype), normals(*right, dtype=dtype)
    if transposed:
        b = normals(*right[:-2], right[-1], right[-2], dtype=dtype).transpose(-1, -2)
    return lambda: a @ b


def of_matrix(function, *shape, dtype=torch.float32, positive=False):
    x = torch.randn(*shape, dtype=dtype)
    if positive:
        x = x @ x.transpose(-1, -2) + shape[-1] * torch.eye(shape[-1], dtype=dtype)
    return lambda: function(x)


def solve(n, dtype):
    a, b = torch.randn(n, n, dtype=dtype) + n * torch.eye(n, dtype=dtype), torch.randn(n, n, dtype=dtype)
    return lambda: torch.linalg.solve(a, b)


def of_vector(function, *shape, dtype=torch.float32):
    x = torch.randn(*shape, dtype=dtype)
    return lambda: function(x)


def einsum(text, *shapes):
    operands = [normals(*shape) for shape in shapes]
    return lambda: torch.einsum(text, *operands)


def cdist(n, width):
    x = normals(n, width)
    return lambda: torch.cdist(x, x)


def cases(sizes):
    for side in (32, 64, 128, 256, 512, 1024):
        side = sizes(side, side % 29)
        yield Case(f"product/{side} x {side}", lambda m=side: matmul((m, m), (m, m)))
    for dtype in ("float64", "bfloat16", "float16", "complex64", "int64", "int32", "int8"):
        side = sizes(256 if "int" in dtype else 512, 4)
        yield Case(f"product/{side} x {side} {dtype}", lambda m=side, d=dtype: matmul((m, m), (m, m), d))
    n = sizes(512, 4)
    yield Case("product/with a transposed matrix", lambda: matmul((n, n), (n, n), transposed=True))
    yield Case("product/matrix and vector", lambda: matmul((4 * n, 4 * n), (4 * n,)))
    yield Case("product/tall and narrow", lambda: matmul((64 * n, 32), (32, 32)))
    yield Case("product/wide and short", lambda: matmul((8, 4 * n), (4 * n, n)))
    yield Case("product/wide and short bfloat16", lambda: matmul((8, 4 * n), (4 * n, n), "bfloat16"))
    yield Case("product/inner of long", lambda: matmul((16, 64 * n), (64 * n, 16)))
    yield Case("product/batch of 64", lambda: matmul((64, 128, 64), (64, 64, 128)))
    yield Case(
        "product/batch of 64, transposed", lambda: matmul((64, 128, 64), (64, 64, 128), transposed=True)
    )
    yield Case("product/batch of 64 bfloat16", lambda: matmul((64, 128, 64), (64, 64, 128), "bfloat16"))
    yield Case("product/batch of 4096 small", lambda: matmul((sizes(4096, 8), 8, 8), (sizes(4096, 8), 8, 8)))
    yield Case(
        "product/einsum bhid,bhjd", lambda: einsum("bhid,bhjd->bhij", (4, 8, n // 4, 64), (4, 8, n // 4, 64))
    )
    yield Case(
        "product/einsum with a sum", lambda: einsum("bij,bjk,bk->bi", (8, n // 2, 64), (8, 64, 64), (8, 64))
    )
    yield Case("product/cdist", lambda: cdist(2 * n, 64))
    m = sizes(256, 6)
    for name, function in (("svd", torch.linalg.svd), ("qr", torch.linalg.qr), ("inv", torch.linalg.inv)):
        yield Case(f"decomposition/{name}", lambda f=function: of_matrix(f, m, m, dtype=DOUBLE))
    yield Case("decomposition/svdvals float32", lambda: of_matrix(torch.linalg.svdvals, m, m))
    yield Case("decomposition/lu", lambda: of_matrix(torch.linalg.lu_factor, 2 * m, 2 * m, dtype=DOUBLE))
    yield Case("decomposition/eig", lambda: of_matrix(torch.linalg.eig, m // 2, m // 2, dtype=DOUBLE))
    for name, function in (("cholesky", torch.linalg.cholesky), ("eigh", torch.linalg.eigh)):
        yield Case(
            f"decomposition/{name}", lambda f=function: of_matrix(f, m, m, dtype=DOUBLE, positive=True)
        )
    yield Case(
        "decomposition/cholesky float32",
        lambda: of_matrix(torch.linalg.cholesky, 2 * m, 2 * m, positive=True),
    )
    yield Case("decomposition/solve", lambda: solve(2 * m, DOUBLE))
    yield Case("decomposition/solve float32", lambda: solve(2 * m, torch.float32))
    batch = sizes(1000, 3)
    yield Case("decomposition/inv of 1000 of 4 x 4", lambda: of_matrix(torch.linalg.inv, batch, 4, 4))
    yield Case(
        "decomposition/cholesky of 1000 of 4 x 4",
        lambda: of_matrix(torch.linalg.cholesky, batch, 4, 4, positive=True),
    )
    yield Case("decomposition/lu of 1000 of 4 x 4", lambda: of_matrix(torch.linalg.lu_factor, batch, 4, 4))
    yield Case("decomposition/svd of 100 of 8 x 8", lambda: of_matrix(torch.linalg.svd, sizes(100, 3), 8, 8))
    yield Case("decomposition/det of 1000 of 8 x 8", lambda: of_matrix(torch.linalg.det, batch, 8, 8))
    points = sizes(2**20, 64)
    yield Case("fourier/fft", lambda: of_vector(torch.fft.fft, points, dtype=torch.complex64))
    yield Case("fourier/rfft", lambda: of_vector(torch.fft.rfft, points))
    yield Case("fourier/rfft of rows", lambda: of_vector(torch.fft.rfft, points // 32, 32))
    yield Case(
        "fourier/fft of a prime length",
        lambda: of_vector(torch.fft.fft, sizes(100003, 31), dtype=torch.complex64),
    )
    yield Case("fourier/fft2", lambda: of_vector(torch.fft.fft2, 4, sizes(512, 8), sizes(512, 8)))
    window = torch.hann_window(sizes(400, 16))
    stft = lambda x: torch.stft(x, len(window), len(window) // 4, window=window, return_complex=True)
    yield Case("fourier/stft", lambda: of_vector(stft, 8, sizes(48000, 64)))
