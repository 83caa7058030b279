"""Hooks that let a ZeroRedundancyOptimizer step while DistributedDataParallel still sends gradients.

Every rank makes its collectives in the same order, and the group's thread runs them, and the steps between
them, in that order: a bucket's gradients are averaged, its owner steps, its new parameters are sent.
"""

import weakref

__all__ = ["hook_with_zero_step", "hook_with_zero_step_interleaved"]


def hook_with_zero_step(hook, ddp, zero, shard_buckets=False):
    """`hook`, followed by the steps of all buckets once the backward pass has filled the last one.

    Args:
        hook: averages a bucket, as `default_hooks.allreduce_hook`.
        ddp: the DistributedDataParallel that will get the result by `register_comm_hook`.
        zero: its ZeroRedundancyOptimizer, made with `overlap_with_ddp=True`. Calls of `step` do nothing then.
        shard_buckets: whether several ranks share the parameters of a bucket.

    Raises ValueError for other optimizers.
    """
    steps = _Steps(hook, ddp, zero, shard_buckets)
    waiting: list = []

    def hook_with_zero_fn(state, bucket):
        averaged = steps.average(state, bucket)
        waiting.append((bucket, averaged))
        if not bucket.is_last():
            return averaged
        ready = list(waiting)
        waiting.clear()
        return [steps.start(*entry) for entry in ready][-1]

    return hook_with_zero_fn


def hook_with_zero_step_interleaved(hook, ddp, zero, shard_buckets=False):
    """As `hook_with_zero_step`, with each bucket's step right after its average, beside the backward pass."""
    steps = _Steps(hook, ddp, zero, shard_buckets)

    def hook_with_zero_interleaved_fn(state, bucket):
        return steps.start(bucket, steps.average(state, bucket))

    return hook_with_zero_interleaved_fn


class _Steps:
    def __init__(self, hook, ddp, zero, shard_buckets):
        if not zero._overlap_with_ddp:
            raise ValueError(
                "ZeroRedundancyOptimizer must be constructed with `overlap_with_ddp=True` to use this hook "
                "properly"
            )
        self._hook, self._zero, self._group = hook, weakref.ref(zero), ddp.process_group
        zero._share_buckets(ddp.reducer.parameters_of_buckets(), shard_buckets)

    def average(self, state, bucket):
        return self._hook(state, bucket)

    def start(self, bucket, averaged):
        """Step with a bucket and share its parameters out; the future of its gradients, when that is done."""
        zero, engine = self._zero(), self._group.engine

        def step():
            result = averaged.value()
            result = result[0] if isinstance(result, (list, tuple)) else result
            if result.data_ptr() != bucket.buffer().data_ptr():
                bucket.buffer().copy_(result)
            zero._step_some(bucket.parameters(), bucket.gradients())
            return [bucket.buffer()]

        last = engine.submit(step)
        for root, parameters in zero._owners_of(bucket.index()):
            last = zero._send(parameters, root)
        return last.get_future().then(lambda _: bucket.buffer())
