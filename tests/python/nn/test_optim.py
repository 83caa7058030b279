"""Optimizers against PyTorch's: the same losses, state and messages; the fused step against the plain
loop."""

import copy

import pytest
from plain_values import plain

import rushlight

torch = pytest.importorskip("torch")

SHAPES = [(3, 4), (5,), ()]


def _run(lib, name, options, dtype="float32", steps=7, closure=False, missing_grad=False):
    """Minimise a fixed bumpy function; returns the parameters, as lists, and the optimizer."""
    params = [
        lib.nn.Parameter(lib.arange(1.0, 1 + n, dtype=getattr(lib, dtype)).reshape(shape).sin())
        for shape in SHAPES
        for n in [max(1, int(lib.Size(shape).numel()))]
    ]
    optimizer = getattr(lib.optim, name)(params, **options)

    def loss():
        optimizer.zero_grad()
        used = params[:-1] if missing_grad else params
        value = sum(((p - 0.3) ** 2 * (i + 1)).sum() + p.cos().sum() for i, p in enumerate(used))
        value.backward()
        return value

    for _ in range(steps):
        if closure:
            optimizer.step(loss)
        else:
            loss()
            optimizer.step()
    return [p.tolist() for p in params], optimizer


def _flat(values):
    if isinstance(values, (list, tuple)):
        return [x for v in values for x in _flat(v)]
    return [values]


def _assert_same_tree(ours, theirs, rel=1e-5):
    if isinstance(theirs, dict):
        assert list(ours) == list(theirs)
        for key in theirs:
            _assert_same_tree(ours[key], theirs[key], rel)
    elif isinstance(theirs, list):
        assert len(ours) == len(theirs)
        for a, b in zip(ours, theirs):
            _assert_same_tree(a, b, rel)
    elif isinstance(theirs, float):
        assert ours == pytest.approx(theirs, rel=rel, abs=1e-7)
    else:
        assert ours == theirs


CORE_CASES = [
    ("SGD", {}),
    ("SGD", {"lr": 0.1, "weight_decay": 0.1}),
    ("SGD", {"lr": 0.1, "momentum": 0.9}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "dampening": 0.3, "maximize": True}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "nesterov": True, "weight_decay": 0.01}),
    ("Adam", {"lr": 0.05}),
    ("Adam", {"lr": 0.05, "weight_decay": 0.1, "amsgrad": True}),
    ("Adam", {"lr": 0.05, "weight_decay": 0.1, "decoupled_weight_decay": True, "maximize": True}),
    ("AdamW", {"lr": 0.05, "betas": (0.8, 0.9), "eps": 1e-4}),
    ("AdamW", {"lr": 0.05, "amsgrad": True}),
]

OTHER_CASES = [
    ("RMSprop", {}),
    ("RMSprop", {"momentum": 0.9, "centered": True, "weight_decay": 0.1}),
    ("Adagrad", {}),
    ("Adagrad", {"lr_decay": 0.1, "weight_decay": 0.1, "initial_accumulator_value": 0.5}),
    ("Adafactor", {}),
    ("Adafactor", {"lr": 0.1, "weight_decay": 0.1, "d": 2.0, "eps": (1e-4, 1e-2), "maximize": True}),
    ("Adadelta", {}),
    ("Adadelta", {"weight_decay": 0.1, "maximize": True}),
    ("Adamax", {}),
    ("Adamax", {"weight_decay": 0.1}),
    ("NAdam", {}),
    ("NAdam", {"weight_decay": 0.1, "decoupled_weight_decay": True}),
    ("RAdam", {}),
    ("RAdam", {"weight_decay": 0.1}),
    ("RAdam", {"weight_decay": 0.1, "decoupled_weight_decay": True}),
    ("ASGD", {}),
    ("ASGD", {"t0": 2, "weight_decay": 0.1}),
    ("Rprop", {}),
    ("LBFGS", {"lr": 0.1}),
    ("LBFGS", {"lr": 0.5, "line_search_fn": "strong_wolfe", "history_size": 3}),
]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name,options", CORE_CASES + OTHER_CASES)
def test_matches_pytorch(name, options, dtype):
    closure = name == "LBFGS"
    # At the minimum L-BFGS lets roundings of float32 grow.
    steps = 3 if closure and dtype == "float32" else 7
    ours, mine = _run(rushlight, name, options, dtype, steps, closure)
    theirs, reference = _run(torch, name, options, dtype, steps, closure)
    rel = 1e-5 if dtype == "float32" else 1e-9
    rel = max(rel, 1e-4) if closure else rel
    assert _flat(ours) == pytest.approx(_flat(theirs), rel=rel, abs=rel)
    if not closure:
        _assert_same_tree(plain(mine.state_dict()), plain(reference.state_dict()), max(rel, 1e-6))
    assert repr(mine) == repr(reference)


@pytest.mark.parametrize("name,options", CORE_CASES)
def test_fused_equals_plain_loop(name, options):
    fused, _ = _run(rushlight, name, options)
    loop, _ = _run(rushlight, name, {**options, "foreach": False, "fused": False})
    assert _flat(fused) == pytest.approx(_flat(loop), rel=2e-6, abs=2e-7)


