"""Learning-rate schedules step by step against PyTorch's, with state, messages and combinations."""

import math
import warnings

import pytest

import rushlight

torch = pytest.importorskip("torch")

SCHEDULES = {
    "StepLR": [((2,), {}), ((3, 0.5), {})],
    "MultiStepLR": [(([2, 2, 5],), {})],
    "ConstantLR": [((), {}), ((0.5, 3), {})],
    "LinearLR": [((), {}), ((0.2, 0.7, 6), {})],
    "ExponentialLR": [((0.9,), {})],
    "PolynomialLR": [((6, 2.0), {})],
    "CosineAnnealingLR": [((4,), {}), ((5, 0.01), {})],
    "CosineAnnealingWarmRestarts": [((3,), {}), ((2, 2, 0.001), {})],
    "LambdaLR": [((lambda e: 0.9**e,), {}), (([lambda e: 1.0, lambda e: 1 / (e + 1)],), {})],
    "MultiplicativeLR": [((lambda e: 0.95,), {})],
    "CyclicLR": [
        ((0.01, 0.1, 3), {}),
        ((0.01, 0.1, 3, 2, "triangular2"), {}),
        ((0.01, 0.1, 2, 4, "exp_range", 0.9), {"cycle_momentum": False}),
        ((0.01, [0.1, 0.2], 3), {"scale_fn": lambda x: 1 / x}),
    ],
    "OneCycleLR": [
        ((0.1, 12), {}),
        ((0.1,), {"epochs": 4, "steps_per_epoch": 3, "three_phase": True}),
        (([0.1, 0.2], 12), {"anneal_strategy": "linear", "pct_start": 0.5}),
    ],
}
CASES = [(name, args, kwargs) for name, rows in SCHEDULES.items() for args, kwargs in rows]


def _optimizer(lib, kind="SGD", lr=0.1):
    groups = [
        {"params": [lib.nn.Parameter(lib.ones(1))]},
        {"params": [lib.nn.Parameter(lib.ones(1))], "lr": 0.5},
    ]
    options = {"momentum": 0.9} if kind == "SGD" else {}
    return getattr(lib.optim, kind)(groups, lr=lr, **options)


def _trace(lib, name, args, kwargs, kind="SGD", steps=11):
    optimizer = _optimizer(lib, kind)
    schedule = getattr(lib.optim.lr_scheduler, name)(optimizer, *args, **kwargs)
    rows = []
    for _ in range(steps):
        rows.append(
            [g["lr"] for g in optimizer.param_groups] + [_momentum(g) for g in optimizer.param_groups]
        )
        optimizer.step()
        schedule.step()
    return rows, schedule


def _momentum(group):
    return group["momentum"] if "momentum" in group else group["betas"][0]


@pytest.mark.parametrize("kind", ["SGD", "Adam"])
@pytest.mark.parametrize("name,args,kwargs", CASES)
def test_follows_pytorch(name, args, kwargs, kind):
    ours, mine = _trace(rushlight, name, args, kwargs, kind)
    theirs, reference = _trace(torch, name, args, kwargs, kind)
    for a, b in zip(ours, theirs):
        assert a == pytest.approx(b, rel=1e-12, abs=1e-15)
    left = {k: v for k, v in reference.state_dict().items() if k != "_scale_fn_custom"}
    for key, value in left.items():
        found = mine.state_dict()[key]
        assert found == (pytest.approx(value) if isinstance(value, (float, int)) or key.endswith("lrs") or
                         key == "_last_lr" else value), key  # fmt: skip


@pytest.mark.parametrize("name,args,kwargs", CASES)
def test_a_resumed_run_follows_pytorch(name, args, kwargs):
    rows = []
    for lib in (rushlight, torch):
        optimizer = _optimizer(lib)
        for group in optimizer.param_groups:
            low_to_high = {"min_lr": 0.001, "max_lr": 0.4, "base_momentum": 0.8, "max_momentum": 0.9}
            group.update(low_to_high, initial_lr=group["lr"])
            group["lr"] *= 0.7  # where the run was left
        schedule = getattr(lib.optim.lr_scheduler, name)(optimizer, *args, last_epoch=3, **kwargs)
        row = list(schedule.get_last_lr())
        for _ in range(6):
            optimizer.step()
            schedule.step()
            row += schedule.get_last_lr()
        rows.append(row)
    assert rows[0] == pytest.approx(rows[1], rel=1e-12, abs=1e-15)


