"""Results of operators on fake tensors that are kept for later calls (`fake_tensor_cache_enabled`)."""

import pytest

import rushlight as torch
from rushlight._dynamo import config
from rushlight._subclasses.fake_tensor import FakeTensorMode, extract_tensor_metadata

aten = torch.ops.aten


@pytest.fixture
def mode(monkeypatch):
    monkeypatch.setattr(config, "fake_tensor_cache_enabled", True)
    monkeypatch.setattr(config, "fake_tensor_cache_crosscheck_enabled", True)
    with FakeTensorMode() as entered:
        FakeTensorMode.cache_clear()
        yield entered
    FakeTensorMode.cache_clear()


def counts():
    info = FakeTensorMode.cache_info()
    return info.hits, info.misses


def test_results_are_kept(mode):
    x, y = torch.empty(4, 3), torch.empty(3, 4).t()
    FakeTensorMode.cache_clear()
    first, second = x + y, x + y
    assert counts() == (1, 1) and first is not second
    assert extract_tensor_metadata(first) == extract_tensor_metadata(second)
    assert (x + y.contiguous()).stride() == (3, 1)
    parts = [t.shape for t in torch.split(x, 2)]
    assert parts == [t.shape for t in torch.split(x, 2)] and len(parts) == 2
    assert (x + 1).dtype == torch.float32 and (x.long() + 1).dtype == torch.int64
    assert (x.long() + 1.0).dtype == torch.float32


def test_views_and_writes(mode):
    x = torch.empty(4, 3)
    for _ in range(2):
        part = x[1:].t()
        assert part.untyped_storage()._cdata == x.untyped_storage()._cdata and part.storage_offset() == 3
        before = x._version
        assert part.mul_(2) is part and x._version == before + 1
    hits, _ = counts()
    assert hits == 3
    x.unsqueeze_(0)
    assert FakeTensorMode.cache_info().bypasses == {"inplace view": 1} and x.shape == (1, 4, 3)
    z = torch.view_as_real(torch.empty(2, dtype=torch.complex64))
    assert z.dtype == torch.float32 and z.shape == (2, 2)


def test_known_numbers_stay_known(mode):
    n = torch.tensor(3)
    other = torch.empty((), dtype=torch.int64)
    for _ in range(2):
        _ = other + other
        assert int(n + n) == 6
    n.add_(1)
    assert int(n) == 4


def test_what_the_key_holds(mode):
    x = torch.empty(2, 3)

    def key(*args):
        return mode._cache_key(None, aten.add.Tensor, args, {})

    assert key(x) == key(torch.empty(2, 3)) and key(1.0) != key(1)
    for other in (
        x.double(),
        torch.empty(3, 2).t(),
        torch.empty(3, 3)[1:],
        torch.empty(2, 3, requires_grad=True),
    ):
        assert key(x) != key(other)
    with torch.inference_mode():
        assert not torch.empty(2).is_inference() or (x + x).is_inference()
        hits = counts()
    assert not (x + x).is_inference() and counts()[0] == hits[0]


def test_off_by_default():
    FakeTensorMode.cache_clear()
    with FakeTensorMode():
        _ = torch.empty(2) + 1
    assert counts() == (0, 0)
