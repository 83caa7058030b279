"""Tensors whose storage was resized to no bytes: errors, never memory of others."""

import pytest

import rushlight as torch

READERS = {
    "add": lambda t: t + 1,
    "sum": lambda t: t.sum(),
    "item": lambda t: t[0].item(),
    "tolist": lambda t: t.tolist(),
    "repr": repr,
    "numpy": lambda t: t.numpy().sum(),
    "clone": lambda t: t.clone(),
    "fill_": lambda t: t.fill_(1),
    "mm": lambda t: t.view(1, -1) @ t.view(-1, 1),
}


@pytest.mark.parametrize("size", [3, 3000])
@pytest.mark.parametrize("reader", READERS)
def test_reading_raises(reader, size):
    x = torch.ones(size)
    x.untyped_storage().resize_(0)
    assert x.shape == (size,) and x.data_ptr() == 0
    with pytest.raises(RuntimeError, match="data is not allocated yet"):
        READERS[reader](x)


@pytest.mark.parametrize("size", [3, 3000])
def test_memory_comes_back(size):
    x = torch.ones(size)
    storage = x.untyped_storage()
    nbytes = storage.nbytes()
    storage.resize_(0)
    assert storage.nbytes() == 0
    storage.resize_(nbytes)
    assert x.fill_(2).sum().item() == 2 * size


def test_sparse_gradients_do_not_share_the_indices_of_the_caller():
    weight = torch.ones(4, 2, requires_grad=True)
    index = torch.tensor([1, 2])
    torch.nn.functional.embedding(index, weight, sparse=True).sum().backward()
    index[0] = 3
    assert weight.grad._indices().tolist() == [[1, 2]]
