"""Random programs, some of them damaged, for `jit.script`, `jit.trace`, `export`, `compile` and `fx`.

    PYTHONPATH=. python tests/fuzz/damaged_programs.py --calls 20000 --seed 1 --only script

A program is a function with annotations, control flow and syntax that not all of these know; a token of it
may be gone or changed, and arguments may be damaged as in damaged_samples.py. Nothing may end the process,
hang, fail in the middle of the library's own code, speak of C++ inside, or leave a trace.
"""

import argparse
import io
import linecache
import logging
import math
import os
import random
import re
import sys
import threading
import tokenize
import traceback
import types
import warnings
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import damaged_samples as samples  # noqa: E402
from damage import EXPECTED, Damage  # noqa: E402

HEAD = """
import math
from typing import Any, Dict, Final, List, NamedTuple, Optional, Tuple, Union
import rushlight as torch
import rushlight.nn as nn
import rushlight.nn.functional as F
from rushlight import Tensor

class Pair(NamedTuple):
    a: Tensor
    b: int

SCALE = 2.5
def helper(x: Tensor, n: int = 1) -> Tensor:
    return x * n
def untyped(x, k):
    return x if k else -x
def recursive(x: Tensor, n: int) -> Tensor:
    return x if n <= 0 else recursive(x, n - 1)
"""
PARAMETERS = {
    "x": ("Tensor", "torch.ones(3, 4)"),
    "y": ("Tensor", "torch.arange(4.0)"),
    "n": ("int", "2"),
    "s": ("float", "1.5"),
    "b": ("bool", "True"),
    "w": ("str", "'ab'"),
    "l": ("List[int]", "[1, 2]"),
    "v": ("List[Tensor]", "[torch.ones(2), torch.ones(2)]"),
    "d": ("Dict[str, Tensor]", "{'a': torch.ones(2)}"),
    "o": ("Optional[Tensor]", "None"),
    "t": ("Tuple[int, float]", "(1, 2.0)"),
    "u": ("Union[int, Tensor]", "3"),
    "e": ("Any", "[1]"),
}
# Each of them may stand in a body; names are parameters or those of the head.
STATEMENTS = """
x = x + y
x = helper(x, n)
x = untyped(x, b)
x = F.relu(x) * s
x = torch.cat([x, x], dim=0)
x = x[:, :n]
x = x[0:2].sum(dim=-1, keepdim=True)
x = x.view(-1, n)
y = y.to(torch.float64)
z = torch.stack(v).sum()
n = n * 2 + int(s)
s = s / n
l.append(n)
l = [i * 2 for i in l]
k = len(l) + l[0]
d['b'] = x
z = d['a']
w = w + 'c'
m = w.upper()
a, c = t
a = t[0] + t[1]
x[0] = 1.0
x += 1
x.add_(1)
assert n > 0, 'n is small'
print(w, n)
q = Pair(x, n)
x = q.a
x = x if b else x * 2
x = x.clamp(min=0.0, max=s)
x = torch.where(x > 0, x, torch.zeros_like(x))
x = F.dropout(x, 0.5, training=b)
x = torch.rand(2, 3)
n = x.size(0)
n = x.shape[1]
x = x.reshape(x.shape[0], -1)
x, y = y, x
x = x @ x.t()
f = math.sqrt(s)
x = torch.tensor([1.0, 2.0])
x = torch.zeros(n, n, dtype=torch.int64)
x = getattr(x, 'T')
i = x.argmax().item()
z: List[int] = []
z: Dict[str, int] = {}
del l[0]
l[0] = 5
k = l[-1]
k = x.tolist()
h = hasattr(x, 'shape')
r = isinstance(u, int)
x = x.float().mean()
x = torch.nn.functional.pad(x, [1, 1])
x = torch.ops.aten.add(x, y)
x = x.unsqueeze(0).squeeze()
x = x.permute(1, 0)
x = x.expand(2, 3, 4)
x = torch.einsum('ij,j->i', x, y)
if b:\n    x = x + 1\nelse:\n    x = x - 1
if n > 1:\n    x = x * 2
if x.sum() > 0:\n    x = x + 1
if o is not None:\n    x = x + o
if isinstance(u, int):\n    n = u
for i in range(n):\n    x = x + i
for i in l:\n    n += i
for i, q in enumerate(v):\n    y = q * i
for a, q in zip(l, v):\n    x = x + a
for k in d:\n    z = d[k]
for k, q in d.items():\n    x = q
while n > 0:\n    n -= 1
while True:\n    n += 1\n    if n > 5:\n        break
for i in range(3):\n    if i == 1:\n        continue\n    x = x + i
with torch.no_grad():\n    x = x * 2
try:\n    x = x + 1\nexcept RuntimeError:\n    x = x - 1
def inner(a):\n    return a + 1\nx = inner(x)
raise ValueError('stop')
if b:\n    return x
if n > 100:\n    raise RuntimeError(f'n is {n}')
x = (lambda a: a * 2)(x)
g = (i for i in l)
z = {i for i in l}
z = {i: i for i in l}
z = [i for i in l if i > 0]
z = [*l, *l]
x = torch.add(*[x, y])
x = helper(**{'x': x})
global SCALE
SCALE = 3.0
x = x * SCALE
import os
yield x
x = recursive(x, n)
x = undefined_name + 1
x = x.no_such_method()
x = torch.no_such_function(x)
n = 'a'
x = n
x = None
x = x + None
n = x
l = [1, 'a', x]
l = []
s = 1
e = e + 1
x = o + 1
w = f'{n} {s:.2f}'
assert isinstance(x, Tensor)
x = x if n else None
x = torch.jit.annotate(List[int], [])
n = n // 0
x = x[100]
l = l[5:1:-1]
z = l.pop(10)
x = x.reshape(7, 7)
n = 2 ** 70
n = 10 ** 400
s = 1e400
x = torch.zeros(10 ** 12, 10 ** 6)
x = x.to('cuda:3')
(a := 3)
x = x[..., None, ::2]
x = x[b]
x = x[[0, 1]]
async def q():\n    pass
class Q:\n    pass
match n:\n    case 1:\n        x = x + 1
nonlocal_name = 1
return
pass
...
x = 1 if b else 'a'
n = not n
x = -x
n = ~n
x = x == y
b = n in l
b = 'a' in d
b = x is y
b = 1 < n < 3
x = torch.jit.fork(helper, x)
x = super().forward(x)
x = self.weight
x = x.detach().numpy()
""".strip().split("\n")
RESULTS = (
    "x", "x, y", "n", "l", "d", "None", "x + y", "[x, y]", "{'a': x}", "s, w", "t", "q", "z", "x, (n, [y])"
)  # fmt: skip
ANNOTATED = (
    "", "", "", " -> Tensor", " -> int", " -> List[Tensor]", " -> Tuple[Tensor, Tensor]", " -> None",
    " -> 'Tensor'",
)  # fmt: skip


