"""Layers of networks on a device; test_cuda.py runs them on the emulated one."""

import copy
import sys

import pytest

import rushlight as torch
import rushlight.nn.functional as F
from rushlight import nn

HALVES = {torch.float16: 4e-3, torch.bfloat16: 4e-2}


@pytest.fixture(autouse=True)
def exact_convolutions():
    """Results are compared with the CPU's."""
    with torch.backends.cudnn.flags(enabled=True, allow_tf32=False):
        yield


def compare(f, *tensors, atol=2e-5, rtol=2e-5):
    """f and the gradients of its floating inputs, on the device and on the CPU."""
    results = []
    for device in ("cpu", "cuda"):
        inputs = [t.detach().to(device).requires_grad_(t.is_floating_point()) for t in tensors]
        out = f(*inputs)
        outs = [out] if isinstance(out, torch.Tensor) else list(out)
        assert all(t.device.type == device for t in outs)
        flows = [t for t in outs if t.requires_grad]
        torch.manual_seed(1)
        if flows:
            torch.autograd.backward(flows, [torch.randn(t.shape).to(t) for t in flows])
        results.append(
            [t.detach().cpu() for t in outs] + [t.grad.cpu() for t in inputs if t.grad is not None]
        )
    for here, there in zip(*results, strict=True):
        torch.testing.assert_close(there, here, atol=atol, rtol=rtol, equal_nan=True)


def computed_there(*names):
    """None of these falls back to the CPU."""
    records = {r["name"]: r["traits"].devices for r in torch._C._operator_records()}
    assert all(records[n] for n in names), [n for n in names if not records[n]]


@pytest.mark.parametrize(
    "shape", [(4, 300), (3, 5, 7), (2, 2000, 3), (1,), (), (3, 1), (3, 4100), (2, 20_000)]
)
@pytest.mark.parametrize("f", [F.softmax, F.log_softmax])
def test_softmax(shape, f):
    computed_there("_softmax", "_log_softmax_backward_data")
    x = torch.randn(shape) * 5
    tolerance = 2e-5 if x.numel() < 20_000 else 2e-4  # sums are longer
    for dim in range(max(len(shape), 1)):
        compare(lambda t, d=dim: f(t, d), x, atol=tolerance, rtol=tolerance)
    for dtype, atol in HALVES.items():
        compare(lambda t: f(t, 0), x.to(dtype), atol=atol, rtol=atol)
    compare(lambda t: f(t, -1), x.double())


def test_softmax_of_what_is_not_finite():
    inf, nan = float("inf"), float("nan")
    x = torch.tensor(
        [[1.0, -inf, 2.0], [-inf, -inf, -inf], [inf, 1.0, 2.0], [nan, 1.0, 2.0], [1.0, 2.0, nan]]
    )
    for f in (torch.softmax, torch.log_softmax):
        for dim in (0, 1):
            for y in (x, x.repeat(1, 8)):  # rows of packs too
                there, here = f(y.cuda(), dim).cpu(), f(y, dim)
                torch.testing.assert_close(there, here, equal_nan=True)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.bfloat16])
def test_norms(dtype):
    atol = HALVES.get(dtype, 2e-5)
    computed_there("native_layer_norm", "_row_norm_gradients", "native_group_norm", "_fused_rms_norm")
    for shape, rows in (
        ((6, 5, 40), (40,)),
        ((3, 4, 8), (4, 8)),
        ((2, 300), (300,)),
        ((200, 3), (3,)),
        ((3, 5000), (5000,)),
    ):
        x, w, b = (torch.randn(s).to(dtype) for s in (shape, rows, rows))
        compare(
            lambda *t, r=rows: F.layer_norm(t[0], r, t[1], t[2]), x * 3 + 1, w, b, atol=atol * 4, rtol=atol
        )
        compare(lambda *t, r=rows: F.rms_norm(t[0], r, t[1]), x, w, atol=atol * 4, rtol=atol)
        compare(lambda t, r=rows: F.layer_norm(t, r), x, atol=atol * 4, rtol=atol)
    x, w, b = (torch.randn(s).to(dtype) for s in ((3, 6, 4, 5), (6,), (6,)))
    for groups in (1, 2, 6):
        compare(lambda *t, g=groups: F.group_norm(t[0], g, t[1], t[2]), x, w, b, atol=atol * 8, rtol=atol)
    x, w, b = (torch.randn(s).to(dtype) for s in ((4, 8), (8,), (8,)))  # channels without planes
    for groups in (1, 2, 4):
        compare(lambda *t, g=groups: F.group_norm(t[0], g, t[1], t[2]), x, w, b, atol=atol * 8, rtol=atol)


