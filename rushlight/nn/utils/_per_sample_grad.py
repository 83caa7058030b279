"""Gradients by example: every example gets parameters of its own, equal to the module's."""

import functools

import rushlight as torch
from rushlight.utils._pytree import tree_flatten, tree_unflatten

__all__ = ["call_for_per_sample_grads"]


def call_for_per_sample_grads(module, *, batch_size=None, loss_reduction="sum", batch_first=True):
    """A function that calls a module so that ``backward`` writes ``p.grad_sample`` of its parameters, with a
    gradient for each example; ``p.grad`` stays as it is.

    Args:
        module: its examples must not depend on each other.
        batch_size: number of examples; the first tensor's if None.
        loss_reduction: "sum", or "mean" for a loss that was divided by the number of examples.
        batch_first: whether the examples are dimension 0 of arguments and results, or else 1. They always are
            dimension 1 of the states of recurrent layers.
    """
    if loss_reduction not in ("sum", "mean"):
        raise RuntimeError(f"Expected loss_reduction argument to be sum or mean, got {loss_reduction}")
    if not isinstance(module, torch.nn.Module):
        raise RuntimeError(f"Module passed must be nn.Module, got {type(module).__name__}")
    if not (batch_size is None or isinstance(batch_size, int)):
        raise RuntimeError(f"Batch size passed must be None or an integer, got {type(batch_size).__name__}")
    if batch_size is not None and batch_size < 1:
        raise RuntimeError(f"Batch size must be positive, got {batch_size}")
    for p in module.parameters():
        if getattr(p, "grad_sample", None) is not None:
            raise RuntimeError(
                "Current Expanded Weights accumulates the gradients, which will be incorrect for multiple "
                f"calls without clearing gradients. Please clear out the grad_sample parameter of {p} or "
                "post an issue to pytorch/pytorch to prioritize correct behavior"
            )
    from rushlight.func import functional_call, vmap  # it stands above torch.nn

    dim = 0 if batch_first else 1

    @functools.wraps(module.forward)
    def wrapper(*args, **kwargs):
        leaves, shape = tree_flatten((args, kwargs), is_leaf=_is_packed)
        size = _batch_size(leaves, dim) if batch_size is None else batch_size
        scale = size if loss_reduction == "mean" else 1
        own = {name: _copies(p, size, scale) for name, p in module.named_parameters()}

        if any(map(_is_packed, leaves)) or any(_is_state(module, leaf, size) for leaf in leaves[1:]):
            return _one_by_one(module, own, leaves, shape, size, dim)

        def one(parameters, *leaves):
            leaves = tuple(leaf.unsqueeze(dim) if isinstance(leaf, torch.Tensor) else leaf for leaf in leaves)
            args, kwargs = tree_unflatten(leaves, shape)
            result, form = tree_flatten(functional_call(module, parameters, args, kwargs))
            return tree_unflatten([part.squeeze(dim) for part in result], form)

        of_leaves = tuple(dim if isinstance(leaf, torch.Tensor) else None for leaf in leaves)
        return vmap(one, (0, *of_leaves), dim, randomness="different")(own, *leaves)

    return wrapper


def _is_packed(value):
    return isinstance(value, torch.nn.utils.rnn.PackedSequence)


def _is_state(module, value, size):
    """Whether a tensor has the shape of a recurrent layer's states for so many sequences."""
    if not isinstance(value, torch.Tensor) or value.dim() != 3:
        return False
    return any(
        value.shape[1] == size
        and value.shape[0] == layer.num_layers * (1 + layer.bidirectional)
        and value.shape[2] in (layer.hidden_size, layer.proj_size)
        for layer in module.modules()
        if isinstance(layer, torch.nn.RNNBase)
    )


def _one_by_one(module, own, leaves, shape, size, dim):
    """Recurrent layers, whose sequences differ in length: a call for each, then their results together."""
    from rushlight.func import functional_call

    def examples(leaf, first):
        if _is_packed(leaf):
            return [rnn.pack_sequence([one]) for one in rnn.unpack_sequence(leaf)]
        if isinstance(leaf, torch.Tensor):
            return leaf.split(1, 1 if not first and _is_state(module, leaf, size) else dim)
        return [leaf] * size

    def together(parts, first):
        if not _is_packed(parts[0]):
            return torch.cat(parts, 1 if not first and _is_state(module, parts[0], 1) else dim)
        like = next(filter(_is_packed, leaves))
        order = range(size) if like.sorted_indices is None else like.sorted_indices.tolist()
        packed = rnn.pack_sequence([parts[i].data for i in order])
        return type(like)(packed.data, packed.batch_sizes, like.sorted_indices, like.unsorted_indices)

    rnn = torch.nn.utils.rnn
    parts, results = [examples(leaf, leaf is leaves[0]) for leaf in leaves], []
    for i in range(size):
        args, kwargs = tree_unflatten([part[i] for part in parts], shape)
        parameters = {name: copies[i] for name, copies in own.items()}
        result, form = tree_flatten(functional_call(module, parameters, args, kwargs), is_leaf=_is_packed)
        results.append(result)
    return tree_unflatten([together(each, k == 0) for k, each in enumerate(zip(*results))], form)


def _batch_size(leaves, dim):
    packed = [int(leaf.batch_sizes[0]) for leaf in leaves if _is_packed(leaf)]
    sizes = packed or [leaf.shape[dim] for leaf in leaves if isinstance(leaf, torch.Tensor)]
    if not sizes:
        raise RuntimeError(
            "Unable to find a tensor in the passed args and kwargs. They may not be pytree-able and so "
            "ExpandedWeights cannot compute the batch size from the inputs. Please explicitly pass the "
            "batch size"
        )
    if len(set(sizes)) > 1:
        other = next(size for size in sizes if size != sizes[0])
        raise RuntimeError(
            f"When computing batch size, found at least one input with batch size {sizes[0]} and one with "
            f"batch size {other}. Please specify it explicitly using the batch size kwarg in "
            "call_for_per_sample_grads"
        )
    return sizes[0]


def _copies(parameter, size, scale):
    """A parameter once for each example, whose gradient becomes ``grad_sample``."""
    copies = parameter.detach().expand(size, *parameter.shape)
    if not parameter.requires_grad:
        return copies

    def keep(grad):
        grad = grad * scale if scale != 1 else grad
        before = getattr(parameter, "grad_sample", None)
        parameter.grad_sample = grad if before is None else before + grad

    copies = copies.requires_grad_()
    copies.register_hook(keep)
    return copies
