"""Pipelines: orders of work, and backward passes in two halves. Stages in processes: test_distributed.py."""

from types import SimpleNamespace

import pytest

import rushlight as torch
from rushlight.distributed import pipelining as pp
from rushlight.distributed.pipelining._backward import input_gradients
from rushlight.distributed.pipelining._dual_pipe import dual_pipe_order
from rushlight.distributed.pipelining._zero_bubble import zero_bubble_orders
from rushlight.utils._python_dispatch import TorchDispatchMode


def _looped(ranks, own=1):
    return [[rank + ranks * i for i in range(own)] for rank in range(ranks)]


def _folded(ranks):
    return [[rank, 2 * ranks - 1 - rank] for rank in range(ranks)]


def _most_held(turns):
    held = most = 0
    for turn in filter(None, turns):
        held += (turn[0] == "F") - (turn[0] == "W")
        most = max(most, held)
    return most


@pytest.mark.parametrize("ranks", [1, 2, 3, 4, 8])
@pytest.mark.parametrize("times", [1, 2, 3])
def test_zero_bubble_orders(ranks, times):
    """All is done once, after what it needs, within the limit; few turns are idle."""
    count = ranks * times
    for stages, limit in (
        (_looped(ranks), ranks),
        (_looped(ranks, 2), 3 * ranks - 1),
        (_folded(ranks), 2 * ranks),
    ):
        everyone = zero_bubble_orders(stages, count, limit)
        own, last = len(stages[0]), max(max(s) for s in stages)
        when = {turn: t for turns in everyone for t, turn in enumerate(turns) if turn is not None}
        assert len(when) == 3 * count * own * ranks
        for (kind, stage, i), t in when.items():
            if kind == "F" and stage:
                assert when["F", stage - 1, i] < t
            if kind == "I":
                assert when["I", stage + 1, i] < t if stage < last else when["F", stage, i] < t
            if kind == "W":
                assert when["I", stage, i] < t
        assert max(_most_held(turns) for turns in everyone) <= limit
        idle = len(everyone[0]) - 3 * count * own
        assert idle <= 2 * (ranks - 1)  # 1F1B idles for 3 (ranks - 1)
        if own == 2:
            assert idle <= ranks + 1


def test_a_limit_that_is_too_low_is_raised():
    everyone = zero_bubble_orders(_folded(4), 8, 1)
    assert sum(turn is not None for turn in everyone[0]) == 6 * 8


def _played(orders, ranks):
    """Play orders of two stages a process, each turn as soon as what it needs is done: [(turn, time)]."""
    orders = [
        [(kind, (rank, 2 * ranks - 1 - rank)[which], i) for kind, which, i in order]
        for rank, order in enumerate(orders)
    ]
    done, at, now = {}, [0] * ranks, 0
    while any(at[rank] < len(order) for rank, order in enumerate(orders)):
        now += 1
        assert now <= sum(map(len, orders)), "nobody can go on"
        for rank, order in enumerate(orders):
            if at[rank] == len(order):
                continue
            kind, stage, i = order[at[rank]]
            needs = {
                "F": ("F", stage - 1, i) if stage else None,
                "W": ("I", stage, i),
            }.get(kind, ("I", stage + 1, i) if stage < 2 * ranks - 1 else ("F", stage, i))
            if needs is None or done.get(needs, now) < now:
                done["I" if kind == "B" else kind, stage, i] = now
                at[rank] += 1
    return done, now


@pytest.mark.parametrize("ranks", [1, 2, 3, 4, 8])
@pytest.mark.parametrize("more", [0, 1, 5])
def test_dual_pipe_order(ranks, more):
    """Every order can be played; each micro-batch goes forward and back once."""
    count = 2 * ranks + more
    orders = [dual_pipe_order(rank, ranks, count) for rank in range(ranks)]
    done, turns = _played(orders, ranks)
    assert sum(kind != "W" for kind, _, _ in done) == 2 * 2 * count * ranks
    for order in orders:
        halves = [(which, i) for kind, which, i in order if kind == "I"]
        assert sorted(halves) == sorted((which, i) for kind, which, i in order if kind == "W")
        assert max(map(len, orders)) - len(order) <= ranks
    held = [sum((kind == "F") - (kind in "BI") for kind, *_ in order[:n]) for order in orders
            for n in range(len(order))]  # fmt: skip
    assert max(held) <= 2 * ranks + 1
    assert turns <= 4 * count + 5 * ranks


def test_dual_pipe_needs_micro_batches():
    stage = SimpleNamespace(num_stages=4, group_size=2, group_rank=0, stage_index=0)
    with pytest.raises(ValueError, match=r"as many microbatches as stages \(4\), but got 3"):
        pp.ScheduleDualPipeV([stage, stage], 3)
    with pytest.raises(ValueError, match="exactly 2 stages per rank, but got 1"):
        pp.ScheduleDualPipeV([stage], 4)


class _Stage(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = torch.nn.Linear(5, 5), torch.nn.Linear(5, 5)
        self.norm, self.scale = torch.nn.LayerNorm(5), torch.nn.Parameter(torch.rand(5))
        self.apart = torch.nn.Linear(5, 2)

    def forward(self, x):
        y = self.norm(torch.relu(self.first(x)) + x) * self.scale.exp()
        return self.second(y), self.apart(torch.ones(3, 5))


class _Tied(_Stage):
    def forward(self, x):
        return self.first(torch.tanh(self.first(x))), self.scale * 2


class _Products(TorchDispatchMode):
    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        self.count = getattr(self, "count", 0) + ("mm" in str(function))
        return function(*args, **(kwargs or {}))


@pytest.mark.parametrize("kind", [_Stage, _Tied])
def test_backward_in_two_halves(kind):
    torch.manual_seed(0)
    stage, x = kind(), torch.randn(4, 5, requires_grad=True)
    outputs = list(stage(x))
    gradients = [torch.rand_like(t) for t in outputs]
    torch.autograd.backward(outputs, gradients)
    expected, x.grad = [x.grad, *(p.grad for p in stage.parameters())], None
    stage.zero_grad()
    found, finish = input_gradients(list(stage(x)), gradients, [x], list(stage.parameters()))
    assert (stage.first.weight.grad is None) == (kind is _Stage) and x.grad is None
    finish()
    for got, wanted in zip([*found, *(p.grad for p in stage.parameters())], expected):
        if wanted is None:
            assert got is None
        else:
            torch.testing.assert_close(got, wanted)


def test_the_halves_share_the_work():
    """No product is computed twice: a pass to inputs only leaves out what parameters want."""
    stage, x = torch.nn.Sequential(*(torch.nn.Linear(5, 5) for _ in range(3))), torch.randn(4, 5)
    x.requires_grad_()
    output = stage(x)
    with _Products() as first:
        _, finish = input_gradients([output], [torch.ones(4, 5)], [x], list(stage.parameters()))
    with _Products() as second:
        finish()
    assert (first.count, second.count) == (3, 3)
    with _Products() as both:
        stage(x).sum().backward()
    assert both.count == 9  # three forward, six back


def test_schedules_by_name():
    assert pp.schedules.get_schedule_class("zbvzerobubble") is pp.ScheduleZBVZeroBubble
    assert pp.schedules.get_schedule_class("1F1B") is pp.Schedule1F1B
    with pytest.raises(ValueError, match="Unknown schedule name gpip"):
        pp.schedules.get_schedule_class("gpip")
