"""Nested inputs cut into one share a device, and nested results put together again."""

import rushlight as torch

__all__ = ["scatter", "scatter_kwargs", "gather"]


def is_namedtuple(obj):
    """Whether the object was made by a class of `collections.namedtuple` or `typing.NamedTuple`."""
    return isinstance(obj, tuple) and hasattr(obj, "_asdict") and hasattr(obj, "_fields")


def _device(target):
    return torch.device("cuda", target) if isinstance(target, int) else torch.device(target)


def scatter(inputs, target_gpus, dim=0):
    """The inputs for each device: tensors are cut along `dim`, other objects are shared."""
    if isinstance(inputs, torch.Tensor):
        chunks = inputs.chunk(len(target_gpus), dim)
        return tuple(chunk.to(_device(target)) for chunk, target in zip(chunks, target_gpus))
    if not isinstance(inputs, (tuple, list, dict)) or not inputs:
        return [inputs for _ in target_gpus]
    parts = inputs.items() if isinstance(inputs, dict) else inputs
    shares = zip(*(scatter(part, target_gpus, dim) for part in parts))
    if is_namedtuple(inputs):
        return [type(inputs)(*share) for share in shares]
    if isinstance(inputs, dict):
        return [type(inputs)(share) for share in shares]
    return [tuple(share) if isinstance(inputs, tuple) else list(share) for share in shares]


def scatter_kwargs(inputs, kwargs, target_gpus, dim=0):
    """Arguments for each device; the shorter of the two lists is filled up with empty ones."""
    for_inputs = list(scatter(inputs, target_gpus, dim)) if inputs else []
    for_kwargs = list(scatter(kwargs, target_gpus, dim)) if kwargs else []
    for_inputs += [()] * (len(for_kwargs) - len(for_inputs))
    for_kwargs += [{} for _ in range(len(for_inputs) - len(for_kwargs))]
    return tuple(for_inputs), tuple(for_kwargs)


def gather(outputs, target_device, dim=0):
    """The devices' results as one: tensors are joined along `dim`, numbers become a vector."""
    first = outputs[0]
    if first is None:
        return None
    if isinstance(first, torch.Tensor):
        parts = [part.reshape(1) if part.dim() == 0 else part for part in outputs]
        return torch.cat([part.to(_device(target_device)) for part in parts], 0 if first.dim() == 0 else dim)
    if isinstance(first, dict):
        if any(len(output) != len(first) for output in outputs):
            raise ValueError("All dicts must have the same number of keys")
        return type(first)(
            (key, gather([output[key] for output in outputs], target_device, dim)) for key in first
        )
    if is_namedtuple(first):
        return type(first)._make(gather(parts, target_device, dim) for parts in zip(*outputs))
    return type(first)(gather(parts, target_device, dim) for parts in zip(*outputs))