@pytest.mark.parametrize(
    "shape",
    [
        (8, 6),
        (40, 20),
        (70, 32),
        (5, 4, 7, 7),
        (3, 2, 64, 64),
        (4, 6, 5),
        (3, 6, 4, 5),
        (2, 3, 40, 50),
        (2, 4, 3, 4, 5),
    ],
)
def test_batch_norm(shape):
    computed_there("native_batch_norm", "_batch_norm_gradients")
    torch.manual_seed(0)
    for dtype in (torch.float32, torch.float64, torch.bfloat16):
        here = (
            nn.LazyBatchNorm1d()
            if len(shape) < 4
            else nn.LazyBatchNorm2d()
            if len(shape) == 4
            else nn.LazyBatchNorm3d()
        )
        here(torch.randn(shape))
        here.to(dtype)
        there = copy.deepcopy(here).cuda()
        atol = HALVES.get(dtype, 3e-5)
        for training in (True, True, False):
            here.train(training), there.train(training)
            x = (torch.randn(shape) * 2 + 3).to(dtype)
            a, b = x.clone().requires_grad_(), x.cuda().requires_grad_()
            ya, yb = here(a), there(b)
            g = torch.randn(shape).to(dtype)
            ya.backward(g), yb.backward(g.cuda())
            torch.testing.assert_close(yb.cpu(), ya, atol=atol * 2, rtol=atol)
            torch.testing.assert_close(b.grad.cpu(), a.grad, atol=atol * 4, rtol=atol)
            for p, q in zip(there.parameters(), here.parameters(), strict=True):
                torch.testing.assert_close(p.grad.cpu(), q.grad, atol=atol * 40, rtol=atol)
            for p, q in zip(there.buffers(), here.buffers(), strict=True):
                torch.testing.assert_close(p.cpu(), q, atol=atol, rtol=atol)


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
def test_losses(reduction):
    computed_there("nll_loss_forward", "nll_loss2d_forward", "nll_loss_backward", "mse_loss", "huber_loss")
    target = torch.randint(0, 7, (5,))
    target[2] = 3
    weight = torch.rand(7)
    for dtype in (torch.float32, torch.float64):
        x = torch.randn(5, 7, dtype=dtype)
        kw = {"reduction": reduction, "ignore_index": 3}
        compare(lambda t, kw=kw: F.cross_entropy(t, target.to(t.device), **kw), x)
        w = weight.to(dtype)
        compare(lambda t, kw=kw, w=w: F.cross_entropy(t, target.to(t.device), w.to(t.device), **kw), x)
        compare(
            lambda t: F.cross_entropy(t, target.to(t.device), reduction=reduction, label_smoothing=0.1), x
        )
    images, classes = torch.randn(2, 7, 30, 40), torch.randint(0, 7, (2, 30, 40))
    compare(lambda t: F.cross_entropy(t, classes.to(t.device), reduction=reduction), images)
    a, b = torch.randn(4, 9), torch.randn(4, 9)
    for f in (F.mse_loss, F.l1_loss, F.smooth_l1_loss, F.huber_loss):
        compare(lambda s, t, f=f: f(s, t, reduction=reduction), a, b)
    compare(lambda s, t: F.binary_cross_entropy(s.sigmoid(), t.sigmoid(), reduction=reduction), a, b)
    compare(lambda s, t: F.binary_cross_entropy_with_logits(s, t.sigmoid(), reduction=reduction), a, b)
    compare(lambda s, t: F.kl_div(s.log_softmax(1), t.softmax(1), reduction=reduction), a, b)


