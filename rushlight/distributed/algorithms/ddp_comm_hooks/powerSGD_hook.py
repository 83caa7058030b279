"""Gradients compressed to low-rank factors.

Source: Vogels, Karimireddy, Jaggi, "PowerSGD: Practical Low-Rank Gradient Compression for Distributed
Optimization", NeurIPS 2019, algorithm 1, with error feedback and warm start.
"""

import math

from .... import Generator, cat, linalg, randn, zeros_like
from ..._process_group import _group_or_default
from . import default_hooks


class PowerSGDState:
    """What the hook keeps between steps.

    Args:
        process_group: None for the default one.
        matrix_approximation_rank: rank of the factors.
        start_powerSGD_iter: steps (of all buckets) that average uncompressed first; at least 2.
        min_compression_rate: tensors that would shrink less are averaged as they are.
        use_error_feedback: add what a step lost to the next one's gradients.
        warm_start: start each step from the factor of the one before.
        orthogonalization_epsilon: added to norms, for gradients of low rank.
        random_seed: seed of the first factors, the same on all ranks.
    """

    def __init__(
        self,
        process_group=None,
        matrix_approximation_rank=1,
        start_powerSGD_iter=1000,
        min_compression_rate=2,
        use_error_feedback=True,
        warm_start=True,
        orthogonalization_epsilon=0,
        random_seed=0,
        compression_stats_logging_frequency=10000,
        batch_tensors_with_same_shape=False,
    ):
        if (use_error_feedback or warm_start) and start_powerSGD_iter <= 1:
            raise ValueError(
                "Expect `start_powerSGD_iter` > 1 if `use_error_feedback` or `warm_start` is enabled, "
                "because PowerSGD can only be applied after the first two iterations in DDP."
            )
        self.process_group, self.matrix_approximation_rank = process_group, matrix_approximation_rank
        self.start_powerSGD_iter, self.min_compression_rate = start_powerSGD_iter, min_compression_rate
        self.use_error_feedback, self.warm_start = use_error_feedback, warm_start
        self.orthogonalization_epsilon = orthogonalization_epsilon
        self.generator = Generator().manual_seed(random_seed)
        self.error_dict, self.q_memory_dict, self.iter = {}, {}, 0

    def maybe_increase_iter(self, bucket):
        if bucket.is_last():
            self.iter += 1


def _orthogonalize(matrix, epsilon):
    q, r = linalg.qr(matrix.float())
    # The sign that Gram-Schmidt gives, so that a warm start does not flip between steps.
    signs = r.diagonal().sign()
    signs[signs == 0] = 1
    return (q * signs / (1 + epsilon)).to(matrix.dtype)


def _compresses(tensor, rank, rate):
    n, m = tensor.shape[0], tensor.numel() // tensor.shape[0]
    return (n + m) * min(n, m, rank) * rate < n * m


def powerSGD_hook(state: PowerSGDState, bucket):
    """Average gradients through factors of low rank; each matrix M becomes P Q^T."""
    if state.iter < state.start_powerSGD_iter:
        state.maybe_increase_iter(bucket)
        return default_hooks.allreduce_hook(state.process_group, bucket)
    group = _group_or_default(state.process_group)
    buffer, index = bucket.buffer(), bucket.index()
    if state.use_error_feedback:
        error = state.error_dict.setdefault(index, zeros_like(buffer))
        buffer.add_(error)
        error.copy_(buffer)
    tensors = bucket.gradients()
    rank, rate = state.matrix_approximation_rank, state.min_compression_rate
    plain = [t for t in tensors if t.dim() < 2 or not _compresses(t, rank, rate)]
    matrices = [t.view(t.shape[0], -1) for t in tensors if t.dim() >= 2 and _compresses(t, rank, rate)]
    _average_together(group, plain)
    _average_by_factors(group, state, index, matrices)
    if state.use_error_feedback:
        error.sub_(buffer)
    state.maybe_increase_iter(bucket)
    return _done(buffer)


def batched_powerSGD_hook(state: PowerSGDState, bucket):
    """Average all gradients of a bucket as one square matrix, padded with zeros: fewer messages than
    `powerSGD_hook`, whose matrices are those of the layers, and a coarser approximation."""
    if state.iter < state.start_powerSGD_iter:
        state.maybe_increase_iter(bucket)
        return default_hooks.allreduce_hook(state.process_group, bucket)
    buffer, index = bucket.buffer(), bucket.index()
    if state.use_error_feedback:
        buffer.add_(state.error_dict.get(index, 0))
    side = math.isqrt(buffer.numel() - 1) + 1
    square = buffer.new_zeros(side * side)
    square[: buffer.numel()] = buffer
    _average_by_factors(_group_or_default(state.process_group), state, index, [square.view(side, side)])
    found = square[: buffer.numel()]
    if state.use_error_feedback:
        state.error_dict[index] = buffer - found
    buffer.copy_(found)
    state.maybe_increase_iter(bucket)
    return _done(buffer)


def _average_by_factors(group, state, index, matrices):
    """Each matrix M becomes P Q^T, the factors averaged over the ranks."""
    qs = state.q_memory_dict.get(index) if state.warm_start else None
    if qs is None:
        qs = [_first_factor(matrix, state) for matrix in matrices]
    ps = [matrix @ q for matrix, q in zip(matrices, qs)]
    _average_together(group, ps)
    ps = [_orthogonalize(p, state.orthogonalization_epsilon) for p in ps]
    qs = [matrix.t() @ p for matrix, p in zip(matrices, ps)]
    _average_together(group, qs)
    for matrix, p, q in zip(matrices, ps, qs):
        matrix.copy_(p @ q.t())
    if state.warm_start:
        state.q_memory_dict[index] = qs


def _first_factor(matrix, state):
    rank = min(*matrix.shape, state.matrix_approximation_rank)
    factor = randn(matrix.shape[1], rank, generator=state.generator, dtype=matrix.dtype)
    return _orthogonalize(factor, state.orthogonalization_epsilon)


def _average_together(group, tensors):
    if not tensors:
        return
    flat = cat([t.reshape(-1) for t in tensors]).div_(group.size())
    group.engine.all_reduce([flat], 0)
    for tensor, part in zip(tensors, flat.split([t.numel() for t in tensors])):
        tensor.copy_(part.view_as(tensor))


def _done(buffer):
    from ....futures import Future

    future = Future()
    future.set_result(buffer)
    return future
