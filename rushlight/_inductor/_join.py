"""Programs that were made of one function at several sizes as one program for all sizes.

Each was lowered by itself, so what its passes decided for one size alone, such as that two sizes are equal,
shows as a difference that no polynomial explains.
"""

import re

from rushlight._dynamo._sizes import SMALLEST, Specialized, unified
from rushlight.export._sizes import Polynomial

__all__ = ["joined"]


def joined(programs, points, sizes):
    """One program of several; `points` are the sizes of each by symbol, `sizes` where the inputs have them:
    symbol -> (input, dimension)."""
    first = programs[0]
    if any(type(program) is not type(first) or not hasattr(program, "joint") for program in programs):
        raise Specialized("its operators run one by one")
    _alike(programs, lambda p: (p.results, p.first_state, p.frozen_text, p.sources, p.joint is None))
    if first.joint is not None:
        _join_steps([program.joint for program in programs], points, sizes)
    first.text = _symbolic([program.text for program in programs], points)
    return first


def _alike(items, facts):
    if any(facts(item) != facts(items[0]) for item in items[1:]):
        raise Specialized("it takes another path at other sizes")


def _join_steps(joints, points, sizes):
    first = joints[0]
    _alike(joints, lambda j: (j.keep_positions, j.draws, j.written, len(j.steps)))
    for steps in zip(*(joint.steps for joint in joints)):
        _alike(steps, lambda s: (s.edges, s.part.results, s.part.sources))
        step = steps[0]
        step.backwards = {given: _backward(steps, given, points) for given in step.backwards}
        step.tracer = None
    _alike(joints, lambda j: j.source[1])
    first.source = _python([joint.source[0] for joint in joints], points, sizes), first.source[1]


def _backward(steps, given, points):
    """A backward graph for all sizes, or None: these gradients take the long way."""
    traced = [step.backwards.get(given) for step in steps]
    if any(graph is None or graph[1:] != traced[0][1:] for graph in traced):
        if all(given):
            raise Specialized("its backward pass takes another path at other sizes")
        return None
    return _symbolic([graph[0] for graph in traced], points), *traced[0][1:]


# --- text of the executor -----------------------------------------------------------------------------


def _symbolic(texts, points):
    """A text of the executor's in which symbols stand for the sizes."""
    lines = unified(texts, points)
    if not any(isinstance(token, Polynomial) for line in lines for token in line):
        return texts[0]
    head = [f"symbol {name} = {SMALLEST} in [{SMALLEST}, inf]\n" for name in points[0]]
    at = next(i for i, line in enumerate(lines) if line[0] == "graph")
    sizes = _Sizes(_sources(lines[at]))
    rest = [_line(line, sizes) for line in lines[at + 1 :]]
    signature = "".join(token if isinstance(token, str) else _type_of(token) for token in lines[at])
    return "".join(["".join(lines[0]), *head, signature, *sizes.lines, *rest])


def _line(tokens, sizes):
    """Types inform, and name what they can; arguments take numbers that are computed before."""
    left = tokens.index("=") if "=" in tokens else 0
    told = [t if isinstance(t, str) else _type_of(t) for t in tokens[:left]]
    return "".join(told + [t if isinstance(t, str) else sizes.value(t) for t in tokens[left:]])


def _type_of(polynomial):
    """A size in a type: a multiple of a symbol and a number, or unknown."""
    terms = dict(polynomial.terms)
    offset = int(terms.pop(frozenset(), 0))
    (names, factor), *more = terms.items()
    if more or len(names) > 1 or factor < 0:
        return "?"
    (name,) = names
    return (name if factor == 1 else f"{factor}*{name}") + (f"{offset:+}" if offset else "")


def _sources(signature):
    """symbol -> (input, dimension) of a graph's first line."""
    found: dict = {}
    name, dimension = "", 0
    for token in signature:
        if isinstance(token, Polynomial):
            text = _type_of(token)
            if re.fullmatch(r"\w+", text):
                found.setdefault(text, (name, dimension))
        elif token.startswith("%"):
            name = token
        dimension = 0 if token == "[" else dimension + (token == ",")
    return found


class _Sizes:
    """Lines that compute numbers, each once."""

    def __init__(self, sources):
        self.sources, self.lines, self.names = sources, [], {}

    def value(self, polynomial):
        total = None
        for symbols, factor in sorted(polynomial.terms.items(), key=lambda t: (-len(t[0]), sorted(t[0]))):
            term = None
            for symbol in sorted(symbols):
                size = self._size(symbol)
                term = size if term is None else self._made(f"sym::mul({term}, {size})")
            if term is None:
                term = str(factor)
            elif factor != 1:
                term = self._made(f"sym::mul({term}, {factor})")
            total = term if total is None else self._made(f"sym::add({total}, {term})")
        return total

    def _size(self, symbol):
        if symbol not in self.sources:
            raise Specialized("no value that its backward pass takes has a size that it needs")
        return self._made("sym::size({}, {})".format(*self.sources[symbol]))

    def _made(self, call):
        if call not in self.names:
            self.names[call] = f"%n{len(self.names)}"
            self.lines.append(f"  {self.names[call]}: int = {call}\n")
        return self.names[call]


# --- Python -------------------------------------------------------------------------------------------


def _python(sources, points, sizes):
    """The source of a generated function of the inputs `v0`, `v1`, ..."""

    def text(polynomial):
        terms = [
            "*".join([str(factor), *("v{}.shape[{}]".format(*sizes[symbol]) for symbol in sorted(symbols))])
            for symbols, factor in polynomial.terms.items()
        ]
        return f"({' + '.join(terms)})"

    lines = unified(sources, points)
    return "".join(t if isinstance(t, str) else text(t) for line in lines for t in line)
