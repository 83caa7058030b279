"""Special functions that ONNX lacks: smooth parts as Chebyshev series, which are fitted to our own functions
when a file is written, with the recurrences and reflections around them."""

import functools
import math

import rushlight as torch

from ._registry import RULES, rule

_POINTS = 64


@functools.cache
def _coefficients(function, low, high):
    """Of the series of a function on an interval, from its values at Chebyshev's points."""
    angles = (torch.arange(_POINTS, dtype=torch.float64) + 0.5) * (math.pi / _POINTS)
    values = function((low + high) / 2 + (high - low) / 2 * angles.cos())
    waves = (torch.arange(_POINTS, dtype=torch.float64)[:, None] * angles).cos()
    found = waves @ values * (2 / _POINTS)
    found[0] /= 2
    return found.tolist()


def _series(g, function, low, high, x):
    """A function of numbers in an interval, by Clenshaw's recurrence, as exactly as the dtype can tell."""
    found = _coefficients(function, low, high)
    least = torch.finfo(x.dtype).eps / 8 * max(map(abs, found))
    while len(found) > 2 and abs(found[-1]) < least:
        found = found[:-1]
    t = g.op("Sub", g.op("Mul", x, 2 / (high - low)), (low + high) / (high - low))
    twice = g.op("Mul", t, 2.0)
    later, before = g.constant(0.0, x.dtype), g.constant(found[-1], x.dtype)
    for c in found[-2:0:-1]:
        later, before = before, g.op("Add", g.op("Sub", g.op("Mul", twice, before), later), c)
    return g.op("Add", g.op("Sub", g.op("Mul", t, before), later), found[0])


def _floats(g, x):
    return g.cast(x, g.out.dtype)


def _where(g, condition, yes, no, x):
    yes, no = (g.constant(v, x.dtype) for v in (yes, no))
    return g.op("Where", condition, yes, no, dtype=x.dtype, shape=x.shape)


def _compare(g, kind, x, number):
    return g.op(kind, x, number, dtype=torch.bool)


# --- Bessel functions


def _near_bessel(g, z, order):
    """Sum of z^k / (k! (k + order)!), whose terms are all positive."""
    terms = 18 if torch.finfo(z.dtype).eps > 1e-10 else 28
    value = g.constant(0.0, z.dtype)
    for k in reversed(range(terms)):
        value = g.op(
            "Add", g.op("Mul", value, z), 1 / (math.factorial(k) * math.factorial(k + order)), shape=z.shape
        )
    return value


def _far_i0(u):
    return torch.special.i0e(8 / u) * (8 / u).sqrt()


def _far_i1(u):
    return torch.special.i1e(8 / u) * (8 / u).sqrt()


def _bessel(order, far, scaled):
    """Up to 8 a function of (x / 2)^2, beyond it one of 8 / x times e^x / sqrt(x)."""

    def translate(g, x):
        x = _floats(g, x)
        size = g.op("Abs", x)
        small, large = g.op("Min", size, 8.0), g.op("Max", size, 8.0)
        large = large if scaled else g.op("Min", large, 2000.0)  # the result is infinite from 714 on
        half = g.op("Mul", small, 0.5)
        first = _near_bessel(g, g.op("Mul", half, half), order)
        first = g.op("Mul", first, half) if order else first
        second = _series(g, far, 0.0, 1.0, g.op("Div", g.constant(8.0, x.dtype), large))
        second = g.op("Div", second, g.op("Sqrt", large))
        if scaled:
            first = g.op("Mul", first, g.op("Exp", g.op("Neg", small)))
        else:  # by halves, of which neither is infinite before the product is
            root = g.op("Exp", g.op("Mul", large, 0.5))
            second = g.op("Mul", g.op("Mul", second, root), root)
        value = _where(g, _compare(g, "LessOrEqual", size, 8.0), first, second, x)
        value = _where(g, g.op("IsNaN", x, dtype=torch.bool), x, value, x)
        return g.op("Mul", value, g.op("Sign", x)) if order else value

    return translate


for _name, _parts in (("i0", (0, _far_i0)), ("i1", (1, _far_i1))):
    RULES[f"special_{_name}e"] = _bessel(*_parts, True)
    RULES[f"special_{_name}"] = _bessel(*_parts, False)
