"""A step, played: what each process computes and what it sends, at what time."""

from dataclasses import dataclass, field, replace
from itertools import product
from math import log, sqrt
from typing import NamedTuple

from ._plan import Plan, cut


@dataclass
class Prediction:
    """A step as predicted: seconds, and bytes of one rank (the busiest stage's).

    `communication` is the time of all transfers of a rank, `exposed` the part of it in which it did not
    compute; `overlap` the share that was hidden; `memory` by what it is for; `timeline` holds
    (stage, "compute" or "network", name, start, end).
    """

    plan: Plan
    step_time: float
    compute: float
    communication: float
    sent_bytes: float
    memory: dict
    timeline: list = field(repr=False)

    @property
    def exposed(self):
        return max(0.0, self.step_time - self.compute)

    @property
    def overlap(self):
        return 1 - min(1.0, self.exposed / self.communication) if self.communication else 1.0

    @property
    def memory_bytes(self):
        return sum(self.memory.values())

    @property
    def batches_per_second(self):
        """Batches of the Cost's size, of all ranks together."""
        return self.plan.data / self.step_time


class _Call(NamedTuple):
    """A collective or message: its seconds, a rank's bytes, and the seconds that keep its processor busy."""

    seconds: float
    sent: float
    busy: float


class _Rank:
    """One process: when its processor and its network are free, and what they did."""

    def __init__(self, stage, network):
        self.stage, self._waiting = stage, network.waiting
        self._waited = 0.0  # seconds that had been computed at the last wait for other ranks
        self.processor = self.network = self.computed = self.transferred = self.sent = 0.0
        self.timeline = []

    def compute(self, name, seconds, after=0.0):
        start = max(self.processor, after)
        self.processor = start + seconds
        self.computed += seconds
        self._note("compute", name, start, self.processor)
        return self.processor

    def transfer(self, name, call, after=0.0, wait=False):
        """When it is over; with `wait` the processor stands still meanwhile."""
        seconds = call.seconds
        if seconds == 0:
            return max(after, self.processor if wait else after)
        start = max(self.network, after, self.processor if wait else 0.0)
        self.network = start + seconds
        self.transferred += seconds
        self.sent += call.sent
        self._note("network", name, start, self.network)
        if wait:
            self.wait(self.network)
        else:
            self.processor += call.busy
        return self.network

    def wait(self, until):
        """The processor stands still until others are as far."""
        if until > self.processor:
            self.processor = until + self._waiting * sqrt(self.computed - self._waited)
            self._waited = self.computed

    def _note(self, what, name, start, end):
        if end > start:
            self.timeline.append((self.stage, what, name, start, end))


