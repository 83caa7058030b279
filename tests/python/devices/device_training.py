"""Optimizers, scaled gradients, dropout and attention's tiles on a device; run by test_cuda.py."""

import json
import sys

import pytest
from device_helpers import emulated, kernels
from device_layers import HALVES, compare, computed_there

import rushlight as torch
import rushlight.nn.functional as F
from rushlight.profiler import profile

OPTIMIZERS = [
    (torch.optim.SGD, {"lr": 0.1}),
    (torch.optim.SGD, {"lr": 0.1, "momentum": 0.9, "nesterov": True, "weight_decay": 0.1}),
    (torch.optim.Adam, {"lr": 0.1, "amsgrad": True, "weight_decay": 0.1}),
    (torch.optim.AdamW, {"lr": 0.1, "maximize": True}),
    (torch.optim.Adagrad, {"lr": 0.1}),
    (torch.optim.RMSprop, {"lr": 0.1, "momentum": 0.5, "centered": True}),
    (torch.optim.Adadelta, {}),
    (torch.optim.Adamax, {"lr": 0.1}),
    (torch.optim.NAdam, {"lr": 0.1}),
    (torch.optim.RAdam, {"lr": 0.1}),
    (torch.optim.ASGD, {"lr": 0.1}),
    (torch.optim.Rprop, {"lr": 0.1}),
]


def steps(device, optimizer, options, dtype):
    """Parameters after some steps: many small ones, one that takes several pieces, one by columns."""
    torch.manual_seed(0)
    shapes = [(3, 5), (20000,), (0, 2), *[(7,)] * 45]
    values = [torch.randn(s, dtype=dtype) for s in shapes] + [torch.randn(4, 6, dtype=dtype).t()]
    params = [torch.nn.Parameter(v.to(device)) for v in values]
    stepper = optimizer(params, **options)
    for _ in range(4):
        for p in params:
            p.grad = torch.randn(p.shape, dtype=dtype).to(device)
        stepper.step()
    return [p.detach().cpu() for p in params]


@pytest.mark.parametrize(("optimizer", "options"), OPTIMIZERS)
def test_optimizers(optimizer, options):
    computed_there("_fused_sgd_", "_fused_adam_", "_fused_adamw_", "_fused_update_")
    for there, here in zip(*(steps(d, optimizer, options, torch.float32) for d in ("cuda", "cpu"))):
        torch.testing.assert_close(there, here, atol=1e-6, rtol=1e-5)


def test_optimizers_in_other_dtypes():
    for dtype in (torch.float64, torch.bfloat16):
        tolerance = HALVES.get(dtype, 1e-10)
        pairs = zip(*(steps(d, torch.optim.AdamW, {"lr": 0.01}, dtype) for d in ("cuda", "cpu")))
        for there, here in pairs:
            torch.testing.assert_close(there, here, atol=tolerance, rtol=tolerance)


def test_a_first_momentum_is_written_only():
    """Also where it lies otherwise than its parameter."""
    for device in ("cpu", "cuda"):
        p, g = (torch.randn(4, 6, device=device).t() for _ in range(2))
        buffer, wanted = torch.full((6, 4), float("nan"), device=device), p - 0.5 * g
        options = {"weight_decay": 0, "momentum": 0.9, "lr": 0.5, "dampening": 0}
        flags = {"nesterov": False, "maximize": False, "is_first_step": True}
        torch._fused_sgd_([p], [g], [buffer], **options, **flags)
        torch.testing.assert_close(buffer, g)
        torch.testing.assert_close(p, wanted)


def test_many_parameters_are_few_launches(tmp_path):
    params = [torch.nn.Parameter(torch.randn(11, device="cuda")) for _ in range(90)]
    optimizer = torch.optim.Adam(params)
    for p in params:
        p.grad = torch.ones(11, device="cuda")
    optimizer.step()  # makes the states
    with profile() as p:
        optimizer.step()
    path = tmp_path / "trace.json"
    p.export_chrome_trace(str(path))
    events = json.loads(path.read_text())["traceEvents"]
    assert len(names := kernels(events)) == 3 and (emulated is None or set(names) == {"optimizer"})


def test_a_step_may_be_told_what_a_scaler_found():
    """The scale, the flag and the number of the step as they lie on the device."""
    for skipped in (0.0, 1.0):
        given = torch.randn(300), torch.randn(300), torch.zeros(300), torch.zeros(300)
        p, g, m, v = (t.cuda() for t in given)
        options = {"lr": 0.1, "beta1": 0.9, "beta2": 0.99, "weight_decay": 0.0, "eps": 1e-8}
        flags = {"amsgrad": False, "maximize": False}
        step = torch.tensor(3.0)
        torch._fused_adam_(
            [p], [g], [m], [v], [], [step.cuda()], **options, **flags,
            grad_scale=torch.tensor(4.0).cuda(), found_inf=torch.tensor(skipped).cuda(),
        )  # fmt: skip
        here = [t.clone() for t in given]
        if not skipped:
            torch._fused_adam_(
                *([t] for t in (here[0], here[1].div_(4), *here[2:])), [], [step], **options, **flags
            )
        torch.testing.assert_close(p.cpu(), here[0])
        torch.testing.assert_close(m.cpu(), here[2])


