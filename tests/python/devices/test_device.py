"""Tensors on a CUDA device that is made of host memory, which only its own loops can touch.

RUSHLIGHT_TEST_DEVICE=cuda runs the operator rows on a device: a real one, or this one with
RUSHLIGHT_CUDA_LIBRARY=rushlight/lib/emulated_device.so.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import rushlight

HERE = Path(__file__).parent
PACKAGE = Path(rushlight.__file__).absolute().parent
LIBRARY = PACKAGE / "lib" / "emulated_device.so"
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(PACKAGE.parent), "RUSHLIGHT_CUDA_LIBRARY": str(LIBRARY)}

needs_device = pytest.mark.skipif(
    not LIBRARY.exists(), reason="the emulated device is built with the C++ tests"
)


def on_device(*command, **variables):
    """Runs Python where the emulated device is there; returns what it printed."""
    environment = {**ENVIRONMENT, "RUSHLIGHT_CUDA_FALLBACK": "silent", **variables}
    done = subprocess.run(
        [sys.executable, *command], env=environment, capture_output=True, text=True, timeout=300, cwd=HERE
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    return done.stdout


OPERATORS = HERE.parent / "ops"
FAMILIES = sorted(path.stem.removeprefix("samples_") for path in OPERATORS.glob("samples_*.py"))


@needs_device
@pytest.mark.parametrize("family", FAMILIES)
def test_operator_rows(family):
    """Values and gradients are the CPU's, and no host loop touches a device's memory."""
    if family in ("sparse", "quantized"):
        pytest.skip("these tensors live on the CPU")
    properties = "test_values or test_layout or test_gradcheck"
    options = ["-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-k", properties]
    where = {"RUSHLIGHT_TEST_DEVICE": "cuda", "RUSHLIGHT_TEST_FAMILY": family}
    printed = on_device("-m", "pytest", *options, str(OPERATORS / "test_ops.py"), **where)
    assert " passed" in printed


PROGRAM = """
import rushlight as torch

x = torch.randn(3, 4)
g = x.cuda()
assert torch.cuda.device_count() == 2 and torch.cuda.is_available() and g.is_cuda
assert str(g.device) == "cuda:0" and g.get_device() == 0 and "device='cuda:0'" in repr(g)
assert (g + 1).cpu().equal(x + 1) and abs((g * 2.5).sum().item() - (x * 2.5).sum().item()) < 1e-4
assert g[1:, ::2].t().contiguous().tolist() == x[1:, ::2].t().tolist()  # views, then a strided copy
assert g.to(torch.complex64).exp().cpu().allclose(x.to(torch.complex64).exp())  # loops that the device lacks
g[0] = 7
g[:, 1].mul_(2)
assert g.cpu()[0].tolist() == [7, 14, 7, 7] and g.masked_fill(g > 6, 0).max().item() < 6

# Devices
with torch.cuda.device(1):
    other = torch.zeros(2, device="cuda")
assert str(other.device) == "cuda:1" and torch.cuda.current_device() == 0
assert other.to("cuda:0").device.index == 0 and other.to("cuda:1") is other
torch.cuda.synchronize()
for wrong in (lambda: g + x, lambda: g + other, lambda: torch.zeros(1, device="cuda:2")):
    try:
        wrong()
    except RuntimeError as error:
        assert "same device" in str(error) or "invalid device ordinal" in str(error), error
    else:
        raise SystemExit("devices were mixed")
try:
    g.numpy()
except TypeError as error:
    assert "Tensor.cpu()" in str(error)

# Training gives the CPU's numbers.
def losses(device):
    torch.manual_seed(0)
    layers = torch.nn.Linear(4, 8), torch.nn.LayerNorm(8), torch.nn.GELU(), torch.nn.Linear(8, 1)
    model = torch.nn.Sequential(*layers)
    model.to(device)
    data, optimizer = x.to(device), torch.optim.Adam(model.parameters(), lr=0.1)
    found = []
    for _ in range(5):
        loss = (model(data) - 1).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        found.append(loss.item())
    assert all(p.grad.device == p.device == data.device for p in model.parameters())
    return found

# Sums go another way there, so the last digits differ.
for a, b in zip(losses("cuda"), losses("cpu")):
    assert abs(a - b) <= 1e-5 * abs(b), (a, b)
