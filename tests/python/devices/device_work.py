"""Operators, random numbers and graphs on a device; test_cuda.py runs them on the emulated one."""

import json
import sys

import pytest
from device_helpers import several

import rushlight as torch
from rushlight.profiler import profile


def both(f, *tensors):
    """What f gives on the device and on the CPU, both on the CPU."""
    there = f(*(t.cuda() for t in tensors))
    here = f(*tensors)
    if isinstance(here, torch.Tensor):
        there, here = (there,), (here,)
    assert all(t.is_cuda for t in there)
    return zip([t.cpu() for t in there], here)


def same(f, *tensors, **tolerance):
    for there, here in both(f, *tensors):
        torch.testing.assert_close(there, here, **tolerance)


SHAPES = [(7,), (5, 300), (300, 5), (3, 4, 5), (40000,), (2, 20000), (5000, 3), (1, 1)]


@pytest.mark.parametrize("shape", SHAPES)
def test_reductions(shape):
    x = torch.randn(shape)
    same(lambda t: t.sum(), x, atol=1e-3, rtol=1e-5)
    same(lambda t: t.double().mean(), x)
    for dim in range(len(shape)):
        same(lambda t, d=dim: t.sum(d), x, atol=1e-4, rtol=1e-5)
        same(lambda t, d=dim: t.transpose(0, -1).amax(d), x)
        same(lambda t, d=dim: t.max(d), x)
        same(lambda t, d=dim: t.argmin(d, keepdim=True), x)
        same(lambda t, d=dim: t.var(d), x, equal_nan=True)
        same(lambda t, d=dim: t.cumsum(d), x, atol=1e-3, rtol=1e-5)
        same(lambda t, d=dim: (t > 0).all(d), x)
    same(lambda t: t.norm(), x)
    same(lambda t: (t * 10).to(torch.int32).sum(), x)
    same(lambda t: t.half().sum(), x)


@pytest.mark.parametrize("length", [2, 3, 7, 8, 31, 169, 1000])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_numbers_of_channels(length, dtype):
    """Rows end anywhere in what a thread takes, and the channels begin again after the last one."""
    for batch, channels in ((1, 4), (3, 5)):
        x, numbers = torch.randn(batch, channels, length).to(dtype), torch.randn(channels, 1).to(dtype)
        same(lambda t, n: t + n, x, numbers)
        same(lambda t, n: t * n, x, numbers)
        same(lambda t, n: t.clone().sub_(n, alpha=2), x, numbers)
        same(lambda t, n: t.flatten()[1:-1].add(1).view(-1, 1) - n[:1], x, numbers)


# Lines that are packed or not, one or several for each output, in one block or in parts.
LINES = [
    (300_001,),
    (2, 40_000),
    (3, 40_001),
    (3000, 96),
    (3000, 97),
    (20_000, 12),
    (20_000, 3),
    (6, 8, 7, 7),
    (40, 8, 16, 16),
    (3, 500, 24),
    (2, 9000, 130),
]


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float64", "int64", "uint8", "int16"])
@pytest.mark.parametrize("shape", LINES, ids=str)
def test_reductions_of_lines(shape, dtype):
    kind = getattr(torch, dtype)
    exact = {"atol": 0, "rtol": 0}
    x = torch.randint(0, 3, shape).to(kind)
    rank = len(shape)
    choices = [[d] for d in range(rank)] + [[0, rank - 1], [0, *range(2, rank)], list(range(rank))]
    for dims in [sorted(set(d)) for d in choices if max(d) < rank]:
        same(lambda t, d=dims: t.sum(d), x, **({} if dtype == "bfloat16" else exact))  # which rounds
        same(lambda t, d=dims: t.amax(d), x, **exact)
        same(lambda t, d=dims: (t != 1).sum(d), x, **exact)
        same(lambda t, d=dims: t.ne(0).any(dim=d[0]), x, **exact)
        if kind.is_floating_point and dtype != "bfloat16":
            same(lambda t, d=dims: t.var(d), x)
            same(lambda t, d=dims: (t + 1000).std(d), x, atol=1e-4, rtol=1e-4)
    for d in range(rank):
        same(lambda t, d=d: t.max(d), x, **exact)
        same(lambda t, d=d: t.argmin(d), x, **exact)
        same(lambda t, d=d: t.to(torch.int64).cumsum(d), x, **exact)
        if dtype != "bfloat16":
            same(lambda t, d=d: t.cumsum(d), x, **exact)
    same(lambda t: t.flatten()[1:].sum(), x, atol=0, rtol=1e-2 if dtype == "bfloat16" else 0)
    same(lambda t: t.flatten()[3:].argmax(), x, **exact)


