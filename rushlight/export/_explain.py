"""A number of a program, known at some sizes, as a function of these."""

import functools
import itertools
import math
from fractions import Fraction

from ._align import Specialized
from ._sizes import _MOST_SYMBOLS, Extreme, Part, Polynomial, Power, Quotient, constant

_PERIODS = (4, 8, 16, 32, 64)  # how far sizes are tried one by one, until a number's period is seen
_MOST_QUOTIENTS = 8


class Unexplained(Exception):
    pass


class Samples:
    """A number at many sizes. ``value_at(sizes)`` traces; ``ranges`` are the sizes that may be tried, where
    they are ``usable``."""

    def __init__(self, value_at, base, ranges, usable):
        self.value_at, self.base, self.ranges, self.usable = value_at, base, ranges, usable

    def at(self, **sizes):
        return self.value_at({**self.base, **sizes})

    def along(self, name, sizes):
        sizes = [size for size in sizes if self.usable({**self.base, name: size})]
        return {size: self.at(**{name: size}) for size in sizes}


def explain(samples, names):
    """The polynomial that a number is; it depends on the named sizes alone."""
    if len(names) > _MOST_SYMBOLS:
        raise Unexplained
    try:
        functions = {name: _along_axis(samples, name) for name in names}
    except Unexplained:
        candidates, functions = [_between(samples, names)], {}
    else:
        names = [name for name in names if any(functions[name].terms.keys() - {frozenset()})]
        functions = {name: functions[name] for name in names}
        if len(names) < 2:
            return functions[names[0]].whole() if names else constant(samples.at())
        candidates = [_separated(samples, functions), _between(samples, names)]
        candidates += _quotients_of_sum(samples, functions)
    candidates = [found for found in candidates if found is not None]
    if any(map(_is_bent, functions.values())):  # what looks like one of these may be another one
        candidates += across(samples, names)
    found = _agreeing(candidates, samples, names) or _agreeing(across(samples, names), samples, names)
    if not found:
        raise Unexplained
    return found[0]


def _smallest(samples, names):
    """Where all sizes are small, the number there, in a list; it is empty where the program takes another
    path there."""
    at = {**samples.base, **{name: samples.ranges[name][0] for name in names}}
    try:
        return [(at, samples.at(**at))] if samples.usable(at) else []
    except Specialized:
        return []


def _is_bent(polynomial):
    return any(isinstance(factor, Extreme) for factors in polynomial.terms for factor in factors)


def _agreeing(candidates, samples, names):
    """Those that have the program's numbers at further sizes."""
    for at, value in _smallest(samples, names) if candidates else ():
        candidates = [found for found in candidates if found.at(at) == value]
    for at in _together(samples, names) if candidates else ():
        candidates = [found for found in candidates if found.at(at) == samples.at(**at)]
    for at in _nearby(samples, names) if len(candidates) > 1 else ():
        if len({found.at(at) for found in candidates}) > 1:
            candidates = [found for found in candidates if found.at(at) == samples.at(**at)]
    return candidates


def _together(samples, names):
    """Some sizes that all differ from the example's."""
    for step in (1, 3, 4):
        at = dict(samples.base)
        for i, name in enumerate(names):
            low, high = samples.ranges[name]
            at[name] = low + (at[name] - low + step * (i + 1)) % (min(high, at[name] + 40) - low + 1)
        if samples.usable(at):
            yield at


def _nearby(samples, names):
    """Sizes where candidates that agree elsewhere may differ: all a few above the example's, and each small,
    as in the example, or large."""
    few_more = [range(samples.base[name], samples.base[name] + 4) for name in names]
    apart = [
        (low, low + 5, samples.base[name], low + 60, high)
        for name in names
        for low, high in [samples.ranges[name]]
    ]
    for sizes in itertools.chain(itertools.product(*few_more), itertools.product(*apart)):
        at = {**samples.base, **dict(zip(names, sizes))}
        if all(at[name] <= samples.ranges[name][1] for name in names) and samples.usable(at):
            yield at


