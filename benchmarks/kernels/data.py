"""Operands of all dtypes and layouts."""

import torch

HALVES = ("bfloat16", "float16")
FLOATS = ("float32", "float64", *HALVES)
INTEGERS = ("int64", "int32", "uint8")


def numbers(*shape, dtype="float32"):
    """Numbers that no operation takes badly: between 0.5 and 1.5, or 1 and 99."""
    dtype = getattr(torch, dtype)
    if dtype == torch.bool:
        return torch.rand(shape) > 0.5
    if dtype.is_floating_point or dtype.is_complex:
        return (torch.rand(shape) + 0.5).to(dtype)
    return torch.randint(1, 100, shape, dtype=dtype)


def normals(*shape, dtype="float32", **options):
    return torch.randn(shape).to(getattr(torch, dtype)).requires_grad_(options.get("requires_grad", False))


# What a matrix of n x n numbers may look like.
LAYOUTS = {
    "contiguous": lambda n, dtype: numbers(n, n, dtype=dtype),
    "transposed": lambda n, dtype: numbers(n, n, dtype=dtype).t(),
    "every other column": lambda n, dtype: numbers(n, 2 * n, dtype=dtype)[:, ::2],
    "part of rows": lambda n, dtype: numbers(n, n + 16, dtype=dtype)[:, :n],
    "one row": lambda n, dtype: numbers(n, dtype=dtype).expand(n, n),
    "one column": lambda n, dtype: numbers(n, 1, dtype=dtype).expand(n, n),
    "every other row, transposed": lambda n, dtype: numbers(n, 2 * n, dtype=dtype).t()[::2],
}


def backward(function, *leaves):
    """The function and its gradients."""

    def run():
        for leaf in leaves:
            leaf.grad = None
        result = function()
        result.backward(torch.ones_like(result))

    return run


def words(count):
    """4194304 -> "4M"."""
    for factor, name in ((2**20, "M"), (2**10, "K")):
        if count >= factor and count % factor == 0:
            return f"{count // factor}{name}"
    return str(count)
