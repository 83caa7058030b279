"""Small random programs, compiled and as written: ``python tests/fuzz/compiled_programs.py --cases 2000``.

Each case is a module of Python with functions, classes and state, and a function `f`, which is called with
tensors of changing sizes, compiled and not; between the calls the state changes. Results, errors, gradients,
printed text and the state left behind must be the same, and the compiler must not tell of faults of its own.
``--name torch`` runs the programs under the alias, ``--whole`` those of what is rare, one after the other.
The parts are in compiled_programs.txt.
"""

import argparse
import contextlib
import copy
import io
import linecache
import logging
import random
import sys
import traceback
import types
import warnings
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import limits  # noqa: E402

HEAD = """
import collections, contextlib, copy, dataclasses, enum, functools, itertools, math, operator, os
import sys, threading, types, weakref
import numpy as np
import {name} as torch
import {name}.nn as nn
import {name}.nn.functional as F
from {name} import Tensor

X = torch.arange(12.0).view(3, 4) - 5
"""


def _parts():
    """{section: its parts} of the text."""
    text = Path(__file__).with_suffix(".txt").read_text()
    sections = {}
    for section in text.split("\n=== ")[1:]:
        title, _, body = section.partition("\n")
        sections[title.partition(":")[0]] = body.strip("\n")
    parts = {name: body.split("\n\n") for name, body in sections.items()}
    parts.update({name: sections[name].split("\n") for name in ("calls", "returns", "changes")})
    return parts | {"state": sections["state"]}


PARTS = _parts()


def program(seed):
    """The text of a case."""
    pick = random.Random(seed)

    def fill(template):
        values = {name: f"{name}_{pick.randrange(1000)}" for name in "abcdgiklv"}
        values["call"] = pick.choice(PARTS["calls"]).format(x="x", y="y")
        values["small"], values["number"] = pick.randint(1, 4), round(pick.uniform(-2, 2), 2)
        return template.format(**values)

    lines = [fill(pick.choice(PARTS["lines"])) for _ in range(pick.randint(1, 6))]
    if pick.random() < 0.1:
        lines.insert(pick.randrange(len(lines) + 1), fill(pick.choice(PARTS["failing"])))
    globals_said = [line for text in lines for line in text.split("\n") if line.startswith("global ")]
    body = [line for text in lines for line in text.split("\n") if not line.startswith("global ")]
    kind = pick.choice(["function", "function", "closure", "method", "module", "inner"])
    signature = "x, y, flag=True, box=None"
    if any("del extra" in line for line in body):
        globals_said.append("global extra")
    code = [*dict.fromkeys(globals_said), *body, f"return {pick.choice(PARTS['returns'])}"]
    if kind == "module":
        code = [f"def forward(self, {signature}):", *("    " + line for line in code)]
        code = ["class Main(nn.Module):", *("    " + line for line in code), "f = Main()"]
    elif kind == "method":
        code = [f"def run(self, {signature}):", *("    " + line for line in code)]
        code = ["class Main:", *("    " + line for line in code), "f = Main().run"]
    elif kind == "closure":
        code = [f"def f({signature}):", *("    " + line for line in code), "return f"]
        code = ["def make(outer=2.0):", *("    " + line for line in code), "f = make()"]
    elif kind == "inner":
        code = [f"def part({signature}):", *("    " + line for line in code)]
        code += [f"def f({signature}):", "    z = part(x, y, flag, box)", "    return (z, x + 1)"]
    else:
        code = [f"def f({signature}):", *("    " + line for line in code)]
    return "\n".join(code)


def loaded(text, name, key):
    """The module that a text makes, with its source where tracebacks and inspect look."""
    module = types.ModuleType("program_" + key)
    source = HEAD.format(name=name) + PARTS["state"] + "\n\n" + text
    file = f"<program {key}>"
    linecache.cache[file] = len(source), None, source.splitlines(True), file
    exec(compile(source, file, "exec"), vars(module))
    return module


def plain(torch, value, depth=0):
    """What is compared of a value: numbers, and what holds them."""
    if depth > 6:
        return "..."
    inner = lambda part: plain(torch, part, depth + 1)
    if isinstance(value, torch.Tensor):
        shape = None if value.is_nested else tuple(value.shape)
        known = "tensor", str(value.dtype), shape, value.requires_grad
        if value.device.type != "cpu" or value.is_sparse or value.is_nested:
            return known
        return *known, value.detach().to(torch.complex128).flatten().tolist()
    if isinstance(value, dict):
        keys = [key if isinstance(key, str) else type(key).__name__ for key in value]
        return type(value).__name__, list(zip(keys, map(inner, value.values())))
    if isinstance(value, (list, tuple)):
        return type(value).__name__, [inner(item) for item in value]
    if hasattr(value, "__dict__") and not callable(value) and not isinstance(value, (type, torch.nn.Module)):
        return type(value).__name__, [(key, inner(item)) for key, item in vars(value).items()]
    return value if isinstance(value, (int, float, str, complex, type(None))) else type(value).__name__


def same(a, b):
    if isinstance(a, (float, complex)) and isinstance(b, (float, complex)):
        return a == b or (a != a and b != b) or abs(a - b) <= 1e-4 * (1 + abs(a) + abs(b))
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        return len(a) == len(b) and all(map(same, a, b))
    return a == b


