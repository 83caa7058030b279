"""Mutation fuzzing of one-file models: whatever the bytes are, reading and running give a result or an error.

    PYTHONPATH=. python tests/fuzz/model_files.py --cases 100000 --seed 1

Cases run in child processes; one that dies or hangs is printed with its number, and `--only N` runs it alone.
Half of the cases change bytes anywhere; the others change words of the graph or the index and put the
checksums right, so that what lies behind them is reached.
"""

import argparse
import collections
import os
import random
import re
import resource
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests" / "python" / "graphs")]
sys.path.append(str(ROOT))  # behind a build that the caller puts on the path

import rushlight as torch  # noqa: E402

ERRORS = (RuntimeError, ValueError, TypeError, IndexError, NotImplementedError, MemoryError, OverflowError)
HEADER, SECTION = struct.Struct("<8sIIQQ"), struct.Struct("<16sQQQ")
NUMBERS = [0, 1, -1, 2, 3, 7, 64, 65, 255, 4096, 2**31 - 1, 2**31, -(2**31), 2**40, 2**63 - 1, -(2**63) + 1]
WORDS = [
    "None",
    "True",
    "False",
    "inf",
    "nan",
    "-0.5",
    "1e300",
    "[]",
    "[None]",
    "float64",
    "int64",
    "bool",
    '""',
]
BATCH, SECONDS = 2000, 240


# --- models -----------------------------------------------------------------------------------------


def write_models(folder):
    """Small files of different kinds, each with inputs."""
    from one_file_models import GPT, ResNet, Translator, with_statistics

    from rushlight.export import Dim, save_file

    torch.manual_seed(0)
    resnet = with_statistics(ResNet(2, (1, 1), 3), torch.randn(4, 3, 16, 16))
    gpt, translator = GPT(11, 8, 2, 1, 16).eval(), Translator(9, 4).eval()
    words = torch.randint(0, 9, (2, 3)), torch.randint(0, 9, (2, 4))
    made = [
        (resnet, (torch.randn(2, 3, 16, 16),), ({0: Dim("N")},)),
        (gpt, (torch.zeros(1, 1, dtype=torch.int64), gpt.empty_cache(1, 5)), (None, {4: Dim("T", max=14)})),
        (translator, words, ({1: Dim("S")}, {1: Dim("L")})),
    ]
    for i, (model, inputs, shapes) in enumerate(made):
        for optimize in (False, True):
            path = Path(folder) / f"{i}{optimize:d}.rl"
            save_file(model, path, inputs, dynamic_shapes=shapes, optimize=optimize)
            torch.save(list(inputs), path.with_suffix(".pt"))
    write_quantized(folder, made[0][1][0])
    path = Path(folder) / "state.rl"
    x = torch.ones(3, 4)
    save_file({"a": Counter(), "b": Counter()}, path, {"a": (x,), "b": (x,)})
    torch.save([x], path.with_suffix(".pt"))


def write_quantized(folder, images):
    """Layers of integers, and weights of eight and four bits."""
    from rushlight.export import Dim, quantize_file, save_file

    folder = Path(folder)
    quantize_file(folder / "01.rl", folder / "int8.rl", "int8", images)
    torch.save([images], folder / "int8.pt")
    words = torch.nn.Sequential(torch.nn.Embedding(40, 34), torch.nn.Linear(34, 40)).eval()
    ids = torch.randint(0, 40, (2, 3))
    save_file(words, folder / "words.rl", (ids,), dynamic_shapes=({1: Dim("T")},))
    for method in ("int8-weights", "int4-weights"):
        quantize_file(folder / "words.rl", folder / f"{method}.rl", method)
    for name in ("words", "int8-weights", "int4-weights"):
        torch.save([ids], folder / f"{name}.pt")