class _Stage:
    """What one stage's rank does for a micro-batch, and for the step."""

    def __init__(self, blocks, number, cost, plan, network):
        self.number, self.cost, self.plan, self.network = number, cost, plan, network
        shares = plan.tensor * plan.microbatches
        self.blocks = [
            replace(
                b,
                forward=b.forward / shares,
                backward=(b.backward + (b.forward if plan.checkpoint else 0)) / shares,
                parameters=b.parameters / plan.tensor,
                saved=(b.output if plan.checkpoint else b.saved / plan.tensor) / plan.microbatches,
                output=b.output / plan.microbatches,
            )
            for b in blocks
        ]
        self.rank = _Rank(number, network)
        self._outside = plan.tensor * plan.data  # how far the next stage is

    def _collective(self, kind, size, ranks, stride):
        turns = 2 if kind == "all_reduce" else 1
        return self._call(kind, size, ranks, stride, turns * size * (ranks - 1) / ranks)

    def _call(self, kind, size, ranks, stride, sent):
        seconds = self.network.time(kind, size, ranks, stride)
        delay = self.network.time(kind, min(size, 1.0), ranks, stride)  # in which nobody is busy
        return _Call(seconds, sent, self.network.processor_share * (seconds - delay))

    def _handle(self, block):
        """Parameters or gradients are copied together or apart."""
        self.rank.compute("copy", block.tensors * self.cost.hook + block.parameters / self.cost.copy)

    def _sum_results(self, block):
        """The results of ranks that share a block, summed."""
        if self.plan.tensor > 1 and block.parameters:
            for _ in range(self.plan.sums):
                self.rank.compute("dispatch", self.network.dispatch)
                call = self._collective("all_reduce", block.output, self.plan.tensor, 1)
                self.rank.transfer(f"sum {block.name}", call, wait=True)

    def _gather(self, block, after):
        """Whole parameters of a block; when they are there."""
        if self.plan.sharding != "full" or self.plan.data == 1:
            return 0.0
        self._handle(block)
        call = self._collective("all_gather", block.parameters, self.plan.data, self.plan.tensor)
        return self.rank.transfer(f"gather {block.name}", call, max(after, self.rank.processor))

    def _pass_through(self, blocks, prefetch, run):
        there = self._gather(blocks[0], self.rank.processor)
        for i, block in enumerate(blocks):
            self.rank.wait(there)
            ahead = prefetch and i + 1 < len(blocks)
            if ahead:
                there = self._gather(blocks[i + 1], self.rank.processor)
            run(block)
            if not ahead and i + 1 < len(blocks):
                there = self._gather(blocks[i + 1], self.rank.processor)

    def forward(self, after, send):
        """A micro-batch forward; when its results are with the next stage."""
        self.rank.processor = max(self.rank.processor, after)

        def run(block):
            self.rank.compute(block.name, block.forward)
            self._sum_results(block)

        self._pass_through(self.blocks, self.plan.prefetch, run)
        return self._hand_on("activations", self.blocks[-1].output, send)

    def backward(self, after, first, last, send, size):
        """A micro-batch back; when its gradients are with the stage before. `last`: they are complete."""
        self.rank.processor = max(self.rank.processor, after)
        self._bucket, self._averaged = 0.0, 0.0

        def run(block):
            self.rank.compute(f"{block.name} back", block.backward)
            if not first:  # gradients are added to those of the micro-batches before
                self.rank.compute("add", 1.5 * block.parameters / self.cost.copy)
            self._sum_results(block)
            if last:
                self._share_gradients(block, block is self.blocks[0])

        self._pass_through(list(reversed(self.blocks)), True, run)
        return self._hand_on("gradients", size, send)

    def _hand_on(self, what, size, send):
        if not send:
            return self.rank.processor
        return self.rank.transfer(what, self._call("send", size, 2, self._outside, size), self.rank.processor)

    def _share_gradients(self, block, first):
        plan, size = self.plan, block.parameters
        if plan.data == 1:
            return
        self._handle(block)
        if plan.sharding == "full":
            call = self._collective("reduce_scatter", size, plan.data, plan.tensor)
            self._averaged = self.rank.transfer(f"reduce {block.name}", call, self.rank.processor)
            return
        self._bucket += size
        if self._bucket >= plan.bucket or first:
            call = self._collective("all_reduce", self._bucket, plan.data, plan.tensor)
            self._averaged = self.rank.transfer("average", call, self.rank.processor)
            self._bucket = 0.0

    def finish(self):
        """The optimizer's step."""
        rank, plan, size = self.rank, self.plan, sum(b.parameters for b in self.blocks)
        rank.wait(self._averaged)
        if plan.data > 1 and plan.sharding != "full":
            rank.compute("hand out", size / self.cost.copy)
        part = 1 if plan.sharding == "none" else plan.data
        whole = self.cost.optimizer * size / max(self.cost.parameters, 1)
        rank.compute("optimizer", whole / part)
        if plan.tensor > 1 or (plan.sharding == "full" and plan.data > 1):
            rank.compute("dispatch", self.network.step_dispatch * sum(b.tensors for b in self.blocks))
        if plan.sharding == "optimizer" and plan.data > 1:
            call = self._collective("all_gather", size, plan.data, plan.tensor)
            rank.compute("copy", size / plan.data / self.cost.copy)
            rank.transfer("new parameters", call, wait=True)
            rank.compute("copy", size / self.cost.copy)  # each out of the one tensor in which they came
        return rank.processor

    def memory(self):
        plan, size = self.plan, sum(b.parameters for b in self.blocks)
        shard = plan.data if plan.sharding == "full" else 1
        waiting = plan.microbatches
        if plan.schedule == "1f1b":
            waiting = min(waiting, plan.pipeline - self.number)
        largest = max(b.parameters for b in self.blocks)
        return {
            "parameters": size / shard,
            "gradients": size / shard,
            "optimizer": self.cost.state_bytes * size / (1 if plan.sharding == "none" else plan.data),
            "activations": waiting * sum(b.saved for b in self.blocks),
            "buffers": 2 * largest if shard > 1 else (size if plan.data > 1 else 0.0),
        }


