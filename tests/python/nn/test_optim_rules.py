"""Optimizers whose step is one operator for many parameters: the same as their loops over parameters."""

import pytest

import rushlight as torch

CASES = [
    ("Adagrad", {"lr": 0.1, "lr_decay": 0.01, "weight_decay": 0.1, "initial_accumulator_value": 0.2}),
    ("Adagrad", {"maximize": True}),
    ("RMSprop", {}),
    ("RMSprop", {"momentum": 0.9, "weight_decay": 0.1}),
    ("RMSprop", {"centered": True, "maximize": True}),
    ("RMSprop", {"centered": True, "momentum": 0.5}),
    ("Adadelta", {"weight_decay": 0.1}),
    ("Adadelta", {"rho": 0.5, "maximize": True}),
    ("Adamax", {"weight_decay": 0.1}),
    ("Adamax", {"betas": (0.5, 0.6), "maximize": True}),
    ("NAdam", {"lr": 0.1, "weight_decay": 0.1}),
    ("NAdam", {"lr": 0.1, "weight_decay": 0.1, "decoupled_weight_decay": True, "maximize": True}),
    ("RAdam", {"lr": 0.1, "weight_decay": 0.1}),
    ("RAdam", {"lr": 0.1, "betas": (0.8, 0.9), "weight_decay": 0.1, "decoupled_weight_decay": True}),
    ("ASGD", {"lr": 0.1, "t0": 2, "weight_decay": 0.1}),
    ("ASGD", {"lr": 0.1, "lambd": 0.1, "maximize": True}),
    ("Rprop", {"lr": 0.1}),
    ("Rprop", {"lr": 0.1, "step_sizes": (0.09, 0.11), "maximize": True}),
]
NAMES = [f"{name}-{'-'.join(options) or 'plain'}" for name, options in CASES]
SHAPES = [(3, 4), (70,), (), (0, 2), (2, 3, 5)]


def _parameters(dtype):
    torch.manual_seed(0)
    made = [torch.randn(shape).to(dtype) for shape in SHAPES]
    made.append(torch.randn(4, 6).to(dtype).t())  # dense in another order
    made.append(torch.randn(4, 6).to(dtype)[:, ::2])  # not dense
    return [p.requires_grad_() for p in made]


def _run(name, options, dtype, **choice):
    params = _parameters(dtype)
    late = torch.ones(3, dtype=dtype, requires_grad=True)  # its first gradient comes later
    wide = torch.ones(2, dtype=torch.float64, requires_grad=True)
    optimizer = getattr(torch.optim, name)([*params, late, wide], **options, **choice)
    for step in range(7):
        for k, p in enumerate([*params, wide]):
            p.grad = torch.sin(torch.arange(p.numel()) * (step + 1) + k).to(p.dtype).reshape(p.shape)
        late.grad = None if step < 3 else torch.full((3,), 0.3 + step, dtype=dtype)
        optimizer.step()
    return [*params, late, wide], optimizer


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("name, options", CASES, ids=NAMES)
def test_one_operator_does_what_the_loop_does(name, options, dtype):
    one, optimizer = _run(name, options, dtype)
    loop, other = _run(name, options, dtype, foreach=False)
    torch.testing.assert_close(one, loop)
    for p, q in zip(one, loop):
        torch.testing.assert_close(optimizer.state[p], other.state[q])


@pytest.mark.parametrize("name, options", CASES, ids=NAMES)
def test_halves_are_computed_in_single_precision(name, options):
    one, _ = _run(name, options, torch.bfloat16)
    single, _ = _run(name, options, torch.float32)
    close = {"atol": 0.1, "rtol": 0.1}  # seven roundings of a step to eight bits
    for p, q in zip(one[:3], single):
        assert p.dtype == torch.bfloat16
        torch.testing.assert_close(p.detach().float(), q.detach(), **close)


def test_a_gradient_of_nan_stays_with_its_element():
    for name in {name for name, _ in CASES} - {"Rprop"}:
        p = torch.ones(3, requires_grad=True)
        p.grad = torch.tensor([1.0, float("nan"), 1.0])
        getattr(torch.optim, name)([p]).step()
        assert p.isnan().tolist() == [False, True, False], name


def test_the_operator_refuses_what_its_rule_does_not_take():
    p, g = [torch.ones(2)], [torch.ones(2)]
    update, a = torch._fused_update_, [torch.zeros(2)]
    update("adagrad", p, g, a, [], [], [0.5], numbers=[0.0])
    assert p[0].tolist() == [0.5, 0.5]
    for message, rule, first, second, factors, numbers in (
        ("there is no rule 'sgd'", "sgd", a, [], [0.5], [0.0]),
        ("takes 1 numbers, and 1 factors", "adagrad", a, [], [], [0.0]),
        ("takes 1 numbers, and 1 factors", "adagrad", a, [], [0.5], []),
        ("too many or too few lists", "adagrad", a, a, [0.5], [0.0]),
        ("too many or too few lists", "adamax", a, [], [0.5], [0.0, 0.9, 0.9]),
        ("as many first as parameters", "adagrad", [], [], [0.5], [0.0]),
        (r"first\[0\] is", "adagrad", [torch.zeros(3)], [], [0.5], [0.0]),
    ):
        with pytest.raises(RuntimeError, match=message):
            update(rule, p, g, first, second, [], factors, numbers=numbers)


@pytest.mark.parametrize("name", ["Adam", "AdamW", "Adamax", "NAdam", "RAdam"])
@pytest.mark.parametrize("foreach", [None, False])
def test_betas_that_are_tensors_are_their_numbers(name, foreach):
    found = []
    for betas in ((0.75, 0.875), (torch.tensor(0.75), torch.tensor(0.875))):
        w = torch.ones(3, requires_grad=True)
        optimizer = getattr(torch.optim, name)([w], lr=0.1, betas=betas, foreach=foreach)
        for _ in range(3):
            optimizer.zero_grad()
            (w * torch.arange(1.0, 4.0)).square().sum().backward()
            optimizer.step()
        found.append(w.detach())
    assert torch.allclose(*found, rtol=1e-6)