def test_scans_of_long_lines():
    x = torch.randint(-2, 3, (200_003,))
    for t in (x, x[:200_000].view(2, -1), x[1:], x.float(), x[3:].float(), x.int()):
        same(lambda t: t.cumsum(-1), t, atol=0, rtol=0)
    # Chunks in several groups, and lines that begin within one.
    x = torch.randint(-2, 3, (2_200_006,))
    for t in (x[:1_100_003], x.view(2, -1), x.int()[1:]):
        same(lambda t: t.cumsum(-1), t, atol=0, rtol=0)
    y = torch.rand(40_000).double() * 0.001 + 1
    same(lambda t: t.cumprod(0), y)
    same(lambda t: t.cumprod(0), y.float(), atol=0, rtol=1e-4)


def test_reductions_see_nan_and_ties():
    x = torch.tensor([[1.0, float("nan"), 3.0], [2.0, 2.0, 1.0]])
    same(lambda t: t.max(1), x, equal_nan=True)
    same(lambda t: t.min(1), x, equal_nan=True)
    same(lambda t: t.argmax(), x)
    same(lambda t: t.nansum(0), x)
    same(lambda t: t.prod(1), x, equal_nan=True)
    same(lambda t: t.sum(), torch.empty(0))
    same(lambda t: t.sum(0), torch.empty(0, 3))


@pytest.mark.parametrize("dtype", [torch.complex64, torch.complex128])
def test_complex_sums_and_choices(dtype):
    x, y = torch.randn(4, 5, 60, dtype=dtype), torch.randn(5, 1, dtype=dtype)
    tolerance = {"atol": 1e-4, "rtol": 1e-5} if dtype == torch.complex64 else {}
    for dims in (0, 1, 2, (0, 2), None):
        same(lambda t, d=dims: t.sum(d), x, **tolerance)
        same(lambda t, d=dims: t.transpose(0, 2).mean(d, keepdim=True), x, **tolerance)
    for dim in range(3):
        same(lambda t, d=dim: t.cumsum(d), x, **tolerance)
    near_one = torch.polar(1 + torch.randn(4, 5, 60).double() / 50, torch.randn(4, 5, 60).double()).to(dtype)
    for dim in range(3):
        same(lambda t, d=dim: t.prod(d), near_one, **tolerance)
        same(lambda t, d=dim: t.transpose(0, 2).cumprod(d), near_one, **tolerance)
    same(torch.prod, near_one, **tolerance)
    long = near_one.flatten().repeat(20)
    same(lambda t: (t / t.abs()).prod(), long, **tolerance)  # by many blocks
    same(lambda t: t.prod(0), long[:160].reshape(40, 1, 4).expand(40, 5, 4), **tolerance)
    same(lambda a, b: torch.where(a.real > 0, a, b), x, y)
    same(lambda a: torch.where(a.imag > 0, a.mT, 2 - 1j), torch.randn(3, 3, dtype=dtype))
    same(lambda a: a.masked_fill(a.real > 0, 1j), x)


@pytest.mark.parametrize("dtype", [torch.complex64, torch.complex128])
def test_complex_numbers_stay_on_the_device(dtype, tmp_path):
    x = torch.randn(3, 40, dtype=dtype, device="cuda")
    torch.cuda.synchronize()
    with profile() as p:
        torch.randn(3, 40, dtype=dtype, device="cuda").prod(1).cumprod(0)
        torch.rand_like(x.normal_(2, 3))
    path = tmp_path / "trace.json"
    p.export_chrome_trace(str(path))
    done = [e for e in json.loads(path.read_text())["traceEvents"] if e.get("cat", "").startswith("gpu_")]
    assert not done, done  # copies and fills
    torch.cuda.manual_seed(3)
    drawn = torch.randn(2000, dtype=dtype, device="cuda")
    torch.cuda.manual_seed(3)
    reals = torch.randn(2000, 2, dtype=dtype.to_real(), device="cuda")
    assert torch.view_as_real(drawn).allclose(reals / 2**0.5)
    with pytest.raises(RuntimeError, match="Sort currently does not support complex dtypes on CUDA"):
        drawn.sort()