CLOSED = [
    name for name in SCHEDULES if name not in ("LambdaLR", "MultiplicativeLR", "CyclicLR", "OneCycleLR")
]


@pytest.mark.parametrize("name", CLOSED)
def test_step_to_epoch(name):
    args, kwargs = SCHEDULES[name][0]
    rates = []
    for lib in (rushlight, torch):
        optimizer = _optimizer(lib)
        schedule = getattr(lib.optim.lr_scheduler, name)(optimizer, *args, **kwargs)
        optimizer.step()
        row = []
        for epoch in (1, 5, 2, 9):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                schedule.step(epoch)
            row += schedule.get_last_lr()
        rates.append(row)
    assert rates[0] == pytest.approx(rates[1], rel=1e-12, abs=1e-15)


def _composite(lib, kind):
    optimizer = _optimizer(lib)
    module = lib.optim.lr_scheduler
    parts = [module.ConstantLR(optimizer, 0.1, 2), module.ExponentialLR(optimizer, 0.9)]
    if kind == "sequential":
        return optimizer, module.SequentialLR(optimizer, parts, [3])
    return optimizer, module.ChainedScheduler(parts, optimizer)


@pytest.mark.parametrize("kind", ["sequential", "chained"])
def test_composites(kind):
    traces = []
    for lib in (rushlight, torch):
        optimizer, schedule = _composite(lib, kind)
        rows = []
        for i in range(8):
            rows += [g["lr"] for g in optimizer.param_groups] + schedule.get_last_lr()
            optimizer.step()
            schedule.step()
            if i == 4:  # continues from a saved state
                state, options = schedule.state_dict(), optimizer.state_dict()
                optimizer, schedule = _composite(lib, kind)
                optimizer.load_state_dict(options)
                schedule.load_state_dict(state)
                optimizer.step()
        traces.append(rows)
    assert traces[0] == pytest.approx(traces[1], rel=1e-12)


@pytest.mark.parametrize("mode", ["min", "max"])
@pytest.mark.parametrize("threshold_mode", ["rel", "abs"])
def test_plateau(mode, threshold_mode):
    traces = []
    for lib in (rushlight, torch):
        optimizer = _optimizer(lib)
        schedule = lib.optim.lr_scheduler.ReduceLROnPlateau(
            optimizer, mode, 0.5, 1, 0.05, threshold_mode, cooldown=1, min_lr=[0.01, 0.2]
        )
        rows = []
        for i in range(14):
            schedule.step(lib.tensor(math.sin(i / 3.0)))
            rows += schedule.get_last_lr() + [schedule.num_bad_epochs, schedule.in_cooldown]
        traces.append(rows)
        assert list(schedule.state_dict()) == list(
            torch.optim.lr_scheduler.ReduceLROnPlateau(_optimizer(torch)).state_dict()
        )
    assert traces[0] == pytest.approx(traces[1])


def _make(lib, name, *args, **kwargs):
    return getattr(lib.optim.lr_scheduler, name)(_optimizer(lib), *args, **kwargs)


