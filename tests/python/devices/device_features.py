"""Resizing, attention, autocasting and switches on a device; test_cuda.py runs them on the emulated one."""

import sys

import pytest
from device_helpers import emulated
from device_layers import HALVES, compare, computed_there

import rushlight as torch
import rushlight.nn.functional as F
from rushlight import nn

RESIZES = [
    ("nearest", (3,), {}),
    ("linear", (20,), {"align_corners": True}),
    ("nearest-exact", (4, 9), {}),
    ("bilinear", (9, 5), {}),
    ("bilinear", (3, 4), {"antialias": True}),
    ("bicubic", (9, 12), {"align_corners": False}),
    ("trilinear", (3, 5, 4), {}),
]


@pytest.mark.parametrize(("mode", "size", "options"), RESIZES)
def test_interpolation(mode, size, options):
    computed_there("upsample_bilinear2d", "_upsample_backward", "_upsample_bilinear2d_aa")
    x = torch.randn(2, 3, *(7, 8, 6)[: len(size)])
    for _ in range(2):  # the second time with the tables that were kept
        compare(lambda t: F.interpolate(t, size, mode=mode, **options), x)
    compare(lambda t: F.interpolate(t, scale_factor=1.6, mode=mode, **options), x.double())
    if len(size) == 2:
        last = x.contiguous(memory_format=torch.channels_last)
        compare(lambda t: F.interpolate(t, size, mode=mode, **options), last)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_attention(dtype):
    computed_there("_scaled_dot_product_flash_attention_for_cpu")
    atol = HALVES.get(dtype, 2e-5)
    attention = F.scaled_dot_product_attention
    q, k, v = (torch.randn(2, 4, n, 8).to(dtype) for n in (13, 17, 17))
    compare(attention, q, k, v, atol=atol, rtol=atol)
    compare(lambda *t: attention(*t, is_causal=True, scale=0.3), q, k, v, atol=atol, rtol=atol)
    mask = torch.rand(2, 1, 13, 17) > 0.3
    mask[0, 0, 2] = False
    compare(lambda *t: attention(*t, attn_mask=mask.to(t[0].device)), q, k, v, atol=atol, rtol=atol)
    added = torch.randn(13, 17).to(dtype)
    compare(lambda *t: attention(*t, attn_mask=added.to(t[0].device)), q, k, v, atol=atol, rtol=atol)
    few = (k[:, :2].clone(), v[:, :2].clone())
    compare(lambda *t: attention(*t, enable_gqa=True), q, *few, atol=atol, rtol=atol)
    compare(lambda *t: attention(*t), q[0, 0].clone(), k[0, 0].clone(), v[0, 0].clone(), atol=atol, rtol=atol)


def test_attention_in_parts():
    """More scores than are held at once."""
    q, k, v = (torch.randn(1, n, 130) for n in (280, 66000, 66000))  # too wide for tiles on the chip
    there = F.scaled_dot_product_attention(q.cuda(), k.cuda(), v.cuda()).cpu()
    torch.testing.assert_close(there, F.scaled_dot_product_attention(q, k, v), atol=1e-5, rtol=1e-4)


def test_views_and_reductions():
    computed_there("flip", "constant_pad_nd", "select_backward", "slice_backward", "logsumexp", "aminmax")
    x = torch.randn(4, 5, 6)
    compare(lambda t: t.flip(0, 2), x)
    compare(lambda t: F.pad(t, (1, 2, -1, 3), value=2.5), x)
    compare(lambda t: F.pad(t.to(torch.int32), (1, 2)), x)
    compare(lambda t: t[1:3, :, ::2] * t.select(1, 0)[1:3, None, ::2], x)
    compare(lambda t: torch.diagonal(t, 1, 0, 2), x)
    compare(lambda t: torch.split(t, 2, 1), x)
    compare(lambda t: t.unbind(2), x)
    compare(lambda t: t.logsumexp((0, 2)), x)
    compare(lambda t: t.aminmax(dim=1), x)
    for order in (0, 1, 2, 3, float("inf")):
        compare(lambda t, o=order: torch.linalg.vector_norm(t, o, dim=1), x)


def test_autocast():
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4)).cuda()
    x, target = torch.randn(5, 8, device="cuda"), torch.randint(0, 4, (5,), device="cuda")
    assert not torch.is_autocast_enabled("cuda") and torch.amp.is_autocast_available("cuda")
    for dtype in (torch.float16, torch.bfloat16):
        with torch.autocast("cuda", dtype=dtype):
            assert torch.is_autocast_enabled() and not torch.is_autocast_enabled("cpu")
            scores = net(x)
            assert scores.dtype == dtype and (x.cpu() @ torch.ones(8, 2)).dtype == torch.float32
            assert scores.exp().dtype == torch.float32 and scores.softmax(1).dtype == torch.float32
            loss = F.cross_entropy(scores, target)
            assert loss.dtype == torch.float32
            with torch.autocast("cuda", enabled=False):
                assert net(x).dtype == torch.float32
            with torch.autocast("cpu"):
                assert net(x).dtype == dtype and (x.cpu() @ torch.ones(8, 2)).dtype == torch.bfloat16
            with pytest.raises(RuntimeError, match="unsafe to autocast"):
                F.binary_cross_entropy(torch.rand(3, device="cuda"), torch.rand(3, device="cuda"))
        loss.backward()
    assert all(p.grad.dtype == torch.float32 for p in net.parameters()) and net(x).dtype == torch.float32
    scaler = torch.amp.GradScaler("cuda", init_scale=8.0)
    step = torch.optim.SGD(net.parameters(), lr=0.1)
    before = net[0].weight.clone()
    step.zero_grad()
    with torch.autocast("cuda"):
        loss = F.cross_entropy(net(x), target)
    scaler.scale(loss).backward()
    scaler.step(step)
    scaler.update()
    assert not net[0].weight.equal(before) and torch.get_autocast_dtype("cuda") == torch.float16


def test_switches():
    cudnn, matmul = torch.backends.cudnn, torch.backends.cuda.matmul
    assert cudnn.allow_tf32 and not matmul.allow_tf32 and not cudnn.benchmark
    assert torch.get_float32_matmul_precision() == "highest"
    matmul.allow_tf32 = True
    assert torch._C._device_switch("matmul_tf32") and torch.get_float32_matmul_precision() == "high"
    torch.set_float32_matmul_precision("highest")
    assert not matmul.allow_tf32
    with cudnn.flags(enabled=True, benchmark=True, allow_tf32=False):
        assert torch._C._device_switch("benchmark") and not torch._C._device_switch("convolution_tf32")
    assert not cudnn.benchmark and cudnn.allow_tf32
    before = cudnn.set_flags(_deterministic=True)
    assert cudnn.deterministic and before[3] is False
    cudnn.deterministic = False
    torch.use_deterministic_algorithms(True)
    assert torch._C._device_switch("deterministic_algorithms")
    torch.use_deterministic_algorithms(False)
    assert cudnn.is_available() == (emulated is None) == (cudnn.version() is not None)
    with pytest.raises(ValueError, match="no switch"):
        torch._C._device_switch("turbo")


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, "-q"]))
