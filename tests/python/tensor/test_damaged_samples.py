"""A few thousand calls of PyTorch's own samples with damaged arguments, and what longer runs found."""

import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

import rushlight as rl
import rushlight.nn.functional as F

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.parametrize(
    ("search", "count"), [("damaged_samples", 5000), ("damaged_objects", 800), ("damaged_programs", 140)]
)
def test_damaged_calls(search, count):
    pytest.importorskip("torch", reason="PyTorch has the samples")
    command = [sys.executable, ROOT / f"tests/fuzz/{search}.py", "--calls", str(count), "--seed", "0"]
    variables = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    ran = subprocess.run(command, env=variables, capture_output=True, text=True, timeout=600)
    assert ran.returncode == 0, ran.stdout[-10000:] + ran.stderr[-5000:]
    calls, refused = map(int, re.search(r"(\d+) calls, (\d+) refused", ran.stdout).groups())
    assert calls > 0.8 * count and refused > calls // 4


# --- classes that it found ----------------------------------------------------------------------------------


def test_padding_that_leaves_nothing():
    for mode, pad in (
        ("replicate", [-2, -1, -1, -3]),
        ("replicate", [-4, 0, 0, 0]),
        ("replicate", [0, 0, -4, 0]),
    ):
        x = rl.ones(1, 1, 4, 4, requires_grad=True)
        out = F.pad(x, pad, mode)
        assert out.numel() == 0
        out.sum().backward()
        assert x.grad.tolist() == rl.zeros(1, 1, 4, 4).tolist()


@pytest.mark.parametrize("count", [2**40, 2**62, 2**63 - 1])
def test_counts_that_no_memory_holds(count):
    calls = {
        "tensor_split": lambda: rl.tensor_split(rl.ones(3), count),
        "chunk": lambda: rl.chunk(rl.ones(0), count),
        "unbind": lambda: rl.ones(1).expand(count).unbind(),
        "split": lambda: rl.ones(1).expand(count).split(1),
        "tolist": lambda: rl.ones(1).expand(count).tolist(),
        "linalg.vander": lambda: rl.linalg.vander(rl.ones(3), N=count),
        "vander": lambda: rl.vander(rl.ones(3), count),
        "combinations": lambda: rl.combinations(rl.ones(1), count, with_replacement=True),
    }
    for name, call in calls.items():
        started = time.process_time()
        with pytest.raises((RuntimeError, MemoryError)) as raised:
            call()
        assert not re.search(r"std::|vector<|\.cpp", str(raised.value)), name
        assert time.process_time() - started < 5, name


def test_combinations():
    x = rl.tensor([1.0, 2.0, 3.0], requires_grad=True)
    assert rl.combinations(x).tolist() == [[1, 2], [1, 3], [2, 3]]
    assert rl.combinations(x, 2, True).tolist() == [[1, 1], [1, 2], [1, 3], [2, 2], [2, 3], [3, 3]]
    assert rl.combinations(x, 3).tolist() == [[1, 2, 3]]
    assert rl.combinations(x, 1).tolist() == [[1], [2], [3]]
    assert rl.combinations(x, 2**62).shape == (0, 2**62)
    assert rl.combinations(x[:0], 2, True).shape == (0, 2)
    rl.combinations(x, 2, True).sum().backward()
    assert x.grad.tolist() == [4, 4, 4]


LONG_CALLS = {
    "many results": "while True: rl.tensor_split(rl.ones(3), 3_000_000)",
    "one reduction": "rl.ones(1).expand(10**13).sum()",
    "three reductions": "rl.ones(1).expand(3, 10**13).prod(1)",
    "a derivative": "rl.ones(1, requires_grad=True).expand(10**13).sum()",
}


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("call", LONG_CALLS)
def test_long_calls_can_be_interrupted(call, threads):
    program = f"""
import rushlight as rl, signal, sys, time
rl.set_num_threads({threads})
signal.signal(signal.SIGALRM, signal.default_int_handler)
signal.setitimer(signal.ITIMER_REAL, 0.3)
try:
    {LONG_CALLS[call]}
except KeyboardInterrupt:
    print("interrupted", time.process_time() < 20, rl.is_grad_enabled())
x = rl.ones(100_000, requires_grad=True)
x.exp().sum().backward()
assert x.grad.sum() > 271_000
"""
    variables = {**os.environ, "PYTHONPATH": str(ROOT)}
    ran = subprocess.run(
        [sys.executable, "-c", program], env=variables, capture_output=True, text=True, timeout=120
    )
    assert ran.stdout == "interrupted True True\n", ran.stderr


def test_products_added_to_what_is_sparse():
    sparse = rl.ones(2, 3).to_sparse()
    for call in (
        lambda: rl.addmm(sparse, rl.ones(2, 2), rl.ones(2, 3)),
        lambda: rl.addbmm(sparse, rl.ones(2, 2, 2), rl.ones(2, 2, 3)),
        lambda: F.linear(rl.ones(2, 2), rl.ones(2, 2), rl.ones(2).to_sparse()),
    ):
        with pytest.raises((RuntimeError, NotImplementedError), match="[Ss]parse"):
            call()


def test_sparse_operands_that_a_kernel_takes_for_dense():
    sparse = rl.tensor([1, 0, 2]).to_sparse()
    for call in (
        lambda: rl.stack([rl.ones(3), rl.ones(3).to_sparse()]),
        lambda: rl.stack([rl.ones(3).to_sparse(), rl.ones(3)], -1),
        lambda: rl.index_select(rl.ones(3, 3), -1, sparse),
        lambda: rl.gather(rl.ones(3), 0, sparse),
        lambda: rl.take(rl.ones(3), sparse),
        lambda: rl.ones(3)[sparse],
        lambda: rl.bincount(sparse),
    ):
        try:
            call()
        except (RuntimeError, NotImplementedError, IndexError) as error:
            assert re.search("[Ss]parse", str(error))


def test_no_memory_is_said_in_words_of_users():
    with pytest.raises(
        (RuntimeError, MemoryError), match="DefaultCPUAllocator: can't allocate memory"
    ) as raised:
        rl.empty(2**55)
    assert ".cpp" not in str(raised.value)