RULES["i0"] = RULES["special_i0"]


# --- the error function's relatives


def _inverse_over_y(w):
    """erfinv(y) / y by w = -log(1 - y^2)."""
    y = (-torch.expm1(-w)).sqrt()
    return torch.erfinv(y) / y


def _inverse_far(root):
    """erfinv(y) by the root of w, where y is near 1: by how far it is from it."""
    gap = torch.exp(-root * root)
    return -torch.special.ndtri(gap / (1 + (1 - gap).sqrt()) / 2) / math.sqrt(2)


def _inverse(g, y, product):
    """erfinv(y) from y and 1 - y^2."""
    w = g.op("Neg", g.op("Log", product))
    near = g.op("Mul", y, _series(g, _inverse_over_y, 0.0, 6.25, g.op("Min", w, 6.25)))
    root = g.op("Sqrt", g.op("Clip", w, 6.25, 700.0))
    middle = _series(g, _inverse_far, 2.5, 7.0, g.op("Min", root, 7.0))
    outer = _series(g, _inverse_far, 7.0, 26.5, g.op("Max", root, 7.0))
    far = _where(g, _compare(g, "Less", root, 7.0), middle, outer, y)
    far = _where(g, _compare(g, "Equal", product, 0), math.inf, far, y)
    value = _where(g, _compare(g, "LessOrEqual", w, 6.25), near, g.op("Mul", far, g.op("Sign", y)), y)
    outside = g.op("Or", _compare(g, "Less", product, 0), g.op("IsNaN", product, dtype=torch.bool))
    return _where(g, outside, math.nan, value, y)


@rule("erfinv")
def erfinv(g, y):
    y = _floats(g, y)
    one = g.constant(1.0, y.dtype)
    return _inverse(g, y, g.op("Mul", g.op("Sub", one, y), g.op("Add", one, y)))


@rule("special_ndtri")
def ndtri(g, p):
    p = _floats(g, p)
    rest = g.op("Sub", g.constant(1.0, p.dtype), p)
    root = _inverse(g, g.op("Sub", g.op("Mul", p, 2.0), 1.0), g.op("Mul", g.op("Mul", p, 4.0), rest))
    return g.op("Mul", root, math.sqrt(2))


def _scaled_tail(u):
    """(1 + sqrt(pi) x) erfcx(x) by u = 4 / (4 + x)."""
    x = 4 / u - 4
    return (1 + math.sqrt(math.pi) * x) * torch.special.erfcx(x)


def _tail(g, size):
    """erfcx of numbers that are not negative."""
    u = g.op("Div", g.constant(4.0, size.dtype), g.op("Add", size, 4.0))
    under = g.op("Add", g.op("Mul", size, math.sqrt(math.pi)), 1.0)
    return g.op("Div", _series(g, _scaled_tail, 0.0, 1.0, u), under)


@rule("special_erfcx")
def erfcx(g, x):
    x = _floats(g, x)
    right = _tail(g, g.op("Abs", x))
    left = g.op("Sub", g.op("Mul", g.op("Exp", g.op("Mul", x, x)), 2.0), right)
    return _where(g, _compare(g, "Less", x, 0), left, right, x)


@rule("special_log_ndtr")
def log_ndtr(g, x):
    x = _floats(g, x)
    t = g.op("Mul", x, math.sqrt(0.5))
    square = g.op("Mul", t, t)
    half = g.op("Mul", _tail(g, g.op("Abs", t)), 0.5)
    left = g.op("Sub", g.op("Log", half), square)
    right = RULES["log1p"](g, g.op("Neg", g.op("Mul", half, g.op("Exp", g.op("Neg", square)))))
    return _where(g, _compare(g, "Less", x, 0), left, right, x)


# --- the gamma function's relatives


def _between_roots(y):
    """log Gamma(y) without its roots at 1 and 2."""
    return torch.lgamma(y) / ((y - 1) * (y - 2))


def _rest_of_lgamma(u):
    """What is left of log Gamma(8 / u) beside its main terms."""
    z = 8 / u
    return (torch.lgamma(z) - (z - 0.5) * (z.log() - 1) - (math.log(2 * math.pi) - 1) / 2) / u