def test_lbfgs_takes_sparse_gradients():
    def trained(sparse):
        rushlight.manual_seed(0)
        table = rushlight.nn.Embedding(6, 2, sparse=sparse)
        optimizer = rushlight.optim.LBFGS(table.parameters(), lr=0.1)

        def closure():
            optimizer.zero_grad()
            loss = table(rushlight.tensor([0, 2, 2, 5])).square().sum()
            loss.backward()
            return loss

        optimizer.step(closure)
        return table.weight

    assert rushlight.equal(trained(True), trained(False))


@pytest.mark.parametrize("name", ["SGD", "Adam"])
def test_parameter_without_gradient_stays(name):
    options = {"lr": 0.1, "momentum": 0.9} if name == "SGD" else {"lr": 0.1}
    ours, optimizer = _run(rushlight, name, options, missing_grad=True)
    theirs, reference = _run(torch, name, options, missing_grad=True)
    assert _flat(ours) == pytest.approx(_flat(theirs), rel=1e-5)
    assert list(optimizer.state_dict()["state"]) == list(reference.state_dict()["state"])


@pytest.mark.parametrize("options", [{}, {"nesterov": False, "adjust_lr_fn": "match_rms_adamw", "lr": 0.1}])
@pytest.mark.parametrize("shape", [(4, 3), (2, 5)])
def test_muon_moves_matrices_as_pytorch_does(shape, options):
    results = []
    for module in (rushlight, torch):
        module.manual_seed(0)
        p = module.nn.Parameter(module.randn(shape))
        optimizer = module.optim.Muon([p], **options)
        for _ in range(4):
            optimizer.zero_grad()
            (p.sin() * p).sum().backward()
            optimizer.step()
        results.append(p.flatten().tolist())
    assert results[0] == pytest.approx(results[1], rel=1e-3, abs=1e-4)
    with pytest.raises(ValueError, match="Muon only supports 2D parameters"):
        rushlight.optim.Muon([rushlight.nn.Parameter(rushlight.zeros(3))])


def test_load_state_dict_continues_exactly():
    for name, options in [("Adam", {"lr": 0.1}), ("SGD", {"lr": 0.1, "momentum": 0.9})]:
        _, first = _run(rushlight, name, options, steps=3)
        params = [rushlight.nn.Parameter(p.detach().clone()) for p in first.param_groups[0]["params"]]
        second = getattr(rushlight.optim, name)(params, lr=5.0)
        second.load_state_dict(copy.deepcopy(first.state_dict()))
        for optimizer in (first, second):
            for p in optimizer.param_groups[0]["params"]:
                p.grad = rushlight.ones_like(p)
            optimizer.step()
        for p, q in zip(first.param_groups[0]["params"], params):
            assert p.tolist() == q.tolist()


def test_one_missing_momentum_buffer_uses_the_loop():
    p, q = (rushlight.nn.Parameter(rushlight.ones(2)) for _ in range(2))
    optimizer = rushlight.optim.SGD([p, q], lr=1.0, momentum=0.5)
    p.grad = rushlight.ones(2)
    optimizer.step()
    p.grad, q.grad = rushlight.zeros(2), rushlight.ones(2)
    optimizer.step()
    assert p.tolist() == [-0.5, -0.5] and q.tolist() == [0.0, 0.0]


def _step_sparse(optimizer, lib, p):
    p.grad = lib.ones(2).to_sparse()
    optimizer.step()


def test_a_blank_line_parts_the_groups_when_printed():
    shown = []
    for lib in (rushlight, torch):
        p, q = lib.nn.Parameter(lib.ones(1)), lib.nn.Parameter(lib.ones(1))
        shown.append(repr(lib.optim.SGD([{"params": [p]}, {"params": [q], "lr": 0.5}], lr=0.1)))
    assert shown[0] == shown[1]


