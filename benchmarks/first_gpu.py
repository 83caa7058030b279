"""The first ten minutes on a GPU: `python -m benchmarks.first_gpu [--out FOLDER]`, in a built checkout.

Runs the tests of devices, compares random numbers with those of the PyTorch that is installed, and times
models beside it, alternated. Each part has a time limit and a file in FOLDER (default: first_gpu); report.md
sums up. RUSHLIGHT_CUDA_LIBRARY may name the emulated device (docs/cuda.md), for which `--tiny` is enough.
"""

import argparse
import importlib.util
import json
import os
import statistics
import subprocess
import sys
import time
from contextlib import nullcontext
from pathlib import Path

ROOT = Path(__file__).absolute().parent.parent
DEVICES = ROOT / "tests" / "python" / "devices"
PARTS = (
    "linalg",
    "runtime",
    "work",
    "layers",
    "libraries",
    "features",
    "attention",
    "profile",
    "training",
    "foreach",
    "fused",
)
MODELS = ("ResNet-50", "GPT", "BERT", "LSTM", "MLP")
ROUNDS = 5


# --- in a process of its own, with one of the two libraries as `torch`


def random_numbers(torch, tiny):
    """First, last and sum of what each generator gives for seed 0, by size."""
    found = {}
    drop, attention = torch.nn.functional.dropout, torch.nn.functional.scaled_dot_product_attention

    def kept_by_attention(n):
        """Of as many queries of 64 keys as there is room for, and one more."""
        q, k = (torch.zeros(1, 1, rows, 64, device="cuda") for rows in (n // 64 + 1, 64))
        return attention(q, k, torch.eye(64, device="cuda")[None, None], dropout_p=0.3).flatten() != 0

    draws = {
        "rand": lambda n: torch.rand(n, device="cuda"),
        "randn": lambda n: torch.randn(n, device="cuda"),
        "randint": lambda n: torch.randint(0, 1000, (n,), device="cuda"),
        "exponential": lambda n: torch.empty(n, device="cuda").exponential_(),
        "dropout": lambda n: drop(torch.ones(n, device="cuda"), 0.3),
        "dropout half": lambda n: drop(torch.ones(n, device="cuda", dtype=torch.half), 0.3),
        "dropout of attention": kept_by_attention,
    }
    for name, draw in draws.items():
        for size in (10, 1001, 70_000) + (() if tiny else (10_000_000,)):
            torch.cuda.manual_seed(0)
            x = draw(size).double().cpu()
            found[f"{name} {size}"] = [x[0].item(), x[-1].item(), x.sum().item()]
    return found


def seconds(torch, call, least):
    """Of one call, the device's work included: the median of batches within `least` seconds."""
    call(), torch.cuda.synchronize()
    times, end = [], time.perf_counter() + least
    while len(times) < 3 or time.perf_counter() < end:
        start = time.perf_counter()
        call(), torch.cuda.synchronize()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def timings(torch, tiny):
    from benchmarks.suites.models import MODELS as builders

    found, least = {}, 0.05 if tiny else 1.0
    half = lambda: torch.autocast("cuda", torch.bfloat16)  # noqa: E731
    for name in MODELS[-1:] if tiny else MODELS:
        for precision, context in (("float32", nullcontext), ("bfloat16", half)):
            torch.cuda.reset_peak_memory_stats()
            with torch.device("cuda"):
                workload = builders[name](lambda measured, small: small if tiny else measured, context)
                found[f"{name} training {precision}"] = seconds(torch, workload.train, least)
                with torch.inference_mode():
                    found[f"{name} inference {precision}"] = seconds(torch, workload.infer, least)
            found[f"{name} peak MB {precision}"] = torch.cuda.max_memory_allocated() / 1e6
            del workload
    x = torch.ones(8, device="cuda")
    found["small addition"] = seconds(torch, lambda: [x + 1 for _ in range(100)], least) / 100
    found["step of Adam, 200 parameters"] = seconds(torch, step_of_adam(torch), least)
    size = 64 if tiny else 2048
    q = torch.randn(4, 8, size, 64, device="cuda", dtype=torch.bfloat16)
    attention = torch.nn.functional.scaled_dot_product_attention
    found[f"attention of {size}"] = seconds(torch, lambda: attention(q, q, q, is_causal=True), least)
    rows = torch.randn(64 if tiny else 16384, 1024, device="cuda")
    run = torch.compile(chain) if torch.__name__ == "rushlight" else chain
    found["scaled norm of rows and GELU, ours compiled"] = seconds(torch, lambda: run(torch, rows), least)
    return found


def chain(torch, x):
    scale = (x.square().mean(-1, keepdim=True) + 1e-5).rsqrt()
    return torch.nn.functional.gelu(x * scale * 1.5 + 0.1) * x


def step_of_adam(torch):
    parameters = [torch.nn.Parameter(torch.randn(1000, device="cuda")) for _ in range(200)]
    for p in parameters:
        p.grad = torch.ones_like(p)
    return torch.optim.Adam(parameters, fused=True).step


def work(module, what, tiny):
    from benchmarks.worker import import_as_torch

    torch = import_as_torch(module)
    print(json.dumps({"random": random_numbers, "timings": timings}[what](torch, tiny)))


# --- the run


class Run:
    def __init__(self, out, tiny):
        self.out, self.tiny, self.lines = out, tiny, []
        out.mkdir(parents=True, exist_ok=True)

    def say(self, line):
        print(line, flush=True)
        self.lines.append(line)
        (self.out / "report.md").write_text("\n".join(self.lines) + "\n")

    def command(self, name, *arguments, limit=120, folder=ROOT, **variables):
        """Run one; what it printed goes to a file. Returns (whether all went well, the output)."""
        environment = {
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "RUSHLIGHT_CUDA_FALLBACK": "silent",
            **variables,
        }
        start = time.monotonic()
        try:
            done = subprocess.run(
                arguments, env=environment, capture_output=True, text=True, timeout=limit, cwd=folder
            )
            good, text = done.returncode == 0, done.stdout + done.stderr
            output = done.stdout
        except FileNotFoundError:
            good, text, output = False, f"{arguments[0]}: not found", ""
        except subprocess.TimeoutExpired as late:
            good, output = False, ""
            text = f"{(late.stdout or b'').decode(errors='replace')}\nstopped after {limit} seconds"
        (self.out / f"{name}.txt").write_text(text)
        last = text.strip().splitlines()[-1][:100] if text.strip() else ""
        self.say(f"| {name} | {'ok' if good else 'FAILED'} | {time.monotonic() - start:.0f} s | {last} |")
        return good, output

    def python(self, name, *arguments, **options):
        return self.command(name, sys.executable, *arguments, **options)

    def worker(self, module, what, number=0):
        tiny = ["--tiny"] if self.tiny else []
        good, output = self.python(
            f"{what}-{module}-{number}",
            "-m",
            "benchmarks.first_gpu",
            "--work",
            module,
            what,
            *tiny,
            limit=300,
        )
        return json.loads(output.splitlines()[-1]) if good else {}

    def tests(self):
        parts = PARTS[-1:] if self.tiny else PARTS
        for part in parts:
            self.python(f"device_{part}", f"device_{part}.py", folder=DEVICES, limit=150)
        rows = ["-m", "pytest", "-q", "-n", "4", "-x", "test_ops.py"]
        if not self.tiny:
            operators = DEVICES.parent / "ops"
            self.python("operators", *rows, folder=operators, limit=200, RUSHLIGHT_TEST_DEVICE="cuda")
            self.python("nccl", "nccl_programs.py", "collectives,order", "2", folder=DEVICES)

    def compare_random_numbers(self):
        ours, theirs = self.worker("rushlight", "random"), self.worker("torch", "random")
        self.say("\n## Random numbers for seed 0\n\n| what | equal to PyTorch's |\n|---|---|")
        for name, values in ours.items():
            self.say(f"| {name} | {'yes' if theirs.get(name) == values else 'NO'} |")

    def compare_timings(self, beside):
        samples: dict = {module: [] for module in ("rushlight", "torch") if module != "torch" or beside}
        for number in range(1 if self.tiny else ROUNDS):
            for module, found in samples.items():
                found.append(self.worker(module, "timings", number))
        self.say("\n## Seconds a call (peak: MB), medians of alternated runs\n")
        self.say("| what | Rushlight | PyTorch | PyTorch / Rushlight |\n|---|---|---|---|")
        for name in next(filter(None, samples["rushlight"]), {}):
            mine, other = (
                [f[name] for f in samples.get(module, []) if name in f] for module in ("rushlight", "torch")
            )
            a, b = statistics.median(mine), statistics.median(other) if other else float("nan")
            self.say(f"| {name} | {a:.3g} | {b:.3g} | {b / a:.2f} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("first_gpu"))
    parser.add_argument("--tiny", action="store_true", help="a part of it, with small models")
    parser.add_argument("--work", nargs=2, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.work:
        module, what = given.work
        return work(module, what, given.tiny)
    run = Run(given.out.absolute(), given.tiny)
    run.say("# First run on a GPU\n\n| part | | time | last line |\n|---|---|---|---|")
    run.command("nvidia-smi", "nvidia-smi")
    first = "import rushlight as t; print(t.cuda.get_device_name(), (t.ones(3).cuda() * 2).tolist())"
    good, _ = run.python("smoke", "-c", first)
    if not good:
        return "the device does not work; see smoke.txt"
    run.tests()
    beside = importlib.util.find_spec("torch") is not None and not given.tiny
    if beside:
        run.compare_random_numbers()
    run.compare_timings(beside)
    return None


if __name__ == "__main__":
    sys.exit(main())
