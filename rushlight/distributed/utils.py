"""Help for wrappers that share modules among processes."""

from rushlight import cat, distributed, no_grad

__all__: list = []


def _sync_params_and_buffers(process_group, module_states, broadcast_bucket_size, src):
    """Give rank `src`'s tensors to all, a message for each dtype and bucket."""
    buckets: dict = {}
    for tensor in module_states:
        buckets.setdefault(tensor.dtype, [[]])
        last = buckets[tensor.dtype]
        if sum(t.numel() * t.element_size() for t in last[-1]) >= broadcast_bucket_size:
            last.append([])
        last[-1].append(tensor.detach())
    with no_grad():
        for same in (bucket for parts in buckets.values() for bucket in parts if bucket):
            flat = cat([t.reshape(-1) for t in same])
            distributed.broadcast(flat, src, process_group)
            for tensor, part in zip(same, flat.split([t.numel() for t in same])):
                tensor.copy_(part.view_as(tensor))


def _sync_module_states(
    module, process_group, broadcast_bucket_size, src, params_and_buffers_to_ignore, broadcast_buffers=True
):
    """Give rank `src`'s parameters and buffers to all."""
    ignored = set(params_and_buffers_to_ignore)
    states = [p for name, p in module.named_parameters() if name not in ignored]
    if broadcast_buffers:
        states += [b for name, b in module.named_buffers() if name not in ignored]
    _sync_params_and_buffers(process_group, states, broadcast_bucket_size, src)
