"""Weights that inference keeps in the order of its kernels: writes are noticed, nothing outlives them."""

import copy
import gc
import io
import os
import subprocess
import sys

import pytest

import rushlight as rl
from rushlight import nn
from rushlight.nn import functional as F

KEPT_AFTER = 4


def kept():
    return rl._C._prepared_bytes()


LAYERS = {
    "conv": (lambda: nn.Conv2d(32, 48, 3, padding=1), (2, 32, 14, 14)),
    "strided": (lambda: nn.Conv2d(32, 48, 3, stride=2), (1, 32, 14, 14)),
    "winograd": (lambda: nn.Conv2d(128, 128, 3, padding=1), (2, 128, 28, 28)),
    "grouped": (lambda: nn.Conv2d(32, 64, 3, groups=4), (1, 32, 14, 14)),
    "depthwise": (lambda: nn.Conv2d(64, 64, 3, groups=64), (1, 64, 14, 14)),
    "pointwise": (lambda: nn.Conv2d(64, 96, 1), (2, 64, 14, 14)),
    "transposed": (lambda: nn.ConvTranspose2d(32, 48, 4, stride=2), (1, 32, 7, 7)),
    "conv1d": (lambda: nn.Conv1d(32, 48, 5), (2, 32, 60)),
    "conv3d": (lambda: nn.Conv3d(16, 32, 3), (1, 16, 6, 8, 8)),
    "linear": (lambda: nn.Linear(256, 512), (16, 256)),
    "linear without bias": (lambda: nn.Linear(256, 512, bias=False), (16, 256)),
}


def reference(layer, x):
    """The result by a weight that nobody ever saw."""
    fresh = copy.deepcopy(layer)
    with rl.no_grad():
        return fresh(x)


def settle(layer, x):
    for _ in range(KEPT_AFTER + 2):
        layer(x)


@pytest.mark.parametrize("dtype", [rl.float32, rl.float64, rl.bfloat16])
@pytest.mark.parametrize("hidden", [64, 37])
def test_recurrent_weights(dtype, hidden):
    rl.manual_seed(0)
    layer = nn.LSTM(16, hidden, batch_first=True, bidirectional=True).to(dtype)
    x = rl.randn(3, 5, 16, dtype=dtype)
    with rl.no_grad():
        before = kept()
        settle(layer, x)
        assert kept() > before
        assert layer(x)[0].equal(reference(layer, x)[0])
        layer.weight_hh_l0.mul_(-2)
        layer.weight_hh_l0_reverse.data.mul_(3)
        assert layer(x)[0].equal(reference(layer, x)[0])
        settle(layer, x)
        assert layer(x)[0].equal(reference(layer, x)[0])


@pytest.fixture(params=LAYERS)
def case(request):
    rl.manual_seed(0)
    make, shape = LAYERS[request.param]
    with rl.no_grad():
        yield make(), rl.randn(shape)


