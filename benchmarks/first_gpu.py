"""A quarter of an hour on a GPU: `python -m benchmarks.first_gpu [--out FOLDER]`, in a built checkout.

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
    "moves",
    "layers",
    "order",
    "libraries",
    "features",
    "exchange",
    "attention",
    "profile",
    "training",
    "foreach",
    "fused",
)
MODELS = (
    "AlexNet",
    "VGG-19",
    "ResNet-50",
    "MobileNetV2",
    "GNMT",
    "NCF",
    "GPT",
    "BERT",
    "U-Net",
    "LSTM",
    "MLP",
)
ROUNDS = 3


# --- in a process of its own, with one of the two libraries as `torch`


def random_numbers(torch, tiny):
    """First, last and sum of the bits of what each generator gives for seed 0, by size."""
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
            found[f"{name} {size}"] = [x[0].item(), x[-1].item(), x.view(torch.int64).sum().item()]
    return found


def seconds(torch, call, least):
    """Of one call, the device's work included: the best of batches within `least` seconds."""
    for _ in range(3):
        call()
    torch.cuda.synchronize()
    start = time.perf_counter()
    call(), torch.cuda.synchronize()
    batch = max(1, min(300, int(0.4 * least / max(time.perf_counter() - start, 1e-6))))
    times, end = [], time.perf_counter() + least
    while len(times) < 3 or time.perf_counter() < end:
        start = time.perf_counter()
        for _ in range(batch):
            call()
        torch.cuda.synchronize()
        times.append((time.perf_counter() - start) / batch)
    return min(times)


# Batches that fill a GPU, in place of those that suites/models.py takes for a processor.
BATCHES = {
    "AlexNet": {(8, 2): 128},
    "VGG-19": {(1, 2): 32},
    "ResNet-50": {(2, 2): 64},
    "MobileNetV2": {(4, 2): 64},
    "GNMT": {(8, 2): 64},
    "BERT": {(4, 2): 32},
}
PRECISIONS = {"float32": "highest", "TF32": "high", "bfloat16": "highest"}


def models(torch, tiny):
    from benchmarks.suites.models import MODELS as builders

    found, least = {}, 0.05 if tiny else 0.2
    for name in MODELS[-1:] if tiny else MODELS:
        for precision, products in PRECISIONS.items():
            torch.set_float32_matmul_precision(products)
            torch.backends.cudnn.allow_tf32 = precision == "TF32"
            half = precision == "bfloat16"
            context = (lambda: torch.autocast("cuda", torch.bfloat16)) if half else nullcontext
            batches = BATCHES.get(name, {})
            torch.cuda.empty_cache()
            torch.cuda.reset_peak_memory_stats()
            with torch.device("cuda"):
                workload = builders[name](
                    lambda measured, small, batches=batches: (
                        small if tiny else batches.get((measured, small), measured)
                    ),
                    context,
                )
                found[f"{name} training {precision}"] = seconds(torch, workload.train, least)
                found[f"{name} peak MB {precision}"] = torch.cuda.max_memory_allocated() / 1e6
                workload.model.eval()
                with torch.inference_mode():
                    found[f"{name} inference {precision}"] = seconds(torch, workload.infer, least)
            del workload
    return found


def kernels(torch, tiny):
    from benchmarks.gpu_cases import GROUPS

    torch.set_float32_matmul_precision("highest")
    found, least = {}, 0.002 if tiny else 0.05
    for group in GROUPS:
        for name, call in group(torch, 1 << (12 if tiny else 24)).items():
            found[name] = seconds(torch, call, least)
    rows = torch.randn(64 if tiny else 16384, 1024, device="cuda")
    run = torch.compile(chain) if torch.__name__ == "rushlight" else chain
    found["scaled norm of rows and GELU, ours compiled"] = seconds(torch, lambda: run(torch, rows), least)
    return found


def chain(torch, x):
    scale = (x.square().mean(-1, keepdim=True) + 1e-5).rsqrt()
    return torch.nn.functional.gelu(x * scale * 1.5 + 0.1) * x


def work(module, what, tiny):
    from benchmarks.worker import import_as_torch

    torch = import_as_torch(module)
    parts = {"random": random_numbers, "models": models, "kernels": kernels}
    print(json.dumps(parts[what](torch, tiny)))


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
        workers = str(min(12, len(os.sched_getaffinity(0))))
        rows = ["-m", "pytest", "-q", "-n", workers, "-x", "test_ops.py"]
        if not self.tiny:
            operators = DEVICES.parent / "ops"
            self.python("operators", *rows, folder=operators, limit=200, RUSHLIGHT_TEST_DEVICE="cuda")
            count = "import rushlight; print(rushlight.cuda.device_count())"
            if int(self.python("devices", "-c", count)[1] or 0) > 1:  # NCCL refuses two ranks on one device
                self.python("nccl", "nccl_programs.py", "collectives,order", "2", folder=DEVICES)

    def compare_random_numbers(self):
        ours, theirs = self.worker("rushlight", "random"), self.worker("torch", "random")
        self.say("\n## Random numbers for seed 0\n\n| what | equal to PyTorch's |\n|---|---|")
        for name, values in ours.items():
            self.say(f"| {name} | {'yes' if theirs.get(name) == values else 'NO'} |")

    def compare_timings(self, beside):
        for what in ("models", "kernels"):
            samples: dict = {module: [] for module in ("rushlight", "torch") if module != "torch" or beside}
            for number in range(1 if self.tiny else ROUNDS):
                for module, found in samples.items():
                    found.append(self.worker(module, what, number))
            self.say(f"\n## Seconds a call (peak: MB) of {what}, medians of alternated runs\n")
            self.say("| what | Rushlight | PyTorch | PyTorch / Rushlight |\n|---|---|---|---|")
            ratios = []
            for name in next(filter(None, samples["rushlight"]), {}):
                mine, other = (
                    [f[name] for f in samples.get(module, []) if name in f]
                    for module in ("rushlight", "torch")
                )
                a, b = statistics.median(mine), statistics.median(other) if other else float("nan")
                self.say(f"| {name} | {a:.3g} | {b:.3g} | {b / a:.2f} |")
                if "peak MB" not in name:
                    ratios.append(b / a)
            if beside and ratios:
                mean = statistics.geometric_mean(ratios)
                self.say(f"| geometric mean of {len(ratios)} | | | {mean:.2f} |")


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
