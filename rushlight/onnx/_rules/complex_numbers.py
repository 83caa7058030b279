"""Complex numbers, which ONNX has no operators for, as two real tensors; Fourier transforms."""

import cmath
from typing import Any

import rushlight as torch
from rushlight.utils import _pytree as pytree

from .._graph import Complex, Value
from ._registry import RULES

COMPLEX_RULES = {}  # those that take pairs themselves


def _rule(*names):
    """Declares the rule of operators for complex operands; what has no other one is found by it, too."""

    def declare(function):
        for name in names:
            COMPLEX_RULES[name] = function
            RULES.setdefault(name, function)
        return function

    return declare


def on_pairs(target, name, real_rule):
    """The rule of an operator for complex operands: its own, or the one for real numbers on both parts."""
    if name in COMPLEX_RULES:
        return COMPLEX_RULES[name]
    if target.traits.tangent == "linear":
        return lambda g, *args, **kwargs: _linear(g, target, real_rule, args, kwargs)
    if target.traits.tangent == "product":
        return lambda g, *args, **kwargs: _product(g, real_rule, args, kwargs)
    raise NotImplementedError(f"onnx.export: no rule for {target} of complex numbers")


def is_complex(leaf):
    """Whether a leaf of an operator's arguments or results is complex."""
    return (
        isinstance(leaf, (complex, Complex))
        or (isinstance(leaf, torch.Tensor) and leaf.is_complex())
        or (isinstance(leaf, torch.dtype) and leaf.is_complex)
    )


def _real_example(like):
    """The example of a part of a result."""
    if isinstance(like, torch.Tensor) and like.is_complex():
        return torch.empty(like.shape, dtype=like.dtype.to_real(), device="meta")
    return like


def _part(leaf, imaginary):
    if isinstance(leaf, (complex, Complex)):
        return leaf.imag if imaginary else leaf.real
    return leaf.to_real() if isinstance(leaf, torch.dtype) and leaf.is_complex else leaf


def _zeros_like(g, x):
    sizes = g.op("Shape", x, dtype=torch.int64, shape=(x.dim,))
    return g.cast(g.op("ConstantOfShape", sizes, dtype=torch.float32, shape=x.shape), x.dtype)


def _imaginary(g, target, parameter, leaf):
    """The imaginary part of an operand; indices, masks and factors such as `alpha` have the same for both."""
    if is_complex(leaf):
        return _part(leaf, True)
    if isinstance(leaf, Value):
        family = target.traits.family
        chooses = family == "index" or (family == "pointwise" and leaf.dtype == torch.bool)
        return leaf if chooses and not leaf.is_floating_point else _zeros_like(g, leaf)
    added = str(parameter.type) in ("Scalar", "Tensor") and parameter.name not in ("alpha", "beta")
    return 0 if added and not isinstance(leaf, bool) and leaf is not None else leaf


def _linear(g, target, rule, args, kwargs):
    parameters = {p.name: p for p in target._schema.arguments}
    given = dict(zip(parameters, args, strict=False)) | kwargs
    named = list(given)[len(args) :]

    def part(imaginary):
        changed = {
            name: pytree.tree_map(
                lambda leaf, name=name: (
                    _imaginary(g, target, parameters[name], leaf) if imaginary else _part(leaf, False)
                ),
                value,
            )
            for name, value in given.items()
        }
        return rule(g, *list(changed.values())[: len(args)], **{n: changed[n] for n in named})

    out, g.out = g.out, pytree.tree_map(_real_example, g.out)
    real = part(False)
    if not any(map(is_complex, pytree.tree_leaves(out))):
        return real
    return _paired(real, part(True))


def _paired(real, imag):
    if isinstance(real, (list, tuple)):
        return tuple(map(_paired, real, imag))
    return Complex(real, imag)


def _product(g, rule, args, kwargs):
    """(a + bi)(c + di); a factor that is real has one part."""
    g.out = _real_example(g.out)
    (a, b), (c, d) = (((f.real, f.imag) if is_complex(f) else (f, None)) for f in args[:2])
    multiply = lambda x, y: None if x is None or y is None else rule(g, x, y, *args[2:], **kwargs)
    real: Any
    imag: Any
    real, imag = multiply(a, c), multiply(a, d)
    less, more = multiply(b, d), multiply(b, c)
    real = real if less is None else g.op("Sub", real, less)
    imag = more if imag is None else imag if more is None else g.op("Add", imag, more)
    return Complex(real, imag)


# --- parts


@_rule("view_as_complex")
def view_as_complex(g, x):
    shape = x.shape[:-1]
    take = lambda at: g.op("Gather", x, g.constant(at, torch.int64), axis=-1, shape=shape)
    return Complex(take(0), take(1))


@_rule("view_as_real")
def view_as_real(g, z):
    shape = (*z.shape, 1)
    parts = [g.op("Unsqueeze", part, g.ints([-1]), shape=shape) for part in (z.real, z.imag)]
    return g.op("Concat", *parts, axis=-1, shape=(*z.shape, 2))


@_rule("complex")
def complex_(g, real, imag):
    if real.shape != imag.shape:  # zeros make them as large as the result
        shape = torch.broadcast_shapes(real.shape, imag.shape)
        zeros = _zeros_like(g, imag), _zeros_like(g, real)
        real, imag = (g.op("Add", *pair, shape=shape) for pair in zip((real, imag), zeros))
    return Complex(real, imag)


@_rule("conj_physical", "_conj")
def conj(g, z):
    return Complex(z.real, g.op("Neg", z.imag))