print("done")
"""


@needs_device
def test_a_program_on_the_device():
    assert on_device("-c", PROGRAM).endswith("done\n")


@needs_device
def test_operators_that_the_device_lacks():
    program = "import rushlight as t; t.poisson(t.zeros(3, device='cuda'))"
    environment = {**ENVIRONMENT, "RUSHLIGHT_CUDA_FALLBACK": "error"}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True)
    assert "NotImplementedError: Could not run 'poisson' on device cuda" in done.stderr


# Values of a cross-section of the rows; all of them run in a few minutes, see above.
ROWS = (
    "add or where or clamp or exp or matmul or softmax or index or cumsum or conv2d or cat or sort or zeros"
)


@needs_device
def test_rows_of_operators():
    options = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "../ops/test_ops.py"]
    # Devices draw other numbers.
    chosen = f"(test_values or test_inplace) and float32 and not exponential_ and ({ROWS})"
    printed = on_device(*options, "-k", chosen, RUSHLIGHT_TEST_DEVICE="cuda")
    assert " passed" in printed


def test_without_a_device():
    if rushlight.cuda.is_available():
        pytest.skip("there is a device")
    assert rushlight.cuda.device_count() == 0
    for ask in (
        lambda: rushlight.ones(2).cuda(),
        lambda: rushlight.zeros(2, device="cuda"),
        rushlight.cuda.synchronize,
    ):
        with pytest.raises(AssertionError, match="Torch not compiled with CUDA enabled"):
            ask()


WITHOUT_A_DEVICE = """
import rushlight as torch

assert not torch.cuda.is_available() and torch.cuda.device_count() == 0 and not torch.cuda.is_initialized()
assert not torch.backends.cudnn.is_available() and torch.backends.cudnn.version() is None
for ask in (
    lambda: torch.ones(2).cuda(),
    lambda: torch.zeros(2, device="cuda"),
    lambda: torch.ones(2).to("cuda:0"),
    lambda: torch.nn.Linear(2, 2).cuda(),
    torch.cuda.current_device,
    torch.cuda.synchronize,
    torch.cuda.get_device_name,
    torch.cuda.current_stream,
):
    try:
        ask()
    except AssertionError as error:
        assert str(error) == "Torch not compiled with CUDA enabled", error
    else:
        raise SystemExit("there is no device")
for make, said in (
    (torch.cuda.Stream, "torch.cuda.Stream requires CUDA support"),
    (torch.cuda.Event, "Tried to instantiate dummy base class Event"),
    (torch.cuda.CUDAGraph, "Tried to instantiate dummy base class CUDAGraph"),
):
    try:
        make()
    except RuntimeError as error:
        assert str(error) == said, error
    else:
        raise SystemExit("there is no device")
assert torch.cuda.memory_allocated() == 0
torch.cuda.empty_cache()
torch.cuda.manual_seed_all(0)
print("done")
"""
CUDA_LIBRARY = PACKAGE / "lib" / "librushlight_cuda.so"


@pytest.mark.skipif(not CUDA_LIBRARY.exists(), reason="librushlight_cuda is built where nvcc is found")
def test_the_cuda_library_without_a_device():
    environment = {**ENVIRONMENT, "RUSHLIGHT_CUDA_LIBRARY": str(CUDA_LIBRARY), "CUDA_VISIBLE_DEVICES": ""}
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_A_DEVICE], env=environment, capture_output=True, text=True
    )
    assert done.stdout == "done\n", done.stderr
    printed = subprocess.run(["ldd", str(CUDA_LIBRARY)], capture_output=True, text=True).stdout
    assert "not found" not in printed and "libcuda" not in printed, printed  # found at run time


def test_a_library_that_does_not_load_says_why(tmp_path):
    library = tmp_path / "librushlight_cuda.so"
    library.write_text("not a library")
    environment = {**os.environ, "RUSHLIGHT_CUDA_LIBRARY": str(library)}
    command = [sys.executable, "-c", "import rushlight; rushlight.zeros(1, device='cuda')"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert "Torch not compiled with CUDA enabled; its library does not load: " in done.stderr
    assert str(library) in done.stderr
