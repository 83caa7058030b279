"""torch.cuda on a device made of host memory (tests/cpp/emulated_driver.h), in processes of its own."""

import sys
from pathlib import Path

import pytest
from test_device import HERE, needs_device, on_device


def run(file, *options, **variables):
    """Runs a file of tests on the device; its failures are this test's."""
    printed = on_device(str(HERE / file), *options, **variables)
    assert " passed" in printed and " failed" not in printed, printed[-3000:]


@needs_device
def test_runtime():
    run("device_runtime.py")


@needs_device
def test_a_failed_kernel_names_the_operators_before():
    assert on_device("device_failures.py", "late").endswith("done\n")


@needs_device
def test_blocking_names_the_operator():
    assert on_device("device_failures.py", "at_once", RUSHLIGHT_CUDA_BLOCKING="1").endswith("done\n")


@needs_device
def test_options_of_the_allocator():
    program = (
        "import rushlight as t\n"
        "a = [t.empty(n << 20, dtype=t.uint8, device='cuda') for n in (30, 50, 10)]\n"
        "s = t.cuda.memory_snapshot()\n"
        "assert len(s) == 1 and s[0]['is_expandable'] and s[0]['total_size'] == 100 << 20, s\n"
        "del a[1:]; t.cuda.synchronize(); t.cuda.empty_cache()\n"
        "assert t.cuda.memory_reserved() == 30 << 20, t.cuda.memory_reserved()\n"
        "assert (a[0].fill_(3) == 3).all().item(); print('done')"
    )
    printed = on_device("-c", program, PYTORCH_CUDA_ALLOC_CONF="expandable_segments:True")
    assert printed.endswith("done\n")
    wrong = "import rushlight as t\ntry: t.cuda.device_count()\nexcept ValueError as e: print(e)"
    for given, text in (
        ("what:1", "Unrecognized CachingAllocator option: what"),
        ("max_split_size_mb:3", "too small"),
    ):
        assert text in on_device("-c", wrong, PYTORCH_CUDA_ALLOC_CONF=given)


@needs_device
def test_a_target_out_of_range_stops_the_device():
    assert on_device("device_failures.py", "target").endswith("done\n")


@needs_device
def test_several_devices_in_one_process():
    run("device_parallel.py")


@needs_device
def test_layers():
    run("device_layers.py")


@needs_device
def test_order():
    run("device_order.py")


@needs_device
def test_linear_algebra():
    run("device_linalg.py")


@needs_device
def test_a_missing_library_is_named():
    program = "import rushlight as t\ntry: t.linalg.inv(t.eye(2).cuda())\nexcept RuntimeError as e: print(e)"
    printed = on_device("-c", program, EMULATED_MISSING_LIBRARY="cuSOLVER")
    assert "cuSOLVER was not found: pip install nvidia-cusolver" in printed


@needs_device
def test_libraries():
    run("device_libraries.py")


@needs_device
def test_training():
    run("device_training.py")


@needs_device
def test_attention():
    run("device_attention.py")


def nvrtc():
    """The path of NVIDIA's compiler as a library, of the wheel; None where that is not installed."""
    folders = [Path(entry, "nvidia", "cu13", "lib") for entry in sys.path]
    return next((path for folder in folders for path in folder.glob("libnvrtc.so.*")), None)


@needs_device
def test_fused_kernels():
    run("device_fused.py")


@needs_device
@pytest.mark.skipif(nvrtc() is None, reason="nvidia-cuda-nvrtc is not installed")
def test_nvrtc_takes_fused_kernels():
    run("device_fused.py", "-k", "dtype1 or dtype3 or rows or vectors", EMULATED_NVRTC=str(nvrtc()))


def test_lists_of_tensors():
    run("device_foreach.py")


ALLOCATOR = """
import ctypes, os
import rushlight as torch
from rushlight.cuda.memory import CUDAPluggableAllocator, MemPool, change_current_allocator, use_mem_pool

path = os.environ["RUSHLIGHT_CUDA_LIBRARY"]
library = ctypes.CDLL(path)
counts = lambda: [ctypes.c_int.in_dll(library, name).value for name in ("emulated_given", "emulated_taken")]
ours = CUDAPluggableAllocator(path, "emulated_give", "emulated_take")
"""
POOL = """
pool = MemPool(ours.allocator())
with use_mem_pool(pool):
    a = torch.full((1000,), 3.0, device="cuda")
b = torch.full((1000,), 4.0, device="cuda")
assert counts() == [1, 0] and (a + b).sum().item() == 7000
assert torch.cuda.memory.get_allocator_backend() == "native"
with use_mem_pool(pool):
    c = torch.zeros(1000, device="cuda")  # of the same segment
assert counts() == [1, 0] and c.sum().item() == 0
del a, c, pool
torch.cuda.synchronize()
torch.cuda.empty_cache()
assert counts() == [1, 1]
try:
    change_current_allocator(ours)
except RuntimeError as error:
    assert "Can't swap an already initialized allocator" in str(error)
else:
    raise SystemExit("changed in use")
"""
ALL = """
change_current_allocator(ours)
assert torch.cuda.memory.get_allocator_backend() == "pluggable"
x = torch.arange(6.0, device="cuda")
side = torch.cuda.Stream()
side.wait_stream(torch.cuda.current_stream())
with torch.cuda.stream(side):
    y = x * 2
x.record_stream(side)
del x
assert y.tolist() == [0, 2, 4, 6, 8, 10]
given, taken = counts()
assert given >= 2 and taken >= 1, (given, taken)
del y
assert counts()[1] == counts()[0]
try:
    torch.empty(1 << 29, dtype=torch.uint8, device="cuda")
except torch.cuda.OutOfMemoryError as error:
    assert "change_current_allocator" in str(error)
else:
    raise SystemExit("more than there is")
for wrong in (None, "libx.so"):
    try:
        change_current_allocator(wrong)
    except TypeError as error:
        assert "CUDAPluggableAllocator" in str(error)
"""


@needs_device
@pytest.mark.parametrize("program", [POOL, ALL])
def test_allocators_of_others(program):
    on_device("-c", ALLOCATOR + program)


@needs_device
@pytest.mark.parametrize("name", ["index_copy", "index_add"])
def test_positions_before_the_start_stop_the_device(name):
    program = (
        "import rushlight as t\n"
        "x, i, v = t.zeros(4).cuda(), t.tensor([-1]).cuda(), t.ones(1).cuda()\n"
        f"try: print(x.{name}(0, i, v).tolist())\n"
        "except RuntimeError as e: print('stopped' if 'device-side assert' in str(e) else e)"
    )
    assert on_device("-c", program).endswith("stopped\n")


@needs_device
def test_profile():
    run("device_profile.py")


@needs_device
def test_moves():
    run("device_moves.py")


@needs_device
def test_features():
    run("device_features.py")


@needs_device
def test_exchange():
    run("device_exchange.py")


@needs_device
def test_work():
    run("device_work.py")