def program(rng):
    """(names of the parameters, text of a function `f`)."""
    names = ["x", *rng.sample(list(PARAMETERS)[1:], rng.randint(0, 3))]
    usable = [
        s for s in STATEMENTS if used(s) <= {*names, "x", "z", "i", "k", "q", "a"} or rng.random() < 0.05
    ]
    body = [rng.choice(usable).replace("\\n", "\n") for _ in range(rng.randint(1, 6))]
    lines = [line for statement in body for line in statement.split("\n")]
    for _ in range(rng.choice((0, 0, 0, 1, 3, 40))):  # nesting
        lines = [rng.choice(("if b or True:", "for _ in range(1):", "if True:"))] + [
            "    " + x for x in lines
        ]
        if len(lines[-1]) > 60:
            break
    signature = []
    for name in names:
        kind = (
            ""
            if rng.random() < 0.15
            else ": " + PARAMETERS[rng.choice(names) if rng.random() < 0.03 else name][0]
        )
        default = (
            f" = {PARAMETERS[name][1]}" if rng.random() < 0.05 or (signature and "=" in signature[-1]) else ""
        )
        signature.append(name + kind + default)
    if rng.random() < 0.03:
        signature.append(rng.choice(("*args", "**kwargs", "*, key: int = 1")))
    results = [r for r in RESULTS if used(r) <= {*names, "z", "q"}]
    head = f"def f({', '.join(signature)}){rng.choice(ANNOTATED)}:"
    text = "\n".join([head, *("    " + line for line in lines), f"    return {rng.choice(results)}"])
    return names, damaged_text(text, rng) if rng.random() < 0.3 else text


