"""Numbers with a fraction as functions of sizes: quotients, square roots, and one divided by these."""

import itertools
import math
import operator
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import rushlight as torch

from ._explain import Samples, Unexplained, explain, few
from ._sizes import Polynomial, constant

_LARGEST_DIVISOR = 512
_ROUNDING = 1e-12, 2e-7  # of numbers of float64, and of those that a tensor holds as float32
_NEARLY_WHOLE = 1e-9, 4e-7


@dataclass(frozen=True)
class Form:
    """A function of a quotient of whole numbers: its inverse, what it computes, and nodes that compute it."""

    quotient_of: Callable[[float], float]
    compute: Callable[[int, int], float]
    build: Callable[[Any, Any, int], Any]  # of builder, dividend, divisor


def _quotient(builder, dividend, divisor):
    if divisor == 1:
        return builder.call(torch.sym_float, dividend)
    return builder.call(operator.truediv, dividend, divisor)


def _root(builder, dividend, divisor):
    inner = dividend if divisor == 1 else _quotient(builder, dividend, divisor)
    return builder.call(torch._sym_sqrt, inner)  # type: ignore[attr-defined]


def _power(exponent):
    """A program's `n**0.5` may differ from its `math.sqrt(n)` by a rounding."""

    def build(builder, dividend, divisor):
        return builder.call(operator.pow, _quotient(builder, dividend, divisor), exponent)

    return Form(lambda x: x ** (1 / exponent), lambda p, q: (p / q) ** exponent, build)


_FORMS = (
    Form(lambda x: x, lambda p, q: p / q, _quotient),
    Form(lambda x: 1 / x, lambda p, q: q / p, lambda b, p, q: b.call(operator.truediv, q, p)),
    _power(0.5),
    Form(lambda x: x * x, lambda p, q: math.sqrt(p / q), _root),
    _power(-0.5),
    Form(
        lambda x: 1 / (x * x),
        lambda p, q: 1 / math.sqrt(p / q),
        lambda b, p, q: b.call(operator.truediv, 1.0, _root(b, p, q)),
    ),
    Form(
        lambda x: 1 / (1 - x),
        lambda p, q: 1 - q / p,
        lambda b, p, q: b.call(operator.sub, 1.0, b.call(operator.truediv, q, p)),
    ),
    Form(
        lambda x: 1 / (1 + x),
        lambda p, q: q / p - 1,
        lambda b, p, q: b.call(operator.sub, b.call(operator.truediv, q, p), 1.0),
    ),
)


@dataclass(frozen=True)
class Real:
    """A form of a polynomial divided by a number."""

    form: Form
    dividend: Polynomial
    divisor: int

    @property
    def terms(self):
        return self.dividend.terms

    def number(self, values):
        """The number at some sizes; not a number where it has none."""
        try:
            return self.form.compute(self.dividend.number(values), self.divisor)
        except ZeroDivisionError:
            return math.nan

    def build(self, builder):
        """The node that computes it."""
        return self.form.build(builder, builder.sum(self.dividend), self.divisor)


@dataclass(frozen=True)
class Ratio:
    """A sum of products of sizes divided by another one, such as ``(n - 1) / n`` or ``height / width``."""

    dividend: Polynomial
    divisor: Polynomial

    @property
    def terms(self):
        return {**self.divisor.terms, **self.dividend.terms}

    def number(self, values):
        """The number at some sizes; not a number where it has none."""
        divisor = self.divisor.number(values)
        return self.dividend.number(values) / divisor if divisor else math.nan

    def build(self, builder):
        """The node that computes it."""
        return builder.call(operator.truediv, builder.sum(self.dividend), builder.sum(self.divisor))


@dataclass(frozen=True)
class Rounded:
    """A number as a tensor of float32 holds it."""

    exact: Any

    @property
    def terms(self):
        return self.exact.terms

    def number(self, values):
        return torch.tensor(self.exact.number(values), dtype=torch.float32).item()

    def build(self, builder):
        return self.exact.build(builder)


def _ratios(samples, names, short):
    """What a float is where a size, one more or one less, or a product of such makes it a whole number."""
    points = _points(samples, names)
    for parts in itertools.product((None, 0, -1, 1), repeat=len(names)):
        factors = [(name, more) for name, more in zip(names, parts) if more is not None]
        if not factors:
            continue
        divisor = constant(1)
        for name, more in factors:
            size = Polynomial({frozenset({name}): Fraction(1), frozenset(): Fraction(more)})
            divisor = Polynomial(
                {a | b: c * d for a, c in divisor.terms.items() for b, d in size.terms.items()}
            )

        def dividend_at(sizes, divisor=divisor):
            exact = samples.value_at(sizes) * divisor.number(sizes)
            if not math.isfinite(exact) or abs(round(exact) - exact) > _NEARLY_WHOLE[short] * max(
                abs(exact), 1
            ):
                raise Unexplained
            return round(exact)

        try:
            for sizes in points:
                dividend_at(sizes)
            dividends = Samples(dividend_at, samples.base, samples.ranges, samples.usable)
            yield Ratio(explain(dividends, names), divisor)
        except (Unexplained, ArithmeticError):
            continue


def explain_real(samples, names, short=False):
    """The `Real` or `Ratio` that a float is, to its last bit, or to that of float32 if it is ``short``; it
    depends on the named sizes alone."""
    for found in itertools.chain(_reals(samples, names, short), _ratios(samples, names, short)):
        found = Rounded(found) if short else found
        try:
            if all(found.number(sizes) == samples.value_at(sizes) for sizes in _points(samples, names)):
                return found
        except ArithmeticError:
            continue
    raise Unexplained


def _reals(samples, names, short):
    for form in _FORMS:
        try:
            yield _in_form(form, samples, names, short)
        except (Unexplained, ArithmeticError):
            continue


def _in_form(form, samples, names, short):
    def quotient_at(sizes):
        exact = form.quotient_of(samples.value_at(sizes))
        found = Fraction(exact).limit_denominator(_LARGEST_DIVISOR)
        if abs(found - exact) > _ROUNDING[short] * abs(exact):
            raise Unexplained
        return found

    divisor = math.lcm(*(quotient_at(sizes).denominator for sizes in _points(samples, names)))
    if divisor > _LARGEST_DIVISOR:
        raise Unexplained

    def dividend_at(sizes):
        found = quotient_at(sizes) * divisor
        if found.denominator != 1:
            raise Unexplained
        return int(found)

    dividends = Samples(dividend_at, samples.base, samples.ranges, samples.usable)
    return Real(form, explain(dividends, names), divisor)


def _points(samples, names):
    """The sizes of the base, and some that differ in one."""
    points = [samples.base]
    for name in names:
        points += [{**samples.base, name: n} for n in few(samples.ranges[name], samples.base[name])]
    return [sizes for sizes in points if samples.usable(sizes)]


def whole(number):
    """The polynomial that a number is where it has no fraction, else the number."""
    is_one = isinstance(number, Real) and number.form is _FORMS[0] and number.divisor == 1
    return number.dividend if is_one else number
