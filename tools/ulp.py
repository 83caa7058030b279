#!/usr/bin/env python3
"""Measures the accuracy of every pointwise operator, in units in the last place (ULP), against mpmath.

``python tools/ulp.py`` prints docs/accuracy.md; ``--check`` prints nothing and fails where an operator is
worse than PyTorch by more than one ULP; ``--filter`` and ``--points`` narrow the work. PyTorch's errors on
the same points stand beside ours where it is installed.
"""

import argparse
import math
import pathlib
import re
import sys
from dataclasses import dataclass

import mpmath
import numpy

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
DIGITS = 50
SPECIAL = [
    0.5,
    1.0,
    1.5,
    2.0,
    3.0,
    10.0,
    1e-3,
    1e-7,
    1e-20,
    0.25,
    0.75,
    0.9999,
    1.0001,
    7.5,
    33.0,
    88.0,
    100.0,
]


@dataclass(frozen=True)
class Case:
    name: str  # dotted, below the top module
    exact: object  # of mpmath numbers
    intervals: tuple  # of (low, high), or of pairs of those for two arguments; sampled in turn
    note: str = ""
    double: float = 1.0  # units of float64 by which it may be worse than PyTorch


def sigmoid(x):
    return 1 / (1 + mpmath.exp(-x))


def normal_cdf(x):
    return mpmath.erfc(-x / mpmath.sqrt(2)) / 2


def normal_quantile(p):
    return -mpmath.sqrt(2) * mpmath.erfinv(1 - 2 * p)


def one(name, exact, *intervals, note="", double=1.0):
    return Case(name, exact, intervals, note, double)


