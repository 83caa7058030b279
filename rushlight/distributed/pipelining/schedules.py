"""In which order stages take micro-batches forward and back."""

from abc import ABC, abstractmethod

from rushlight import no_grad
from rushlight.distributed.pipelining.microbatch import merge_chunks, split_args_kwargs_into_chunks

__all__ = ["Schedule1F1B", "ScheduleGPipe", "ScheduleInterleaved1F1B", "ScheduleLoopedBFS"]


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
        """[(whether backward, which of this process's stages, micro-batch)]."""

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
        for goes_back, which, microbatch in self._order():
            stage = self._stages[which]
            if not goes_back:
                output = stage.forward_one_chunk(
                    microbatch, split[0][microbatch], split[1][microbatch], backward
                )
                if stage.is_last and targets is not None:
                    found[microbatch] = self._loss_fn(output, targets[microbatch])
            elif backward:
                remaining[which] -= 1
                loss = found.get(microbatch) if stage.is_last else None
                stage.backward_one_chunk(microbatch, loss, last_backward=remaining[which] == 0)
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
        return [(False, 0, i) for i in batches] + [(True, 0, i) for i in batches]


class Schedule1F1B(_Single):
    __doc__ = f"""One forward, one back, so that few activations are held. {_Schedule.__doc__}
    Source: Narayanan et al., "PipeDream: Generalized Pipeline Parallelism for DNN Training", SOSP 2019.
    """

    def _order(self):
        ahead = min(self._n_microbatches, self._num_stages - self._stage.stage_index)
        return _alternating(
            [(False, 0, i) for i in range(self._n_microbatches)],
            [(True, 0, i) for i in range(self._n_microbatches)],
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
        self, stages, n_microbatches, loss_fn=None, output_merge_spec=None, scale_grads=True, **kwargs
    ):
        super().__init__(stages, n_microbatches, loss_fn, output_merge_spec=output_merge_spec,
                         scale_grads=scale_grads)  # fmt: skip

    def _order(self):
        batches, stages = range(self._n_microbatches), range(len(self._stages))
        forward = [(False, s, i) for s in stages for i in batches]
        return forward + [(True, s, i) for s in reversed(stages) for i in batches]


class ScheduleInterleaved1F1B(_Schedule):
    __doc__ = f"""Several stages a process, one forward and one back in turn. {_Schedule.__doc__}
    Source: Narayanan et al., "Efficient Large-Scale Language Model Training on GPU Clusters Using
        Megatron-LM",
    SC 2021.
    """

    def __init__(self, stages, n_microbatches, *args, **kwargs):
        super().__init__(stages, n_microbatches, *args, **kwargs)
        self._ranks, self._rank = self._stages[0].group_size, self._stages[0].group_rank
        rounds = max(1, n_microbatches // self._ranks)
        if n_microbatches % rounds:
            raise ValueError(
                "Interleaved 1F1B requires the number of microbatches to be a multiple of the number of "
                "rounds "
                f"({rounds}), but got {n_microbatches}."
            )
        self._per_round = n_microbatches // rounds

    def _order(self):
        stages, total = len(self._stages), len(self._stages) * self._n_microbatches
        seen: dict = {}

        def steps(backward):
            for k in range(total):
                which = (k // self._per_round) % stages
                which = stages - 1 - which if backward else which
                microbatch = seen[backward, which] = seen.get((backward, which), -1) + 1
                yield backward, which, microbatch

        ahead = min(total, (stages - 1) * self._per_round + 2 * (self._ranks - 1 - self._rank))
        return _alternating(list(steps(False)), list(steps(True)), ahead)