# --- one size ---------------------------------------------------------------------------------------


def few(ends, value):
    """Some sizes of a range: the ends, some around the example's, the large ones."""
    low, high = ends
    found = {low, low + 1, value, value + 1, value + 5, value + 12, high - 2, high - 1, high}
    return sorted(n for n in found if low <= n <= high)


def _along_axis(samples, name):
    low, high = samples.ranges[name]
    known = samples.along(name, few((low, high), samples.base[name]))
    for attempt in (_affine, _power):
        found = attempt(known, name)
        if found is not None:
            return found
    for period in _PERIODS:
        last = min(high, low + 2 * period + 3)
        dense = samples.along(name, range(low, last + 1))
        found = _periodic(dense, known, name, period) or _bent(dense, {**known, **dense}, name)
        if found is not None:
            return found
        if last == high:
            break
    raise Unexplained


def _fits(polynomial, known, name):
    return all(polynomial.at({name: size}) == value for size, value in known.items())


def _affine(known, name):
    (a, at_a), (b, at_b) = list(known.items())[:: max(len(known) - 1, 1)][:2]
    found = Polynomial.through([name], {name: (a, b)}, lambda chosen: known[chosen[name]])
    return found if _fits(found, known, name) else None


def _power(known, name):
    """A polynomial of degree two or three in one size."""
    for degree in (2, 3):
        points = list(known)[: degree + 1]
        if len(known) < degree + 2:
            return None
        found = _interpolated(points, known, name)
        if _fits(found, known, name):
            return found
    return None


def _interpolated(points, known, name):
    """Newton's form, multiplied out."""
    differences = [Fraction(known[x]) for x in points]
    for k in range(1, len(points)):
        for i in range(len(points) - 1, k - 1, -1):
            differences[i] = (differences[i] - differences[i - 1]) / (points[i] - points[i - k])
    coefficients = [Fraction(0)]
    for x, d in zip(reversed(points), reversed(differences)):
        shifted = [Fraction(0), *coefficients]
        coefficients = [a - x * b for a, b in zip(shifted, [*coefficients, Fraction(0)])]
        coefficients[0] += d
    keys = [frozenset(), frozenset({name}), *(frozenset({Power(name, k)}) for k in (2, 3, 4))]
    return Polynomial(dict(zip(keys, coefficients)))


def _periodic(dense, known, name, most):
    """A line and something that repeats: sums of quotients rounded down."""
    sizes = list(dense)
    for period in range(2, most + 1):
        pairs = [(n, n + period) for n in sizes if n + period in dense]
        if len(pairs) < period + 1:
            return None
        if len({dense[b] - dense[a] for a, b in pairs}) == 1:
            found = _quotients(dense, name, period)
            if found is not None and _fits(found, {**known, **dense}, name):
                return found
    return None


def _quotients(dense, name, period):
    first = min(dense)
    steps = {n % period: dense[n] - dense[n - 1] for n in range(first + 1, first + period + 1)}
    common = max(set(steps.values()), key=lambda step: (list(steps.values()).count(step), -abs(step)))
    jumps = {rest: step - common for rest, step in steps.items() if step != common}
    if len(jumps) > _MOST_QUOTIENTS:
        return None
    terms = {frozenset({name}): Fraction(common)}
    for rest, jump in jumps.items():
        dividend = Polynomial({frozenset({name}): Fraction(1), frozenset(): Fraction((-rest) % period)})
        terms[frozenset({Quotient(dividend, period)})] = Fraction(jump)
    found = Polynomial(terms)
    return Polynomial({**terms, frozenset(): dense[first] - found.at({name: first})})