def test_pooling():
    computed_there("max_pool2d_with_indices", "_max_pool_backward", "avg_pool2d", "_avg_pool_backward")
    x = torch.randn(2, 3, 11, 13)
    for kw in ({}, {"stride": 1}, {"padding": 1}, {"stride": 2, "padding": 1, "ceil_mode": True}):
        compare(lambda t, kw=kw: F.max_pool2d(t, 3, return_indices=True, **kw), x)
        compare(lambda t, kw=kw: F.avg_pool2d(t, 3, **kw), x)
        compare(lambda t, kw=kw: F.avg_pool2d(t, 3, count_include_pad=False, **kw), x)
    compare(lambda t: F.max_pool2d(t, 3, 2, dilation=2), x)
    compare(lambda t: F.avg_pool2d(t, (2, 3), divisor_override=5), x)
    for size in (1, 4, (3, 5), (11, 13), (20, 7)):
        compare(lambda t, s=size: F.adaptive_avg_pool2d(t, s), x)
        compare(lambda t, s=size: F.adaptive_max_pool2d(t, s, return_indices=True), x)
    last = x.contiguous(memory_format=torch.channels_last)
    compare(lambda t: F.max_pool2d(t, 3, 2, 1), last)
    compare(lambda t: F.avg_pool2d(t, 3, 2, 1), last)
    compare(lambda t: F.max_pool1d(t[0], 3, 2), x)
    compare(lambda t: F.avg_pool1d(t[0], 3, 2), x)
    compare(lambda t: F.max_pool3d(t.unsqueeze(0), 2), x)
    compare(lambda t: F.adaptive_avg_pool3d(t, (2, 3, 5)), x)
    for dtype in (torch.float64, torch.float16):
        compare(lambda t: F.avg_pool2d(F.max_pool2d(t, 2), 2), x.to(dtype), atol=2e-3)
    compare(lambda t: F.max_pool2d(t, 2), (x * 9).to(torch.int32))


@pytest.mark.parametrize("kernel, stride, padding", [(2, 2, 0), (2, 2, 1), (2, 1, 0), (3, 2, 1), (3, 3, 0)])
@pytest.mark.parametrize("size", [(8, 6), (7, 9), (3, 3)])
def test_square_windows(kernel, stride, padding, size):
    """Windows that have kernels of their own, beside and over each other, cut off at the ends or not."""
    x = torch.randn(2, 5, *size)
    x[0, 1, 1, 1] = float("nan")
    x[1, 0] = -float("inf")
    for t in (x, x.to(memory_format=torch.channels_last)):
        for ceil in (False, True):
            where = {"stride": stride, "padding": padding, "ceil_mode": ceil}
            compare(lambda t, w=where: F.max_pool2d(t, kernel, return_indices=True, **w), t)
            finite = t.nan_to_num(0, neginf=1)
            assert finite.stride() == t.stride()
            for counted in (False, True):
                rules = {**where, "count_include_pad": counted}
                compare(lambda t, r=rules: F.avg_pool2d(t, kernel, **r), finite)
            compare(lambda t, w=where: F.avg_pool2d(t, kernel, divisor_override=3, **w), finite)
    for dtype, atol in HALVES.items():
        compare(lambda t: F.max_pool2d(t, kernel, stride, padding), x.to(dtype), atol=atol)
        compare(lambda t: F.avg_pool2d(t, kernel, stride, padding), finite.to(dtype), atol=atol)


CONVOLUTIONS = [
    ((2, 3, 9), (4, 3, 3), {}),
    ((2, 4, 9, 8), (6, 4, 3, 3), {"padding": 1}),
    ((2, 4, 9, 8), (6, 2, 3, 2), {"stride": 2, "groups": 2}),
    ((3, 4, 7, 7), (8, 1, 3, 3), {"groups": 4, "padding": 1, "dilation": 2}),
    ((2, 4, 6, 5), (3, 4, 1, 1), {}),
    ((1, 2, 5, 6, 4), (3, 2, 2, 3, 2), {"padding": (1, 0, 1), "stride": (1, 2, 1)}),
]


