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
    root = str(pathlib.Path(__file__).resolve().parents[2])
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
