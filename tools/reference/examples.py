"""The example on an operator's page: the program of examples.txt, what it gives, and its dtypes."""

import ast
import functools
import re
import warnings
from pathlib import Path

import rushlight

_DTYPES = "float16 bfloat16 float32 float64 complex64 complex128 uint8 int8 int16 int32 int64 bool".split()
_MAKERS = ("tensor", "arange", "ones", "eye", "zeros")


@functools.cache
def programs():
    """{operator: program}."""
    lines = Path(__file__).with_name("examples.txt").read_text(encoding="utf-8").splitlines()
    return dict(line.split(": ", 1) for line in lines if line and not line.startswith("#"))


def key(name, space):
    return f"{space}.{name}" if space else name


def result(program, torch=rushlight):
    """What the program's last expression gives, as text."""
    *statements, last = ast.parse(program).body
    names = {"torch": torch}
    with rushlight.random.fork_rng(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        rushlight.manual_seed(0)
        exec(compile(ast.Module(statements, []), "example", "exec"), names)
        return repr(eval(compile(ast.Expression(last.value), "example", "eval"), names))


class _Cast:
    """`torch`, whose makers of tensors give floating numbers in another dtype."""

    def __init__(self, dtype):
        self._dtype = dtype

    def __getattr__(self, name):
        found = getattr(rushlight, name)
        return self._cast(found) if name in _MAKERS else found

    def _cast(self, make):
        def made(*args, **kwargs):
            tensor = make(*args, **kwargs)
            return tensor.to(self._dtype) if tensor.is_floating_point() else tensor

        return made


def dtypes(program):
    """The dtypes in which the program runs when its floating numbers have them; [] if it has none."""
    made = []
    if result(program, _Probe(made)) and not any(made):
        return []
    return [name for name in _DTYPES if _runs(program, _Cast(getattr(rushlight, name)))]


class _Probe(_Cast):
    """Notes which tensors are of floating numbers, and leaves them as they are."""

    def __init__(self, made):
        self._made = made

    def _cast(self, make):
        def noted(*args, **kwargs):
            tensor = make(*args, **kwargs)
            self._made.append(tensor.is_floating_point())
            return tensor

        return noted


def _runs(program, torch):
    try:
        result(program, torch)
    except (RuntimeError, TypeError, ValueError, IndexError):
        return False
    return True


_NUMBER = re.compile(r"-?\d+\.?\d*(?:e[-+]?\d+)?")


def printed():
    """The examples with their results, as `help` shows them. What is printed already stays where only the
    last digits differ, as they do between processors."""
    from rushlight._operators import docs

    try:
        before = docs.examples()
    except FileNotFoundError:
        before = {}
    lines = ["# Printed by tools/print_operators.py from tools/reference/examples.txt: do not edit."]
    for name, program in programs().items():
        statements, text = before.get(name, ((), ""))
        found = result(program)
        kept = text if list(statements) == program.split("; ") and alike(text, found) else found
        lines += [f"{name}: {program}", *(f"  {line}" for line in kept.splitlines())]
    return "\n".join(lines) + "\n"


def alike(a, b):
    """Whether texts are the same but for the last digits of numbers."""
    if _NUMBER.sub("0", a).split() != _NUMBER.sub("0", b).split():
        return False
    pairs = zip(_NUMBER.findall(a), _NUMBER.findall(b))
    return all(abs(float(x) - float(y)) <= 2e-3 * max(1, abs(float(x))) for x, y in pairs)