def _order(plan, stage):
    """[(goes back, micro-batch)] of a stage."""
    count = plan.microbatches
    ahead = count if plan.schedule == "gpipe" else min(count, plan.pipeline - stage)
    order = [(False, i) for i in range(ahead)]
    for i in range(count - ahead):
        order += [(True, i), (False, ahead + i)]
    return order + [(True, i) for i in range(count - ahead, count)]


def _play(stages, plan):
    """Let the stages do what each of them can do next, until all is done."""
    orders, done = [_order(plan, s.number) for s in stages], {}
    at = [0] * len(stages)
    while any(at[s] < len(order) for s, order in enumerate(orders)):
        for s, stage in enumerate(stages):
            while at[s] < len(orders[s]):
                goes_back, microbatch = orders[s][at[s]]
                neighbour = s + 1 if goes_back else s - 1
                needed = (goes_back, microbatch, neighbour)
                if 0 <= neighbour < len(stages) and needed not in done:
                    break
                after, key = done.get(needed, 0.0), (goes_back, microbatch, s)
                if goes_back:
                    size = stages[s - 1].blocks[-1].output if s else 0.0
                    last = at[s] == len(orders[s]) - 1
                    done[key] = stage.backward(after, microbatch == 0, last, s > 0, size)
                else:
                    done[key] = stage.forward(after, s < len(stages) - 1)
                at[s] += 1


def predict(cost, plan, network):
    """The Prediction for a step of a Plan on a Network; raises ValueError for more stages than blocks."""
    bounds = cut([b.forward + b.backward for b in cost.blocks], plan.pipeline)
    stages = [
        _Stage(cost.blocks[begin:end], number, cost, plan, network)
        for number, (begin, end) in enumerate(bounds)
    ]
    _play(stages, plan)
    step = max(stage.finish() for stage in stages)
    busiest = max(stages, key=lambda s: s.rank.computed)
    if plan.ranks > 1:  # all wait for the slowest of so many
        step += busiest.rank.computed * cost.jitter * sqrt(2 * log(plan.ranks))
    memory = max((stage.memory() for stage in stages), key=lambda m: sum(m.values()))
    return Prediction(
        plan,
        step,
        busiest.rank.computed,
        max(s.rank.transferred for s in stages),
        max(s.rank.sent for s in stages),
        memory,
        [entry for s in stages for entry in s.rank.timeline],
    )


def _divisors(n):
    return [d for d in range(1, n + 1) if n % d == 0]


def best_plans(cost, network, ranks, memory=float("inf"), microbatches=(1, 4, 16), most=5):
    """Predictions of the fastest plans for so many ranks, by batches a second, that fit into `memory` bytes.

    Tensors are shared within hosts only."""
    found = []
    for pipeline in (d for d in _divisors(ranks) if d <= len(cost.blocks)):
        for tensor in (d for d in _divisors(ranks // pipeline) if d <= network.per_host):
            data = ranks // pipeline // tensor
            for sharding, parts in product(("none", "optimizer", "full"), microbatches):
                if (sharding != "none" and data == 1) or (pipeline == 1 and parts > 1):
                    continue
                plan = Plan(data, tensor, pipeline, parts, sharding=sharding)
                prediction = predict(cost, plan, network)
                if prediction.memory_bytes <= memory:
                    found.append(prediction)
    return sorted(found, key=lambda p: -p.batches_per_second)[:most]
