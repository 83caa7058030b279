"""`torch.quantized_batch_norm`: batch normalisation of a quantised tensor of any rank."""

import pytest

import rushlight

oracle = pytest.importorskip("torch")


def normalised(torch, shape, weight=True):
    q = torch.quantize_per_tensor(torch.arange(24.0).reshape(shape) - 10, 0.1, 100, torch.quint8)
    statistics = torch.tensor([1.0, 0.0, -1]), torch.tensor([4.0, 1, 2])
    affine = (torch.tensor([2.0, 1, 0.5]) if weight else None), torch.tensor([1.0, 0, 2])
    return torch.quantized_batch_norm(q, *affine, *statistics, 1e-5, 0.2, 3)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("shape", [(8, 3), (2, 3, 4), (2, 3, 2, 2), (2, 3, 2, 2, 1)])
def test_values(shape):
    mine, theirs = normalised(rushlight, shape), normalised(oracle, shape)
    assert mine.int_repr().tolist() == theirs.int_repr().tolist()
    assert (mine.q_scale(), mine.q_zero_point()) == (0.2, 3)


@pytest.mark.filterwarnings("ignore")
def test_refusals():
    with pytest.raises(RuntimeError, match="Weight must be provided"):
        normalised(rushlight, (2, 3, 4), weight=False)
    three = rushlight.ones(3)
    with pytest.raises(NotImplementedError, match="'aten::quantized_batch_norm'.*'CPU'"):
        rushlight.quantized_batch_norm(rushlight.ones(2, 3), three, three, three, three, 1e-5, 0.2, 3)
