"""The optimizers' functional forms: the same steps as the classes', and PyTorch's signatures."""

import inspect

import pytest

import rushlight as torch
from rushlight.optim import _functional

# For each function: its class and the class's options, the state's lists in order, and what else it is told.
MOMENTS = ("exp_avg", "exp_avg_sq")
FORMS = {
    "adadelta": ({}, ("square_avg", "acc_delta", "step")),
    "adagrad": ({"lr_decay": 0.1}, ("sum", "step")),
    "adam": ({"amsgrad": True}, (*MOMENTS, "max_exp_avg_sq", "step")),
    "adamw": ({}, (*MOMENTS, None, "step")),
    "adamax": ({}, ("exp_avg", "exp_inf", "step")),
    "asgd": ({}, ("ax", "mu", "eta", "step")),
    "nadam": ({}, (*MOMENTS, "mu_product", "step")),
    "radam": ({}, (*MOMENTS, "step")),
    "rmsprop": ({"momentum": 0.5, "centered": True}, ("square_avg", "grad_avg", "momentum_buffer", "step")),
    "rprop": ({}, ("prev", "step_size", "step")),
    "sgd": ({"momentum": 0.9, "nesterov": True}, ("momentum_buffer",)),
}
CLASSES = {name.lower(): name for name in torch.optim.__all__}


def hyperparameters(name, group):
    wanted = {
        p.name
        for p in inspect.signature(getattr(_functional, name)).parameters.values()
        if p.kind is p.KEYWORD_ONLY
    }
    options = dict(group)
    options["beta1"], options["beta2"] = options.pop("betas", (None, None))
    options["etaminus"], options["etaplus"] = options.pop("etas", (None, None))
    options["step_size_min"], options["step_size_max"] = options.pop("step_sizes", (None, None))
    return {key: options[key] for key in wanted}


@pytest.mark.parametrize("name", FORMS)
def test_the_function_and_the_class_step_alike(name):
    options, keys = FORMS[name]
    start = [torch.randn(3, 2, dtype=torch.float64), torch.randn(4, dtype=torch.float64)]
    gradients = [[torch.randn_like(x) for x in start] for _ in range(3)]
    params = [torch.nn.Parameter(x.clone()) for x in start]
    weight_decay = {} if name == "rprop" else {"weight_decay": 0.01}
    optimizer = getattr(torch.optim, CLASSES[name])(params, lr=0.1, **weight_decay, **options)
    mine, lists = [x.clone() for x in start], None
    for step, grads in enumerate(gradients):
        for p, g in zip(params, grads):
            p.grad = g.clone()
        if step > 0:
            getattr(_functional, name)(
                mine, grads, *lists, **hyperparameters(name, optimizer.param_groups[0])
            )
        optimizer.step()
        if step == 0:
            mine = [p.detach().clone() for p in params]
            lists = [
                [] if key is None else [optimizer.state[p][key].detach().clone() for p in params]
                for key in keys
            ]
    for x, p in zip(mine, params):
        torch.testing.assert_close(x, p.detach(), rtol=1e-12, atol=1e-12)
    for key, values in zip(keys, lists):
        for p, value in zip(params, values):
            torch.testing.assert_close(value, optimizer.state[p][key], rtol=1e-12, atol=1e-12)


def test_buffers_are_made_and_overflows_skip_the_step():
    p, buffers = [torch.ones(2)], [None]
    options = {"weight_decay": 0, "momentum": 0.9, "lr": 0.5, "dampening": 0, "nesterov": False}
    torch.optim.sgd.sgd(p, [torch.ones(2)], buffers, maximize=False, **options)
    assert p[0].tolist() == [0.5, 0.5] and buffers[0].tolist() == [1.0, 1.0]
    found = torch.ones(())
    torch.optim.sgd.sgd(p, [torch.ones(2)], buffers, found_inf=found, maximize=False, **options)
    assert p[0].tolist() == [0.5, 0.5]
    with pytest.raises(RuntimeError, match="1 params, but 2 grads"):
        torch.optim.sgd.sgd(p, [torch.ones(2)] * 2, buffers, maximize=False, **options)


def test_signatures_are_pytorchs():
    for name in FORMS:
        oracle = pytest.importorskip(f"torch.optim.{name}")
        mine = inspect.signature(getattr(getattr(torch.optim, name), name)).parameters
        theirs = inspect.signature(getattr(oracle, name)).parameters
        assert [(p.name, p.kind) for p in mine.values()] == [(p.name, p.kind) for p in theirs.values()], name


def test_an_optimizer_steps_on_other_tensors():
    p = torch.nn.Parameter(torch.ones(2))
    optimizer = torch.optim.Adam([p], lr=0.1)
    p.grad = torch.ones(2)
    optimizer.step()
    before, state = p.detach().clone(), optimizer.state_dict()
    other = torch.nn.Parameter(torch.full((2,), 5.0))
    other.grad = torch.ones(2)
    copies = {
        "state": {0: {k: v.clone() for k, v in state["state"][0].items()}},
        "param_groups": [{**state["param_groups"][0], "lr": 1.0}],
    }
    with torch.optim.swap_in_optimizer_params_and_state(optimizer, {"p": other}, copies):
        optimizer.step()
    assert torch.equal(p, before) and optimizer.param_groups[0]["lr"] == 0.1
    assert optimizer.state[p]["step"] == 1 and copies["state"][0]["step"] == 2
    torch.testing.assert_close(other.detach(), torch.full((2,), 4.0))
    with pytest.raises(ValueError, match="parameters"):
        with torch.optim.swap_in_optimizer_params_and_state(optimizer, {}, copies):
            pass