WIDE = (-1e4, 1e4)
SMALL = (-1e-3, 1e-3)
CASES = [
    one("exp", mpmath.exp, (-87, 88), SMALL),
    one("exp2", lambda x: mpmath.mpf(2) ** x, (-125, 127), SMALL),
    one("expm1", mpmath.expm1, (-30, 88), SMALL, (-1, 1)),
    one("log", mpmath.log, (1e-6, 10), (0.9, 1.1), (1, 1e30)),
    one("log2", lambda x: mpmath.log(x) / mpmath.log(2), (1e-6, 10), (0.9, 1.1), (1, 1e30)),
    one("log10", mpmath.log10, (1e-6, 10), (0.9, 1.1), (1, 1e30)),
    one("log1p", mpmath.log1p, (-0.99, 10), SMALL, (1, 1e30)),
    one("sin", mpmath.sin, (-10, 10), SMALL, WIDE),
    one("cos", mpmath.cos, (-10, 10), SMALL, WIDE),
    one("tan", mpmath.tan, (-10, 10), SMALL, WIDE),
    one("asin", mpmath.asin, (-1, 1), SMALL),
    one("acos", mpmath.acos, (-1, 1), (0.99, 1)),
    one("atan", mpmath.atan, (-10, 10), SMALL, WIDE),
    one("sinh", mpmath.sinh, (-80, 80), SMALL, (-1, 1)),
    one("cosh", mpmath.cosh, (-80, 80), (-1, 1)),
    one("tanh", mpmath.tanh, (-9, 9), SMALL, (-1, 1)),
    one("asinh", mpmath.asinh, (-10, 10), SMALL, WIDE),
    one("acosh", mpmath.acosh, (1.01, 10), (1, 1.01), (1, 1e4)),
    one("atanh", mpmath.atanh, (-0.999, 0.999), SMALL),
    one("sqrt", mpmath.sqrt, (0, 10), (1, 1e30)),
    one("rsqrt", lambda x: 1 / mpmath.sqrt(x), (1e-6, 10), (1, 1e30)),
    one("reciprocal", lambda x: 1 / x, (0.01, 10), (-1e6, -1)),
    one("square", lambda x: x * x, (-1e4, 1e4)),
    one("sigmoid", sigmoid, (-80, 80), (-2, 2)),
    one("erf", mpmath.erf, (-6, 6), SMALL, (-1, 1)),
    one("erfc", mpmath.erfc, (-6, 9), (-1, 1)),
    one("erfinv", mpmath.erfinv, (-0.999, 0.999), SMALL),
    one("lgamma", lambda x: mpmath.loggamma(x).real, (0.1, 0.9), (2.1, 100), (1.2, 1.8), double=1.25),
    one("digamma", mpmath.digamma, (0.01, 1.3), (1.6, 100), (-9.9, -0.1)),
    one("sinc", lambda x: mpmath.sin(mpmath.pi * x) / (mpmath.pi * x), (-0.9, 0.9), (1.1, 1.9)),
    one("deg2rad", lambda x: x * mpmath.pi / 180, (-360, 360)),
    one("rad2deg", lambda x: x * 180 / mpmath.pi, (-10, 10)),
    one("logit", lambda x: mpmath.log(x / (1 - x)), (0.01, 0.4), (0.6, 0.99)),
    one("special.ndtr", normal_cdf, (-5, 5), (-12, -5)),
    one("special.ndtri", normal_quantile, (0.001, 0.4), (0.6, 0.999), (1e-10, 1e-3)),
    one("special.log_ndtr", lambda x: mpmath.log(normal_cdf(x)), (-5, 5), (-30, -5)),
    one("special.erfcx", lambda x: mpmath.exp(x * x) * mpmath.erfc(x), (-5, 5), (5, 100)),
    one("special.entr", lambda x: -x * mpmath.log(x), (0.01, 0.9), (1.1, 10)),
    one("special.i0", lambda x: mpmath.besseli(0, x), (-10, 10), (10, 80)),
    one("special.i0e", lambda x: mpmath.besseli(0, x) * mpmath.exp(-abs(x)), (-10, 10), (10, 80)),
    one("special.i1", lambda x: mpmath.besseli(1, x), (-10, 10), (10, 80)),
    one("special.i1e", lambda x: mpmath.besseli(1, x) * mpmath.exp(-abs(x)), (-10, 10), (10, 80)),
    one("special.bessel_j0", lambda x: mpmath.besselj(0, x), (0, 2.3), (2.6, 5.3)),
    one("special.bessel_j1", lambda x: mpmath.besselj(1, x), (0, 3.7), (4, 6.8)),
    one("special.bessel_y0", lambda x: mpmath.bessely(0, x), (0.01, 0.8), (1, 3.8)),
    one("special.bessel_y1", lambda x: mpmath.bessely(1, x), (0.01, 2), (2.3, 5.3)),
    one("special.modified_bessel_k0", lambda x: mpmath.besselk(0, x), (0.01, 2), (2, 80)),
    one("special.modified_bessel_k1", lambda x: mpmath.besselk(1, x), (0.01, 2), (2, 80)),
    one("special.scaled_modified_bessel_k0", lambda x: mpmath.besselk(0, x) * mpmath.exp(x), (0.01, 80)),
    one("special.scaled_modified_bessel_k1", lambda x: mpmath.besselk(1, x) * mpmath.exp(x), (0.01, 80)),
    one("special.spherical_bessel_j0", lambda x: mpmath.sin(x) / x, (0.1, 3), (3.3, 6.1)),
    one("special.airy_ai", mpmath.airyai, (-2, 2), (2, 20), (-3.9, -2.5)),
    one("nn.functional.softplus", lambda x: mpmath.log1p(mpmath.exp(x)), (-20, 19)),
    one("nn.functional.silu", lambda x: x * sigmoid(x), (-20, 20)),
    one("nn.functional.gelu", lambda x: x * normal_cdf(x), (-4, 10)),
    one("nn.functional.mish", lambda x: x * mpmath.tanh(mpmath.log1p(mpmath.exp(x))), (-20, 19)),
    one("nn.functional.elu", lambda x: x if x > 0 else mpmath.expm1(x), (-10, 10)),
    one("nn.functional.logsigmoid", lambda x: -mpmath.log1p(mpmath.exp(-x)), (-20, 20)),
    one("atan2", mpmath.atan2, ((-10, 10), (-10, 10)), ((-1, 1), (0.1, 1e4))),
    one("hypot", mpmath.hypot, ((-10, 10), (-10, 10)), ((1e15, 1e18), (1e15, 1e18))),
    one("pow", mpmath.power, ((0.1, 10), (-10, 10)), ((0.9, 1.1), (-300, 300))),
    one("div", lambda a, b: a / b, ((-10, 10), (0.1, 10))),
    one(
        "logaddexp",
        lambda a, b: max(a, b) + mpmath.log1p(mpmath.exp(-abs(a - b))),
        ((1, 10), (1, 10)),
        ((50, 100), (1, 100)),
    ),
    one("logaddexp2", lambda a, b: mpmath.log(2**a + 2**b) / mpmath.log(2), ((1, 10), (1, 10))),
    one("xlogy", lambda a, b: a * mpmath.log(b), ((-10, 10), (0.01, 0.9)), ((-10, 10), (1.1, 100))),
    one("special.xlog1py", lambda a, b: a * mpmath.log1p(b), ((-10, 10), (-0.9, 10))),
    one("special.zeta", mpmath.zeta, ((1.1, 30), (0.1, 30))),
    one("special.gammainc", lambda a, x: mpmath.gammainc(a, 0, x, regularized=True), ((0.1, 20), (0.1, 20))),
    one("special.gammaincc", lambda a, x: mpmath.gammainc(a, x, regularized=True), ((0.1, 20), (0.1, 20))),
]