WRITES = {
    "copy_": lambda w: w.copy_(rl.randn_like(w)),
    "mul_ of data": lambda w: w.data.mul_(-2),
    "another data": lambda w: setattr(w, "data", w.data * 3),
    "a view": lambda w: w.view(-1)[: w.numel() // 2].zero_(),
    "a row": lambda w: w.__setitem__(0, 5.0),
    "detached": lambda w: w.detach().add_(1),
    "foreach": lambda w: rl._foreach_mul_([w], 0.5),
    "swapped": lambda w: rl.utils.swap_tensors(w, nn.Parameter(w * 2)),
    "numpy": lambda w: w.detach().numpy().fill(0.25),
    "dlpack": lambda w: rl.from_dlpack(w.detach()).fill_(0.75),
    "storage": lambda w: w.untyped_storage().copy_((w * 7).untyped_storage()),
    "buffer": lambda w: memoryview(w.untyped_storage()).cast("B").__setitem__(slice(0, 400), bytes(400)),
    "address": lambda w: __import__("ctypes").memset(w.data_ptr(), 0, 400),
    "set_": lambda w: w.set_(rl.randn_like(w).untyped_storage(), 0, w.shape, w.stride()),
    "out": lambda w: rl.add(w, 1, out=w.data),
    "random": lambda w: w.uniform_(-1, 1),
    "masked": lambda w: w.data.masked_fill_(w > 0, -1.0),
    "shared": lambda w: (w.share_memory_(), w.data.mul_(2)),
}


@pytest.mark.parametrize("write", WRITES)
def test_every_write_is_noticed(case, write):
    layer, x = case
    settle(layer, x)
    before = reference(layer, x)
    WRITES[write](layer.weight)
    expected = reference(layer, x)
    assert not rl.equal(before, expected)
    for _ in range(KEPT_AFTER + 2):
        rl.testing.assert_close(layer(x), expected, rtol=1e-4, atol=1e-4)


def test_results_do_not_change_once_weights_are_kept(case):
    layer, x = case
    first = layer(x)
    for _ in range(KEPT_AFTER + 2):
        rl.testing.assert_close(layer(x), first, rtol=1e-5, atol=1e-5)


def test_training_steps_and_loading_are_noticed():
    rl.manual_seed(0)
    layer, x = nn.Conv2d(32, 48, 3), rl.randn(2, 32, 14, 14)
    optimizer = rl.optim.SGD(layer.parameters(), lr=0.1)
    saved = io.BytesIO()
    rl.save(layer.state_dict(), saved)
    with rl.no_grad():
        settle(layer, x)
        first = layer(x)
    layer(x).square().mean().backward()
    optimizer.step()
    with rl.no_grad():
        rl.testing.assert_close(layer(x), reference(layer, x))
        assert not rl.allclose(layer(x), first)
        settle(layer, x)
        layer.load_state_dict(rl.load(io.BytesIO(saved.getvalue())))
        rl.testing.assert_close(layer(x), first)


def test_two_weights_in_one_storage_and_two_uses_of_one():
    rl.manual_seed(0)
    both, x = rl.randn(2, 48, 32, 3, 3), rl.randn(1, 32, 14, 14)
    with rl.no_grad():
        first, second = F.conv2d(x, both[0].clone()), F.conv2d(x, both[1].clone())
        for _ in range(KEPT_AFTER + 2):
            rl.testing.assert_close(F.conv2d(x, both[0]), first)
            rl.testing.assert_close(F.conv2d(x, both[1]), second)
        w, y = rl.randn(64, 64), rl.randn(32, 64)
        straight, turned = y @ w.clone(), y @ w.clone().t()
        for _ in range(KEPT_AFTER + 2):
            rl.testing.assert_close(y @ w, straight, rtol=1e-5, atol=1e-5)
            rl.testing.assert_close(y @ w.t(), turned, rtol=1e-5, atol=1e-5)


one_dnn = pytest.mark.skipif(not rl.backends.mkldnn.is_available(), reason="built without oneDNN")


@one_dnn
def test_what_is_kept_goes_with_the_weight():
    before = kept()
    layer, x = nn.Conv2d(64, 64, 3), rl.randn(1, 64, 14, 14)
    with rl.no_grad():
        settle(layer, x)
    assert kept() - before >= layer.weight.nbytes
    del layer
    gc.collect()
    assert kept() == before


@one_dnn
def test_training_keeps_nothing():
    before = kept()
    layer, x = nn.Conv2d(64, 64, 3), rl.randn(1, 64, 14, 14)
    optimizer = rl.optim.SGD(layer.parameters(), lr=0.1)
    for _ in range(2 * KEPT_AFTER):
        optimizer.zero_grad()
        layer(x).sum().backward()
        optimizer.step()
    assert kept() == before


BOUNDED = """
import rushlight as torch
from rushlight import nn
layers = [nn.Conv2d(128, 128, 3) for _ in range(8)]  # 0.6 MB each
x = torch.randn(1, 128, 8, 8)
with torch.no_grad():
    for _ in range(8):
        results = [layer(x) for layer in layers]
    print(torch._C._prepared_bytes())
    for layer, result in zip(layers, results):
        torch.testing.assert_close(result, layer.double()(x.double()).float(), rtol=1e-4, atol=1e-4)
"""


@one_dnn
@pytest.mark.parametrize(("megabytes", "least"), [("0", 0), ("2", 1 << 19), ("100", 4 << 20)])
def test_the_bound(megabytes, least):
    environment = {**os.environ, "RUSHLIGHT_PREPARED_WEIGHTS": megabytes}
    done = subprocess.run(
        [sys.executable, "-c", BOUNDED],
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    assert least <= int(done.stdout) <= int(megabytes) << 20