def _square(g, z):
    return g.op("Add", g.op("Mul", z.real, z.real), g.op("Mul", z.imag, z.imag))


@_rule("abs")
def magnitude(g, z):
    return g.op("Sqrt", _square(g, z))


@_rule("angle")
def angle(g, z):
    if isinstance(z, Complex):
        return RULES["atan2"](g, z.imag, z.real)
    negative = g.op("Less", z, 0, dtype=torch.bool)
    turned = g.op("Where", negative, g.constant(cmath.pi, z.dtype), g.constant(0.0, z.dtype), dtype=z.dtype)
    missing = g.op("IsNaN", z, dtype=torch.bool)
    return g.op("Where", missing, z, turned, dtype=z.dtype, shape=z.shape)


# --- arithmetic


@_rule("reciprocal")
def reciprocal(g, z):
    size = _square(g, z)
    return Complex(g.op("Div", z.real, size), g.op("Div", g.op("Neg", z.imag), size))


@_rule("div")
def div(g, a, b, **options):
    g.out = _real_example(g.out)
    if isinstance(b, complex):
        b = 1 / b
    elif isinstance(b, Complex):
        b = reciprocal(g, b)
    else:
        divided = [RULES["div"](g, part, b, **options) for part in (a.real, a.imag)]
        return Complex(*divided)
    return _product(g, RULES["mul"], (a, b), {})


@_rule("exp")
def exp(g, z):
    size = g.op("Exp", z.real)
    return Complex(*(g.op("Mul", size, g.op(part, z.imag)) for part in ("Cos", "Sin")))


@_rule("log")
def log(g, z):
    return Complex(g.op("Log", magnitude(g, z)), angle(g, z))


# --- Fourier transforms


def _transformed(g, z, dim, forward, onesided=False):
    """One dimension, by ONNX's operator: complex numbers are pairs along a last dimension, the first one is
    the batch. The inverse is divided by the size."""
    real = isinstance(z, Value)
    pairs = g.op("Unsqueeze", z, g.ints([-1]), shape=(*z.shape, 1)) if real else view_as_real(g, z)
    pairs = g.op("Unsqueeze", pairs, g.ints([0]), shape=(1, *pairs.shape))
    how = {"inverse": int(not forward), "onesided": int(onesided)}
    if g.opset < 20:
        both = g.op("DFT", pairs, axis=dim + 1, shape=(*pairs.shape[:-1], 2), **how)
    else:
        axis = g.constant(dim + 1, torch.int64)
        both = g.op("DFT", pairs, None, axis, shape=(*pairs.shape[:-1], 2), **how)
    return view_as_complex(g, g.op("Squeeze", both, g.ints([0]), shape=both.shape[1:]))


def _scaled(g, z, count, normalization, forward):
    """`count`: of the points, a scalar value; normalization: 0 none, 1 by its root, 2 by itself."""
    power = {0: 0.0, 1: -0.5, 2: -1.0}[normalization] + (0.0 if forward else 1.0)
    if not power:
        return z
    parts = [z.real, z.imag] if isinstance(z, Complex) else [z]
    factor = g.op("Pow", g.cast(count, parts[0].dtype), g.constant(power, parts[0].dtype))
    parts = [g.op("Mul", part, factor) for part in parts]
    return Complex(*parts) if len(parts) > 1 else parts[0]


def _count(g, x, dims):
    part = x.real if isinstance(x, Complex) else x
    count = g.constant(1, torch.int64)
    for d in dims:
        count = g.op("Mul", count, g.size(part, d), shape=())
    return count


@_rule("_fft_c2c")
def fft_c2c(g, z, dim, normalization, forward):
    dims = [d % z.dim for d in dim]
    count = _count(g, z, dims)
    for d in dims:
        z = _transformed(g, z, d, forward)
    return _scaled(g, z, count, normalization, forward)


@_rule("_fft_r2c")
def fft_r2c(g, x, dim, normalization, onesided):
    dims = [d % x.dim for d in dim]
    z = _transformed(g, x, dims[-1], True, onesided)
    for d in dims[:-1]:
        z = _transformed(g, z, d, True)
    return _scaled(g, z, _count(g, x, dims), normalization, True)


@_rule("_fft_c2r")
def fft_c2r(g, z, dim, normalization, last_dim_size):
    """The half of the spectrum that is not there is the conjugate of the other, backwards."""
    if not isinstance(last_dim_size, int):
        raise NotImplementedError("onnx.export: an inverse real Fourier transform of a size that may change")
    *others, last = (d % z.dim for d in dim)
    count = g.op("Mul", _count(g, z, others), last_dim_size, shape=())
    for d in others:
        z = _transformed(g, z, d, False)
    cut = lambda part, begin, end, step, n: g.op(
        "Slice", part, *(g.ints([i]) for i in (begin, end, last, step)),
        shape=(*part.shape[:last], n, *part.shape[last + 1 :]),
    )  # fmt: skip
    kept, mirrored = last_dim_size // 2 + 1, (last_dim_size - 1) // 2
    first = [cut(part, 0, kept, 1, kept) for part in (z.real, z.imag)]
    second = [cut(part, mirrored, 0, -1, mirrored) for part in (z.real, z.imag)]
    second[1] = g.op("Neg", second[1])
    shape = (*z.shape[:last], last_dim_size, *z.shape[last + 1 :])
    whole = Complex(*(g.op("Concat", *both, axis=last, shape=shape) for both in zip(first, second)))
    # The other dimensions are divided by their sizes already, as this one is.
    return _scaled(g, _transformed(g, whole, last, False).real, count, normalization, False)