def _from_half_turn(g, size):
    """How far numbers are from the nearest whole one, and whether they are whole."""
    rest = g.op("Sub", size, g.op("Round", size))
    return rest, _compare(g, "Equal", rest, 0)


@rule("lgamma")
def lgamma(g, x):
    """Down to [1, 2.5) by factors, from 8 on by Stirling's formula; by reflection for negative numbers."""
    x = _floats(g, x)
    one = g.constant(1.0, x.dtype)
    z = g.op("Max", g.op("Abs", x), float(torch.finfo(x.dtype).smallest_normal))
    low = _compare(g, "Less", z, 1.0)
    small, large = g.op("Min", z, 8.0), g.op("Max", z, 8.0)
    product, y = one, small
    for k in range(1, 7):
        lower = g.op("Sub", small, float(k))
        taken = _compare(g, "GreaterOrEqual", lower, 1.5)
        product = g.op("Mul", product, _where(g, taken, lower, one, x), shape=x.shape)
        y = _where(g, taken, lower, y, x)
    y = _where(g, low, g.op("Add", small, 1.0), y, x)
    roots = g.op("Mul", g.op("Sub", y, 1.0), g.op("Sub", y, 2.0))
    factors = g.op("Log", _where(g, low, g.op("Reciprocal", z), product, x))
    near = g.op("Add", g.op("Mul", roots, _series(g, _between_roots, 1.0, 2.5, y)), factors)
    u = g.op("Div", g.constant(8.0, x.dtype), large)
    main = g.op("Mul", g.op("Sub", large, 0.5), g.op("Sub", g.op("Log", large), 1.0))
    rest = g.op("Mul", u, _series(g, _rest_of_lgamma, 0.0, 1.0, u))
    far = g.op("Add", main, g.op("Add", rest, (math.log(2 * math.pi) - 1) / 2))
    value = _where(g, _compare(g, "Less", z, 8.0), near, far, x)
    distance, whole = _from_half_turn(g, z)
    sine = g.op("Abs", g.op("Sin", g.op("Mul", distance, math.pi)))
    reflected = g.op(
        "Sub", g.op("Log", g.op("Div", g.constant(math.pi, x.dtype), g.op("Mul", z, sine))), value
    )
    reflected = _where(g, whole, math.inf, reflected, x)
    value = _where(g, _compare(g, "LessOrEqual", x, 0), reflected, value, x)
    return _where(g, g.op("IsInf", x, dtype=torch.bool), math.inf, value, x)


def _rest_of_digamma(u):
    """What is left of digamma(8 / u) beside log(z) - 1 / (2 z)."""
    z = 8 / u
    return (torch.digamma(z) - z.log() + 0.5 / z) / (u * u)


@rule("digamma")
def digamma(g, x):
    """From 8 on by its asymptotic series, below it eight steps on; by reflection for negative numbers."""
    x = _floats(g, x)
    one, negative = g.constant(1.0, x.dtype), _compare(g, "Less", x, 0)
    z = _where(g, negative, g.op("Sub", one, x), x, x)
    below = _compare(g, "Less", z, 8.0)
    steps = g.op("Reciprocal", z)
    for k in range(1, 8):
        steps = g.op("Add", steps, g.op("Reciprocal", g.op("Add", z, float(k))))
    w = _where(g, below, g.op("Add", z, 8.0), z, x)
    u = g.op("Div", g.constant(8.0, x.dtype), w)
    rest = g.op("Mul", g.op("Mul", u, u), _series(g, _rest_of_digamma, 0.0, 1.0, u))
    main = g.op("Add", g.op("Sub", g.op("Log", w), g.op("Div", g.constant(0.5, x.dtype), w)), rest)
    main = g.op("Sub", main, _where(g, below, steps, 0.0, x))
    distance, whole = _from_half_turn(g, x)
    angle = g.op("Mul", distance, math.pi)
    cotangent = g.op("Div", g.op("Cos", angle), g.op("Sin", angle))
    reflected = _where(g, whole, math.nan, g.op("Sub", main, g.op("Mul", cotangent, math.pi)), x)
    value = _where(g, negative, reflected, main, x)
    pole = g.op("Neg", g.op("Reciprocal", x))  # of the zero's sign
    return _where(g, _compare(g, "Equal", x, 0), pole, value, x)
