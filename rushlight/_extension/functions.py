"""`torch._C._functions`: the nodes that PyTorch registers by hand."""

import rushlight
from rushlight.autograd import Function
from rushlight.autograd.graph import Node


def _accumulator_type():
    leaf = rushlight.ones(1, requires_grad=True)
    return type(leaf.view_as(leaf).grad_fn.next_functions[0][0])


AccumulateGrad = _accumulator_type()


class _UndefinedGrad(Function):
    @staticmethod
    def forward(ctx, *tensors):
        outputs = tuple(t.detach() for t in tensors)
        return outputs if len(outputs) > 1 else outputs[0]

    @staticmethod
    def backward(ctx, *grads):
        return (None,) * len(grads)


class UndefinedGrad:
    """Called on tensors: the same tensors, to which no gradient comes back."""

    def __call__(self, *tensors):
        return _UndefinedGrad.apply(*tensors)


class _DelayedError(Function):
    @staticmethod
    def forward(ctx, message, *tensors):
        ctx.message = message
        outputs = tuple(t.detach() for t in tensors)
        return outputs if len(outputs) > 1 else outputs[0]

    @staticmethod
    def backward(ctx, *grads):
        raise RuntimeError(ctx.message)


class DelayedError:
    """Called on tensors: the same tensors, to differentiate which is an error with this message."""

    def __init__(self, msg, num_inputs):
        self.message = msg

    def __call__(self, *tensors):
        return _DelayedError.apply(self.message, *tensors)


# Called on tensors they make nodes; a program that asks takes the functions for them.
Node.register(UndefinedGrad)
Node.register(DelayedError)
