"""Backward hooks of modules: identity nodes around a module's inputs and outputs that run them in passing."""

import warnings
from typing import Any

import rushlight as torch
from rushlight._command.names import program_level

__all__ = ["BackwardHook", "BackwardHookFunction"]


class BackwardHookFunction(torch.autograd.Function):
    """The identity on tensors, whose backward asks a callback for the gradients to pass on."""

    @staticmethod
    def forward(ctx, on_backward, *tensors):
        ctx.on_backward = on_backward
        ctx.set_materialize_grads(False)
        ctx.mark_non_differentiable(*(t for t in tensors if not t.requires_grad))
        return tensors

    @staticmethod
    def backward(ctx, *grads):
        return (None, *ctx.on_backward(grads))


class BackwardHook:
    """The two boundaries of one call of one module, and what passes between them in backward."""

    def __init__(self, module, user_hooks, user_pre_hooks):
        self.module = module
        self.user_hooks = user_hooks
        self.user_pre_hooks = user_pre_hooks
        self.grad_outputs = None
        self.n_inputs = 0
        self.input_positions: Any = None

    def setup_input_hook(self, args):
        self.n_inputs = len(args)
        args, self.input_positions = _wrap_tensors(args, self._on_grad_inputs)
        return args

    def setup_output_hook(self, result):
        is_tuple = isinstance(result, tuple)
        outputs = result if is_tuple else (result,)
        self.n_outputs = len(outputs)
        self.output_positions = [i for i, v in enumerate(outputs) if isinstance(v, torch.Tensor)]
        wrapped, _ = _wrap_tensors(outputs, self._on_grad_outputs)
        if wrapped is outputs:
            return result
        if not is_tuple:
            return wrapped[0]
        return type(result)(*wrapped) if hasattr(result, "_fields") else type(result)(wrapped)

    def _on_grad_outputs(self, grads):
        grads = _spread(grads, self.output_positions, self.n_outputs)
        for hook in self.user_pre_hooks:
            grads = _checked(hook(self.module, grads), grads, "Backward pre hook", "grad_output")
        self.grad_outputs = grads
        if self.input_positions is None:
            self._run_without_grad_inputs()
        return tuple(grads[i] for i in self.output_positions)

    def _run_without_grad_inputs(self):
        if self.user_hooks:
            warnings.warn(
                "Full backward hook is firing when gradients are computed with respect to module outputs "
                "since no "
                "inputs require gradients. See "
                "https://docs.pytorch.org/docs/main/generated/torch.nn.Module.html"
                "#torch.nn.Module.register_full_backward_hook for more details.",
                stacklevel=program_level(),
            )
        for hook in self.user_hooks:
            result = hook(self.module, (None,) * self.n_inputs, self.grad_outputs)
            if result is not None and not (isinstance(result, tuple) and all(g is None for g in result)):
                raise RuntimeError(
                    "Backward hook for Modules where no input requires gradient should always return None or "
                    "None for "
                    "all gradients."
                )
        self.grad_outputs = None

    def _on_grad_inputs(self, grads):
        if self.grad_outputs is None:  # the outputs took no part in this backward
            return grads
        grads = _spread(grads, self.input_positions, self.n_inputs)
        for hook in self.user_hooks:
            grads = _checked(
                hook(self.module, grads, self.grad_outputs), grads, "Backward hook", "grad_input"
            )
        self.grad_outputs = None
        return tuple(grads[i] for i in self.input_positions)


def _wrap_tensors(values, on_backward):
    """Pass the tensors of values through one identity node; also their positions, if gradients flow."""
    positions = [i for i, v in enumerate(values) if isinstance(v, torch.Tensor)]
    if not (torch.is_grad_enabled() and any(values[i].requires_grad for i in positions)):
        return values, None
    wrapped = list(values)
    for i, tensor in zip(positions, BackwardHookFunction.apply(on_backward, *(values[i] for i in positions))):
        wrapped[i] = tensor
    return tuple(wrapped), positions


def _spread(grads, positions, n):
    spread = [None] * n
    for i, grad in zip(positions, grads):
        spread[i] = grad
    return tuple(spread)


def _checked(result, grads, who, what):
    if result is None:
        return grads
    if isinstance(result, torch.Tensor):
        result = (result,)
    if len(result) != len(grads):
        raise RuntimeError(
            f"{who} returned an invalid number of {what}, got {len(result)}, but expected {len(grads)}"
        )
    return tuple(result)