def test_positions():
    x, rows = torch.randn(6, 5), torch.tensor([4, 0, -1, 2])
    same(lambda t, i: t[i], x, rows)
    same(lambda t, i: t[:, i], x, rows)
    same(lambda t, i: t[i[:, None], i], x, rows)
    same(lambda t, i: t.index_select(0, i.abs()), x, rows)
    same(lambda t, i: t.gather(1, i.abs().expand(6, 4)), x, rows)
    same(lambda t, i: torch.zeros_like(t).scatter_add(1, i.abs().expand(6, 4), t), x, rows)
    same(lambda t, i: torch.zeros_like(t).scatter(0, i[:1].expand(5)[None], t), x, rows)
    same(lambda t, i: t.index_add(0, i.abs(), t[:4]), x, rows)
    same(lambda t, i: t.index_put((i,), t[:4] * 2, accumulate=True), x, rows)
    same(lambda t, i: t.index_put((i,), torch.tensor(3.0)), x, rows)
    same(lambda t, i: torch.nn.functional.embedding(i.abs(), t), x, rows)
    same(lambda t: t[t > 0], x)
    same(lambda t: torch.cat([t, t[:2].double().float()], 0), x)
    same(lambda t: torch.stack([t, t + 1], 1), x)
    same(lambda t, i: t.to(torch.complex64)[i], x, rows)
    same(lambda t: t.tril(-1) + t.triu(1), x)
    assert torch.arange(3, 9, 2, device="cuda").tolist() == [3, 5, 7]
    for dtype in (torch.uint8, torch.int16, torch.float16, torch.bfloat16, torch.float64):
        same(lambda t, i: t.new_zeros(8).index_add(0, i.abs(), t[0, :4]), (x * 3).to(dtype), rows)


def test_embedding_gradients():
    weight, indices = torch.randn(5, 3), torch.tensor([[0, 2, 2], [4, 1, 1]])
    for options in ({}, {"padding_idx": 2}, {"scale_grad_by_freq": True}):

        def gradient(w, options=options):
            w = w.detach().requires_grad_()
            where = indices.to(w.device)
            torch.nn.functional.embedding(where, w, **options).square().sum().backward()
            return w.grad

        same(gradient, weight)


def test_products():
    a, b = torch.randn(4, 6), torch.randn(6, 5)
    same(torch.mm, a, b)
    same(lambda x, y: torch.mm(y.t(), x.t()), a, b)
    same(lambda x, y: torch.addmm(torch.ones(5, device=x.device), x, y, beta=2, alpha=0.5), a, b)
    same(lambda x, y: torch.mv(x, y[:, 0]), a, b)
    same(lambda x, y: torch.dot(x[0], y[:, 1]), a, b)
    same(torch.bmm, torch.randn(3, 4, 6), torch.randn(3, 6, 5))
    same(torch.mm, a.long(), b.long())
    same(torch.mm, a.to(torch.complex64), b.to(torch.complex64))
    same(torch.mm, torch.zeros(3, 0), torch.zeros(0, 2))


# What PyTorch draws on CUDA devices, for fewer elements than a device has threads.
RAND = [0.3990, 0.5167, 0.0249, 0.9401, 0.9459, 0.7967]
RANDN = [-0.9247, -0.4253, -2.6438, 0.1452, -0.1209, -0.5797]


def test_random_numbers_are_those_of_pytorch():
    torch.manual_seed(0)
    assert torch.allclose(torch.rand(6, device="cuda").cpu(), torch.tensor(RAND), atol=6e-5)
    torch.manual_seed(0)
    assert torch.allclose(torch.randn(6, device="cuda").cpu(), torch.tensor(RANDN), atol=6e-5)