def test_unscaling():
    grads = [torch.randn(9).cuda(), torch.randn(4, 5).cuda().t(), torch.randn(3).half().cuda()]
    before = [g.cpu().clone() for g in grads]
    found, inverse = torch.zeros((), device="cuda"), torch.tensor(0.25, device="cuda")
    torch._amp_foreach_non_finite_check_and_unscale_(grads, found, inverse)
    assert found.item() == 0 and all(g.cpu().equal(b * 0.25) for g, b in zip(grads, before))
    for wrong in (float("nan"), float("inf")):
        found.zero_()
        grads[1][2, 1] = wrong
        torch._amp_foreach_non_finite_check_and_unscale_(grads, found, inverse)
        assert found.item() == 1
    with pytest.raises(RuntimeError, match="float32 tensors of one element"):
        torch._amp_foreach_non_finite_check_and_unscale_(grads, found.double(), inverse)


class Philox:
    """Philox 4x32-10 in Python: the numbers of one stream."""

    def __init__(self, seed, stream):
        self.key, self.stream = (seed & 0xFFFFFFFF, seed >> 32), stream

    def draw(self, offset):
        c = [offset & 0xFFFFFFFF, offset >> 32, self.stream & 0xFFFFFFFF, self.stream >> 32]
        k = list(self.key)
        for round in range(10):
            if round:
                k = [(k[0] + 0x9E3779B9) & 0xFFFFFFFF, (k[1] + 0xBB67AE85) & 0xFFFFFFFF]
            p, q = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
            c = [(q >> 32) ^ c[1] ^ k[0], q & 0xFFFFFFFF, (p >> 32) ^ c[3] ^ k[1], p & 0xFFFFFFFF]
        return c


def test_dropout_draws_as_the_fused_kernel():
    """Four numbers for every four of the elements that a thread reads at once, or else one by one."""
    threads = 256 * 4 * 8  # of the emulated device, where the size asks for as many
    if torch.cuda.get_device_properties(0).multi_processor_count != 4:
        pytest.skip("the grid of this device is another one")
    half = torch.float16
    for size, at_once, dtype in (
        (threads * 8 * 2, 8, half),
        (threads * 8 * 2, 4, torch.float32),
        (threads * 4 + 4, 4, half),
        (threads + 2, 2, torch.float32),
        (threads * 4 + 1, 1, torch.float32),
    ):
        torch.cuda.manual_seed(11)
        kept = F.dropout(torch.ones(size, device="cuda", dtype=dtype), 0.25).cpu()
        offset = torch.cuda.default_generators[0].get_offset()
        assert offset == ((size - 1) // (threads * 4) + 1) * 4
        assert set(kept.unique().tolist()) == {0.0, torch.tensor(1 / 0.75, dtype=dtype).item()}
        for i in [0, 1, 3, 5, 9, size // 2, size - 1]:
            if at_once > 1:
                turn, rest = divmod(i, threads * at_once)
                thread, slot = divmod(rest, at_once)
                draw = turn * max(at_once // 4, 1) + slot // 4
            else:
                draw, rest = divmod(i, threads * 4)
                slot, thread = divmod(rest, threads)
            uniform = Philox(11, thread).draw(draw)[slot % 4] * 2.0**-32 + 2.0**-33
            assert (kept[i].item() != 0) == (uniform < 0.75), (size, i)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("width, value_width", [(40, 24), (64, 64), (33, 120)])
def test_attention_over_many_tiles(dtype, causal, width, value_width):
    """Sizes that are no multiples of a tile, several heads to one of keys, heads next to each other.

    Halves have other tiles than the rest.
    """
    tolerance = HALVES.get(dtype, 2e-5)
    q = torch.randn(2, 70, 4, width).to(dtype).transpose(1, 2)
    k = torch.randn(2, 100, 2, width).to(dtype).transpose(1, 2)
    v = torch.randn(2, 2, 100, value_width).to(dtype)
    compare(
        lambda *t: F.scaled_dot_product_attention(*t, is_causal=causal, enable_gqa=True),
        q, k, v, atol=tolerance, rtol=tolerance,
    )  # fmt: skip
    if not causal:
        mask = torch.randn(70, 100).masked_fill(torch.rand(70, 100) < 0.3, float("-inf"))
        mask[5] = float("-inf")  # looks at nothing
        compare(
            lambda *t: F.scaled_dot_product_attention(*t, attn_mask=mask.to(t[0]), enable_gqa=True),
            q, k, v, atol=tolerance, rtol=tolerance,
        )  # fmt: skip


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_attention_in_tiles_is_one_launch(tmp_path, dtype):
    q, k, v = (torch.randn(2, 3, 50, 16, device="cuda", dtype=dtype) for _ in range(3))
    torch.cuda.synchronize()
    with profile() as p:
        F.scaled_dot_product_attention(q, k, v, is_causal=True)
    path = tmp_path / "trace.json"
    p.export_chrome_trace(str(path))
    events = json.loads(path.read_text())["traceEvents"]
    assert len(names := kernels(events)) == 1 and (emulated is None or names == ["attention"])


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
def test_attention_sees_nan(dtype):
    q, k = torch.randn(1, 1, 40, 8, dtype=dtype), torch.randn(1, 1, 40, 8, dtype=dtype)
    q[0, 0, 3, 2] = float("nan")
    there = F.scaled_dot_product_attention(q.cuda(), k.cuda(), k.cuda(), is_causal=True).cpu()
    assert there.isnan().any(-1).nonzero().tolist() == [[0, 0, 3]] and there[0, 0, 3].isnan().all()


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, "-q", "-p", "no:cacheprovider"]))
