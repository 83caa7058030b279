"""Fused programs as kernels of a device; test_cuda.py runs them on the emulated one.

There the text of each kernel is compiled for the host, and by NVRTC too where EMULATED_NVRTC names it.
"""

import copy
import ctypes
import sys

import pytest
from device_helpers import emulated, needs_two, only_emulated

import rushlight as torch
from rushlight import _C, nn
from rushlight._inductor._rows import _LOG_SOFTMAX, _MAX, _MIN, _SOFTMAX, _SUM
from rushlight.nn import functional as F

FORMULAS = {name: i for i, name in enumerate(_C._formula_names())}
ELEMENTS = torch.ops.aten._fused_pointwise.default
ROWS = torch.ops.aten._fused_rows.default
CHOOSE = -1
compile_fx = sys.modules["rushlight._inductor.compile_fx"]  # its function hides the module


def same(op, inputs, code, numbers, dtype, *more, **tolerance):
    here = op(inputs, code, numbers, dtype, *more)
    there = op([t.cuda() for t in inputs], code, numbers, dtype, *more)
    for a, b in zip(there, here):
        assert a.is_cuda and a.stride() == b.stride()
        torch.testing.assert_close(a.cpu(), b, equal_nan=True, **tolerance)


def words_of(name, dtype):
    """A formula's operands and parameters; None where it has no loop in floating-point types."""
    x = [torch.ones(1, dtype=dtype)] * 3
    for words in ([0], [0, 1], [0, 1, 2], [0, 1, 2, 0], [0, 1, 2, 0, 1]):
        try:
            ELEMENTS(x, [1, FORMULAS[name], *words, 1, 6], [1.0, 2.0, 3.0], dtype)
        except ValueError:
            continue
        return words
    return None


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16])
def test_every_formula(dtype):
    known = {name: words_of(name, dtype) for name in FORMULAS}
    known = {name: words for name, words in known.items() if words}
    assert len(known) > 140
    code = [len(known)]
    for name, words in known.items():
        code += [FORMULAS[name], *words]
    code += [len(known), *range(6, 6 + len(known))]
    inputs = [torch.rand(3, 50).mul(0.8).add(0.1).to(dtype) for _ in range(3)]
    tolerance = {"atol": 1e-6, "rtol": 1e-9 if dtype == torch.float64 else 2e-5}
    same(ELEMENTS, inputs, code, [0.25, 0.5, 0.75], dtype, **(tolerance if dtype.itemsize > 2 else {}))


def test_layouts():
    code = [2, FORMULAS["Mul"], 0, 1, FORMULAS["AddScaled"], 4, 2, 0, 1, 5]
    x = torch.randn(4, 6, 10)
    turned = x.permute(1, 2, 0).contiguous().permute(2, 0, 1)
    for first, dtype in ((x, torch.float16), (x.mT.contiguous().mT, torch.float32),
                         (torch.randn(8, 6, 20)[::2, :, 1::2], torch.bfloat16)):  # fmt: skip
        same(ELEMENTS, [first.to(dtype), torch.randn(10), turned], code, [0.3], dtype)
    same(ELEMENTS, [x[:1], torch.arange(10), torch.randint(9, (6, 1), dtype=torch.uint8)],
         code, [0.3], torch.float16)  # fmt: skip
    same(ELEMENTS, [x[:0], x[:0], x[:0]], code, [0.3], torch.float32)


def test_vectors_and_what_is_left():
    """Above so many elements each thread takes 16 bytes at a time."""
    code = [2, FORMULAS["Lt"], 0, 1, CHOOSE, 2, 0, 1, 2, 2, 3]
    for n in ((1 << 20) + 5, (1 << 20) + 16):  # with one kernel
        same(ELEMENTS, [torch.randn(n), torch.randn(n)], code, [], torch.float32)
    shifted = torch.randn(n + 1).bfloat16()[1:]  # not where 16 bytes begin
    same(ELEMENTS, [shifted, torch.randn(n)], code, [], torch.bfloat16)


def test_numbers_of_the_host():
    x = torch.randn(5, 3).cuda()
    code = [1, FORMULAS["Mul"], 0, 1, 1, 2]
    (out,) = ELEMENTS([x, torch.tensor(2.5)], code, [], torch.float32)
    (other,) = ELEMENTS([x, torch.tensor(4)], code, [], torch.float32)
    assert out.equal(x * 2.5) and other.equal(x * 4)
    special = [float("inf"), -float("inf"), float("nan")]
    code = [3, *(v for i in range(3) for v in (FORMULAS["Maximum"], 0, 1 + i)), 3, 4, 5, 6]
    same(ELEMENTS, [torch.randn(4)], code, special, torch.float32)


LENGTHS = [1, 2, 5, 64, 96, 500, 1024, 3000, 9000, 16384]


