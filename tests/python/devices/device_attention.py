"""Attention with dropout and with masks that want gradients, on a device; test_cuda.py runs it."""

import json
import sys

import pytest
from device_helpers import emulated, kernels
from device_layers import HALVES, computed_there

import rushlight as torch
import rushlight.fx
import rushlight.nn.functional as F
from rushlight._inductor._passes import remove_dead
from rushlight.profiler import profile

np = pytest.importorskip("numpy")

attention = F.scaled_dot_product_attention
DTYPES = [torch.float32, torch.float64, torch.float16, torch.bfloat16]
INFINITY = float("inf")


def random_numbers(seed, first, count):
    """Numbers `first` and on of stream 0 of Philox 4x32-10, as uniform floats."""
    mask, n = np.uint64(0xFFFFFFFF), np.arange(first, first + count, dtype=np.uint64)
    zero, half = np.zeros_like(n), np.uint64(32)
    c = [(n >> np.uint64(2)) & mask, n >> np.uint64(34), zero, zero]
    k = [seed & 0xFFFFFFFF, seed >> 32]
    for round in range(10):
        if round:
            k = [(k[0] + 0x9E3779B9) & 0xFFFFFFFF, (k[1] + 0xBB67AE85) & 0xFFFFFFFF]
        p, q = np.uint64(0xD2511F53) * c[0], np.uint64(0xCD9E8D57) * c[2]
        c = [(q >> half) ^ c[1] ^ np.uint64(k[0]), q & mask, (p >> half) ^ c[3] ^ np.uint64(k[1]), p & mask]
    drawn = np.choose((n & np.uint64(3)).astype(np.int64), c).astype(np.float32)
    return drawn * np.float32(2**-32) + np.float32(2**-33)


def factors(shape, p, seed=5, offset=0):
    """What dropout makes of weights."""
    kept = random_numbers(seed, offset, int(np.prod(shape))) > np.float32(p)
    return torch.tensor(kept.reshape(shape)).double() / (1 - p)


