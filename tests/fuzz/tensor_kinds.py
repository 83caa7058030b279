"""Calls public functions with tensors of every kind: ``python tests/fuzz/tensor_kinds.py --calls 40000``.

Kinds are sparse layouts, nested, quantised, meta and pending tensors, and what is narrow, empty, expanded or
needs a gradient. A call may raise; it may not end the process, nor compute for more than 5 seconds. Without
``--calls`` all combinations run (some 600,000); with it as many of them, drawn by ``--seed``.
"""

import argparse
import contextlib
import os
import random
import re
import signal
import sys
import warnings
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(Path(__file__).parent)]
sys.path.append(str(ROOT))  # behind a build that the caller puts on the path

import limits  # noqa: E402

import rushlight as torch  # noqa: E402

SECONDS_PER_CALL = 5  # of the processor
# They change how the process runs, wait for others or for a file's contents: later calls would tell nothing.
NOT_CALLED = re.compile(
    "set_|use_deterministic|fork$|wait$|compile$|load$|save$|from_file$|register_hook|seed"
)

DENSE = torch.tensor([[1.0, 0, 2, 0], [0, 2, 0, 0], [0, 0, 3, 0], [4, 0, 0, 5]])
BLOCKS = {torch.sparse_bsr: (2, 2), torch.sparse_bsc: (2, 2)}


def sparse(layout):
    return lambda: DENSE.to_sparse(layout=layout, blocksize=BLOCKS.get(layout))


def nested(layout):
    return lambda: torch.nested.nested_tensor([torch.ones(2, 3), torch.ones(1, 3)], layout=layout)


def per_channel():
    return torch.quantize_per_channel(DENSE, torch.full((4,), 0.1), torch.zeros(4), 0, torch.qint8)


KINDS = {
    **{
        str(layout).removeprefix("torch."): sparse(layout)
        for layout in (
            torch.sparse_coo,
            torch.sparse_csr,
            torch.sparse_csc,
            torch.sparse_bsr,
            torch.sparse_bsc,
        )
    },
    "sparse with dense dimensions": lambda: torch.sparse_coo_tensor([[0, 2]], torch.ones(2, 3), (4, 3)),
    "sparse batch": lambda: torch.stack([DENSE, DENSE]).to_sparse_csr(),
    "sparse with duplicates": lambda: torch.sparse_coo_tensor([[0, 0], [1, 1]], [1.0, 2.0], (4, 4)),
    "sparse leaf": lambda: DENSE.to_sparse().requires_grad_(),
    "jagged": nested(torch.jagged),
    "nested": nested(torch.strided),
    "quantised": lambda: torch.quantize_per_tensor(DENSE, 0.1, 3, torch.quint8),
    "quantised by channel": per_channel,
    "meta": lambda: DENSE.to("meta"),
    "conjugate": lambda: DENSE.to(torch.complex64).conj(),
    "negative": lambda: DENSE.to(torch.complex64).conj().imag,
    "empty": lambda: torch.empty(0, 4),
    "float8": lambda: DENSE.to(torch.float8_e4m3fn),
    "uint16": lambda: DENSE.to(torch.uint16),
    "no dimensions": lambda: torch.tensor(2.0),
    "one integer": lambda: torch.tensor([3]),
    "expanded": lambda: torch.ones(1).expand(4, 4),
    "leaf": lambda: DENSE.clone().requires_grad_(),
    "truth values": lambda: DENSE > 0,
    "five dimensions": lambda: torch.ones(2, 1, 2, 1, 2),
}
PAIR = torch.tensor([0, 1])
ARGUMENTS = {
    "x": lambda x: (x,),
    "x, x": lambda x: (x, x),
    "x, dense": lambda x: (x, DENSE),
    "dense, x": lambda x: (DENSE, x),
    "[x, x]": lambda x: ([x, x],),
    "[x, dense]": lambda x: ([x, DENSE],),
    "[dense, x], 1": lambda x: ([DENSE, x], 1),
    "(x, x), 1": lambda x: ((x, x), 1),
    "x, 0": lambda x: (x, 0),
    "x, 1, 1": lambda x: (x, 1, 1),
    "x, 0, 0, 2": lambda x: (x, 0, 0, 2),
    "x, 2.0": lambda x: (x, 2.0),
    "x, (4, 4)": lambda x: (x, (4, 4)),
    "x, x, x": lambda x: (x, x, x),
    "dense, x, dense": lambda x: (DENSE, x, DENSE),
    "x, 0, indices": lambda x: (x, 0, PAIR),
    "x, 0, indices, x": lambda x: (x, 0, PAIR, x),
    "x, mask": lambda x: (x, DENSE > 0),
    "x, mask, 1.0": lambda x: (x, DENSE > 0, 1.0),
}


@dataclass(frozen=True)
class Case:
    kind: str
    function: str
    arguments: str

    def call(self, functions):
        functions[self.function](*ARGUMENTS[self.arguments](KINDS[self.kind]()))

    def __str__(self):
        return f"{self.function}({self.arguments}), where x is {self.kind}"


def public_functions():
    """By name: functions of the modules that compute with tensors, and methods."""
    spaces = {
        "torch": torch,
        "Tensor": torch.Tensor,
        "F": torch.nn.functional,
        "linalg": torch.linalg,
        "sparse": torch.sparse,
        "special": torch.special,
        "fft": torch.fft,
    }
    found = {}
    for space, module in spaces.items():
        for name in sorted(dir(module)):
            value = getattr(module, name)
            private = name.startswith("__") or (name.startswith("_") and space not in ("torch", "Tensor"))
            if callable(value) and not isinstance(value, type) and not private and not NOT_CALLED.match(name):
                found[f"{space}.{name}"] = value
    return found


def run_in_copy(cases, functions):
    """(how many cases a copy of this process began, how it was ended: 0 if it was not)."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        silent = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(silent, stream)
        limits.limit_memory()
        for case in cases:
            os.write(write, b".")
            limits.start_clock(SECONDS_PER_CALL)
            with contextlib.suppress(BaseException):  # a refusal
                case.call(functions)
        os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as began:
        count = len(began.read())
    return count, os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def search(cases, functions, say):
    """The cases that end a process, with how."""
    found, position = [], 0
    while position < len(cases):
        count, status = run_in_copy(cases[position:], functions)
        position += count
        if status == 0:
            break
        how = signal.Signals(-status).name if status < 0 else f"exit status {status}"
        found.append((cases[position - 1], how))
        say(f"FOUND {how}: {cases[position - 1]}")
    return found


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--calls", type=int, help="how many combinations; all without it")
    parser.add_argument("--seed", default="0")
    parser.add_argument("--kind", default="", help="regular expression for kinds")
    parser.add_argument("--only", default="", help="regular expression for functions, such as ^linalg")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    functions = public_functions()
    cases = [
        Case(kind, function, arguments)
        for kind in KINDS
        for function in functions
        for arguments in ARGUMENTS
        if re.search(options.kind, kind) and re.search(options.only, function)
    ]
    if options.calls is not None and options.calls < len(cases):
        cases = random.Random(options.seed).sample(cases, options.calls)
    found = search(cases, functions, lambda line: print(line, flush=True))
    print(f"{len(cases)} calls, {len(found)} findings")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
