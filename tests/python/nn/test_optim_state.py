"""Optimizers' state travels: to PyTorch and back, in the middle of a training run, with every flag."""

import io

import pytest

import rushlight

torch = pytest.importorskip("torch")

CONFIGURATIONS = [
    ("SGD", {"lr": 0.1, "momentum": 0.9, "nesterov": True, "weight_decay": 0.01}),
    ("Adam", {"lr": 0.05, "amsgrad": True, "weight_decay": 0.01}),
    ("AdamW", {"lr": 0.05, "maximize": True}),
    ("Adamax", {"lr": 0.05}),
    ("NAdam", {"lr": 0.05, "decoupled_weight_decay": True, "weight_decay": 0.1}),
    ("RAdam", {"lr": 0.05}),
    ("Adagrad", {"lr": 0.1, "lr_decay": 0.01, "initial_accumulator_value": 0.1}),
    ("Adadelta", {"lr": 1.0}),
    ("ASGD", {"lr": 0.05, "t0": 2}),
    ("RMSprop", {"lr": 0.02, "momentum": 0.5, "centered": True}),
    ("Rprop", {"lr": 0.02}),
    ("Adafactor", {"lr": 0.1}),
]
FLAGS = (
    {},
    {"foreach": True},
    {"foreach": False},
    {"differentiable": True},
    {"fused": True},
)
SHAPES = ((3, 4), (5,))


def start(lib):
    return [
        lib.nn.Parameter(lib.arange(1.0, 1.0 + n, dtype=lib.float64).reshape(shape).sin())
        for shape, n in zip(SHAPES, (12, 5))
    ]


def advance(optimizer, params, steps):
    for _ in range(steps):
        optimizer.zero_grad()
        loss = sum((p.sin() * (p * 1.5).cos() + p * p / 4).sum() for p in params)
        loss.backward()
        with_graph = optimizer.defaults.get("differentiable")
        if with_graph:  # a leaf that requires a gradient may not be changed while that is recorded
            for p in params:
                p.requires_grad_(False)
        optimizer.step()
        if with_graph:
            for p in params:
                p.requires_grad_(True)


def flat(params):
    return [x for p in params for x in p.detach().reshape(-1).tolist()]


def hand_over(state, source, target):
    """The state as the other library reads it from a file."""
    buffer = io.BytesIO()
    source.save(state, buffer)
    buffer.seek(0)
    return target.load(buffer)


@pytest.mark.parametrize("name, options", CONFIGURATIONS, ids=[name for name, _ in CONFIGURATIONS])
@pytest.mark.parametrize("flags", FLAGS, ids=lambda flags: next(iter(flags), "default"))
def test_a_run_goes_on_in_the_other_library(name, options, flags):
    # Corrections of the first steps are float32 where the step is part of the graph, as are ASGD's rates.
    near = {"rel": 1e-4 if "differentiable" in flags else 2e-7, "abs": 1e-9}

    def make(lib, params):
        return getattr(lib.optim, name)(params, **options, **flags)

    try:
        expected = start(torch)
        advance(make(torch, expected), expected, 6)
    except (TypeError, RuntimeError, ValueError, AssertionError) as refusal:
        with pytest.raises(type(refusal)):
            mine = start(rushlight)
            advance(make(rushlight, mine), mine, 6)
        return
    whole = start(rushlight)
    advance(make(rushlight, whole), whole, 6)
    assert flat(whole) == pytest.approx(flat(expected), **near)
    for first, second in ((rushlight, torch), (torch, rushlight)):
        params = start(first)
        optimizer = make(first, params)
        advance(optimizer, params, 3)
        others = [second.nn.Parameter(second.tensor(p.tolist(), dtype=second.float64)) for p in params]
        other = make(second, others)
        other.load_state_dict(hand_over(optimizer.state_dict(), first, second))
        advance(other, others, 3)
        assert flat(others) == pytest.approx(flat(expected), **near)
        keys = [
            {key: set(value) for key, value in o.state_dict()["state"].items()} for o in (optimizer, other)
        ]
        assert keys[0] == keys[1]


@pytest.mark.parametrize("name", "Adam AdamW NAdam RAdam Adamax Adadelta Rprop RMSprop ASGD".split())
def test_steps_on_the_cpu_cannot_be_captured(name):
    said = []
    for lib in (torch, rushlight):
        parameter = lib.nn.Parameter(lib.ones(2))
        optimizer = getattr(lib.optim, name)([parameter], capturable=True)
        optimizer.step()  # nothing has a gradient
        parameter.grad = lib.ones(2)
        with pytest.raises(AssertionError, match="If capturable=True") as caught:
            optimizer.step()
        said.append(str(caught.value))
    assert said[0] == said[1]