def reference(q, k, v, mask, causal, factors):
    """Attention on the CPU in doubles, all scores at once."""
    k, v = (t.repeat_interleave(q.size(-3) // t.size(-3), -3) if t.dim() > 2 else t for t in (k, v))
    scores = q @ k.mT / q.size(-1) ** 0.5
    if causal:
        scores = scores.masked_fill(~torch.ones(scores.shape[-2:], dtype=torch.bool).tril(), -INFINITY)
    if mask is not None:
        scores = scores.masked_fill(~mask, -INFINITY) if mask.dtype == torch.bool else scores + mask
    nothing = scores.isneginf().all(-1, keepdim=True)
    weights = scores.masked_fill(nothing, 0).softmax(-1).masked_fill(nothing, 0)
    return weights * factors @ v


def compare(q, k, v, mask=None, *, causal=False, p=0.0, tolerance=None):
    """Results and gradients, the mask's too, on the device and of the reference."""
    atol = tolerance or HALVES.get(q.dtype, 3e-5 if q.dtype == torch.float32 else 1e-9)
    given = [q, k, v] + ([mask] if mask is not None else [])

    def inputs(move):
        return [move(t.detach()).requires_grad_(t.is_floating_point()) for t in given]

    here = inputs(lambda t: t.double() if t.is_floating_point() else t)
    there = inputs(lambda t: t.cuda())
    torch.cuda.manual_seed(5)
    got = attention(
        *there[:3], there[3] if mask is not None else None, dropout_p=p, is_causal=causal, enable_gqa=True
    )
    weights = (*q.shape[:-1], k.shape[-2])
    wanted = reference(
        *here[:3], here[3] if mask is not None else None, causal, factors(weights, p) if p else 1.0
    )
    assert got.is_cuda and got.dtype == q.dtype
    grad = torch.randn(wanted.shape).to(q.dtype)
    got.backward(grad.cuda()), wanted.backward(grad.double())
    pairs = [(got, wanted)] + [(a.grad, b.grad) for a, b in zip(there, here, strict=True) if b.requires_grad]
    for i, (a, b) in enumerate(pairs):
        terms = np.prod(weights) / mask.numel() if i == 4 else 1  # that an element sums up
        scale = max(terms**0.5, b.abs().max().item())
        torch.testing.assert_close(a.detach().cpu().double(), b.detach(), atol=atol * scale, rtol=atol)


def operands(dtype, width, value_width, queries=70, keys=101):
    """Heads next to each other, two of queries to one of keys, no size a multiple of a tile's."""
    q = torch.randn(2, queries, 4, width).to(dtype).transpose(1, 2)
    k = torch.randn(2, keys, 2, width).to(dtype).transpose(1, 2)
    return q, k, torch.randn(2, 2, keys, value_width).to(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("width, value_width", [(40, 24), (33, 120), (130, 8)])
@pytest.mark.parametrize("causal", [False, True])
def test_dropout(dtype, width, value_width, causal):
    """The elements of the order in memory; in tiles, and in parts where rows are too wide for them."""
    computed_there("_scaled_dot_product_efficient_attention")
    compare(*operands(dtype, width, value_width), causal=causal, p=0.3)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    "shape", [(2, 4, 70, 101), (70, 101), (2, 1, 1, 101), (4, 70, 1), (2, 1, 70, 101), (1, 1), (101,)]
)
def test_gradient_of_a_mask(dtype, shape):
    """Each element serves one score, or many of other heads, queries or keys."""
    q, k, v = operands(dtype, 24, 32)
    mask = torch.randn(shape).to(dtype)
    tolerance = HALVES.get(dtype, 1e-4 if dtype == torch.float32 else None)
    compare(q, k, v, mask, tolerance=tolerance)
    compare(q, k, v, mask, p=0.4, tolerance=tolerance)
    torch.use_deterministic_algorithms(True)
    try:
        compare(q, k, v, mask, p=0.4, tolerance=tolerance)
    finally:
        torch.use_deterministic_algorithms(False)


def test_masks_of_other_kinds():
    q, k, v = operands(torch.bfloat16, 16, 16)
    hidden = torch.rand(70, 101) < 0.3
    hidden[5] = True  # looks at nothing
    compare(q, k, v, ~hidden, p=0.2)
    compare(q, k, v, torch.randn(70, 101).masked_fill(hidden, -INFINITY), p=0.2)  # of float32
    q, k, v = operands(torch.float32, 140, 16)  # too wide for tiles
    compare(q, k, v, torch.randn(4, 1, 101).masked_fill(hidden[:1], -INFINITY), p=0.2, tolerance=1e-4)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("width", [8, 40, 64, 72, 128])
@pytest.mark.parametrize("causal", [False, True])
def test_several_tiles(dtype, width, causal):
    """Nothing but products: what has kernels of its own. No size is a multiple of a tile's."""
    q, k, v = operands(dtype, width, width, 201, 157)
    compare(q, k, v, causal=causal)
    compare(k[:1], q[:1, :2], q[:1, 2:], causal=causal)
    compare(q[0], k[0].contiguous(), v[0], causal=causal)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_scores_far_below_zero(dtype):
    """Weights come of logarithms of sums that no power of two of a float reaches; keys end in a tile."""
    q, k, v = operands(dtype, 64, 64, 70, 77)
    q, k = q.abs() + 4, -(k.abs() + 4)
    compare(q, k, v, tolerance=5e-4 if dtype == torch.float32 else 6e-2)


@pytest.mark.parametrize("queries, keys", [(1, 1), (1, 65), (33, 1), (64, 64), (5, 3)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
def test_small_sizes(dtype, queries, keys):
    q, k, v = operands(dtype, 16, 16, queries, keys)
    compare(
        q, k, v, torch.randn(queries, keys).to(dtype), p=0.5, tolerance=2e-2 if dtype.itemsize == 2 else None
    )
    compare(q[0, 0].clone(), k[0, 0].clone(), v[0, 0].clone(), p=0.5)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_what_is_dropped(dtype):
    """The values are an identity, so that the result is what is left of the weights."""
    q = k = torch.zeros(4, 8, 64, 16, device="cuda", dtype=dtype)
    v = torch.eye(64, device="cuda", dtype=dtype).expand(4, 8, -1, -1)
    drop = lambda p: attention(q, k, v, dropout_p=p).float().cpu() * 64
    torch.cuda.manual_seed(5)
    before = torch.cuda.default_generators[0].get_offset()
    weights = drop(0.25)
    assert torch.cuda.default_generators[0].get_offset() - before == weights.numel()
    assert set(weights.unique().tolist()) == {0.0, torch.tensor(1 / 0.75).to(dtype).item()}
    share = (weights == 0).double().mean().item()
    assert abs(share - 0.25) < 4 * (0.25 * 0.75 / weights.numel()) ** 0.5
    assert abs(weights.mean().item() - 1) < 0.01
    following = drop(0.25)
    assert 0.3 < (following != weights).double().mean().item() < 0.45
    torch.cuda.manual_seed(5)
    assert drop(0.25).equal(weights)
    assert drop(1.0).eq(0).all()
    with pytest.raises(RuntimeError, match="between 0 and 1"):
        drop(1.5)


def test_scores_are_never_stored(tmp_path):
    q, k, v = (torch.randn(1, 1, 1024, 8, device="cuda", requires_grad=True) for _ in range(3))
    mask = torch.zeros(1024, device="cuda", requires_grad=True)
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    start = torch.cuda.memory_allocated()
    with profile() as p:
        attention(q, k, v, mask, dropout_p=0.1).sum().backward()
    assert torch.cuda.max_memory_allocated() - start < 1024 * 1024  # a quarter of the scores
    path = tmp_path / "trace.json"
    p.export_chrome_trace(str(path))
    names = kernels(json.loads(path.read_text())["traceEvents"])
    if emulated:
        assert names.count("attention") == 1 and names.count("attention_backward") == 3
    else:  # by their own names: no products of whole matrices among them
        assert not any("gemm" in name or "cutlass" in name for name in names)


def test_second_derivatives():
    found = []
    for device in ("cpu", "cuda"):
        torch.manual_seed(0)
        q, k, v = (torch.randn(1, 2, 5, 8, dtype=torch.float64).to(device).requires_grad_() for _ in range(3))
        mask = torch.randn(5, 5, dtype=torch.float64).to(device).requires_grad_()
        torch.cuda.manual_seed(5)
        if device == "cuda":
            out = attention(q, k, v, mask, dropout_p=0.3)
        else:
            out = reference(q, k, v, mask, False, factors((1, 2, 5, 5), 0.3))
        first = torch.autograd.grad(out.sin().sum(), (q, k, v, mask), create_graph=True)
        second = torch.autograd.grad(sum(g.square().sum() for g in first), (q, k, v, mask))
        found.append([t.detach().cpu() for t in (*first, *second)])
    for here, there in zip(*found, strict=True):
        torch.testing.assert_close(there, here, atol=1e-9, rtol=1e-9)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_recorded_in_a_graph(dtype):
    """Each replay draws anew, and the gradients drop what the weights did."""
    q = torch.zeros(1, 2, 40, 16, device="cuda", dtype=dtype, requires_grad=True)
    v = torch.eye(40, device="cuda", dtype=dtype).expand(1, 2, -1, -1).clone().requires_grad_()
    flow = torch.eye(40, device="cuda", dtype=dtype).expand(1, 2, -1, -1)

    def step():
        out = attention(q, q, v, dropout_p=0.5)
        return out, torch.autograd.grad(out, v, flow)[0]

    step()
    torch.cuda.manual_seed(5)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        out, grad = step()
    for replay in range(3):
        graph.replay()
        wanted = factors((1, 2, 40, 40), 0.5, offset=replay * out.numel()) / 40
        torch.testing.assert_close(out.cpu().double(), wanted, atol=1e-3, rtol=1e-2)
        torch.testing.assert_close(grad.cpu().double(), wanted.mT, atol=1e-3, rtol=1e-2)
    assert torch.cuda.default_generators[0].get_offset() == 3 * out.numel()


def test_the_operator_itself():
    efficient = torch.ops.aten._scaled_dot_product_efficient_attention
    q = torch.randn(2, 3, 9, 8)
    with pytest.raises(NotImplementedError, match="for devices"):
        efficient(q, q, q, None, True)
    there = q.cuda()
    torch.cuda.manual_seed(7)
    out, logsumexp, seed, offset = efficient(there, there, there, None, False, 0.5)
    assert logsumexp.shape == (2, 3, 0) and (seed.item(), offset.item()) == (7, 0)
    assert efficient(there, there, there, None, True, 0.5)[3].item() == (2 * 3 * 9 * 9 + 3) // 4 * 4
    wide = q.double()
    wanted = reference(wide, wide, wide, None, False, factors((2, 3, 9, 9), 0.5, 7))
    torch.testing.assert_close(out.cpu().double(), wanted, atol=1e-5, rtol=1e-5)
    shapes = efficient(*(t.to("meta") for t in (q, q, q)), None, True, 0.5)
    assert [t.shape for t in shapes] == [(2, 3, 9, 8), (2, 3, 9), (), ()]


def test_compiled_graphs_keep_what_draws():
    graph = torch.fx.Graph()
    q = graph.placeholder("q")
    for p in (0.0, 0.5):
        operator = torch.ops.aten._scaled_dot_product_efficient_attention.default
        graph.call_function(operator, (q, q, q, None, False, p))
    graph.output(q)
    remove_dead(graph)
    assert [n.args[5] for n in graph.nodes if n.op == "call_function"] == [0.5]


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, "-q", "-p", "no:cacheprovider", *sys.argv[1:]]))