@pytest.mark.parametrize("row", LENGTHS)
def test_rows(row):
    dtype = (torch.float32, torch.bfloat16, torch.float64)[LENGTHS.index(row) % 3]
    x = torch.randn(3, 5, row).to(dtype)
    tolerance = {"atol": 1e-4, "rtol": 1e-4} if dtype == torch.float32 else {}
    # (x - mean) * exp(largest - smallest), the largest of that, and both softmaxes
    code = [
        8, _SUM, 0, 0, _MAX, 0, _MIN, 0, FORMULAS["Sub"], 3, 4, FORMULAS["Sub"], 0, 2,
        FORMULAS["Mul"], 6, 5, _SOFTMAX, 7, _LOG_SOFTMAX, 6, 4, 2, 7, 8, 9,
    ]  # fmt: skip
    same(ROWS, [x], code, [float(row)], dtype, [3, 5, row], [], **tolerance)
    # x * (one number a row) + (one number a column), and a sum of a mask's choice
    code = [4, FORMULAS["Mul"], 0, 1, FORMULAS["Add"], 5, 2, CHOOSE, 3, 6, 0, _SUM, 7, 0, 2, 6, 8]
    more = [torch.randn(5, 1), torch.randn(row), torch.rand(3, 1, row) > 0.5]
    same(ROWS, [x, *more], code, [1.0], dtype, [3, 5, row], [1], **tolerance)


def test_rows_without_numbers():
    x = torch.tensor([[1.0, float("nan"), 2.0], [-float("inf")] * 3, [float("inf"), 1.0, 0.0]])
    code = [5, _SUM, 0, 0, _MAX, 0, _MIN, 0, _SOFTMAX, 0, _LOG_SOFTMAX, 0, 5, 2, 3, 4, 5, 6]
    same(ROWS, [x.t()], code, [1.0], torch.float32, [3, 3], [])


@pytest.fixture
def texts(monkeypatch):
    """The graphs that are compiled in a test, none of which is run for its time."""
    monkeypatch.setattr(torch._inductor.config, "measure", False)
    found = []
    bind = compile_fx.Program.bind

    def noted(program, *args, **kwargs):
        found.extend(program.texts())
        return bind(program, *args, **kwargs)

    monkeypatch.setattr(compile_fx.Program, "bind", noted)
    torch._dynamo.reset()
    return found


def test_a_function(texts):
    def f(x, w, b):
        h = F.gelu(x @ w + b) * 2 + 1
        return (h - h.mean(-1, keepdim=True)).softmax(-1), h.clamp(min=0) * three

    x, w, b, three = torch.randn(8, 16), torch.randn(16, 32), torch.randn(32), torch.tensor(3.0)
    compiled = torch.compile(f, fullgraph=True)
    for there, here in zip(compiled(x.cuda(), w.cuda(), b.cuda()), f(x, w, b)):
        torch.testing.assert_close(there.cpu(), here)
    assert "_fused_rows" in texts[0]
    for there, here in zip(compiled(x, w, b), f(x, w, b)):  # other devices have graphs of their own
        assert there.equal(here)
    assert "_fused_rows" not in "".join(texts[1:])


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.up, self.down = nn.LayerNorm(32), nn.Linear(32, 64), nn.Linear(64, 32)
        self.attention = nn.MultiheadAttention(32, 4, batch_first=True)

    def forward(self, x):
        h = self.norm(x)
        x = x + self.attention(h, h, h, need_weights=False)[0]
        return x + self.down(F.silu(self.up(self.norm(x))) * 1.5)


@pytest.mark.parametrize("autocast", [False, True])
def test_training(texts, autocast):
    plain = Block()
    there, eager = copy.deepcopy(plain).cuda(), copy.deepcopy(plain).cuda()
    compiled = torch.compile(there, fullgraph=True)
    tolerance = {"atol": 2e-3, "rtol": 2e-2} if autocast else {}
    x = torch.randn(2, 5, 32).cuda()
    for _ in range(2):
        losses = []
        for model in (eager, compiled):
            with torch.autocast("cuda", torch.bfloat16, enabled=autocast):
                out = model(x)
            losses.append(out.float().square().mean())
            losses[-1].backward()
        assert "CompiledFunction" in out.grad_fn.name()
        torch.testing.assert_close(*losses, **tolerance)
    for p, q in zip(eager.parameters(), there.parameters()):
        torch.testing.assert_close(q.grad, p.grad, **tolerance)
    assert any("_fused_pointwise" in text for text in texts)


def test_random_numbers_record_themselves(texts):
    x = torch.randn(64, 64).cuda().requires_grad_()
    compiled = torch.compile(lambda t: F.dropout(t * 2, 0.5) * 3, fullgraph=True)
    torch.cuda.manual_seed(3)
    out = compiled(x)
    torch.cuda.manual_seed(3)
    assert out.equal(F.dropout(x * 2, 0.5) * 3) and "Compiled" not in out.grad_fn.name()