class Counter(torch.nn.Module):
    """Keeps state."""

    def __init__(self):
        super().__init__()
        self.register_buffer("total", torch.ones(4))
        self.register_buffer("seen", torch.zeros(2, 4))

    def forward(self, x):
        self.total += x.sum(0)
        self.seen[1:].copy_(self.total)
        return self.total * 2, self.seen


def read_models(folder):
    paths = sorted(Path(folder).glob("*.rl"))
    return [(path.read_bytes(), torch.load(path.with_suffix(".pt"))) for path in paths]


# --- mutations --------------------------------------------------------------------------------------


def change_bytes(content, draw):
    changed = bytearray(content)
    for _ in range(draw.choice((1, 1, 2, 8))):
        at = draw.randrange(min(len(changed), draw.choice((64, 256, 4096, len(changed)))))
        kind = draw.randrange(4)
        if kind == 0:
            changed[at] ^= 1 << draw.randrange(8)
        elif kind == 1:
            changed[at] = draw.randrange(256)
        elif kind == 2:
            del changed[at : at + draw.randrange(1, 64)]
        else:
            changed[at:at] = changed[at : at + draw.randrange(1, 64)]
        if not changed:
            break
    return bytes(changed)


def change_text(text, draw, operators):
    """One edit of a graph or an index that often leaves it grammatical."""
    lines = text.split("\n")
    at = draw.randrange(len(lines))
    kind = draw.randrange(8)
    if kind == 0:
        lines[at:at] = [lines[draw.randrange(len(lines))]]
    elif kind == 1:
        del lines[at]
    elif kind == 2:
        other = draw.randrange(len(lines))
        lines[at], lines[other] = lines[other], lines[at]
    elif kind == 3:
        lines[at] = _replace_one(r"-?\d+\.?\d*(e-?\d+)?", str(draw.choice(NUMBERS)), lines[at], draw)
    elif kind == 4:
        lines[at] = _replace_one(r"(?<== )[\w:.]+(?=\()", draw.choice(operators), lines[at], draw)
    elif kind == 5:
        values = re.findall(r"%[\w.]+", text) or ["%x"]
        lines[at] = _replace_one(r"%[\w.]+", draw.choice(values), lines[at], draw)
    elif kind == 6:
        lines[at] = _replace_one(r"[\w.]+|\[[^\]]*\]", draw.choice(WORDS), lines[at], draw)
    else:
        cut = draw.randrange(len(lines[at]) + 1)
        lines[at] = lines[at][:cut] + chr(draw.randrange(1, 127)) + lines[at][cut + draw.randrange(3) :]
    return "\n".join(lines)


def _replace_one(pattern, new, line, draw):
    found = list(re.finditer(pattern, line))
    if not found:
        return line
    match = draw.choice(found)
    return line[: match.start()] + new + line[match.end() :]


def sections_of(content):
    _, _, count, _, _ = HEADER.unpack_from(content)
    for i in range(count):
        name, offset, size, _ = SECTION.unpack_from(content, HEADER.size + i * SECTION.size)
        yield name, content[offset : offset + size]


