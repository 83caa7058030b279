"""Element by element: every kind of formula, then the dtypes, layouts and sizes of a few."""

import torch
import torch.nn.functional as F

from ..case import Case
from .data import FLOATS, INTEGERS, LAYOUTS, normals, numbers, words

UNARY = {
    "neg": torch.neg,
    "exp": torch.exp,
    "log": torch.log,
    "sqrt": torch.sqrt,
    "rsqrt": torch.rsqrt,
    "sin": torch.sin,
    "tanh": torch.tanh,
    "sigmoid": torch.sigmoid,
    "erf": torch.erf,
    "round": torch.round,
    "reciprocal": torch.reciprocal,
    "isnan": torch.isnan,
    "relu": F.relu,
    "gelu": F.gelu,
    "silu": F.silu,
    "softplus": F.softplus,
    "leaky_relu": F.leaky_relu,
    "square": torch.square,
    "pow 2.5": lambda x: x**2.5,
    "clamp": lambda x: x.clamp(0.7, 1.2),
    "add number": lambda x: x + 1,
    "lgamma": torch.lgamma,
    "digamma": torch.digamma,
    "erfinv": lambda x: torch.erfinv(x.clamp(-0.99, 0.99)),
    "i0": torch.i0,
}
BINARY = {
    "add": torch.add,
    "mul": torch.mul,
    "div": torch.div,
    "maximum": torch.maximum,
    "less": torch.lt,
    "pow": torch.pow,
    "atan2": torch.atan2,
    "fmod": torch.fmod,
    "floor_divide": torch.floor_divide,
    "nextafter": torch.nextafter,
}


def unary(function, *shape, dtype="float32"):
    x = numbers(*shape, dtype=dtype)
    return lambda: function(x)


def binary(function, *shape, dtype="float32"):
    x, y = numbers(*shape, dtype=dtype), numbers(*shape, dtype=dtype)
    return lambda: function(x, y)


def add_layout(n, dtype, layout):
    x, y = numbers(n, n, dtype=dtype), LAYOUTS[layout](n, dtype)
    return lambda: x + y


def exp_layout(n, dtype, layout):
    x = LAYOUTS[layout](n, dtype)
    return lambda: x.exp()


def where(n):
    x, y, mask = normals(n), normals(n), normals(n) > 0
    return lambda: torch.where(mask, x, y)


def in_place(n):
    x, y = numbers(n), numbers(n)
    return lambda: x.mul_(0.5).add_(y)


def addcmul(n):
    x, y, z = numbers(n), numbers(n), numbers(n)
    return lambda: torch.addcmul(x, y, z, value=0.5)


def lerp(n):
    x, y = numbers(n), numbers(n)
    return lambda: torch.lerp(x, y, 0.3)


def chain(n):
    """What a program without a compiler writes: ten operations, nine intermediate results."""
    x, y = normals(n), normals(n)
    return lambda: ((((((x + y) * x - y) * 0.5).tanh() + x) * y).relu() + 1) * 2 - x


def activation_gradient(function, n):
    x = normals(n, requires_grad=True)
    y = function(x)
    gradient = torch.ones_like(y)
    return lambda: torch.autograd.grad(y, x, gradient, retain_graph=True)


def cases(sizes):
    n, side = sizes(2**22, 64), sizes(2048, 8)
    for name, function in UNARY.items():
        yield Case(f"pointwise/{name}", lambda f=function: unary(f, n))
    for name, function in BINARY.items():
        yield Case(f"pointwise/{name}", lambda f=function: binary(f, n))
    for dtype in (*FLOATS[1:], *INTEGERS, "complex64"):
        yield Case(f"pointwise/add {dtype}", lambda dtype=dtype: binary(torch.add, n, dtype=dtype))
    for dtype in (*FLOATS[1:], "complex64"):
        yield Case(f"pointwise/exp {dtype}", lambda dtype=dtype: unary(torch.exp, n, dtype=dtype))
    for dtype in ("bfloat16", "float16"):
        halves = {"gelu": F.gelu, "tanh": torch.tanh, "mul": torch.square, "abs": torch.abs, "erf": torch.erf}
        for name, function in halves.items():
            yield Case(f"pointwise/{name} {dtype}", lambda f=function, d=dtype: unary(f, n, dtype=d))
    for layout in list(LAYOUTS)[1:]:
        yield Case(f"pointwise/add, {layout}", lambda layout=layout: add_layout(side, "float32", layout))
        yield Case(f"pointwise/exp, {layout}", lambda layout=layout: exp_layout(side, "float32", layout))
    yield Case("pointwise/add int64, transposed", lambda: add_layout(side, "int64", "transposed"))
    yield Case("pointwise/add bfloat16, transposed", lambda: add_layout(side, "bfloat16", "transposed"))
    for size in (2**10, 2**14, 2**17, 2**24):
        size = sizes(size, size % 63)
        yield Case(f"pointwise/add of {words(size)}", lambda size=size: binary(torch.add, size))
        yield Case(f"pointwise/exp of {words(size)}", lambda size=size: unary(torch.exp, size))
    yield Case("pointwise/where", lambda: where(n))
    yield Case("pointwise/mul_, add_", lambda: in_place(n))
    yield Case("pointwise/addcmul", lambda: addcmul(n))
    yield Case("pointwise/lerp", lambda: lerp(n))
    yield Case("pointwise/chain of 10", lambda: chain(n))
    for name, function in (("relu", F.relu), ("gelu", F.gelu), ("tanh", torch.tanh), ("silu", F.silu)):
        yield Case(f"pointwise/{name} backward", lambda f=function: activation_gradient(f, n))
