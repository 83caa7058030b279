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
        batch_first: whether the examples are dimension 0 of arguments and results, or else 1.
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
        leaves, shape = tree_flatten((args, kwargs))
        size = _batch_size(leaves, dim) if batch_size is None else batch_size
        scale = size if loss_reduction == "mean" else 1
        own = {name: _copies(p, size, scale) for name, p in module.named_parameters()}

        def one(parameters, *leaves):
            leaves = tuple(leaf.unsqueeze(dim) if isinstance(leaf, torch.Tensor) else leaf for leaf in leaves)
            args, kwargs = tree_unflatten(leaves, shape)
            result, form = tree_flatten(functional_call(module, parameters, args, kwargs))
            return tree_unflatten([part.squeeze(dim) for part in result], form)

        of_leaves = tuple(dim if isinstance(leaf, torch.Tensor) else None for leaf in leaves)
        return vmap(one, (0, *of_leaves), dim, randomness="different")(own, *leaves)

    return wrapper


def _batch_size(leaves, dim):
    sizes = [leaf.shape[dim] for leaf in leaves if isinstance(leaf, torch.Tensor)]
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
