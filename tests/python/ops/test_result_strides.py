"""The order in which results lie in memory, where programs can tell: as PyTorch's."""

import pytest

import rushlight

torch = pytest.importorskip("torch")


def matrix(module, *shape):
    return module.arange(12.0).reshape(3, 4)[: shape[0], : shape[1]].contiguous()


def image(module):
    return module.ones(2, 3, 4, 4, 4).contiguous(memory_format=module.channels_last_3d)


def lines(module):
    return module.arange(2 * 7 * 5).reshape(2, 7, 5).remainder(11).double().transpose(1, 2)


def positive(module):
    return module.tensor([[4.0, 1, 2], [1, 3, 0], [2, 0, 5]])


def spread(module, *order):
    """Dimensions of size 1 beside others, with gaps in memory."""
    return module.arange(48.0).reshape(1, 1, 4, 12)[..., ::2].permute(order)


ORDERS = [(0, 2, 1, 3), (1, 2, 3, 0), (2, 3, 0, 1), (3, 0, 2, 1)]

INDICES = {
    "in front": lambda i: i,
    "behind": lambda i: (slice(None), i),
    "at the end": lambda i: (Ellipsis, i),
    "apart": lambda i: (i, slice(None), i),
    "together": lambda i: (slice(None), i, i),
}

CASES = {
    **{f"sum in order {o}": lambda m, o=o: spread(m, *o) + spread(m, *o) for o in ORDERS},
    **{f"exponential in order {o}": lambda m, o=o: spread(m, *o).mul(0.1).exp() for o in ORDERS},
    **{f"product with a row, order {o}": lambda m, o=o: m.ones(1) * spread(m, *o) for o in ORDERS},
    "lower factor": lambda m: m.linalg.cholesky(positive(m)),
    "lower factors of the transpose": lambda m: m.linalg.cholesky(m.stack([positive(m)] * 2).mT),
    "inverse": lambda m: m.linalg.inv(positive(m)),
    "inverses": lambda m: m.linalg.inv_ex(m.stack([positive(m)] * 2))[0],
    "sort": lambda m: m.sort(matrix(m, 3, 4).t(), 0)[0],
    "sort of an expanded row": lambda m: m.sort(matrix(m, 1, 4).expand(3, 4))[0],
    "argsort of images": lambda m: m.argsort(image(m), stable=True),
    **{
        f"Fourier transform of {kind} numbers, dimensions {a} and {b} in turn": (
            lambda m, a=a, b=b, kind=kind: m.fft.fftn(lines(m).to(getattr(m, kind)).transpose(a, b)).real
        )
        for kind in ("complex64", "float64")
        for a, b in ((0, 1), (0, 2), (1, 2))
    },
    "masked_fill": lambda m: matrix(m, 3, 4).t().masked_fill(matrix(m, 3, 4).t() > 5, 1.0),
    "masked_fill of images": lambda m: image(m).masked_fill(image(m) > 5, 1.0),
    "quantile": lambda m: m.quantile(lines(m), 0.25, dim=0),
    "index_fill": lambda m: matrix(m, 3, 4).t().index_fill(0, m.tensor([0, 2]), 1.0),
    **{
        f"indices {name} in vmap": lambda m, at=at: m.vmap(lambda x: x[at(m.tensor([0, 1, 0, 1]))])(
            m.arange(120.0).reshape(2, 3, 4, 5)
        )
        for name, at in INDICES.items()
    },
    **{
        f"einsum {to}": lambda m, to=to: m.einsum("abcd,acfg->" + to, m.ones(2, 3, 4, 5), m.ones(2, 4, 6, 7))
        for to in ("abdfg", "abfdg", "abgfd", "afgbd", "fagdb", "gfadb", "dgbaf", "fgabd")
    },
    "einsum": lambda m: m.einsum("ij,jk->ki", matrix(m, 3, 4), matrix(m, 3, 4).t()),
    "complex": lambda m: m.complex(matrix(m, 3, 4).t(), matrix(m, 3, 4).t()).real,
    "polar": lambda m: m.polar(image(m), image(m)).imag,
    "qr": lambda m: m.linalg.qr(matrix(m, 3, 3))[1],
    "qr of a wide matrix": lambda m: m.linalg.qr(matrix(m, 2, 4))[1],
    "qr of a tall matrix": lambda m: m.linalg.qr(matrix(m, 3, 2), mode="complete")[1],
    "triangle alone": lambda m: m.linalg.qr(matrix(m, 3, 3), mode="r")[1],
    "upper factor": lambda m: m.linalg.cholesky(m.eye(3) + 1, upper=True),
    "upper factors": lambda m: m.linalg.cholesky((m.eye(3) + 1).expand(2, 3, 3).contiguous(), upper=True),
    "adaptive_max_pool1d": lambda m: m.nn.functional.adaptive_max_pool1d(lines(m), 3),
    "places of adaptive_max_pool1d": lambda m: m.adaptive_max_pool1d(lines(m), 3)[1],
    "adaptive_avg_pool1d": lambda m: m.nn.functional.adaptive_avg_pool1d(lines(m), 3),
    "avg_pool1d": lambda m: m.nn.functional.avg_pool1d(lines(m), 3),
    "max_pool1d": lambda m: m.nn.functional.max_pool1d(lines(m), 3),
    "max_pool3d": lambda m: m.nn.functional.max_pool3d(image(m), 2),
    "avg_pool3d": lambda m: m.nn.functional.avg_pool3d(image(m), 2),
    "adaptive_max_pool3d": lambda m: m.nn.functional.adaptive_max_pool3d(image(m), 2),
    "adaptive_avg_pool3d": lambda m: m.nn.functional.adaptive_avg_pool3d(image(m), 2),
}


@pytest.mark.parametrize("name", CASES)
def test_strides(name):
    ours, theirs = CASES[name](rushlight), CASES[name](torch)
    assert ours.stride() == theirs.stride()
    # A factorisation leaves the signs of R's rows open.
    assert torch.allclose(torch.from_numpy(ours.numpy()).abs(), theirs.abs(), atol=1e-5)