def called(torch, f, args):
    """What a call gives: a value, or an error of the program's own."""
    torch.manual_seed(1)
    try:
        return True, f(*args)
    except BaseException as error:
        if type(error) is torch._dynamo.exc.TorchRuntimeError:
            error = error.__cause__  # what an operator of the program raised
        if isinstance(error, torch._dynamo.exc.TorchDynamoException):
            return False, ("the compiler raised", traceback.format_exc())
        return False, ("raised", type(error).__name__, str(error), error.__context__ is None)


def outcome(torch, module, f, calls, changes):
    """What comes of the calls: values or errors, gradients, printed text, and the state left behind."""
    results = []
    printed = io.StringIO()
    torch.set_grad_enabled(True)  # which changes may have switched off
    for args, change in zip(calls, changes):
        exec(change, vars(module))
        args = *copy.deepcopy(args), module.box
        with contextlib.redirect_stdout(printed):
            returned, value = called(torch, f, args)
        results.append(plain(torch, value) if returned else value)
        if isinstance(value, torch.Tensor) and value.requires_grad and value.is_floating_point():
            called(torch, value.sum().backward, ())
        results.append([plain(torch, arg.grad) for arg in args[:2]])
    parts = module.layer, module.model, module.blocks, module.block
    results.append([plain(torch, p.grad) for part in parts for p in part.parameters()])
    kept = module.state, module.seen, module.counter, module.extra, vars(module.holder), module.box
    results.append([plain(torch, value) for value in kept])
    return [*results, printed.getvalue()]


with_graph: list = []  # of each case, whether some call ran as a graph
_alive: list = []


def compiling(torch, f, options):
    """The function, compiled, and kept for as long as the case lasts."""
    _alive.append(torch.compile(f, **options))
    return _alive[-1]


class _Told(logging.Handler):
    """Lines in which the compiler says that it failed."""

    def __init__(self):
        super().__init__(logging.WARNING)
        self.lines = []

    def emit(self, record):
        self.lines.append(record.getMessage())


def compared(torch, text, as_written, compiled):
    """None, or how two functions of no arguments differ, one of which runs what is compiled."""
    told = _Told()
    logger = logging.getLogger("torch._dynamo")
    logger.addHandler(told)
    try:
        torch._dynamo.reset()
        torch.manual_seed(0)
        wanted = as_written()
        torch.manual_seed(0)
        got = compiled()
        torch.set_grad_enabled(True)
        with_graph.append(any(one() and one().entries for one in torch._dynamo._compiled.all_compiled))
        _alive.clear()
    except BaseException:
        return f"{traceback.format_exc()}\n{text}"
    finally:
        logger.removeHandler(told)
    if told.lines:
        return f"the compiler says: {told.lines[0]}\n{text}"
    for a, b in zip(wanted, got, strict=True):
        if not same(a, b):
            return f"as written: {str(a)[:1000]}\ncompiled:   {str(b)[:3000]}\n{text}"
    return None


def try_case(torch, seed, name, **options):
    """None, or what is wrong with a case."""
    text = program(seed)
    modules = [loaded(text, name, f"{seed}_{i}") for i in range(2)]
    pick = random.Random(seed)
    with_grad = pick.random() < 0.4
    sizes = [pick.choice([5, 5, 3, 1, 8]) for _ in range(4)]
    calls, changes = [], []
    for n in [sizes[0], sizes[0], *sizes[1:], sizes[0], sizes[0]]:
        x, y = torch.randn(n, 4), torch.randn(n, 4)
        calls.append((x.requires_grad_(with_grad), y, pick.random() < 0.8))
        changes.append(pick.choice(PARTS["changes"]) if calls[1:] and pick.random() < 0.5 else "")
    return compared(
        torch,
        f"{text}\n# between the calls: {changes}",
        lambda: outcome(torch, modules[0], modules[0].f, calls, changes),
        lambda: outcome(torch, modules[1], compiling(torch, modules[1].f, options), calls, changes),
    )


def try_whole(torch, i, name, **options):
    """The same for a program of what is rare."""
    text = PARTS["whole"][i]

    def run(wrap):
        module = types.ModuleType("program")
        exec(HEAD.format(name=name) + text, vars(module))
        f = wrap(module.f)
        found = [called(torch, f, args) for args in module.args * 2]
        return [plain(torch, value) if returned else value for returned, value in found]

    return compared(
        torch, text, lambda: run(lambda f: f), lambda: run(lambda f: compiling(torch, f, options))
    )


def prepared(name):
    """The library under a name, set up so that graphs run from the second call on."""
    if name == "torch":
        from rushlight._command import alias

        alias.install_for_children()
    import rushlight as torch
    from rushlight._inductor import config

    config.measure, config.force_disable_caches = False, True
    warnings.simplefilter("ignore")
    return torch


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--name", choices=["rushlight", "torch"], default="rushlight")
    parser.add_argument("--backend", default="inductor")
    parser.add_argument("--dynamic", action="store_true", default=None)
    parser.add_argument("--whole", action="store_true")
    chosen = parser.parse_args()
    torch = prepared(chosen.name)
    limits.limit_memory()
    attempt, seeds = try_case, range(chosen.seed, chosen.seed + chosen.cases)
    if chosen.whole:
        attempt, seeds = try_whole, range(len(PARTS["whole"]))
    failed = 0
    for seed in seeds:
        limits.start_clock()
        wrong = attempt(torch, seed, chosen.name, backend=chosen.backend, dynamic=chosen.dynamic)
        if wrong:
            failed += 1
            print(f"--- case {seed}\n{wrong}\n", flush=True)
    print(f"{len(seeds)} programs as {chosen.name}, {sum(with_graph)} with graphs, {failed} failed")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