MISTAKES = {
    "optimizer": lambda lib: lib.optim.lr_scheduler.StepLR(3, 2),
    "resume": lambda lib: _make(lib, "StepLR", 2, last_epoch=3),
    "lambdas": lambda lib: _make(lib, "LambdaLR", [abs]),
    "constant": lambda lib: _make(lib, "ConstantLR", 2),
    "linear start": lambda lib: _make(lib, "LinearLR", 0),
    "linear end": lambda lib: _make(lib, "LinearLR", 0.5, 2),
    "sequential": lambda lib: _make(lib, "SequentialLR", [], []),
    "chained": lambda lib: lib.optim.lr_scheduler.ChainedScheduler([]),
    "plateau factor": lambda lib: _make(lib, "ReduceLROnPlateau", factor=1),
    "plateau mode": lambda lib: _make(lib, "ReduceLROnPlateau", mode="x"),
    "plateau min": lambda lib: _make(lib, "ReduceLROnPlateau", min_lr=[1, 2, 3]),
    "cyclic mode": lambda lib: _make(lib, "CyclicLR", 0.1, 0.2, mode="x"),
    "cyclic length": lambda lib: _make(lib, "CyclicLR", [0.1], 0.2),
    "restarts T_0": lambda lib: _make(lib, "CosineAnnealingWarmRestarts", 0),
    "restarts T_mult": lambda lib: _make(lib, "CosineAnnealingWarmRestarts", 1, 0),
    "restarts epoch": lambda lib: _make(lib, "CosineAnnealingWarmRestarts", 1).step(-1),
    "one cycle": lambda lib: _make(lib, "OneCycleLR", 0.1),
    "one cycle steps": lambda lib: _make(lib, "OneCycleLR", 0.1, total_steps=-1),
    "one cycle start": lambda lib: _make(lib, "OneCycleLR", 0.1, 10, pct_start=3),
    "one cycle strategy": lambda lib: _make(lib, "OneCycleLR", 0.1, 10, anneal_strategy="x"),
    "one cycle over": lambda lib: [s.step() for s in [_make(lib, "OneCycleLR", 0.1, 2)] for _ in range(4)],
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", MISTAKES)
def test_messages(name):
    texts = []
    for lib in (rushlight, torch):
        with pytest.raises(Exception) as info:
            MISTAKES[name](lib)
        texts.append((info.type, str(info.value)))
    assert texts[0] == texts[1]


def test_warnings():
    texts = []
    for lib in (rushlight, torch):
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            _make(lib, "StepLR", 2).step()
            schedule = _make(lib, "StepLR", 2)
            schedule.optimizer.step()
            schedule.get_lr()
            schedule.step(3)
            schedule = _make(lib, "StepLR", 2)
            schedule.optimizer.step = lambda: 0
            schedule.step()
        texts.append([str(w.message) for w in seen])
    assert texts[0] == texts[1]


def test_tensor_rate_is_changed_in_place():
    rate = rushlight.tensor(0.1)
    optimizer = rushlight.optim.SGD([rushlight.nn.Parameter(rushlight.ones(1))], lr=rate)
    schedule = rushlight.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)
    before = schedule.get_last_lr()[0]
    optimizer.step()
    schedule.step()
    assert optimizer.param_groups[0]["lr"] is rate
    assert rate.item() == pytest.approx(0.05) and before.item() == pytest.approx(0.1)


@pytest.mark.parametrize("strategy", ["cos", "linear"])
@pytest.mark.parametrize("epochs", [0, 4])
def test_swalr(strategy, epochs):
    traces = []
    for lib in (rushlight, torch):
        optimizer = _optimizer(lib)
        schedule = lib.optim.swa_utils.SWALR(optimizer, 0.02, epochs, strategy)
        rows = []
        for _ in range(7):
            optimizer.step()
            schedule.step()
            rows += schedule.get_last_lr()
        traces.append(rows)
    assert traces[0] == pytest.approx(traces[1])


@pytest.mark.parametrize("rule", ["default", "ema", "ema multi", "swa"])
def test_averaged_model(rule):
    values = []
    for lib in (rushlight, torch):
        utils = lib.optim.swa_utils
        options = {
            "default": {},
            "ema": {"avg_fn": utils.get_ema_avg_fn(0.9)},
            "ema multi": {"multi_avg_fn": utils.get_ema_multi_avg_fn(0.9)},
            "swa": {"avg_fn": utils.get_swa_avg_fn()},
        }[rule]
        model = lib.nn.Linear(2, 1)
        averaged = utils.AveragedModel(model, **options)
        for i in range(4):
            with lib.no_grad():
                for p in model.parameters():
                    p.fill_(float(i * i))
            averaged.update_parameters(model)
        values.append([p.tolist() for p in averaged.parameters()] + [averaged.n_averaged.item()])
    assert str(values[0]) == str(values[1]) or values[0][0][0] == pytest.approx(values[1][0][0], rel=1e-6)


def test_update_bn():
    means = []
    for lib in (rushlight, torch):
        lib.manual_seed(0)
        model = lib.nn.Sequential(lib.nn.BatchNorm1d(3))
        lib.optim.swa_utils.update_bn([lib.rand(4, 3), lib.rand(4, 3)], model)
        means.append(model[0].running_mean.tolist())
    assert means[0] == pytest.approx(means[1], rel=1e-5)


def test_warnings_name_the_programs_line():
    optimizer = rushlight.optim.SGD([rushlight.nn.Parameter(rushlight.ones(1))], 0.1)
    schedule = rushlight.optim.lr_scheduler.StepLR(optimizer, 1)
    with pytest.warns(UserWarning, match="before `optimizer.step") as told:
        schedule.step()
    assert told[0].filename == __file__