def recordings(compiled):
    """What runs the graphs of a compiled function, recorded or not."""
    return [entry.run.__self__ for entry in compiled._compiled.entries]


def test_recorded_graphs(texts):
    model = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 4)).cuda()

    def f(x, scale):
        return model(x) * scale, model(x).relu()

    compiled = torch.compile(f, mode="reduce-overhead")
    kept = []

    def check(times):
        for _ in range(times):
            x, scale = torch.randn(3, 8).cuda(), torch.randn(4).cuda()
            kept.append((compiled(x, scale), f(x, scale)))

    with torch.no_grad():
        check(6)
        (recording,) = recordings(compiled)
        first = recording.recorded
        assert first is not None
        model[0].weight.add_(1)  # read where it lies
        check(2)
        assert recording.recorded is first
        model[0].weight.data = torch.randn(16, 8).cuda()  # lies elsewhere
        check(2)
        assert recording.recorded is not first
        torch.cuda.synchronize()
        with torch.cuda.stream(torch.cuda.Stream()):
            check(2)
        torch.cuda.synchronize()
    for there, here in kept:  # earlier results are their callers' own
        for a, b in zip(there, here):
            torch.testing.assert_close(a.cpu(), b.cpu())


def test_recorded_random_numbers(texts):
    compiled = torch.compile(lambda t: F.dropout(t, 0.5) * 2, mode="reduce-overhead")
    x = torch.ones(50).cuda()
    torch.cuda.manual_seed(5)
    there = [compiled(x).cpu() for _ in range(6)]
    torch.cuda.manual_seed(5)
    for result in there:
        assert result.equal((F.dropout(x, 0.5) * 2).cpu())
    assert recordings(compiled)[0].recorded is not None


def test_what_is_not_recorded(texts):
    def writes(t):
        t.add_(1)
        return t * 2

    x = torch.zeros(3).cuda()
    compiled = torch.compile(writes, mode="reduce-overhead")
    assert [compiled(x)[0].item() for _ in range(5)] == [2, 4, 6, 8, 10] and x[0].item() == 5
    view = torch.compile(lambda t: t[1:], mode="reduce-overhead")
    for _ in range(5):
        assert view(x).data_ptr() == x[1:].data_ptr()
    number = torch.compile(lambda t, n: t * n, mode="reduce-overhead")
    assert [number(x, torch.tensor(float(i)))[0].item() for i in range(5)] == [0, 5, 10, 15, 20]
    values = torch.compile(lambda t: torch.linalg.eigvals(t).abs().sum() + 1, mode="reduce-overhead")
    for _ in range(5):  # by way of the CPU, which a recording cannot wait for
        assert abs(values(torch.eye(2).cuda()).item() - 3) < 1e-6
    assert recordings(values)[0].refused


@needs_two
def test_devices_of_a_graph():
    compiled = torch.compile(lambda a, b: a.cpu() + b.cpu(), fullgraph=True)
    x, other = torch.ones(3, device="cuda:0"), torch.ones(3, device="cuda:1")
    with pytest.raises(torch._dynamo.exc.Unsupported, match="several devices: cuda:0, cuda:1"):
        compiled(x, other)
    with pytest.raises(torch._dynamo.exc.Unsupported, match="cuda:1, which is not the current device"):
        torch.compile(lambda t: t + 1, fullgraph=True)(other)
    assert torch.compile(lambda t: t + 1)(other).tolist() == [2, 2, 2]  # as it is written


def kernels():
    """How many kernels were made so far."""
    return ctypes.c_int.in_dll(emulated, "emulated_fused_kernels").value


@only_emulated
def test_kernels_are_made_once(texts):
    compiled = torch.compile(lambda t, w: F.leaky_relu(t * w, 0.3) + 1)
    before = kernels()
    for n in (4, 4, 5, 600):  # where all lie in order, sizes are no part of a kernel
        x, w = torch.randn(n, 3), torch.randn(n, 3)
        torch.testing.assert_close(compiled(x.cuda(), w.cuda()).cpu(), F.leaky_relu(x * w, 0.3) + 1)
    assert kernels() == before + 1
    compiled(x.cuda(), w[:1].cuda()), compiled(x.cuda(), w[:1].cuda())
    assert kernels() == before + 2


def test_does_it_pay():
    torch._dynamo.reset()
    compiled = torch.compile(lambda t: (t * 2 + 1).relu())
    x = torch.randn(100).cuda()
    for _ in range(100):
        assert compiled(x).equal((x * 2 + 1).relu())
    decided = [made().entries for made in _dynamo_compiled() if made() is not None]
    assert any(entry.decided for entries in decided for entry in entries)


def _dynamo_compiled():
    from rushlight._dynamo._compiled import all_compiled

    return all_compiled


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, "-q", "-p", "no:cacheprovider", "-p", "no:xdist", *sys.argv[1:]]))