@pytest.mark.parametrize(("image", "weight", "options"), CONVOLUTIONS)
def test_convolutions(image, weight, options):
    computed_there("convolution", "_conv_input_gradient", "_conv_weight_gradient")
    n = len(image) - 2
    conv = (F.conv1d, F.conv2d, F.conv3d)[n - 1]
    turned = (F.conv_transpose1d, F.conv_transpose2d, F.conv_transpose3d)[n - 1]
    for dtype in (torch.float32, torch.float64):
        x, w, b = (torch.randn(s, dtype=dtype) for s in (image, weight, weight[:1]))
        compare(lambda *t: conv(t[0], t[1], t[2], **options), x, w, b, atol=1e-4, rtol=1e-4)
        y = conv(x, w, **options)
        bias = torch.randn(image[1], dtype=dtype)
        compare(lambda *t: turned(t[0], t[1], t[2], **options), y, w, bias, atol=1e-4, rtol=1e-4)
    if n == 2:
        last = x.float().contiguous(memory_format=torch.channels_last)
        compare(lambda *t: conv(*t, **options), last, w.float(), atol=1e-4, rtol=1e-4)
        compare(lambda t: F.fold(F.unfold(t, 3, padding=1), t.shape[2:], 3, padding=1), x)
        for dtype, tolerance in ((torch.float32, 1e-4), (torch.float64, 1e-9), (torch.bfloat16, 0.2)):
            x, w, b = (torch.randn(s, dtype=dtype) for s in (image, weight, weight[:1]))
            last = x.contiguous(memory_format=torch.channels_last)
            compare(lambda *t: conv(*t, **options), last, w, b, atol=tolerance, rtol=tolerance)
            y, bias = conv(last, w, **options), torch.randn(image[1], dtype=dtype)
            compare(lambda *t: turned(*t, **options), y, w, bias, atol=tolerance, rtol=tolerance)
            there = conv(last.cuda(), w.cuda(), **options)
            assert there.stride() == y.stride()


@pytest.mark.parametrize("shape", [(), (1,), (37,), (5, 300), (300, 5), (3, 40, 7)])
def test_sorting(shape):
    computed_there("sort", "topk", "argsort")
    whole = torch.randint(-5, 5, shape)
    real = torch.randn(shape)
    if real.numel() > 9:
        real.view(-1)[3], real.view(-1)[5], real.view(-1)[7], real.view(-1)[8] = (
            float("nan"),
            float("inf"),
            0.0,
            -0.0,
        )
    for x in (whole, whole.to(torch.uint8), real, real.double(), real.half(), real > 0):
        for dim in range(max(len(shape), 1)):
            for descending in (False, True):
                compare(lambda t, d=dim, o=descending: torch.sort(t, dim=d, descending=o, stable=True), x)
    for largest in (False, True):
        k = min(3, shape[-1] if shape else 1)
        compare(lambda t, o=largest, k=k: torch.topk(t, k, largest=o), torch.randn(shape))
    compare(lambda t: torch.msort(t) if t.dim() else t, real)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_layer_norm_keeps_statistics_for_gradients_only(dtype):
    def allocations(x):
        before = torch.cuda.memory_stats()["allocation.all.allocated"]
        y = torch.nn.functional.layer_norm(x, (64,), weight, weight)
        return y, torch.cuda.memory_stats()["allocation.all.allocated"] - before

    x, weight = torch.randn(5, 64).to("cuda", dtype), torch.randn(64).to("cuda", dtype)
    plain, few = allocations(x)
    recorded, more = allocations(x.clone().requires_grad_())
    assert torch.equal(plain, recorded)
    assert few < more
    if dtype == torch.float32:
        assert few == 1
    with pytest.raises(RuntimeError, match="device"):
        torch.nn.functional.layer_norm(x, (64,), weight.cpu())


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, "-q"]))