def used(text):
    return {word for word in re.findall(r"(?<![.\w'])[a-z](?![\w'(=])", text)} & set(PARAMETERS)


def damaged_text(text, rng):
    try:
        tokens = [t for t in tokenize.generate_tokens(io.StringIO(text).readline) if t.string.strip()]
    except (tokenize.TokenError, IndentationError, SyntaxError):
        return text
    token = rng.choice(tokens[1:])
    other = rng.choice(
        (rng.choice(tokens).string, "", "None", "0", "-1", "'a'", "x", "not", "lambda", "[]", "*")
    )
    lines = text.split("\n")
    (row, start), (end_row, end) = token.start, token.end
    if row != end_row:
        return text
    lines[row - 1] = lines[row - 1][:start] + other + lines[row - 1][end:]
    return "\n".join(lines)


MODULE = """
class M(nn.Module):
    limit: Final[int] = 3
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(4))
        self.layer = nn.Linear(4, 4)
        self.items = [1, 2]
        self.odd = {odd}
    {method}
m = M()
m.forward_text = None
"""


def loaded(names, text, rng, key):
    """The function of a text, or a module that has it as `forward`; None where Python refuses it."""
    if rng.random() < 0.35:
        method = text.replace("def f(", "def forward(self, ", 1).replace("\n", "\n    ")
        if rng.random() < 0.5:
            method = re.sub(r"helper\(", "self.layer(", method, count=1)
        odd = rng.choice(
            ("1", "None", "[]", "{}", "'a'", "object()", "len", "nn.ReLU()", "[nn.ReLU()]", "lambda: 1")
        )
        text = MODULE.format(odd=odd, method=method) + "f = m\n"
    file = f"<damaged program {key}>"
    source = HEAD + text
    linecache.cache[file] = len(source), None, source.splitlines(True), file
    module = types.ModuleType("damaged_program")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            exec(compile(source, file, "exec"), vars(module))
    except (SyntaxError, RecursionError, MemoryError, ValueError):
        return None, text
    except Exception:  # a default or an annotation that fails
        return None, text
    return getattr(module, "f", None), text


# --- what is done with them ---------------------------------------------------------------------------------


def scripted(rl, f, text, args, rng):
    made = rl.jit.script(f)
    str(made.code), str(made.graph)
    if rng.random() < 0.3:
        file = io.BytesIO()
        rl.jit.save(made, file)
        file.seek(0)
        made = rl.jit.load(file)
    return made(*args)


def unit(rl, f, text, args, rng):
    return rl.jit.CompilationUnit(text if "class M" not in text else text.split("\n", 1)[1]).f(*args)


def traced(rl, f, text, args, rng):
    made = rl.jit.trace(f, tuple(args), check_trace=rng.random() < 0.3, strict=rng.random() < 0.7)
    str(made.graph)
    return made(*args)


def exported(rl, f, text, args, rng):
    module = f
    if not isinstance(f, rl.nn.Module):
        module = rl.nn.Module()
        module.forward = f
    batch = rl.export.Dim("batch", min=rng.choice((0, 1, 2)), max=rng.choice((8, 1 << 40)))
    shapes = rng.choice(
        (None, None, [{0: batch}], {"x": {0: batch}}, ({0: rl.export.Dim.DYNAMIC},), [3], {"no": {}})
    )
    made = rl.export.export(module, tuple(args), dynamic_shapes=shapes, strict=rng.random() < 0.5)
    str(made), str(made.graph_module.code)
    return made.module()(*args)


def compiled(rl, f, text, args, rng):
    made = rl.compile(
        f,
        fullgraph=rng.random() < 0.3,
        backend=rng.choice(("inductor", "eager")),
        dynamic=rng.choice((None, True)),
    )
    made(*args)
    return made(*args)


