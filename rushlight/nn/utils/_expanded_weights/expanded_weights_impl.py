"""The class of expanded weights, and the functions that take them."""

import rushlight as torch
from rushlight.nn import functional as F
from rushlight.nn.utils._expanded_weights.expanded_weights_utils import (
    check_expanded_weight_args,
    set_grad_sample_if_exists,
    unpack_expanded_weight_or_tensor,
)
from rushlight.utils._pytree import tree_flatten, tree_unflatten

__all__ = ["ExpandedWeight"]


# Functions whose examples do not depend on each other, and the dimensions that a batch of them has at least.
_LEAST_DIMS = {
    F.linear: lambda *args, **kwargs: 2,
    F.conv1d: lambda *args, **kwargs: 3,
    F.conv2d: lambda *args, **kwargs: 4,
    F.conv3d: lambda *args, **kwargs: 5,
    F.embedding: lambda *args, **kwargs: 2,
    F.group_norm: lambda *args, **kwargs: 2,
    F.instance_norm: lambda *args, **kwargs: 2,
    F.layer_norm: lambda input, normalized_shape, *args, **kwargs: len(normalized_shape) + 1,
}


class ExpandedWeight(torch.Tensor):
    """A weight as one for each example of a batch: ``backward`` writes ``grad_sample`` of ``orig_weight``.

    Args:
        orig_weight: a tensor that requires a gradient.
        batch_size: number of examples.
        loss_reduction: "sum", or "mean" for a loss that is divided by the number of examples.
    """

    def __init__(self, orig_weight, batch_size, loss_reduction):
        self.batch_size = batch_size
        self.batch_first = True
        self.allow_smaller_batches = False
        self.orig_weight = orig_weight
        self.loss_reduction = loss_reduction

    @staticmethod
    def __new__(cls, orig_weight, batch_size, loss_reduction):
        if not isinstance(orig_weight, torch.Tensor):
            raise RuntimeError(f"Can only make Expanded Weights of Tensors, got {type(orig_weight).__name__}")
        if not orig_weight.requires_grad:
            raise RuntimeError("Can only build ExpandedWeights objects of tensors that require_grad")
        return torch.Tensor._make_subclass(cls, orig_weight, True)

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if func in _LEAST_DIMS:
            return _by_example(func, args, kwargs)
        if getattr(func, "__name__", "") == "__get__":  # a shape, a dtype, a device
            return super().__torch_function__(func, types, args, kwargs)
        raise RuntimeError(
            f"Expanded Weights encountered but cannot handle function {getattr(func, '__name__', func)}"
        )


def _by_example(func, args, kwargs):
    """The function of the weights as they are, with gradients by example."""
    least = _LEAST_DIMS[func](*args, **kwargs)
    if isinstance(args[0], torch.Tensor) and args[0].dim() < least:
        raise RuntimeError(
            f"Expanded Weights need a batch dimension: {func.__name__}() of them takes at least {least} "
            f"dimensions, got an input of size {tuple(args[0].shape)}"
        )
    check_expanded_weight_args(func, args, kwargs)
    leaves, form = tree_flatten((args[1:], kwargs))
    weights = [leaf for leaf in leaves if isinstance(leaf, ExpandedWeight)]
    return _ByExample.apply(func, leaves, form, args[0], *(w.orig_weight for w in weights))


class _ByExample(torch.autograd.Function):
    """`func` of an input and weights; the backward pass takes each example by itself."""

    @staticmethod
    def forward(ctx, func, leaves, form, input, *weights):
        ctx.func, ctx.leaves, ctx.form, ctx.input = func, leaves, form, input
        args, kwargs = tree_unflatten(_with_weights(leaves, weights), form)
        return func(input, *args, **kwargs)

    @staticmethod
    def backward(ctx, gradient):
        weights = [leaf for leaf in ctx.leaves if isinstance(leaf, ExpandedWeight)]
        found = _gradients(ctx, gradient, [w.orig_weight.detach() for w in weights])
        of_input = found.pop(0) if ctx.needs_input_grad[3] else None
        for weight, by_example in zip(weights, found, strict=True):
            set_grad_sample_if_exists(weight, lambda _, g=by_example: g)
        return (None, None, None, of_input, *(None for _ in weights))


def _with_weights(leaves, weights):
    rest = iter(weights)
    return [next(rest) if isinstance(leaf, ExpandedWeight) else _unchanged(leaf) for leaf in leaves]


def _unchanged(leaf):
    return unpack_expanded_weight_or_tensor(leaf) if isinstance(leaf, torch.Tensor) else leaf


def _gradients(ctx, gradient, weights):
    """Those of the input, where it needs one, and of the weights, each with the examples in dimension 0."""
    from rushlight.func import vjp, vmap  # it stands above torch.nn

    size, of_input = ctx.input.shape[0], ctx.needs_input_grad[3]
    kept = [leaf for leaf in ctx.leaves if isinstance(leaf, torch.Tensor)]
    kept = [t.detach().expand(size, *t.shape) for t in kept if not isinstance(t, ExpandedWeight)]

    def one(example, gradient, kept):
        def call(*differentiated):
            x = differentiated[0] if of_input else example
            # What a layer keeps (running statistics) the forward pass has written; here it writes copies.
            rest, copies = (
                iter(differentiated[1:] if of_input else differentiated),
                iter([t.clone() for t in kept]),
            )
            leaves = [
                next(rest if isinstance(leaf, ExpandedWeight) else copies)
                if isinstance(leaf, torch.Tensor)
                else leaf
                for leaf in ctx.leaves
            ]
            args, kwargs = tree_unflatten(leaves, ctx.form)
            return ctx.func(x.unsqueeze(0), *args, **kwargs).squeeze(0)

        return vjp(call, *([example] if of_input else []), *weights)[1](gradient)

    return list(vmap(one)(ctx.input.detach(), gradient, kept))
