"""Data of elastic jobs: shares of what is left, epochs in turn, helpers."""

import itertools

import pytest

import rushlight as torch
from rushlight.distributed.elastic import utils
from rushlight.distributed.elastic.utils.data import CyclingIterator, ElasticDistributedSampler


@pytest.mark.parametrize("ranks, start", [(1, 0), (2, 3), (3, 4), (4, 7)])
def test_shares_are_pytorchs(ranks, start):
    theirs = pytest.importorskip("torch.distributed.elastic.utils.data").ElasticDistributedSampler
    for epoch, rank in itertools.product((0, 5), range(ranks)):
        pair = [cls(range(11), ranks, rank, start) for cls in (ElasticDistributedSampler, theirs)]
        for sampler in pair:
            sampler.set_epoch(epoch)
        assert list(pair[0]) == list(pair[1]) and len(pair[0]) == len(pair[1])


def test_all_that_is_left_is_shared_even_among_many():
    shares = [list(ElasticDistributedSampler(range(10), 4, rank, start_index=9)) for rank in range(4)]
    assert shares == [[9]] * 4
    with pytest.raises(ValueError, match="Start index 10 should be less than dataset size 10"):
        ElasticDistributedSampler(range(10), 4, 0, start_index=10)


def test_loaders_take_them():
    data = torch.utils.data.TensorDataset(torch.arange(8))
    sampler = ElasticDistributedSampler(data, 2, 1, start_index=2)
    seen = [x for (batch,) in torch.utils.data.DataLoader(data, 2, sampler=sampler) for x in batch.tolist()]
    assert seen == list(sampler) and min(seen) >= 2


def test_epochs_in_turn():
    assert list(CyclingIterator(3, lambda epoch: iter([epoch] * epoch), 1)) == [1, 2, 2]
    assert list(CyclingIterator(3, lambda epoch: iter([7] if epoch == 2 else []))) == [7]
    assert not list(CyclingIterator(0, lambda epoch: iter(())))


def test_helpers(monkeypatch):
    monkeypatch.setenv("ELASTIC_TEST", "7")
    assert utils.get_env_variable_or_raise("ELASTIC_TEST") == "7"
    monkeypatch.delenv("ELASTIC_TEST")
    with pytest.raises(ValueError, match="Environment variable ELASTIC_TEST expected, but not set"):
        utils.get_env_variable_or_raise("ELASTIC_TEST")
    assert utils.macros.substitute(["--rank=${local_rank}", 3], "1") == ["--rank=1", 3]
    with utils.get_socket_with_port() as listener:
        assert listener.getsockname()[1] > 0
