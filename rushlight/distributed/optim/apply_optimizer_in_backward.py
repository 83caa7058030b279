"""Optimizers that step each parameter as soon as its gradient is there: gradients need not be kept."""

__all__: list = []


def _apply_optimizer_in_backward(optimizer_class, params, optimizer_kwargs, register_hook=True):
    """Step every parameter, and drop its gradient, within the backward pass.

    Args:
        optimizer_class, optimizer_kwargs: of the optimizer that each parameter gets.
        params: parameters; each may be given several times, for several optimizers.
        register_hook: whether the backward pass steps, instead of somebody else.
    """
    for parameter in params:
        first = not hasattr(parameter, "_in_backward_optimizers")
        if first:
            parameter._in_backward_optimizers = []
        parameter._in_backward_optimizers.append(optimizer_class([parameter], **optimizer_kwargs))
        if first and register_hook:
            parameter.register_post_accumulate_grad_hook(_step)


def _step(parameter):
    for optimizer in parameter._in_backward_optimizers:
        optimizer.step()
    parameter.grad = None


def _get_in_backward_optimizers(module):
    """The optimizers of a module's parameters."""
    return [o for p in module.parameters() for o in getattr(p, "_in_backward_optimizers", ())]