def test_random_streams():
    torch.cuda.manual_seed(3)
    a = torch.rand(20000, device="cuda")
    assert torch.cuda.default_generators[0].get_offset() == 4  # 8,192 threads draw in turns of four
    state = torch.cuda.get_rng_state()
    b = torch.randn(1000, device="cuda")
    torch.cuda.set_rng_state(state)
    assert b.equal(torch.randn(1000, device="cuda"))
    a = a.cpu()
    assert a.min() >= 0 and a.max() < 1 and abs(a.mean().item() - 0.5) < 0.01 and a.unique().numel() > 19900
    own = torch.Generator("cuda").manual_seed(3)
    assert torch.rand(20000, device="cuda", generator=own).cpu().equal(a)
    with pytest.raises(RuntimeError, match="Expected a 'cuda' device type for generator"):
        torch.rand(3, device="cuda", generator=torch.Generator())
    n = torch.randn(20000, device="cuda", dtype=torch.float64).cpu()
    assert abs(n.mean().item()) < 0.03 and abs(n.std().item() - 1) < 0.03
    i = torch.randint(3, 9, (10000,), device="cuda").cpu()
    assert sorted(i.unique().tolist()) == [3, 4, 5, 6, 7, 8] and i.bincount()[3:].min() > 1500
    d = torch.nn.functional.dropout(torch.ones(20000, device="cuda"), 0.25).cpu()
    assert (
        sorted({round(v, 4) for v in d.unique().tolist()}) == [0, 1.3333] and abs(d.mean().item() - 1) < 0.03
    )
    e = torch.empty(20000, device="cuda").exponential_(2.0).cpu()
    assert e.min() > 0 and abs(e.mean().item() - 0.5) < 0.02
    assert torch.empty(100, 2, device="cuda").t().uniform_(5, 6).cpu().min() >= 5


def test_graphs():
    x, y = torch.ones(4, device="cuda"), torch.zeros(4, device="cuda")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        assert torch.cuda.is_current_stream_capturing()
        z = (x * 2).exp().sum()
        y += z
    assert y.sum().item() == 0  # recorded, not run
    for i in range(3):
        x.fill_(i)
        graph.replay()
    expected = sum(4 * torch.tensor(2.0 * i).exp().item() for i in range(3))
    assert abs(y[0].item() - expected) < 1e-3 * expected
    # Its memory is not given to others.
    address = z.data_ptr()
    del z
    assert all(torch.empty((), device="cuda").data_ptr() != address for _ in range(50))
    with pytest.raises(RuntimeError, match="without a preceding successful capture"):
        torch.cuda.CUDAGraph().replay()
    with pytest.raises(RuntimeError, match="non-default stream"):
        torch.cuda.CUDAGraph().capture_begin()
    with pytest.raises(RuntimeError, match="already owns a captured graph"):
        with torch.cuda.graph(graph):
            pass
    shared = torch.cuda.CUDAGraph()
    with torch.cuda.graph(shared, pool=graph.pool()):
        w = x + 1
    shared.replay()
    assert w.tolist() == [3, 3, 3, 3]


def test_graphs_draw_new_numbers():
    torch.cuda.manual_seed(1)
    expected = [torch.rand(100, device="cuda").tolist() for _ in range(3)]
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        r = torch.rand(100, device="cuda")
    torch.cuda.manual_seed(1)
    for numbers in expected:
        graph.replay()
        assert r.tolist() == numbers


def test_forbidden_while_capturing():
    x = torch.ones(4, device="cuda")
    with pytest.raises(RuntimeError, match="not permitted when stream is capturing"):
        with torch.cuda.graph(torch.cuda.CUDAGraph()):
            x.sum().item()
    assert x.sum().item() == 4  # the device goes on


def test_graphed_callables():
    torch.manual_seed(0)
    layer = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.Tanh()).cuda()
    x = torch.randn(5, 4, device="cuda", requires_grad=True)

    def step(f):
        x.grad = None
        layer.zero_grad()
        f(x).square().sum().backward()
        return [x.grad.cpu(), *(p.grad.cpu() for p in layer.parameters())]

    expected = step(layer)
    graphed = torch.cuda.make_graphed_callables(
        layer, (torch.randn(5, 4, device="cuda", requires_grad=True),)
    )
    for a, b in zip(step(graphed), expected):
        torch.testing.assert_close(a, b)