def assemble(sections, draw, version):
    """A file of these sections whose checksums fit; sometimes a number of the table is wrong all the same."""
    checksum, body, table = torch._C._model_checksum, b"", b""
    start = -(-(HEADER.size + len(sections) * SECTION.size) // 64) * 64
    for name, part in sections:
        offset, size = start + len(body), len(part)
        if draw.randrange(200) == 0:
            offset, size = draw.choice(
                ((draw.choice(NUMBERS) % 2**64, size), (offset, draw.choice(NUMBERS) % 2**64))
            )
        table += SECTION.pack(name, offset, size, checksum(part))
        body += part + bytes(-len(part) % 64)
    total = start + len(body)
    head = HEADER.pack(b"\x93RLMODEL", version, len(sections), total, 0)
    head = HEADER.pack(b"\x93RLMODEL", version, len(sections), total, checksum(head + table))
    return (head + table).ljust(start, b"\0") + body


def mutate(content, draw, operators):
    if draw.randrange(8) == 0:
        return change_bytes(content, draw)
    sections = []
    for name, part in sections_of(content):
        if (
            name.startswith((b"graph", b"index", b"state", b"methods"))
            and draw.randrange(1 if name.startswith(b"graph") else 4) == 0
        ):
            text = part.decode("latin-1")
            for _ in range(draw.choice((1, 1, 2, 4))):
                text = change_text(text, draw, operators)
            part = text.encode("latin-1", "replace")
        sections.append((name, part))
    return assemble(sections, draw, HEADER.unpack_from(content)[1])


# --- cases ------------------------------------------------------------------------------------------


def run_case(content, inputs, path):
    """What became of it: refused by the reader, by the executor, by a run, or run."""
    path.write_bytes(content)
    try:
        methods, state, _ = torch._C._read_model(str(path))
    except ERRORS:
        return "refused when read"
    try:
        executors = [
            (torch._C._JitExecutor(*both, mapped_constants=True), both[0].states) for both in methods.values()
        ]
    except ERRORS:
        return "refused when prepared"
    try:
        for executor, names in executors * 2:
            executor.run(inputs, [state[name] for name in names])
    except ERRORS:
        return "refused when run"
    return "run"


def work(folder, seed, first, count):
    """A child: one line with the number of each case before it runs, counters at the end."""
    if "ASAN_OPTIONS" not in os.environ:  # there: max_allocation_size_mb
        resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
    torch.set_num_threads(1)
    operators = [record["schema"].split("(")[0] for record in torch._C._operator_records()]
    models, counts = read_models(folder), collections.Counter()
    with tempfile.TemporaryDirectory() as scratch:
        for number in range(first, first + count):
            print(number, flush=True)
            draw = random.Random(f"{seed} {number}")
            content, inputs = models[draw.randrange(len(models))]
            counts[run_case(mutate(content, draw, operators), inputs, Path(scratch) / "case.rl")] += 1
    print(" ".join(f"{key.replace(' ', '_')}={n}" for key, n in counts.items()))


def fuzz(cases, seed, first=0, batch=BATCH):
    """(counters, numbers of the cases that ended a child)."""
    counts, dead = collections.Counter(), []
    with tempfile.TemporaryDirectory() as folder:
        write_models(folder)
        end = first + cases
        while first < end:
            count = min(batch, end - first)
            command = [
                sys.executable,
                __file__,
                "--child",
                folder,
                "--seed",
                str(seed),
                "--first",
                str(first),
            ]
            try:
                child = subprocess.run(
                    [*command, "--cases", str(count)], capture_output=True, text=True, timeout=SECONDS
                )
                lines, error = child.stdout.split("\n"), child.stderr
                status = child.returncode
            except subprocess.TimeoutExpired as late:
                lines, error, status = late.stdout.decode().split("\n"), "too slow", -1
            if status == 0:
                for pair in lines[-2].split():
                    key, n = pair.split("=")
                    counts[key.replace("_", " ")] += int(n)
                first += count
                continue
            number = int([line for line in lines if line.isdigit()][-1])
            dead.append(number)
            print(f"case {number} of seed {seed} ended its process: status {status}\n{error[-600:]}")
            first = number + 1
    return counts, dead


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--cases", type=int, default=10000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--only", type=int)
    parser.add_argument("--child")
    arguments = parser.parse_args()
    if arguments.child:
        return work(arguments.child, arguments.seed, arguments.first, arguments.cases)
    if arguments.only is not None:
        arguments.first, arguments.cases = arguments.only, 1
    counts, dead = fuzz(arguments.cases, arguments.seed, arguments.first)
    for key, n in sorted(counts.items()):
        print(f"{n:8} {key}")
    print(f"{len(dead):8} ended their process")
    return len(dead)


if __name__ == "__main__":
    sys.exit(main())
