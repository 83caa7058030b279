"""In which order stages take micro-batches forward and back."""

from __future__ import annotations

from abc import ABC, abstractmethod

from rushlight import no_grad
from rushlight.distributed.pipelining._dual_pipe import dual_pipe_order
from rushlight.distributed.pipelining._zero_bubble import zero_bubble_orders
from rushlight.distributed.pipelining.microbatch import merge_chunks, split_args_kwargs_into_chunks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

__all__ = [
    "Schedule1F1B",
    "ScheduleDualPipeV",
    "ScheduleGPipe",
    "ScheduleInterleaved1F1B",
    "ScheduleInterleavedZeroBubble",
    "ScheduleLoopedBFS",
    "ScheduleZBVZeroBubble",
    "get_schedule_class",
]


class _Schedule(ABC):
    """Runs the stages of this process.

    Args:
        stages: a stage, or several.
        n_microbatches: into how many micro-batches each batch is cut.
        loss_fn: (output, target) -> loss, of a micro-batch; without it nothing goes back.
        args_chunk_spec, kwargs_chunk_spec: TensorChunkSpecs of arguments cut along other dimensions than 0.
        output_merge_spec: the same for results.
        scale_grads: whether gradients are those of the mean of the micro-batches' losses, instead of the sum.
    """

    def __init__(
        self,
        stages,
        n_microbatches,
        loss_fn=None,
        args_chunk_spec=None,
        kwargs_chunk_spec=None,
        output_merge_spec=None,
        scale_grads=True,
        **_,
    ):
        self._stages = list(stages) if isinstance(stages, (list, tuple)) else [stages]
        if n_microbatches < 1:
            raise ValueError(f"n_microbatches must be positive, but is {n_microbatches}")
        self._n_microbatches, self._loss_fn, self.scale_grads = n_microbatches, loss_fn, scale_grads
        self._args_chunk_spec, self._kwargs_chunk_spec = args_chunk_spec, kwargs_chunk_spec
        self._output_merge_spec = output_merge_spec
        for stage in self._stages:
            stage._neighbours = {other.stage_index: other for other in self._stages}

    @abstractmethod
    def _order(self):
        """[(kind, which of this process's stages, micro-batch)].

        Kinds are F, forward, and B, back; or, in place of B, I, the gradients of the stage's inputs, and
        later W, those of its parameters."""

    def step(self, *args, target=None, losses=None, **kwargs):
        """Run a batch forward and back; gradients are added to the parameters'.

        Only the first stage's process gives inputs, only the last one's targets; it gets the outputs.
        `losses`,
        a list, is filled with the micro-batches' losses."""
        return self._run(args, kwargs, target, losses, self._loss_fn is not None)

    def eval(self, *args, target=None, losses=None, **kwargs):
        """Run a batch forward only."""
        with no_grad():
            return self._run(args, kwargs, target, losses, False)

    def _run(self, args, kwargs, target, losses, backward):
        count, last = self._n_microbatches, self._stages[-1]
        for stage in self._stages:
            stage.clear_runtime_states()
        split = ([()] * count, [{}] * count)
        if args or kwargs:
            split = split_args_kwargs_into_chunks(
                args, kwargs, count, self._args_chunk_spec, self._kwargs_chunk_spec
            )
        targets = None
        if last.is_last and self._loss_fn is not None and target is not None:
            targets = [a[0] for a in split_args_kwargs_into_chunks((target,), {}, count)[0]]
        elif last.is_last and backward:
            raise ValueError("step: the last stage needs a target for its loss")
        found: dict = {}
        remaining = {i: count for i in range(len(self._stages))}
        for kind, which, microbatch in self._order():
            stage = self._stages[which]
            if kind == "F":
                output = stage.forward_one_chunk(
                    microbatch, split[0][microbatch], split[1][microbatch], backward
                )
                if stage.is_last and targets is not None:
                    found[microbatch] = self._loss_fn(output, targets[microbatch])
            elif backward and kind == "W":
                stage.backward_weight_one_chunk(microbatch)
            elif backward:
                remaining[which] -= 1
                loss = found.get(microbatch) if stage.is_last else None
                stage.backward_one_chunk(microbatch, loss, kind == "B", last_backward=remaining[which] == 0)
        for stage in self._stages:
            stage.wait_for_sends()
            if backward and self.scale_grads:
                stage.scale_grads(count)
        if losses is not None:
            losses[:] = [found[i] for i in sorted(found)]
        if not last.is_last:
            return None
        return merge_chunks(last.output_chunks, self._output_merge_spec)


