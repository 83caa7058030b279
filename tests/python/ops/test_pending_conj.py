"""conj() is a view whose conjugation is computed where elements are read; beside PyTorch."""

import copy
import io

import pytest

import rushlight
from rushlight._command.names import is_aliased


def _numbers(torch, seed=0, shape=(3, 4)):
    g = torch.Generator().manual_seed(seed)
    return torch.complex(torch.rand(shape, generator=g), torch.rand(shape, generator=g))


def write_through_views(torch):
    x = _numbers(torch)
    x.conj()[0] = 1 + 2j
    x.conj()[1].mul_(2j)
    x.conj().imag[2] = 5
    x.conj().real[2, 1:] += 3
    y = x.mH
    y.fill_diagonal_(1j)
    y[:, 0].copy_(torch.arange(4) * 1j)
    torch.add(y, y, out=x.mH)
    torch.mul(x, 2, out=y)  # y is resized and keeps its conjugation
    return x, y, y.is_conj()


def operators_read(torch):
    x = _numbers(torch).conj()
    n = x.imag
    return [
        x + 1, x @ x.T, x.sum(), x.abs(), x.clone(), x.contiguous(), x[1:].t(), x.reshape(-1),
        torch.stack([x, x]), x.to(torch.complex128), x.view(2, 6), x.real, n, n * 2, n.sum(), n.clone(),
        torch.where(n < 0, n, 0), x == x.resolve_conj(), torch.cat([n, n.resolve_neg()]), x.conj(),
        torch.view_as_real(x.conj()), x.angle(), torch.linalg.inv(x[:, :3] + torch.eye(3)),
        torch.fft.fft(x), x.movedim(0, 1), x.expand(2, 3, 4), -n, x.mH @ x,
        x.index_select(0, torch.tensor([2, 0])), x.masked_fill(n < -0.5, 0),
        torch.einsum("ij,kj->ik", x, x.conj()),
    ]  # fmt: skip


def values_out(torch):
    x = _numbers(torch, 1, (2,)).conj()
    z = x[0]
    return (
        x.tolist(),
        z.item(),
        complex(z),
        x.imag.tolist(),
        x.imag[1].item(),
        x.numpy(force=True).tolist(),
        repr(x),
    )


def facts(torch):
    x = _numbers(torch)
    c, n = x.conj(), x.conj().imag
    made = [
        x,
        c,
        c.conj(),
        c[0],
        c.T,
        c.clone(),
        c + 1,
        c.real,
        n,
        n[0],
        n.clone(),
        c.resolve_conj(),
        n.resolve_neg(),
    ]
    made += [
        x.mH,
        x.H,
        x.adjoint(),
        c.detach(),
        torch.conj(x),
        torch._neg_view(x),
        torch._neg_view(n),
        c.real.conj(),
    ]
    return [(t.is_conj(), t.is_neg(), t.data_ptr() == x.data_ptr()) for t in made[:2]] + [
        (t.is_conj(), t.is_neg()) for t in made
    ]


def gradients(torch):
    found = []
    x = _numbers(torch).requires_grad_()
    w = _numbers(torch, 2)
    (x.conj() * w).sum().abs().backward()
    found.append(x.grad)
    x = _numbers(torch).requires_grad_()
    base = x * 1
    view = base.conj()
    view[0].mul_(w[0])  # through the view into the base
    (base * w).sum().abs().backward()
    found.append(x.grad)
    x = _numbers(torch).requires_grad_()
    base = x * 1
    view = base.conj()
    base.mul_(w)  # the view follows
    (view * w.conj()).sum().abs().backward()
    found.append(x.grad)
    x = _numbers(torch).requires_grad_()
    base = x * 1
    part = base.conj().imag
    part.mul_(w.real)
    (base * w).sum().abs().backward()
    found.append(x.grad)
    base = torch.zeros(3, 4, dtype=torch.complex64)
    x = _numbers(torch).requires_grad_()
    base.conj().copy_(x)
    (base * w).sum().abs().backward()
    found.append(x.grad)
    return found


def copies(torch):
    x = _numbers(torch).conj()

    def read_back(value):
        file = io.BytesIO()
        torch.save(value, file)
        file.seek(0)
        return torch.load(file)

    deep = copy.deepcopy(x)
    y = torch.zeros(3, 4, dtype=torch.complex64)
    y.data = x
    return read_back(x), read_back(x.imag), deep, deep.is_conj(), y + 0


@pytest.mark.parametrize(
    "program",
    [write_through_views, operators_read, values_out, facts, gradients, copies],
    ids=lambda p: p.__name__,
)
def test_like_pytorch(program):
    if is_aliased():
        pytest.skip("PyTorch cannot be imported beside an alias of its name")
    torch = pytest.importorskip("torch")

    def plain(value):
        if isinstance(value, (torch.Tensor, rushlight.Tensor)):
            value = value.detach().resolve_conj().resolve_neg()
            return [tuple(value.shape), str(value.dtype).split(".")[1], value.tolist()]
        return [plain(v) for v in value] if isinstance(value, (list, tuple)) else value

    def close(a, b):
        if isinstance(a, (list, tuple)):
            return len(a) == len(b) and all(map(close, a, b))
        return a == b if isinstance(a, (str, bool)) else a == pytest.approx(b, rel=1e-5, abs=1e-6)

    here, there = plain(program(rushlight)), plain(program(torch))
    assert len(here) == len(there)
    for i, (a, b) in enumerate(zip(here, there)):
        assert close(a, b), (i, a, b)


def test_refusals():
    x = _numbers(rushlight).conj()
    with pytest.raises(RuntimeError, match=r"use self.resolve_conj\(\)"):
        rushlight.view_as_real(x)
    with pytest.raises(RuntimeError, match="conjugate bit set"):
        x.numpy()
    with pytest.raises(RuntimeError, match="negative bit set"):
        x.imag.numpy()
    with pytest.raises(RuntimeError, match="conjugate view tensors"):
        x.view(rushlight.float64)
    with pytest.raises(BufferError, match="conjugate bit"):
        x.__dlpack__()
    with pytest.raises(BufferError):
        memoryview(x)


def test_numbers_within_transforms():
    """What is written there: test_pending_transforms.py."""
    x = _numbers(rushlight)
    mapped = rushlight.vmap(lambda row: row.conj() * 1j)(x)
    assert rushlight.equal(mapped, x.conj_physical() * 1j)
    assert rushlight.equal(rushlight.vmap(lambda row: row * 1j)(x.conj()), mapped)
    assert rushlight.equal(rushlight.func.vjp(lambda t: t * 1j, x.conj())[0], mapped)
    out, tangent = rushlight.func.jvp(lambda t: t.conj(), (x.conj(),), (x,))
    assert rushlight.equal(out, x)
    assert rushlight.equal(tangent, x.conj())
    assert x.to("meta").conj().is_conj()
