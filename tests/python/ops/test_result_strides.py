"""The order in which results lie in memory, where programs can tell: as PyTorch's."""

import pytest

import rushlight

torch = pytest.importorskip("torch")


def matrix(module, *shape):
    return module.arange(12.0).reshape(3, 4)[: shape[0], : shape[1]].contiguous()


def image(module):
    return module.ones(2, 3, 4, 4, 4).contiguous(memory_format=module.channels_last_3d)


CASES = {
    "qr": lambda m: m.linalg.qr(matrix(m, 3, 3))[1],
    "qr of a wide matrix": lambda m: m.linalg.qr(matrix(m, 2, 4))[1],
    "qr of a tall matrix": lambda m: m.linalg.qr(matrix(m, 3, 2), mode="complete")[1],
    "triangle alone": lambda m: m.linalg.qr(matrix(m, 3, 3), mode="r")[1],
    "upper factor": lambda m: m.linalg.cholesky(m.eye(3) + 1, upper=True),
    "upper factors": lambda m: m.linalg.cholesky((m.eye(3) + 1).expand(2, 3, 3).contiguous(), upper=True),
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