def test_files_and_scaled_gradients(tmp_path):
    x = torch.randn(3, device="cuda")
    torch.save({"x": x}, tmp_path / "x.pt")
    assert torch.load(tmp_path / "x.pt")["x"].device == x.device
    assert torch.load(tmp_path / "x.pt", map_location="cpu")["x"].equal(x.cpu())
    if several:
        assert torch.load(tmp_path / "x.pt", map_location={"cuda:0": "cuda:1"})["x"].device.index == 1
    scaler = torch.amp.GradScaler("cuda", init_scale=4.0)
    w = torch.ones(3, device="cuda", requires_grad=True)
    optimizer = torch.optim.SGD([w], lr=1.0)
    scaler.scale((w * x).sum()).backward()
    assert w.grad.cpu().allclose(4 * x.cpu())
    scaler.step(optimizer)
    scaler.update()
    assert w.detach().cpu().allclose(1 - x.cpu())


def test_multinomial():
    weights = torch.tensor([[0.0, 1.0, 2.0, 1.0], [5.0, 0.0, 0.0, 1.0]])
    for replacement, count in ((False, 1), (False, 2), (True, 1), (True, 4000)):
        drawn = torch.multinomial(weights.cuda(), count, replacement)
        assert drawn.is_cuda and drawn.dtype == torch.int64 and drawn.shape == (2, count)
        assert (weights.gather(1, drawn.cpu()) > 0).all()
    share = torch.nn.functional.one_hot(drawn.cpu(), 4).double().mean(1)
    torch.testing.assert_close(share, (weights / weights.sum(1, True)).double(), atol=0.05, rtol=0)
    torch.cuda.manual_seed(3)
    first = torch.multinomial(weights.cuda(), 1)
    torch.cuda.manual_seed(3)  # as PyTorch draws it: the largest weight over an exponential number
    race = weights.cuda() / torch.empty(2, 4, device="cuda").exponential_()
    assert torch.equal(first, race.argmax(-1, keepdim=True))
    for wrong in ([0.0, 0.0], [1.0, -1.0], [1.0, float("nan")]):
        with pytest.raises(RuntimeError, match="probability tensor|invalid multinomial"):
            torch.multinomial(torch.tensor(wrong).cuda(), 1)


def test_what_depends_on_values():
    x = torch.randn(7, 9)
    x[x.abs() < 0.5] = 0
    for t in (x, x > 0, torch.zeros(0, 3), torch.tensor(2.0), torch.zeros(4), x[:, ::2].t()):
        same(torch.nonzero, t)
    same(lambda t: t[t > 0], x)
    same(lambda t: torch.masked_select(t, t[0] > 0), x)
    classes = torch.tensor([3, 0, 5])
    same(torch.nn.functional.one_hot, classes)
    same(lambda t: torch.nn.functional.one_hot(t, 9), classes)
    assert torch.equal(x.cuda(), x.cuda()) and not torch.equal(x.cuda(), x.cuda() + 1)


def test_moved_and_repeated_slices():
    x, rows, values = torch.randn(7, 9), torch.tensor([3, 0, 5]), torch.randn(7, 3)
    same(lambda t: t.roll((2, -3), (0, 1)), x)
    same(lambda t: t.roll(11), x)
    same(lambda t: t.repeat(2, 1, 3), x)
    same(lambda t, i, v: t.index_copy(1, i, v), x, rows, values)
    same(lambda t, i: t.index_fill(0, i, 2.5), x, rows)
    same(lambda t: torch.eye(3, 5, device=t.device), x)
    same(lambda t: torch.diag_embed(t, 1), x)
    same(lambda t: torch.view_as_real(torch.complex(t, t + 1)), x)


def test_indices_on_the_cpu():
    x, rows = torch.randn(7, 9), torch.tensor([3, 0, -2])
    same(lambda t: t[rows], x)
    same(lambda t: t[rows, :2], x)
    same(lambda t: t[:, x[0] > 0], x)

    def written(t):
        t = t.clone()
        t[rows] = 1
        t[x > 0] = -3
        return t

    same(written, x)
    with pytest.raises(RuntimeError, match="indices should be either on cpu or on the same device"):
        x[rows.cuda()]


if __name__ == "__main__":
    sys.exit(pytest.main(["-q", "-p", "no:cacheprovider", "-p", "no:xdist", __file__, *sys.argv[1:]]))