def arguments(case, dtype, count):
    """Seeded random points of each interval and the special points inside them, as arrays of `dtype`."""
    random = numpy.random.default_rng(20)
    columns = None
    for interval in case.intervals:
        pair = interval if isinstance(interval[0], tuple) else (interval,)
        wide = [low > 0 and high / low > 1e6 for low, high in pair]
        drawn = [
            numpy.exp(random.uniform(math.log(low), math.log(high), count))
            if w
            else random.uniform(low, high, count)
            for (low, high), w in zip(pair, wide, strict=True)
        ]
        if len(pair) == 1:
            low, high = pair[0]
            points = [s * p for p in SPECIAL for s in (1, -1) if low <= s * p <= high]
            drawn = [numpy.concatenate([drawn[0], points])]
        columns = (
            drawn if columns is None else [numpy.concatenate(c) for c in zip(columns, drawn, strict=True)]
        )
    return [c.astype(dtype) for c in columns]


def errors(values, exact, dtype):
    """The largest distance from `exact`, in units of the last place of the nearest number of `dtype`."""
    info = numpy.finfo(dtype)
    worst, where = 0.0, 0
    for i, (value, true) in enumerate(zip(values, exact, strict=True)):
        if true is None:
            continue
        if abs(true) > float(info.max):
            continue
        if not math.isfinite(value):
            return math.inf, i
        if abs(true) < float(info.tiny):
            continue
        unit = mpmath.mpf(2) ** (mpmath.frexp(true)[1] - 1 - info.nmant)
        error = float(abs(mpmath.mpf(float(value)) - true) / unit)
        if error > worst:
            worst, where = error, i
    return worst, where


def lookup(module, name):
    for part in name.split("."):
        module = getattr(module, part)
    return module


def measure(case, dtype, count, modules):
    """One pair (largest error, where) for each module."""
    inputs = arguments(case, dtype, count)
    with mpmath.workdps(DIGITS):
        exact = []
        for point in zip(*inputs, strict=True):
            try:
                value = case.exact(*(mpmath.mpf(float(p)) for p in point))
                exact.append(mpmath.mpf(value.real))
            except (ValueError, ZeroDivisionError, mpmath.libmp.NoConvergence):
                exact.append(None)
        results = []
        for module in modules:
            tensors = [module.from_numpy(x) for x in inputs]
            worst, where = errors(lookup(module, case.name)(*tensors).numpy(), exact, dtype)
            results.append((worst, tuple(float(x[where]) for x in inputs)))
    return results


HEADER = """# Accuracy of the pointwise operators

The largest error on seeded random and special points, in units of the last place of the exact result, which
mpmath computes with {digits} digits; beside it the error of PyTorch {version} on the same points. Intervals
keep away from points where a result vanishes between numbers (zeros of Bessel functions, of lgamma, ...),
because there one unit is as small as one likes. Printed by `tools/ulp.py`; `tools/ulp.py --check` fails where
an operator is worse than PyTorch by more than one unit, or than its table allows: `lgamma` of doubles is by
1.1 here, and by 2 on more points, as it takes one logarithm of a rounded product. `gelu` of doubles loses
digits left of -2, where 1 + erf vanishes, in both libraries.

| operator | float32 | PyTorch | float64 | PyTorch |
|---|---|---|---|---|
"""


def text(error):
    return "inf" if math.isinf(error) else f"{error:.2f}" if error < 1000 else f"{error:.1e}"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--filter", default="")
    parser.add_argument("--points", type=int, default=300)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--output", default=str(ROOT / "docs" / "accuracy.md"))
    options = parser.parse_args()
    import rushlight

    modules = [rushlight]
    try:
        import torch

        modules.append(torch)
    except ModuleNotFoundError:
        pass
    lines, worse = [], []
    for case in CASES:
        if not re.search(options.filter, case.name):
            continue
        cells = [case.name]
        for dtype in (numpy.float32, numpy.float64):
            results = measure(case, dtype, options.points, modules)
            cells += [text(e) for e, _ in results] + ["-"] * (2 - len(results))
            allowed = case.double if dtype is numpy.float64 else 1.0
            if len(results) == 2 and results[0][0] > results[1][0] + allowed:
                worse.append(f"{case.name} {dtype.__name__}: {results[0]} against {results[1]}")
        lines.append("| " + " | ".join(cells) + " |")
        if not options.check:
            print(lines[-1], flush=True)
    for line in worse:
        print("worse than PyTorch:", line)
    if not options.check and not options.filter and len(modules) == 2:
        head = HEADER.format(digits=DIGITS, version=modules[1].__version__)
        pathlib.Path(options.output).write_text(head + "\n".join(lines) + "\n")
    return bool(worse) and options.check


if __name__ == "__main__":
    sys.exit(main())
