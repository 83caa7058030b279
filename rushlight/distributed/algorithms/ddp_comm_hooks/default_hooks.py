"""Averaging gradients as they are, or at half precision."""

from .... import bfloat16, float16
from ..._process_group import _group_or_default
from ...distributed_c10d import get_world_size


def _average(process_group, tensor, finish):
    group = _group_or_default(process_group)
    work = group.engine.all_reduce([tensor.div_(get_world_size(group))], 0, True)
    return work.get_future().then(lambda future: finish(future.value()[0]))


def allreduce_hook(process_group, bucket):
    """Average over the ranks, what DistributedDataParallel does without a hook."""
    return _average(process_group, bucket.buffer(), lambda reduced: reduced)


def _compressed(dtype):
    def hook(process_group, bucket):
        buffer = bucket.buffer()
        return _average(process_group, buffer.to(dtype), lambda reduced: buffer.copy_(reduced))

    return hook


def fp16_compress_hook(process_group, bucket):
    """Average as float16: half the traffic; gradients above 65504 overflow."""
    return _compressed(float16)(process_group, bucket)


def bf16_compress_hook(process_group, bucket):
    """Average as bfloat16: half the traffic, 8 bits of precision."""
    return _compressed(bfloat16)(process_group, bucket)


def _wrapped(dtype):
    def wrapper(hook):
        def compressed_hook(state, bucket):
            buffer = bucket.buffer()
            bucket.set_buffer(buffer.to(dtype))
            return hook(state, bucket).then(lambda future: buffer.copy_(_only(future.value())))

        return compressed_hook

    return wrapper


def _only(value):
    return value[0] if isinstance(value, (list, tuple)) else value


def fp16_compress_wrapper(hook):
    """Let another hook work on float16."""
    return _wrapped(float16)(hook)


def bf16_compress_wrapper(hook):
    """Let another hook work on bfloat16."""
    return _wrapped(bfloat16)(hook)
