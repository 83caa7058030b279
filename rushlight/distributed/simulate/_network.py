"""What it takes to move bytes between processes."""

import time
from dataclasses import dataclass, field, replace
from math import ceil, log2, sqrt
from statistics import median

KINDS = ("all_reduce", "all_gather", "reduce_scatter", "send")


@dataclass(frozen=True)
class Network:
    """Hosts of `per_host` ranks, and what joins them: seconds of delay, bytes a second each way.

    Args:
        latency, bandwidth: between hosts; the bandwidth is a host's, its ranks share it.
        per_host: ranks on a host.
        host_latency, host_bandwidth: between two ranks of one host; those of the network if None.
        topology: "switch", where all hosts are equally far; "fat-tree", whose links above `leaf` hosts have
            `oversubscription` times less for each; "torus" of `dimensions` dimensions, where distance counts.
        trees: whether collectives may run along trees, which many ranks need; Gloo has rings only.
        processor_share: how much of the time of a transfer the processor is busy with it, and computes
            nothing: 0 for network cards, 1 for the loopback interface of a busy machine.
        waiting: ranks that share processors are not equally fast, and each wait is for the slowest: seconds
            that a wait takes longer, for each square root of a second that was computed before it.
        dispatch: seconds that sharing a block among `tensor` ranks takes besides, in each pass.
        step_dispatch: seconds that the optimizer takes besides for each parameter that is spread over ranks.
        factors: kind of call -> (for its delay, for its bytes): how much worse than by the formula it is.
    """

    latency: float = 5e-6
    bandwidth: float = 25e9
    per_host: int = 1
    host_latency: float | None = None
    host_bandwidth: float | None = None
    topology: str = "switch"
    leaf: int = 32
    oversubscription: float = 1.0
    dimensions: int = 3
    trees: bool = True
    processor_share: float = 0.0
    waiting: float = 0.0
    dispatch: float = 0.0
    step_dispatch: float = 0.0
    factors: dict = field(default_factory=dict)

    def __post_init__(self):
        if self.topology not in ("switch", "fat-tree", "torus"):
            raise ValueError(f"topology is one of switch, fat-tree and torus, not {self.topology!r}")
        if (
            min(self.latency, self.waiting, self.per_host - 1) < 0
            or self.bandwidth <= 0
            or not 0 <= self.processor_share <= 1
        ):
            raise ValueError(f"impossible network: {self}")

    def _within(self):
        latency = self.latency if self.host_latency is None else self.host_latency
        return latency, self.bandwidth if self.host_bandwidth is None else self.host_bandwidth

    def _between(self, hosts, sharing):
        """Delay and bandwidth for a rank that talks to one of so many hosts, as do others of its host."""
        latency, bandwidth = self.latency, self.bandwidth / sharing
        if self.topology == "fat-tree" and hosts > self.leaf:
            levels = ceil(log2(hosts) / log2(max(self.leaf, 2)))
            return latency * (2 * levels - 1), bandwidth / self.oversubscription
        if self.topology == "torus":  # rings go from neighbour to neighbour, trees across
            return latency, bandwidth
        return latency, bandwidth

    def _reach(self, hosts):
        """How much further than to a neighbour it is to the middle of so many hosts."""
        return (
            max(1.0, hosts ** (1 / self.dimensions) / 4 * self.dimensions)
            if self.topology == "torus"
            else 1.0
        )

    def _pass(self, size, ranks, hop, hosts):
        """All parts of `size` bytes once around: along a ring, or halved and doubled along a tree."""
        latency, bandwidth = hop
        moved = size * (ranks - 1) / ranks / bandwidth
        ring = (ranks - 1) * latency
        return (min(ring, ceil(log2(ranks)) * latency * self._reach(hosts)) if self.trees else ring), moved

    def time(self, kind, size, ranks, stride=1):
        """Seconds of a collective of `ranks` ranks, `stride` apart, on `size` bytes: of the whole tensor for
        all_gather and reduce_scatter; `send` is a message to a neighbour."""
        if ranks <= 1 or size <= 0:
            return 0.0
        together = max(1, min(ranks, self.per_host // stride))  # ranks of the group on one host
        hosts = ceil(ranks / together)
        delay = moved = 0.0
        if kind == "send":
            hop = self._within() if stride < self.per_host else self._between(hosts, self.per_host)
            delay, moved = hop[0], size / hop[1]
        else:
            turns = 2 if kind == "all_reduce" else 1
            if together > 1:
                d, m = self._pass(size, together, self._within(), 1)
                delay, moved = turns * d, turns * m
            if hosts > 1:  # each rank of a host carries its share of the parts
                sharing = max(1, self.per_host // together)
                d, m = self._pass(size / together, hosts, self._between(hosts, sharing * together), hosts)
                delay, moved = delay + turns * d, moved + turns * m
        for_delay, for_bytes = self.factors.get(kind, (1.0, 1.0))
        return delay * for_delay + moved * for_bytes


def _collectives(dist, torch, group):
    ranks, rank = dist.get_world_size(group), dist.get_rank(group)

    def all_reduce(n):
        t = torch.ones(n)
        return lambda: dist.all_reduce(t, group=group)

    def all_gather(n):
        part, whole = torch.ones(n // ranks), torch.ones(n // ranks * ranks)
        return lambda: dist.all_gather_into_tensor(whole, part, group=group)

    def reduce_scatter(n):
        part, whole = torch.ones(n // ranks), torch.ones(n // ranks * ranks)
        return lambda: dist.reduce_scatter_tensor(part, whole, group=group)

    def send(n):
        """To the next rank, there and back: half of it is a message."""
        there, back = torch.ones(n), torch.ones(n)
        following, before = (rank + 1) % ranks, (rank - 1) % ranks

        def run():
            work = dist.isend(there, group=group, group_dst=following)
            dist.recv(back, group=group, group_src=before)
            work.wait()

        return run

    return dict(zip(KINDS, (all_reduce, all_gather, reduce_scatter, send)))


def _median_time(dist, torch, group, run, repeats, turns=1):
    """Seconds of a call, the mean of `turns` in a row; the median of `repeats`, averaged over the ranks."""
    times = []
    for _ in range(repeats):
        dist.barrier(group)
        start = time.perf_counter()
        for _ in range(turns):
            run()
        times.append((time.perf_counter() - start) / turns)
    return _mean(dist, torch, group, [median(times)])[0]


_ROW = 10


def calibrate(group=None, sizes=(1 << 10, 1 << 24), repeats=15):
    """The Network that joins the processes of a group, as one host; every one of them makes this call.

    All kinds of calls are timed for a small and a large tensor (bytes), and what they cost the processor; all
    ranks do so at once, and share the processors as they would in a step.
    """
    import rushlight as torch
    from rushlight import distributed as dist

    ranks = dist.get_world_size(group)
    if ranks < 2:
        raise ValueError("calibrate: a network joins at least two processes")
    ideal = Network(latency=1.0, bandwidth=1.0, per_host=ranks, trees=False)
    fits = {}
    for kind, make in _collectives(dist, torch, group).items():
        # Short calls come in rows: what one of them costs on a busy machine is luck.
        small = _median_time(dist, torch, group, make(sizes[0] // 4), repeats, _ROW)
        large = _median_time(dist, torch, group, make(sizes[1] // 4), repeats)
        per_byte = max((large - small) / (sizes[1] - sizes[0]), 1e-13)
        delay = max(small - per_byte * sizes[0], 1e-7)
        unit_delay = ideal.time(kind, 1e-9, ranks)
        unit_bytes = ideal.time(kind, 1.0, ranks) - unit_delay
        fits[kind] = delay / unit_delay, per_byte / unit_bytes
    latency, seconds_per_byte = fits["all_reduce"]
    factors = {kind: (delay / latency, size / seconds_per_byte) for kind, (delay, size) in fits.items()}
    network = Network(latency, 1 / seconds_per_byte, ranks, trees=False, factors=factors)
    share = _share(dist, torch, group, sizes[1] // 4, repeats)
    waiting = _waiting(dist, torch, group, network.time("all_reduce", 4, ranks), repeats)
    passes, step = _dispatch(dist, torch, group, repeats)
    dispatch = max(0.0, passes / 2 - network.time("all_reduce", 64, ranks))
    return replace(network, processor_share=share, waiting=waiting, dispatch=dispatch, step_dispatch=step)


def _dispatch(dist, torch, group, repeats):
    """Seconds forward and back through a tiny block whose weights are shared among the ranks, and of an
    optimizer's step for each of them."""
    from ..device_mesh import DeviceMesh
    from ..tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

    mesh = DeviceMesh("cpu", list(range(dist.get_world_size(group)))) if group is None else None
    if mesh is None:
        return 0.0, 0.0
    width = 4 * dist.get_world_size(group)
    block = torch.nn.Sequential(torch.nn.Linear(4, width), torch.nn.GELU(), torch.nn.Linear(width, 4))
    parallelize_module(block, mesh, {"0": ColwiseParallel(), "2": RowwiseParallel()})
    x = torch.ones(4, 4, requires_grad=True)
    passes = _median_time(dist, torch, group, lambda: block(x).sum().backward(), repeats, _ROW)
    optimizer = torch.optim.AdamW(block.parameters())
    return passes, _median_time(dist, torch, group, optimizer.step, repeats) / len(list(block.parameters()))


def _mean(dist, torch, group, values):
    """Means over the ranks."""
    t = torch.tensor(values, dtype=torch.float64)
    dist.all_reduce(t, dist.ReduceOp.AVG, group)
    return t.tolist()


def _computing(torch, turns):
    a = torch.rand(256, 256)

    def compute():
        for _ in range(turns):
            torch.mm(a, a)

    return compute


def _share(dist, torch, group, count, repeats):
    """How long the processor is busy with a transfer, all threads together, of the transfer's own time; on
    processors that several share, its seconds take as much longer as those of computing."""
    t, compute = torch.ones(count), _computing(torch, 20)
    found = []
    for run in (compute, lambda: dist.all_reduce(t, group=group)):
        walls, busy = [], []
        for _ in range(repeats):
            dist.barrier(group)
            wall, own = time.perf_counter(), time.process_time()
            run()
            walls.append(time.perf_counter() - wall)
            busy.append(time.process_time() - own)
        found += [median(walls), median(busy)]
    wall, busy, transfer, busy_with_it = _mean(dist, torch, group, found)
    return min(1.0, busy_with_it / transfer * max(1.0, wall / busy))


def _waiting(dist, torch, group, delay, repeats, seconds=0.01):
    """By how much a turn of computing and a small all_reduce takes longer than the two apart."""
    t, one = torch.ones(1), _computing(torch, 1)
    turns = max(1, round(seconds / _median_time(dist, torch, group, one, repeats, _ROW)))
    compute = _computing(torch, turns)
    alone = _median_time(dist, torch, group, compute, repeats, _ROW)

    def together():
        compute()
        dist.all_reduce(t, group=group)

    both = _median_time(dist, torch, group, together, repeats, _ROW)
    return max(0.0, both - alone - delay) / sqrt(alone)
