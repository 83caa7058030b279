"""What may be written where it is read from: refused as in PyTorch, or computed right."""

import pytest

import rushlight as rl

torch = pytest.importorskip("torch")


def overlapping(package, layout):
    """A target, an operand that shares memory with it, and one that does not; all [3, 3]."""
    memory = (package.arange(40.0) + 1) / 41
    target, operand = {
        "shifted": lambda: (memory[0:9].view(3, 3), memory[3:12].view(3, 3)),
        "same": lambda: (memory[0:9].view(3, 3), memory[0:9].view(3, 3)),
        "transposed": lambda: (memory[0:9].view(3, 3).t(), memory[0:9].view(3, 3)),
        "interleaved": lambda: (memory.as_strided((3, 3), (6, 2)), memory.as_strided((3, 3), (6, 2), 1)),
        "gaps": lambda: (memory.as_strided((3, 3), (5, 1)), memory.as_strided((3, 3), (5, 1), 1)),
    }[layout]()
    return target, operand, memory[30:39].view(3, 3)


OUT = {
    "add": lambda p, o, a, b: p.add(a, b, out=o),
    "addmm": lambda p, o, a, b: p.addmm(a, b, b, out=o),
    "baddbmm": lambda p, o, a, b: p.baddbmm(a[None], b[None], b[None], out=o[None]),
    "addr": lambda p, o, a, b: p.addr(a, b[0], b[1], out=o),
    "clamp_min": lambda p, o, a, b: p.clamp_min(a, 0.1, out=o),
    "cross": lambda p, o, a, b: p.cross(a, b, dim=1, out=o),
    "linalg.cross": lambda p, o, a, b: p.linalg.cross(a, b, dim=1, out=o),
    "cumsum": lambda p, o, a, b: p.cumsum(a, 1, out=o),
    "cumprod": lambda p, o, a, b: p.cumprod(a, 1, out=o),
    "logcumsumexp": lambda p, o, a, b: p.logcumsumexp(a, 1, out=o),
    "deg2rad": lambda p, o, a, b: p.deg2rad(a, out=o),
    "kron": lambda p, o, a, b: p.kron(a[:1, :1], b, out=o),
    "outer": lambda p, o, a, b: p.outer(a[0], b[0], out=o),
    "maximum": lambda p, o, a, b: p.max(a, b, out=o),
    "renorm": lambda p, o, a, b: p.renorm(a, 2, 0, 1, out=o),
    "square": lambda p, o, a, b: p.square(a, out=o),
    "stack": lambda p, o, a, b: p.stack([a[0], b[0], b[1]], out=o),
    "vstack": lambda p, o, a, b: p.vstack([a[:1], b[:2]], out=o),
    "gelu": lambda p, o, a, b: p._C._nn.gelu(a, out=o),
    "scatter": lambda p, o, a, b: p.scatter(a, 1, p.zeros(3, 1, dtype=p.int64), b, out=o),
    "index_add": lambda p, o, a, b: p.index_add(a, 0, p.arange(3), b, out=o),
    "index_copy": lambda p, o, a, b: p.index_copy(a, 0, p.arange(3), b, out=o),
    "msort": lambda p, o, a, b: p.msort(a, out=o),
}


def outcome(package, call, layout):
    target, operand, apart = overlapping(package, layout)
    try:
        return call(package, target, operand, apart).flatten().tolist()
    except RuntimeError as error:
        return "refused" if "unsupported operation" in str(error) else str(error)


@pytest.mark.parametrize("layout", ["shifted", "same", "transposed"])
@pytest.mark.parametrize("name", OUT)
def test_out_that_is_read(name, layout):
    expected = outcome(torch, OUT[name], layout)
    got = outcome(rl, OUT[name], layout)
    if isinstance(expected, str) or isinstance(got, str):
        assert got == expected
    else:
        assert got == pytest.approx(expected, rel=1e-5)


WRITES = [
    "x[1:] = x[:-1]",
    "x[:, 1:] = x[:, :-1].clone()",
    "x[0] = x[1]",
    "x[:] = x",
    "x[:] = x.t()",
    "x.copy_(x.t())",
    "x[:2] = x[1]",
    "x[:2].copy_(x[1])",
    "x[0, 1:] = x[0, :-1]",
    "x[[0, 1]] = x[2]",
    "x[[2, 1, 0]] = x",
    "x[x > 3] = x[0, 0]",
    "x[p.tensor([0]), :2] = x[1, :2]",
    "x[:, p.tensor([0])] = x[:, 1:2]",
    "x.index_put_((p.tensor([0]),), x[0])",
    "x.index_put_((p.tensor([0]),), x[0], accumulate=True)",
]


@pytest.mark.parametrize("statement", WRITES)
def test_writes_of_what_is_overwritten(statement):
    results = []
    for package in (torch, rl):
        x = package.arange(9.0).view(3, 3)
        try:
            exec(statement, {"p": package, "x": x})
            results.append(x.flatten().tolist())
        except RuntimeError as error:
            assert "unsupported operation" in str(error)
            results.append("refused")
    assert results[0] == results[1]


def test_copies_between_gaps_see_nothing_written():
    # PyTorch reads what it has written.
    x = rl.arange(9.0).view(3, 3)
    x[:, 1:] = x[:, :-1]
    assert x.tolist() == [[0, 0, 1], [3, 3, 4], [6, 6, 7]]


@pytest.mark.parametrize("name", ["bitwise_and_", "bitwise_left_shift_", "lcm_", "add_"])
def test_overlap_is_found_before_the_dtype(name):
    for package in (rl, torch):
        memory = package.rand(4)
        with pytest.raises(RuntimeError, match="unsupported operation: some elements of the input"):
            getattr(memory[:-1], name)(memory[1:])


@pytest.mark.parametrize("name", ["cummax", "cummin", "logcumsumexp"])
def test_scans_do_not_convert_their_results(name):
    for package in (rl, torch):
        x, out = package.rand(4), package.empty(4, dtype=package.int16)
        out = out if name == "logcumsumexp" else (out, package.empty(4, dtype=package.int64))
        with pytest.raises(RuntimeError, match="expected scalar_type Float but found Short"):
            getattr(package, name)(x, 0, out=out)
