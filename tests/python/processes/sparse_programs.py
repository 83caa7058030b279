"""What the ranks of test_sparse_gradients.py run."""

from distributed_programs import _join

import rushlight as torch
from rushlight import distributed as dist
from rushlight import nn
from rushlight.futures import Future
from rushlight.nn.parallel import DistributedDataParallel


class Net(nn.Module):
    """Two tables, one with sparse gradients, and a layer after them."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.rare = nn.Embedding(10, 4, sparse=True)
        self.dense = nn.Embedding(6, 4)
        self.last = nn.Linear(4, 3)

    def forward(self, at):
        return self.last(self.rare(at) + self.dense(at % 6)).log_softmax(-1)


def _batches(size):
    generator = torch.Generator().manual_seed(1)
    return torch.randint(10, (4, size, 7), generator=generator)


def _step(net, at, steps):
    for step in steps:
        step.zero_grad()
    net(at)[:, 1].mean().neg().backward()
    for step in steps:
        step.step()


def _optimizers(net):
    rare = [net.rare.weight]
    rest = [p for p in net.parameters() if p is not net.rare.weight]
    return [torch.optim.SparseAdam(rare, lr=0.1), torch.optim.SGD(rest, lr=0.1)]


def as_one_process(rank, size, file):
    """With and without views and hooks, the parameters are those that one process finds from all rows."""
    _join(rank, size, file)
    whole = Net()
    steps = _optimizers(whole)
    for at in _batches(size):
        _step(whole, at.flatten(), steps)
    for kwargs in ({}, {"gradient_as_bucket_view": True}, {"find_unused_parameters": True}, {"hook": True}):
        hooked = kwargs.pop("hook", False)
        net = Net()
        parallel = DistributedDataParallel(net, **kwargs)
        if hooked:
            parallel.register_comm_hook(None, _averaged)
        steps = _optimizers(net)
        for at in _batches(size):
            _step(parallel, at[rank], steps)
        assert net.rare.weight.grad.is_sparse and not net.dense.weight.grad.is_sparse
        for name, p in net.named_parameters():
            assert torch.allclose(p, whole.get_parameter(name), atol=1e-5), (name, kwargs)


def _averaged(state, bucket: dist.GradBucket) -> Future[torch.Tensor]:
    buffer = bucket.buffer() / dist.get_world_size()
    dist.all_reduce(buffer)
    done = Future()
    done.set_result(buffer)
    return done


def _past_the_table(parallel):
    """The output of a forward pass that does not depend on the table with sparse gradients."""
    net = parallel.module
    rare, net.rare.forward = net.rare.forward, lambda at: torch.zeros(*at.shape, 4)
    try:
        return parallel(torch.tensor([1]))
    finally:
        net.rare.forward = rare


def unused_and_undeclared(rank, size, file):
    """A table that no rank, or one rank only, used; and a sparse gradient of a module that is no table."""
    _join(rank, size, file)
    net = Net()
    parallel = DistributedDataParallel(net, find_unused_parameters=True)
    for _ in range(2):
        (parallel(torch.tensor([rank])) if rank == 0 else _past_the_table(parallel)).sum().backward()
    assert net.rare.weight.grad.is_sparse and net.rare.weight.grad._nnz() == 1

    class Picks(nn.Module):
        def __init__(self):
            super().__init__()
            self.table = nn.Parameter(torch.zeros(5, 2))

        def forward(self, at):
            return nn.functional.embedding(at, self.table, sparse=True)

    picks = Picks()
    DistributedDataParallel(picks)(torch.tensor([rank, rank])).sum().backward()
    expected = torch.zeros(5, 2)
    expected[:size] = 2 / size
    assert torch.equal(picks.table.grad, expected)


def refused_hooks(rank, size, file):
    """Annotations that say something else, and results that nobody can wait for."""
    _join(rank, size, file)
    parallel = DistributedDataParallel(Net())

    def of_numbers(state, bucket: int) -> Future[torch.Tensor]: ...

    def gives_number(state, bucket: dist.GradBucket) -> int: ...

    for hook, words in ((of_numbers, "bucket annotation"), (gives_number, "return annotation")):
        try:
            parallel.register_comm_hook(None, hook)
        except ValueError as error:
            assert words in str(error)
        else:
            raise AssertionError(words)
    parallel.register_comm_hook(None, lambda state, bucket: 1)
    try:
        parallel(torch.tensor([1])).sum().backward()
    except RuntimeError as error:
        assert "callback must return a torch.futures.Future object, but got int" in str(error)
    else:
        raise AssertionError("a hook that returns a number was taken")


def local_groups(rank, size, file):
    """Groups that only their members make, twice of the same ranks."""
    _join(rank, size, file)
    made = [dist.new_group([0, 1], use_local_synchronization=True) for _ in range(2)]
    if rank > 1:
        assert made == [None, None]
        return
    for group in made:
        ones = torch.ones(2)
        dist.all_reduce(ones, group=group)
        assert ones.tolist() == [2, 2] and group._get_backend(torch.device("cpu")).size() == 2
