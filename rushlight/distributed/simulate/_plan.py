"""Ways to share a training step among processes."""

from dataclasses import dataclass

SHARDINGS = ("none", "optimizer", "full")
SCHEDULES = ("gpipe", "1f1b")


@dataclass(frozen=True)
class Plan:
    """`data` times `tensor` times `pipeline` ranks; neighbours work on one tensor, stages are furthest apart.

    Args:
        data: copies of the model, each with a batch of its own (the batch of the Cost).
        tensor: ranks that share each block; its results are summed `sums` times a pass.
        pipeline: stages; the blocks are cut where the stages' times come out most equal.
        microbatches: into how many parts a pipeline cuts each batch.
        schedule: of the pipeline, "gpipe" or "1f1b".
        sharding: over the `data` ranks: "none" as DistributedDataParallel, "optimizer" as
            ZeroRedundancyOptimizer, "full" as fully_shard.
        bucket: bytes of gradients that are averaged together, without full sharding.
        prefetch: whether the next block's parameters are gathered meanwhile in the forward pass, as in the
            backward pass they always are; full sharding only.
        checkpoint: whether blocks are computed again in the backward pass instead of kept.
    """

    data: int = 1
    tensor: int = 1
    pipeline: int = 1
    microbatches: int = 1
    schedule: str = "1f1b"
    sharding: str = "none"
    bucket: float = 25 * 2**20
    prefetch: bool = False
    checkpoint: bool = False
    sums: int = 2

    def __post_init__(self):
        if min(self.data, self.tensor, self.pipeline, self.microbatches) < 1:
            raise ValueError(f"a plan has at least one rank of each kind, and one micro-batch: {self}")
        if self.sharding not in SHARDINGS:
            raise ValueError(f"sharding is one of {', '.join(SHARDINGS)}, not {self.sharding!r}")
        if self.schedule not in SCHEDULES:
            raise ValueError(f"schedule is one of {', '.join(SCHEDULES)}, not {self.schedule!r}")

    @property
    def ranks(self):
        return self.data * self.tensor * self.pipeline


def cut(times, parts):
    """Where to cut a list of times into so many parts in order, the longest as short as possible: indices."""
    if parts > len(times):
        raise ValueError(f"a pipeline of {parts} stages needs as many blocks, but there are {len(times)}")
    sums = [0.0]
    for t in times:
        sums.append(sums[-1] + t)
    best: dict[tuple[int, int], tuple[float, tuple[int, ...]]] = {(0, 0): (0.0, ())}
    for part in range(1, parts + 1):
        for end in range(part, len(times) - (parts - part) + 1):
            best[part, end] = min(
                (max(best[part - 1, begin][0], sums[end] - sums[begin]), (*best[part - 1, begin][1], end))
                for begin in range(part - 1, end)
                if (part - 1, begin) in best
            )
    ends = best[parts, len(times)][1]
    return list(zip((0, *ends[:-1]), ends))
