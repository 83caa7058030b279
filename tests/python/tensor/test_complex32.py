"""complex32 and float8_e8m0fnu against PyTorch: what may be stored, moved, converted and computed."""

import io

import pytest

import rushlight

oracle = pytest.importorskip("torch")
pytestmark = pytest.mark.filterwarnings("ignore:ComplexHalf support is experimental")
BOTH = [rushlight, oracle]
VALUES = [[1 + 2j, -3.5j, 0.25], [4e-8, 7000 + 1j, -2 - 2j]]


def sample(t):
    return t.tensor(VALUES, dtype=t.complex32)


def plain(x):
    """A result in a form that compares across both libraries."""
    if isinstance(x, (list, tuple)):
        return [plain(v) for v in x]
    if hasattr(x, "tolist"):
        wide = x.float() if x.is_floating_point() else x
        return str(x.dtype), tuple(x.shape), tuple(x.stride()), str(wide.tolist())
    return str(x)


CASES = {
    "create": lambda t: [
        sample(t),
        t.zeros(2, dtype=t.chalf),
        t.ones(2, dtype=t.complex32),
        t.full((2,), 1.5 + 1j, dtype=t.complex32),
    ],
    "casts": lambda t: [
        sample(t).real.to(t.complex32).to(d)
        for d in (t.complex64, t.complex128, t.float16, t.float32, t.int32, t.bool, t.bfloat16)
    ],
    "casts back": lambda t: [
        t.arange(3).to(d).to(t.complex32)
        for d in (t.complex64, t.float64, t.uint8, t.int64, t.bool, t.float16, t.bfloat16)
    ],
    "rounding": lambda t: t.tensor([1e-9 + 70000j, 0.1 + 0.2j], dtype=t.complex128).chalf(),
    "views": lambda t: [
        t.view_as_real(sample(t)),
        sample(t).real,
        sample(t).imag,
        t.view_as_complex(t.arange(4).half().view(2, 2)),
        sample(t).view(t.float16),
        sample(t).mT,
        sample(t).mH.resolve_conj(),
    ],
    "moves": lambda t: [
        t.cat([sample(t), sample(t)], 1),
        t.stack([sample(t), sample(t)]),
        sample(t)[:, 1],
        sample(t)[t.tensor([1, 0, 1])],
        sample(t).index_select(1, t.tensor([2, 0])),
        sample(t).roll(1, 1),
        sample(t).repeat(1, 2),
        t.where(sample(t) == 0.25, sample(t), -sample(t)),
        sample(t).masked_fill(sample(t) == 0.25, 9),
        sample(t).tril(),
        sample(t).nonzero().contiguous(),
        t.nn.functional.pad(sample(t), (1, 1), value=2),
    ],
    "writes": lambda t: [
        sample(t).index_put((t.tensor([0, 0]),), sample(t), accumulate=True),
        sample(t).index_add(0, t.tensor([1, 1]), sample(t)),
        sample(t).fill_(2j),
        sample(t).zero_(),
        sample(t).copy_(t.ones(3)),
    ],
    "arithmetic": lambda t: [
        sample(t) + sample(t) + 0,  # PyTorch loses the sign of zeros
        sample(t) - 1,
        2j * sample(t)[0],
        -sample(t),
        sample(t).abs(),
        sample(t).sgn(),
        sample(t).conj().resolve_conj(),
        t.addcmul(sample(t)[0], sample(t)[0], sample(t)[0]),
    ],
    "tests": lambda t: [
        sample(t) == sample(t),
        sample(t).isfinite(),
        sample(t).isnan(),
        sample(t).all(),
        sample(t).any(0),
        sample(t).count_nonzero(),
    ],
    "norm": lambda t: t.linalg.vector_norm(sample(t)[0]),
    "promotion": lambda t: (
        [
            t.promote_types(t.complex32, d)
            for d in (t.float16, t.bfloat16, t.float32, t.float64, t.int64, t.bool, t.complex64, t.complex128)
        ]
        + [t.ones(2).half() * 1j, t.result_type(sample(t), 1.5), t.result_type(sample(t), t.ones(1))]
    ),
    "conv": lambda t: t.nn.functional.conv1d(
        t.view_as_complex(t.arange(8.0).half().view(1, 1, 4, 2)),
        t.ones(1, 1, 2, dtype=t.complex32),
        t.ones(1, dtype=t.complex32),
    ),
    "type": lambda t: [
        t.complex32,
        t.chalf,
        t.complex32.is_complex,
        t.complex32.itemsize,
        t.complex32.to_real(),
        t.float16.to_complex(),
        t.bfloat16.to_complex(),
        sample(t).type(),
        sample(t).element_size(),
        t.finfo(t.complex32).dtype,
        t.complex(t.ones(2).half(), t.ones(2).half()),
    ],
    "repr": lambda t: repr(sample(t)) + repr(sample(t)[0, 0]),
    "scale": lambda t: [
        t.tensor([0.0, 1, 2, 3, 6, 1e-40, -5, float("inf")]).to(t.float8_e8m0fnu),
        t.float8_e8m0fnu.is_signed,
        t.float8_e8m0fnu.itemsize,
        t.arange(256).to(t.uint8).view(t.float8_e8m0fnu).float(),
        t.finfo(t.float8_e8m0fnu).eps,
    ],
}


@pytest.mark.parametrize("name", CASES)
def test_as_pytorch(name):
    ours, theirs = (plain(CASES[name](t)) for t in BOTH)
    assert ours == theirs


def test_gradients():
    grads = []
    for t in BOTH:
        x = sample(t)[0].clone().requires_grad_()
        (x * x).real.backward(t.ones(3).half())
        grads.append(plain(x.grad))
    assert grads[0] == grads[1]


@pytest.mark.parametrize("random", ["randn", "rand"])
def test_random_stream(random):
    drawn = []
    for t in BOTH:
        t.manual_seed(3)
        drawn.append(plain(getattr(t, random)(40, dtype=t.complex32)))
    assert drawn[0] == drawn[1]


def test_numpy_refuses():
    for t in BOTH:
        with pytest.raises(TypeError, match="Got unsupported ScalarType ComplexHalf"):
            sample(t).numpy()


@pytest.mark.parametrize("dtype", ["complex32", "float8_e8m0fnu"])
@pytest.mark.parametrize("writer", [0, 1])
def test_files(dtype, writer):
    """Each library reads the other's files."""
    source, target = BOTH[writer], BOTH[1 - writer]
    file = io.BytesIO()
    source.save(source.arange(1.0, 5).to(getattr(source, dtype)), file)
    file.seek(0)
    if target is rushlight or dtype == "complex32":
        expected = target.arange(1.0, 5).to(getattr(target, dtype))
        assert plain(target.load(file)) == plain(expected)