class _Single(_Schedule):
    def __init__(self, stage, n_microbatches, loss_fn=None, *args, **kwargs):
        super().__init__(stage, n_microbatches, loss_fn, *args, **kwargs)
        self._stage, self._num_stages = stage, stage.num_stages


class ScheduleGPipe(_Single):
    __doc__ = f"""All micro-batches forward, then all back. {_Schedule.__doc__}
    Source: Huang et al., "GPipe: Efficient Training of Giant Neural Networks using Pipeline Parallelism",
    NeurIPS 2019.
    """

    def _order(self):
        batches = range(self._n_microbatches)
        return [("F", 0, i) for i in batches] + [("B", 0, i) for i in batches]


class Schedule1F1B(_Single):
    __doc__ = f"""One forward, one back, so that few activations are held. {_Schedule.__doc__}
    Source: Narayanan et al., "PipeDream: Generalized Pipeline Parallelism for DNN Training", SOSP 2019.
    """

    def _order(self):
        ahead = min(self._n_microbatches, self._num_stages - self._stage.stage_index)
        return _alternating(
            [("F", 0, i) for i in range(self._n_microbatches)],
            [("B", 0, i) for i in range(self._n_microbatches)],
            ahead - 1,
        )


def _alternating(forward, backward, ahead):
    """`ahead` steps forward, then one forward and one back in turn, then the rest back."""
    order = forward[:ahead]
    for i, step in enumerate(forward[ahead:]):
        order += [step, backward[i]]
    return order + backward[len(forward) - ahead :]


class ScheduleLoopedBFS(_Schedule):
    __doc__ = f"""Several stages a process: each takes all micro-batches before the next does.
    {_Schedule.__doc__}
    Source: Lamy-Poirier, "Breadth-First Pipeline Parallelism", MLSys 2023.
    """

    def __init__(
        self,
        stages: list[Any],
        n_microbatches: int,
        loss_fn: Callable[..., Any] | None = None,
        output_merge_spec: Any = None,
        scale_grads: bool = True,
        **kwargs: Any,
    ) -> None:
        super().__init__(stages, n_microbatches, loss_fn, output_merge_spec=output_merge_spec,
                         scale_grads=scale_grads)  # fmt: skip

    def _order(self):
        batches, stages = range(self._n_microbatches), range(len(self._stages))
        forward = [("F", s, i) for s in stages for i in batches]
        return forward + [("B", s, i) for s in reversed(stages) for i in batches]


