"""Steps of every optimizer: over many small parameters, where each call costs, and over few large ones."""

import torch
from torch import nn

from ..case import Case

OPTIMIZERS = {
    "SGD": dict(lr=1e-3),
    "SGD momentum": dict(lr=1e-3, momentum=0.9),
    "SGD nesterov, decay": dict(lr=1e-3, momentum=0.9, nesterov=True, weight_decay=1e-4),
    "Adam": dict(lr=1e-3),
    "AdamW": dict(lr=1e-3),
    "Adam amsgrad": dict(lr=1e-3, amsgrad=True),
    "NAdam": dict(lr=1e-3),
    "RAdam": dict(lr=1e-3),
    "Adamax": dict(lr=1e-3),
    "Adagrad": dict(lr=1e-3),
    "Adadelta": dict(lr=1e-3),
    "RMSprop": dict(lr=1e-3, momentum=0.9),
    "Rprop": dict(lr=1e-3),
    "ASGD": dict(lr=1e-3),
}


def parameters(shapes):
    made = [nn.Parameter(torch.randn(shape)) for shape in shapes]
    for parameter in made:
        parameter.grad = torch.randn_like(parameter)
    return made


def step(name, shapes, **more):
    optimizer = getattr(torch.optim, name.split()[0])(parameters(shapes), **OPTIMIZERS[name], **more)
    return optimizer.step


def clip(shapes, limit):
    made = parameters(shapes)
    return lambda: nn.utils.clip_grad_norm_(made, limit)


def zero_grad(shapes, set_to_none):
    optimizer = torch.optim.SGD(parameters(shapes), lr=1e-3)
    return lambda: optimizer.zero_grad(set_to_none=set_to_none)


def averaged(shapes):
    model = nn.ParameterList(parameters(shapes))
    average = torch.optim.swa_utils.AveragedModel(model)
    return lambda: average.update_parameters(model)


def training_step():
    model = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 8))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    x = torch.randn(2, 8)

    def run():
        optimizer.zero_grad()
        model(x).sum().backward()
        optimizer.step()

    return run


def scheduler_step():
    scheduler = torch.optim.lr_scheduler.StepLR(torch.optim.SGD(parameters([(4,)]), lr=1e-3), 30)
    scheduler.optimizer.step()
    return scheduler.step


def cases(sizes):
    small = [(8, 8), (8,)] * sizes(50, 1)
    large = [(sizes(2048, 4), sizes(1024, 4))] * 2
    yield Case("training/tiny training step", training_step)
    for name in OPTIMIZERS:
        yield Case(f"100 small parameters/{name}", lambda name=name: step(name, small))
    for name in ("SGD momentum", "Adam", "AdamW", "Adagrad", "RMSprop"):
        yield Case(f"4 M numbers/{name}", lambda name=name: step(name, large))
    yield Case("100 small parameters/Adam fused", lambda: step("Adam", small, fused=True))
    yield Case("100 small parameters/Adam foreach", lambda: step("Adam", small, foreach=True))
    yield Case("100 small parameters/clip_grad_norm_", lambda: clip(small, 1.0))
    yield Case("4 M numbers/clip_grad_norm_", lambda: clip(large, 1.0))
    yield Case("100 small parameters/zero_grad", lambda: zero_grad(small, True))
    yield Case("100 small parameters/zero_grad to zeros", lambda: zero_grad(small, False))
    yield Case("4 M numbers/zero_grad to zeros", lambda: zero_grad(large, False))
    yield Case("100 small parameters/AveragedModel", lambda: averaged(small))
    yield Case("training/scheduler step", scheduler_step)