def symbolic(rl, f, text, args, rng):
    return rl.fx.symbolic_trace(f)(*args)


def make_fx(rl, f, text, args, rng):
    return rl.fx.experimental.proxy_tensor.make_fx(f)(*args)(*args)


WAYS = {
    "script": scripted, "unit": unit, "trace": traced, "export": exported, "compile": compiled,
    "fx": symbolic, "make_fx": make_fx,
}  # fmt: skip
OWN_CODE = re.compile(r"/rushlight/(jit|export|fx|_dynamo|_inductor|_functorch|_higher_order_ops)/")
# An error of these that no `raise` of the library made is a fault of its own.
FAULTS = (
    AttributeError,
    LookupError,
    TypeError,
    NameError,
    AssertionError,
    StopIteration,
    RecursionError,
    ValueError,
)


class ProgramState(samples.State):
    def read(self):
        known = super().read()
        return known | {
            "recursion limit": sys.getrecursionlimit(),
            "tracing": (sys.gettrace(), sys.getprofile()),
            "threads of Python": threading.active_count(),
            "filters of warnings": len(warnings.filters),
            "environment": len(os.environ),
            "search path": len(sys.path),
            "logging": logging.root.level,
            "output": (id(sys.stdout), id(sys.stderr)),
            "export": self.rl.compiler.is_exporting(),
            "compile": self.rl.compiler.is_compiling(),
            "jit": (self.rl.jit.is_scripting(), self.rl.jit.is_tracing()),
            "default device": str(self.rl.get_default_device()),
        }


class ProgramRunner(samples.Runner):
    State, may_loop = ProgramState, True

    def accepts(self, error):
        return super().accepts(error) or isinstance(error, (NameError, AssertionError))  # of the program

    def arguments(self, way, functions_here, seed):
        rng = random.Random(seed)
        self.rl.manual_seed(0)
        names, text = program(rng)
        f, self.text = loaded(names, text, rng, seed)
        if f is None and way != "unit":
            self.text += "\n# which Python refuses"
            return way, lambda *args: None, [], {}, rng
        args = [eval(PARAMETERS[name][1], {"torch": self.rl}) for name in names]
        if rng.random() < 0.35:
            args, _ = Damage(self.rl, rng).call(args, {})
        return way, lambda *args: self.tried_way(way, f, args, rng), args, {}, rng

    def tried_way(self, way, f, args, rng):
        try:
            return WAYS[way](self.rl, f, self.text, args, rng)
        except (*EXPECTED, AssertionError) as error:
            self.look_at(error)
            raise
        except Exception as error:
            if type(error).__module__.partition(".")[0] in ("rushlight", "torch") or isinstance(
                error, SyntaxError
            ):
                raise RuntimeError(str(error)) from None  # an exception of the library's own
            raise
        finally:
            if way == "compile":
                self.rl.compiler.reset()

    def look_at(self, error):
        frames = traceback.extract_tb(error.__traceback__)
        last = frames[-1]
        if isinstance(error, FAULTS) and OWN_CODE.search(last.filename) and "raise " not in (last.line or ""):
            where = f"{Path(last.filename).name}:{last.lineno}: {last.line}"
            called_wrongly = re.search(r"\(\) (takes|missing|got) ", str(error))
            if not called_wrongly and not any("<damaged program" in frame.filename for frame in frames):
                raise Fault(f"{type(error).__name__}: {error} at {where}")

    def settled(self, held, before, memory):
        return super().settled(held, before, (math.inf, math.inf))  # the compiler keeps what it has made

    def words(self, text, args, kwargs):
        return f"{super().words(text, args, kwargs)[:600]}\n{self.text}"


class Fault(Exception):
    """An error that comes from the middle of the library's code."""


class ProgramSearch(samples.Search):
    Runner = ProgramRunner

    def subjects(self):
        self.rl.compiler.reset()
        return [name for name in sorted(WAYS) if re.search(self.options.only, name)]

    def prepare(self, runner, name):
        return [(name, None)], [name]


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    return samples.main(ProgramSearch, parser)


if __name__ == "__main__":
    sys.exit(main())