class ScheduleInterleaved1F1B(_Schedule):
    __doc__ = f"""Several stages a process, one forward and one back in turn. {_Schedule.__doc__}
    Source: Narayanan et al., "Efficient Large-Scale Language Model Training on GPU Clusters Using
        Megatron-LM",
    SC 2021.
    """

    def __init__(self, stages: list[Any], n_microbatches: int, *args: Any, **kwargs: Any) -> None:
        super().__init__(stages, n_microbatches, *args, **kwargs)
        self._ranks, self._rank = self._stages[0].group_size, self._stages[0].group_rank
        self._per_round = _per_round("Interleaved 1F1B", n_microbatches, self._ranks)

    def _order(self):
        stages, total = len(self._stages), len(self._stages) * self._n_microbatches
        seen: dict = {}

        def steps(kind):
            for k in range(total):
                which = (k // self._per_round) % stages
                which = stages - 1 - which if kind == "B" else which
                microbatch = seen[kind, which] = seen.get((kind, which), -1) + 1
                yield kind, which, microbatch

        ahead = min(total, (stages - 1) * self._per_round + 2 * (self._ranks - 1 - self._rank))
        return _alternating(list(steps("F")), list(steps("B")), ahead)


def _per_round(name, microbatches, ranks):
    rounds = max(1, microbatches // ranks)
    if microbatches % rounds:
        raise ValueError(
            f"{name} requires the number of microbatches to be a multiple of the number of rounds "
            f"({rounds}), but got {microbatches}."
        )
    return microbatches // rounds


class _ZeroBubble(_Schedule):
    """The gradients of parameters wait for turns in which the process would idle."""

    def _plan(self, stages, limit):
        rank = self._stages[0].group_rank
        number = {stage.stage_index: which for which, stage in enumerate(self._stages)}
        turns = zero_bubble_orders(stages, self._n_microbatches, limit)
        self._turns = [(kind, number[stage], i) for kind, stage, i in filter(None, turns[rank])]

    def _order(self):
        return self._turns


class ScheduleInterleavedZeroBubble(_ZeroBubble):
    __doc__ = f"""As interleaved 1F1B, in as much memory, without most of its idle turns. {_Schedule.__doc__}
    Source: Qi et al., "Zero Bubble Pipeline Parallelism", ICLR 2024 (ZB-H1).
    """

    def __init__(self, stages: list[Any], n_microbatches: int, *args: Any, **kwargs: Any) -> None:
        super().__init__(stages, n_microbatches, *args, **kwargs)
        ranks, own = self._stages[0].group_size, len(self._stages)
        _per_round("Zero bubble", n_microbatches, ranks)
        everyones = [[rank + ranks * i for i in range(own)] for rank in range(ranks)]
        self._plan(everyones, ranks if own == 1 else (own + 1) * ranks - 1)


def _there_and_back(name, stages):
    """Tell two stages a process that the last stage is with the first; (processes, number of the last)."""
    if len(stages) != 2:
        raise ValueError(f"{name} requires exactly 2 stages per rank, but got {len(stages)}.")
    last = stages[0].num_stages - 1
    for stage in stages:
        stage.stage_index_to_group_rank = {i: min(i, last - i) for i in range(last + 1)}
    return stages[0].group_size, last


class ScheduleZBVZeroBubble(_ZeroBubble):
    __doc__ = f"""Two stages a process, there and back again: the last stage is with the first.
    {_Schedule.__doc__}
    Source: Qi et al., "Zero Bubble Pipeline Parallelism", ICLR 2024, section 6.
    """

    def __init__(self, stages: list[Any], n_microbatches: int, *args: Any, **kwargs: Any) -> None:
        super().__init__(stages, n_microbatches, *args, **kwargs)
        ranks, last = _there_and_back("ZBV", self._stages)
        self._plan([[rank, last - rank] for rank in range(ranks)], 2 * ranks)


class ScheduleDualPipeV(_Schedule):
    __doc__ = f"""Two stages a process, there and back again; the one goes forward while the other goes back.
    {_Schedule.__doc__}
    Needs as many micro-batches as there are stages. Source: DeepSeek-AI, "DeepSeek-V3 Technical Report",
    2024, section 3.2.1, cut in half as in "Cut-in-half" (Qi et al., 2025).
    """

    def __init__(self, stages: list[Any], n_microbatches: int, *args: Any, **kwargs: Any) -> None:
        super().__init__(stages, n_microbatches, *args, **kwargs)
        self._ranks, last = _there_and_back("DualPipeV", self._stages)
        if n_microbatches < last + 1:
            raise ValueError(
                f"DualPipeV requires at least as many microbatches as stages ({last + 1}), but got "
                f"{n_microbatches}."
            )

    def _order(self):
        return dual_pipe_order(self._stages[0].group_rank, self._ranks, self._n_microbatches)


def get_schedule_class(schedule_name: str) -> type:
    """The schedule of a name, in any case: "1F1B", "GPipe", "InterleavedZeroBubble", ...

    Raises ValueError for others."""
    known = {
        name.removeprefix("Schedule").lower(): kind
        for name, kind in globals().items()
        if name.startswith("Schedule")
    }
    found = known.get(schedule_name.lower().removeprefix("schedule"))
    if found is None:
        names = [kind.__name__.removeprefix("Schedule") for kind in known.values()]
        raise ValueError(f"Unknown schedule name {schedule_name}. The valid options are {names}")
    return found