def _bent(dense, known, name):
    """One function for small sizes and another for large ones, the larger or the smaller of the two."""
    large = [n for n in sorted(known)][-3:]
    tail = _affine({n: known[n] for n in large}, name)
    if tail is None:
        return None
    # Of a short beginning no line can be told, but that it is none.
    heads = [_longest_head(dense, name), constant(dense[min(dense)])]
    for head in heads:
        for choose in (max, min) if head is not None else ():
            part = Polynomial({frozenset({Extreme(choose, head.whole(), tail.whole())}): Fraction(1)})
            if _fits(part, known, name):
                return part
    return None


def _longest_head(dense, name):
    """What the first sizes follow, before the bend."""
    sizes = list(dense)
    for attempt in (_affine, lambda known, name: _periodic(known, {}, name, len(known) // 2)):
        for count in range(len(sizes), 2, -1):
            found = attempt({n: dense[n] for n in sizes[:count]}, name)
            if found is not None:
                return found
    return None


# --- several sizes ----------------------------------------------------------------------------------


def _separated(samples, functions):
    """A sum of products of functions of one size each."""
    try:
        return _through_parts(samples, functions, lambda size, first: (size < first, size))
    except Specialized:  # parts of a whole have no larger sizes together
        return _through_parts(samples, functions, lambda size, first: 0)


def _through_parts(samples, functions, preferred):
    """The sum through the example's sizes and one other of each, the preferred one. Those above come first,
    since small ones may be of another function."""
    parts, ends, size_of = [], {}, {}
    for name, function in functions.items():
        part = _part(function, name)
        low, high = samples.ranges[name]
        first = samples.base[name]
        sizes = few((low, high), first) + list(range(low, min(high, low + 130)))
        sizes = [n for n in sizes if samples.usable({**samples.base, name: n})]
        sizes.sort(key=functools.partial(preferred, first=first))
        other = next((n for n in sizes if _at(part, name, n) != _at(part, name, first)), None)
        if other is None:
            return None
        parts.append(part)
        ends[part] = _at(part, name, first), _at(part, name, other)
        size_of[part] = {ends[part][0]: (name, first), ends[part][1]: (name, other)}
    found = Polynomial.through(
        parts, ends, lambda chosen: samples.at(**dict(size_of[p][v] for p, v in chosen.items()))
    )
    return found.whole()


def _at(part, name, size):
    return size if isinstance(part, str) else part.at({name: size})


def _part(function, name):
    """A function of one size, up to a factor and a constant."""
    terms = {names: c for names, c in function.whole().terms.items() if names}
    if set(terms) == {frozenset({name})}:
        return name
    numerators = [abs(c.numerator) for c in map(Fraction, terms.values())]
    divisor = numerators[0]
    for n in numerators[1:]:
        divisor = _gcd(divisor, n)
    scaled = Polynomial({names: Fraction(c) / divisor for names, c in terms.items()})
    if len(terms) == 1:
        ((names, c),) = scaled.terms.items()
        if c == 1 and len(names) == 1:
            return next(iter(names))
    return Part(scaled)


def _gcd(a, b):
    while b:
        a, b = b, a % b
    return a


def _between(samples, names):
    """The largest or smallest of some sizes, times a number, beside a line."""
    if len(names) < 2:
        return None
    lowest = max(samples.ranges[n][0] for n in names)
    highest = min(samples.ranges[n][1] for n in names)
    points = [{n: lowest + at for n, at in zip(names, ats)} for ats in _orders(len(names))]
    if highest < max(max(at.values()) for at in points):
        return None
    if not all(samples.usable({**samples.base, **at}) for at in points):
        return None
    try:
        known = [(at, samples.at(**at)) for at in points]
    except Specialized:
        return None
    line = [Polynomial({frozenset({n}): Fraction(1)}) for n in names]
    for choose in (max, min):
        most = line[0]
        for other in line[1:]:
            most = Polynomial({frozenset({Extreme(choose, most, other)}): Fraction(1)})
        keys = [frozenset(), *(frozenset({n}) for n in names), *most.terms]
        rows = [[Polynomial({k: Fraction(1)}).at(at) for k in keys] for at, _ in known]
        found = _solved(rows[: len(keys)], [v for _, v in known[: len(keys)]])
        if found is not None:
            made = Polynomial(dict(zip(keys, found)))
            if made.is_whole() and all(made.at(at) == v for at, v in known):
                return made
    return None


def _orders(count):
    """Offsets of sizes, each the largest in one and the smallest in another; of two more than there are sizes
    a line and an extreme can be told."""
    if count == 2:
        return (1, 4), (2, 7), (5, 1), (6, 3), (3, 3), (0, 2)
    least = [[i + 1 for i in range(count)] for _ in range(count)]
    found = [[6 + 2 * k if i == k else n for i, n in enumerate(row)] for k, row in enumerate(least)]
    found += [[0 if i == k else 3 + (i * k + i) % 5 for i in range(count)] for k in range(count)]
    return *found, [2] * count, [9 + i for i in range(count)]


def across(samples, names):
    """The smaller and the larger of two sums of products: of what is computed where all sizes are small, and
    of what is where all are large, as ``min(100, height * width)``."""
    ends = [samples.ranges[name] for name in names]
    if any(high - low < 16 for low, high in ends):
        return []
    small = _linear_in_each(samples, {name: low for name, (low, _) in zip(names, ends)})
    large = _linear_in_each(samples, {name: high - 1 for name, (_, high) in zip(names, ends)})
    if small is None or large is None or small == large:
        return []
    return [Polynomial({frozenset({Extreme(choose, small, large)}): Fraction(1)}) for choose in (min, max)]


def _linear_in_each(samples, corner):
    """The sum of products through the corners of the smallest box there; None where some cannot be told."""
    box = {name: (size, size + 1) for name, size in corner.items()}
    points = itertools.product(*box.values())
    if not all(samples.usable({**samples.base, **dict(zip(box, at))}) for at in points):
        return None
    try:
        return Polynomial.through(list(box), box, lambda chosen: samples.at(**chosen)).whole()
    except Specialized:
        return None


def _quotients_of_sum(samples, functions):
    """Sums of all sizes, each times a number, divided by a number and rounded down."""
    slopes = {name: _slope(function, name) for name, function in functions.items()}
    divisor = math.lcm(*(slope.denominator for slope in slopes.values() if slope is not None))
    if None in slopes.values() or divisor == 1:
        return
    terms = {frozenset({name}): slope * divisor for name, slope in slopes.items()}
    base = samples.base
    least = divisor * samples.at() - Polynomial(terms).number(base)
    points = [({**base, n: base[n] + step}, n) for n in functions for step in range(divisor)]
    for rest in range(least, least + divisor):
        quotient = Quotient(Polynomial({**terms, frozenset(): Fraction(rest)}), divisor)
        if all(quotient.at(at) == functions[n].at(at) for at, n in points):
            yield Polynomial({frozenset({quotient}): Fraction(1)})


def _slope(function, name):
    """How much a sum of quotients grows with a size on average; None for other functions."""
    atoms = [atom for names in function.terms for atom in names if not isinstance(atom, str)]
    if not all(isinstance(atom, Quotient) for atom in atoms):
        return None
    period = math.lcm(*(atom.divisor for atom in atoms))
    return (function.at({name: period}) - function.at({name: 0})) / Fraction(period)


def _solved(rows, values):
    """Gauss's elimination with fractions."""
    rows = [[*map(Fraction, row), Fraction(v)] for row, v in zip(rows, values)]
    for i in range(len(rows)):
        pivot = next((r for r in range(i, len(rows)) if rows[r][i]), None)
        if pivot is None:
            return None
        rows[i], rows[pivot] = rows[pivot], rows[i]
        rows[i] = [v / rows[i][i] for v in rows[i]]
        for r in range(len(rows)):
            if r != i:
                rows[r] = [x - rows[r][i] * y for x, y in zip(rows[r], rows[i])]
    return [row[-1] for row in rows]
