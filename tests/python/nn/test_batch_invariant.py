"""Batch-invariant mode: a row's result and the gradient of its input have the same bits in any batch and on
any number of threads; products also with AVX2 and with AVX-512."""

import os
import subprocess
import sys

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import rushlight as torch
import rushlight.nn.functional as F
from rushlight import nn

SETTINGS = {"deadline": None, "suppress_health_check": list(HealthCheck), "derandomize": True}


@pytest.fixture(autouse=True)
def mode():
    threads = torch.get_num_threads()
    with torch.use_batch_invariant(True):
        yield
    torch.set_num_threads(threads)


def _layer(kind, sizes):
    """A function of a batch, and the shape of its rows."""
    torch.manual_seed(sum(sizes))
    a, b, c = sizes
    if kind == "linear":
        return nn.Linear(a, b), (a,)
    if kind == "linear of halves":
        return nn.Linear(a, b).bfloat16(), (a,)
    if kind == "linear of doubles":
        return nn.Linear(a, b).double(), (a,)
    if kind == "conv2d":
        return nn.Conv2d(a, b, 3, padding=1, stride=1 + c % 2), (a, 9 + c % 9, 8 + c % 7)
    if kind == "conv2d of one pixel":
        return nn.Conv2d(a, b, 1), (a, 7, 8)
    if kind == "conv2d in groups":
        return nn.Conv2d(a * 4, a * 8, 3, groups=4), (a * 4, 9, 9)
    if kind == "conv2d by channel":
        return nn.Conv2d(a, a, 3, groups=a, padding=1), (a, 12, 12)
    if kind == "conv_transpose2d":
        return nn.ConvTranspose2d(a, b, 3, stride=2), (a, 6, 7)
    if kind == "conv1d":
        return nn.Conv1d(a, b, 5), (a, 20 + c)
    if kind == "layer_norm":
        return nn.LayerNorm(a * b), (a * b,)
    if kind == "group_norm":
        return nn.GroupNorm(4, 4 * (1 + c % 5)), (4 * (1 + c % 5), a, 3)
    if kind == "batch_norm":
        return nn.BatchNorm2d(a).eval(), (a, 5, 6)
    if kind == "softmax":
        return nn.Softmax(-1), (a * b,)
    if kind == "log_softmax":
        return nn.LogSoftmax(1), (b, c)
    if kind == "attention":
        return lambda x: F.scaled_dot_product_attention(x, x, x, is_causal=c % 2 == 0), (2, 1 + a % 40, 16)
    if kind == "attention layer":
        return nn.TransformerEncoderLayer(32, 4, a, 0.0, batch_first=True), (1 + b % 30, 32)
    if kind == "products":
        return lambda x: x @ x.transpose(1, 2), (a, b)
    if kind == "rnn":
        return lambda x, layer=nn.GRU(a, b, batch_first=True): layer(x)[0], (3, a)
    if kind == "lstm":
        return lambda x, layer=nn.LSTM(a, b, batch_first=True): layer(x)[0], (3, a)
    if kind == "sum":
        return lambda x: x.sum(-1), (a * b * c,)
    assert kind == "gelu"
    return nn.GELU(), (a,)


KINDS = """
linear
linear of halves
linear of doubles
conv2d
conv2d of one pixel
conv2d in groups
conv2d by channel
conv_transpose2d
conv1d
layer_norm
group_norm
batch_norm
softmax
log_softmax
attention
attention layer
products
rnn
lstm
sum
gelu
""".strip().splitlines()


def _computed(layer, batch):
    x = batch.detach().clone().requires_grad_()
    y = layer(x)
    (g,) = torch.autograd.grad(y, x, torch.sin(3 * y.detach()))
    with torch.no_grad():
        assert torch.equal(layer(batch), y), "recorded or not"
    return y.detach(), g


