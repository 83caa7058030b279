"""Programs that repeat themselves stop asking the system for memory."""

import json
import os
import pathlib
import subprocess
import sys

import pytest

linux = pytest.mark.skipif(
    sys.platform != "linux", reason="page faults and resident memory as Linux counts them"
)

TRAINING = """
import json, resource, sys
import rushlight as torch
from rushlight import nn
from rushlight.nn import functional as F

def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt

def faults_of(model, x, y, optimizer, steps):
    def step():
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()
    for _ in range(50):
        step()
    before = faults()
    for _ in range(steps):
        step()
    return faults() - before

torch.set_num_threads(1)
small = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 4))
middle = nn.Sequential(
    nn.Conv2d(3, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
    nn.Linear(1024, 10),
)
print(json.dumps([
    faults_of(small, torch.randn(16, 8), torch.randint(0, 4, (16,)),
              torch.optim.Adam(small.parameters()), 1000),
    faults_of(middle, torch.randn(16, 3, 16, 16), torch.randint(0, 10, (16,)),
              torch.optim.SGD(middle.parameters(), lr=0.01, momentum=0.9), 100),
]))
"""


def run(program):
    root = str(pathlib.Path(__file__).resolve().parents[3])
    environment = dict(os.environ, PYTHONPATH=os.pathsep.join([root, *filter(None, sys.path)]))
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=environment,
        capture_output=True,
        text=True,
        timeout=600,
        check=True,
    )
    return json.loads(done.stdout)


@linux
def test_training_settles_without_page_faults():
    small, middle = run(TRAINING)
    assert small < 50, f"{small} page faults in 1000 steps of a small model"
    assert middle < 500, f"{middle} page faults in 100 steps of a convolutional model"


def test_a_gradient_is_taken_over_rather_than_copied():
    import rushlight as torch

    leaf = torch.ones(1000, requires_grad=True)
    seen = []
    product = leaf * 2
    product.register_hook(lambda g: seen.append(g.data_ptr()))
    leaf.register_hook(lambda g: seen.append(g.data_ptr()))
    product.sum().backward()
    first = leaf.grad.data_ptr()
    (leaf * 3).sum().backward()
    assert leaf.grad.data_ptr() == first  # added into
    assert leaf.grad[0].item() == 5 and len(seen) == 3


NEW_SHAPES = """
import json, random
import rushlight as torch

def resident():
    with open("/proc/self/statm") as sizes:
        return int(sizes.read().split()[1]) * 4096

def step():
    pick, size = random.randint, random.choice([1, 2, 3, 5])
    images = torch.randn(pick(1, 4), pick(3, 48), pick(5, 40), pick(5, 40))
    filters = torch.randn(pick(3, 48), images.shape[1], size, size)
    torch.nn.functional.conv2d(images, filters, stride=pick(1, 2), padding=size // 2)

torch.set_num_threads(1)
random.seed(0)
for _ in range(500):
    step()
before = resident()
for _ in range(1000):
    step()
print(json.dumps((resident() - before) / 2**20))
"""


@linux
def test_shapes_that_do_not_return_leave_little_behind():
    grown = run(NEW_SHAPES)
    assert grown < 12, f"{grown:.1f} MB for 1000 shapes of convolutions"


WEIGHT_GRADIENT = """
import json
import rushlight as torch

weight, x = torch.zeros(1024, 1024).requires_grad_(True), torch.zeros(8, 1024)
torch.nn.functional.linear(x, weight).sum().backward()
print(json.dumps(torch._C._cpu_memory_stats()["allocated_bytes.peak"] / weight.nbytes))
"""


def test_the_transposed_gradient_of_a_weight_is_not_copied():
    assert run(WEIGHT_GRADIENT) < 2.5  # the weight, its gradient, and little else


def test_what_somebody_else_sees_is_never_taken_over():
    import rushlight as torch

    given = torch.ones(4, 3)
    leaf = torch.zeros(3, 4, requires_grad=True)
    leaf.t().backward(given)
    given.zero_()
    assert leaf.grad.eq(1).all()

    kept = []
    leaf = torch.zeros(3, 4, requires_grad=True)
    turned = leaf.t()
    turned.register_hook(kept.append)
    (turned * 2).sum().backward()
    leaf.grad.zero_()
    assert kept[0].eq(2).all()

    first, second = torch.zeros(3, 3, requires_grad=True), torch.zeros(3, 3, requires_grad=True)
    (first.t() + second.t()).backward(torch.ones(3, 3))
    first.grad.add_(1)
    assert second.grad.eq(1).all() and first.grad.eq(2).all()

    whole = torch.zeros(2, 6, requires_grad=True)
    part = torch.zeros(2, 3, requires_grad=True)
    torch.cat([whole, part], 1).mul(2).sum().backward()
    assert part.grad.untyped_storage().nbytes() == part.nbytes


def test_saved_tensors_are_freed_while_backward_runs():
    import gc
    import weakref

    import rushlight as torch

    gc.collect()
    leaf = torch.ones(10, requires_grad=True)
    early = leaf * 1
    late_input = early.exp()  # saved by the square, which runs first
    freed = []
    watched = torch.ones(10)
    watch = weakref.ref(watched)
    late = late_input * watched  # keeps `watched` for the gradient of its other factor
    del watched
    early.register_hook(lambda g: freed.append(watch() is None))
    late.sum().backward()
    assert freed == [True]
