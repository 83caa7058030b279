"""Recording and differentiating small programs: nodes, saved tensors, the engine, hooks, transforms."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint

from ..case import Case, Statement

STATEMENTS = {
    "record/add": "g + a",
    "record/mul": "g * a",
    "record/exp": "g.exp()",
    "record/linear": "F.linear(x, w)",
    "record/view": "g.view(2, 2)",
    "record/no_grad": "with torch.no_grad(): g + a",
    "record/no_grad alone": "with torch.no_grad(): pass",
    "record/requires_grad_": "a.detach().requires_grad_()",
}


class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * 2

    @staticmethod
    def backward(ctx, gradient):
        return gradient * 2


def chain(length):
    def run():
        y = leaf
        for _ in range(length):
            y = y * 2.0
        y.sum().backward()

    leaf = torch.ones(4, requires_grad=True)
    return run


def wide(branches):
    """Many uses of one leaf: gradients are added up."""

    def run():
        sum(leaf * i for i in range(branches)).sum().backward()

    leaf = torch.ones(4, requires_grad=True)
    return run


def network(step):
    model = nn.Sequential(nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 4))
    x, y = torch.randn(2, 8), torch.tensor([0, 2])
    return lambda: step(model, x, y)


def train(model, x, y):
    model.zero_grad()
    F.cross_entropy(model(x), y).backward()


def gradient_of_output(model, x, y):
    torch.autograd.grad(F.cross_entropy(model(x), y), list(model.parameters()))


def gradient_penalty(model, x, y):
    """Double backward: the gradient's norm is part of the loss."""
    x = x.detach().requires_grad_()
    (gradient,) = torch.autograd.grad(model(x).sum(), x, create_graph=True)
    gradient.square().sum().backward()


def recompute(model, x, y):
    checkpoint(model, x.detach().requires_grad_(), use_reentrant=False).sum().backward()


def own_function():
    leaf = torch.ones(4, requires_grad=True)
    return lambda: Double.apply(leaf).sum().backward()


def with_hooks():
    def run():
        y = leaf * 2
        y.register_hook(lambda gradient: None)
        y.sum().backward()

    leaf = torch.ones(4, requires_grad=True)
    return run


def transformed(transform):
    """torch.func on a function of a small matrix."""
    x = torch.randn(8, 8)
    function = transform(lambda row: (row.tanh() * row).sum())
    return lambda: function(x)


def per_sample(transform_of):
    x = torch.randn(8, 8)
    function = torch.func.vmap(transform_of(lambda row: (row.tanh() * row).sum()))
    return lambda: function(x)


def forward_mode():
    x, tangent = torch.randn(8), torch.randn(8)
    return lambda: torch.func.jvp(lambda value: value.tanh() * value, (x,), (tangent,))


def cases(sizes):
    names = dict(
        torch=torch,
        F=F,
        a=torch.ones(4),
        g=torch.ones(4, requires_grad=True),
        x=torch.randn(2, 8),
        w=torch.randn(8, 8, requires_grad=True),
    )
    for name, code in STATEMENTS.items():
        yield Statement(name, code, names)
    yield Case("backward/chain of 1", lambda: chain(1))
    yield Case("backward/chain of 10", lambda: chain(10))
    yield Case("backward/chain of 1000", lambda: chain(sizes(1000, 20)))
    yield Case("backward/20 uses of a leaf", lambda: wide(20))
    yield Case("backward/network of 5 layers", lambda: network(train))
    yield Case("backward/autograd.grad", lambda: network(gradient_of_output))
    yield Case("backward/gradient penalty", lambda: network(gradient_penalty))
    yield Case("backward/checkpoint", lambda: network(recompute))
    yield Case("backward/own Function", own_function)
    yield Case("backward/tensor hook", with_hooks)
    yield Case("transform/grad", lambda: transformed(torch.func.grad))
    yield Case("transform/vmap of grad", lambda: per_sample(torch.func.grad))
    yield Case("transform/vmap", lambda: per_sample(lambda function: function))
    yield Case("transform/jvp", forward_mode)