@settings(max_examples=int(os.environ.get("RUSHLIGHT_BATCH_EXAMPLES", "6")), **SETTINGS)
@given(data=st.data())
@pytest.mark.parametrize("kind", KINDS)
def test_rows_do_not_depend_on_the_batch(kind, data):
    layer, shape = _layer(kind, [data.draw(st.integers(1, 70)) for _ in range(3)])
    numel = torch.Size(shape).numel()
    most = max(4, min(512, 400_000 // numel))
    dtype = torch.float32
    for p in getattr(layer, "parameters", list)():
        dtype = p.dtype
    rows = torch.randn(most, *shape).to(dtype)
    torch.set_num_threads(1)
    results, gradients = _computed(layer, rows)
    for _ in range(4):
        n = data.draw(st.integers(1, most))
        first = data.draw(st.integers(0, most - n))
        torch.set_num_threads(data.draw(st.sampled_from([1, 2, 4])))
        y, g = _computed(layer, rows[first : first + n])
        assert torch.equal(y, results[first : first + n]), (kind, shape, n, first)
        assert torch.equal(g, gradients[first : first + n]), (kind, shape, n, first)


LONG = {
    "sum": lambda x: x.sum(-1),
    "mean of columns": lambda x: x.unflatten(1, (-1, 4)).mean(1),
    "var": lambda x: x.var(-1),
    "norm": lambda x: x.norm(dim=-1),
    "softmax": lambda x: x.softmax(-1),
    "log_softmax": lambda x: x.log_softmax(-1),
    "logsumexp": lambda x: x.logsumexp(-1),
    "cumsum": lambda x: x.cumsum(-1),
    "prod": lambda x: (1 + x / 1000).prod(-1),
    "layer_norm": lambda x: F.layer_norm(x, x.shape[1:]),
    "rms_norm": lambda x: F.rms_norm(x, x.shape[1:]),
    "group_norm": lambda x: F.group_norm(x.unflatten(1, (4, -1)), 2),
    "cross_entropy": lambda x: F.cross_entropy(x, torch.arange(len(x)), reduction="none"),
    "linear": None,
}


@pytest.mark.parametrize("kind", LONG)
def test_rows_that_are_shared_out_among_threads(kind):
    torch.manual_seed(0)
    rows = torch.randn(34, 150_000)
    layer = LONG[kind]
    if kind == "linear":
        weight = torch.randn(3, 150_000)
        layer = lambda x: F.linear(x, weight)
    torch.set_num_threads(4)
    results, gradients = _computed(layer, rows)
    for n in (1, 2, 31):
        for threads in (1, 2):
            torch.set_num_threads(threads)
            y, g = _computed(layer, rows[:n])
            assert torch.equal(y, results[:n]), n
            assert torch.equal(g, gradients[:n]), n


def test_one_image_that_is_not_finite_changes_no_other():
    """Transforms spread a pixel over a tile: only its own image may be convolved another way."""
    layer = nn.Conv2d(16, 16, 3, padding=1)
    images = torch.randn(5, 16, 20, 20)
    clean = layer(images)
    images[2, 3, 4, 5] = float("nan")
    spoilt = layer(images)
    for n in (0, 1, 3, 4):
        assert torch.equal(spoilt[n], clean[n])
    assert torch.allclose(spoilt[2], layer(images[2:3])[0], rtol=0, atol=0, equal_nan=True)
    assert not spoilt[2, :, 0, 15:].isnan().any(), "what does not see the pixel is a number"


@pytest.mark.parametrize("m", [1, 7, 48, 49, 200])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_products_in_every_layout(m, dtype):
    """Against sums of higher precision, and alike whatever the operands' strides."""
    torch.manual_seed(m)
    a, b, c = (torch.randn(s).to(dtype) for s in ((m, 150), (150, 37), (m, 37)))
    expected = (a.double().unsqueeze(2) * b.double()).sum(1)
    plain = a @ b
    assert torch.allclose(plain.double(), expected, rtol=1e-4, atol=1e-4)
    turned = torch.empty(37, m).to(dtype).t()
    wide = torch.zeros(m, 300, dtype=dtype)
    wide[:, ::2] = a
    for found in (
        a.t().contiguous().t() @ b, a @ b.t().contiguous().t(), wide[:, ::2] @ b, torch.mm(a, b, out=turned),
        (b.t() @ a.t()).t(), torch.stack([a[i] @ b for i in range(m)]),
    ):  # fmt: skip
        assert torch.equal(found, plain)
    assert torch.allclose(torch.addmm(c, a, b, beta=0.5, alpha=-2), 0.5 * c - 2 * plain, rtol=1e-4, atol=1e-4)
    assert torch.equal(torch.addmm(c, a, b)[:1], torch.addmm(c[:1], a[:1], b))
    assert torch.equal(a @ b[:, 0], plain[:, 0])
    assert torch.equal(a[0] @ b[:, 0], plain[0, 0])


_ACROSS = """
import hashlib
import rushlight as torch
from rushlight import nn

torch.manual_seed(0)
torch.use_batch_invariant(True)
torch.backends.mkldnn.conv.fp32_precision = "ieee"  # by transforms, instruction sets round differently
for layer, shape in (
    (nn.Linear(300, 70), (50, 300)), (nn.Linear(31, 8).double(), (600, 31)),
    (nn.Conv2d(32, 24, 3), (2, 32, 20, 20)),
    (nn.Conv2d(3, 16, 7, stride=2), (2, 3, 40, 40)), (nn.Conv2d(40, 30, 1), (3, 40, 9, 9)),
    (nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.LayerNorm(64), nn.Softmax(-1)), (9, 64)),
    (nn.LSTM(20, 24), (4, 5, 20)),
):
    y = layer(torch.randn(shape).to(next(layer.parameters()).dtype))
    y = y[0] if isinstance(y, tuple) else y
    y.square().sum().backward()
    digest = hashlib.sha256(y.detach().numpy().tobytes())
    for p in layer.parameters():
        digest.update(p.grad.numpy().tobytes())
    print(type(layer).__name__, digest.hexdigest())
"""


def test_instruction_sets_agree():
    pytest.importorskip("numpy")
    found = []
    for capability in ("avx2", "avx512"):
        environment = {**os.environ, "RUSHLIGHT_CPU_CAPABILITY": capability}
        done = subprocess.run(
            [sys.executable, "-c", _ACROSS], capture_output=True, text=True, env=environment, timeout=200
        )
        assert done.returncode == 0, done.stderr
        found.append(done.stdout)
    assert found[0] == found[1]


def test_the_switch():
    assert torch.is_batch_invariant_enabled()
    with torch.use_batch_invariant(False):
        assert not torch.is_batch_invariant_enabled()
    assert torch.is_batch_invariant_enabled()
    with pytest.raises(TypeError, match="argument 'mode' must be bool, not int"):
        torch.use_batch_invariant(1)