@pytest.mark.parametrize(
    "build",
    [
        lambda lib, p: lib.optim.SGD(p, lr=0.1),
        lambda lib, p: lib.optim.SGD([], lr=0.1),
        lambda lib, p: lib.optim.SGD([{"params": [p]}, {"params": [p]}]),
        lambda lib, p: lib.optim.SGD([{"params": {p}}]),
        lambda lib, p: lib.optim.SGD(["a"]),
        lambda lib, p: lib.optim.SGD([p * 2]),
        lambda lib, p: lib.optim.SGD([("a", p), p]),
        lambda lib, p: lib.optim.SGD([p], lr=-1),
        lambda lib, p: lib.optim.SGD([p], momentum=-1),
        lambda lib, p: lib.optim.SGD([p], nesterov=True),
        lambda lib, p: lib.optim.SGD([p], fused=True, foreach=True),
        lambda lib, p: lib.optim.SGD([p], lr=lib.tensor([0.1, 0.2])),
        lambda lib, p: lib.optim.SGD([p]).add_param_group([p]),
        lambda lib, p: lib.optim.SGD([p]).load_state_dict(
            lib.optim.SGD([{"params": [p]}, {"params": []}]).state_dict()
        ),
        lambda lib, p: lib.optim.SGD([p]).load_state_dict(lib.optim.SGD([p, p.detach()]).state_dict()),
        lambda lib, p: lib.optim.Adam([p], eps=-1),
        lambda lib, p: lib.optim.Adam([p], betas=(1, 0.9)),
        lambda lib, p: lib.optim.Adam([p], betas=(0.9, -1)),
        lambda lib, p: lib.optim.Adam([p], betas=(lib.tensor(0.9), 0.9)),
        lambda lib, p: lib.optim.Adam([p], lr=lib.tensor(0.1), foreach=True),
        lambda lib, p: lib.optim.Adam([p], fused=True, differentiable=True),
        lambda lib, p: lib.optim.Adam([p], betas=(lib.tensor(0.9), lib.tensor(0.99)), foreach=True),
        lambda lib, p: lib.optim.AdamW([p], betas=(lib.tensor([0.9, 0.8]), lib.tensor(0.99))),
        lambda lib, p: lib.optim.SparseAdam([lib.zeros(2, dtype=lib.complex64)]),
        lambda lib, p: lib.optim.SparseAdam([p], lr=0),
        lambda lib, p: lib.optim.Adafactor([p], lr=-1),
        lambda lib, p: _step_sparse(lib.optim.Adam([p]), lib, p),
        lambda lib, p: _step_sparse(lib.optim.RMSprop([p]), lib, p),
    ],
)
def test_messages(build):
    errors = []
    for lib in (rushlight, torch):
        with pytest.raises(Exception) as info:
            build(lib, lib.nn.Parameter(lib.ones(2)))
        errors.append((info.type, str(info.value).replace("rushlight.", "torch.")))
    assert errors[0] == errors[1]


def test_hooks_run_in_order():
    p = rushlight.nn.Parameter(rushlight.ones(1))
    optimizer, seen = rushlight.optim.SGD([p], lr=1.0), []
    optimizer.register_step_pre_hook(lambda o, args, kwargs: seen.append("pre"))
    optimizer.register_step_post_hook(lambda o, args, kwargs: seen.append("post"))
    optimizer.register_state_dict_pre_hook(lambda o: seen.append("save"))
    optimizer.register_state_dict_post_hook(lambda o, d: {**d, "extra": 1})
    optimizer.register_load_state_dict_pre_hook(lambda o, d: seen.append("load"))
    handle = optimizer.register_load_state_dict_post_hook(lambda o: seen.append("loaded"))
    p.grad = rushlight.ones(1)
    optimizer.step()
    state = optimizer.state_dict()
    assert state["extra"] == 1
    optimizer.load_state_dict(state)
    handle.remove()
    optimizer.load_state_dict(state)
    assert seen == ["pre", "post", "save", "load", "loaded", "load"]


def test_pre_hook_result_is_checked():
    p = rushlight.nn.Parameter(rushlight.ones(1))
    optimizer = rushlight.optim.SGD([p])
    optimizer.register_step_pre_hook(lambda o, args, kwargs: 3)
    with pytest.raises(RuntimeError, match="must return None or a tuple of"):
        optimizer.step()


def test_zero_grad_forms():
    p = rushlight.nn.Parameter(rushlight.ones(2))
    optimizer = rushlight.optim.SGD([p])
    p.grad = rushlight.ones(2)
    optimizer.zero_grad(set_to_none=False)
    assert p.grad.tolist() == [0.0, 0.0]
    optimizer.zero_grad()
    assert p.grad is None


def test_differentiable_step_keeps_the_graph():
    for name in ("SGD", "Adam"):
        grads = []
        for lib in (rushlight, torch):
            x = lib.tensor([1.0, 2.0], requires_grad=True)
            p = x.clone()
            optimizer = getattr(lib.optim, name)([p], lr=0.1, differentiable=True)
            p.grad = (x * x).clone()
            optimizer.step()
            p.sum().backward()
            grads.append(x.grad.tolist())
        assert grads[0] == pytest.approx(grads[1], rel=1e-5)


def test_named_parameters_and_state_keys():
    model = rushlight.nn.Linear(2, 2)
    optimizer = rushlight.optim.AdamW(model.named_parameters(), lr=0.1)
    assert optimizer.param_groups[0]["param_names"] == ["weight", "bias"]
    reference = torch.optim.AdamW(torch.nn.Linear(2, 2).named_parameters(), lr=0.1)
    assert list(optimizer.state_dict()["param_groups"][0]) == list(reference.state_dict()["param_groups"][0])


def test_complex_parameter():
    results = []
    for lib in (rushlight, torch):
        p = lib.nn.Parameter(lib.tensor([1 + 2j, 3 - 1j]))
        optimizer = lib.optim.Adam([p], lr=0.1)
        for _ in range(3):
            p.grad = p.detach() * (0.5 + 1j)
            optimizer.step()
        results.append(lib.view_as_real(p.detach()).tolist())
    assert _flat(results[0]) == pytest.approx(_flat(results[1]), rel=1e-5)
