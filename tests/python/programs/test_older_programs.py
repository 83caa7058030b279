"""What programs and files of older versions rely on: options that came later, names, conversions."""

import copy
import math
import subprocess
import sys

import pytest

import rushlight as torch
from rushlight import nn, optim
from rushlight.optim import lr_scheduler as lrs


@pytest.fixture
def swapping():
    torch.__future__.set_swap_module_params_on_conversion(True)
    yield
    torch.__future__.set_swap_module_params_on_conversion(False)


@pytest.mark.parametrize("cls", [optim.NAdam, optim.ASGD, optim.Adamax, optim.RAdam, optim.Adam, optim.SGD])
def test_states_without_later_options_and_with_numbers_as_steps(cls):
    def run(steps, state=None):
        p = nn.Parameter(torch.tensor([1.0, -2.0]))
        optimizer = cls([p], lr=0.1)
        if state is not None:
            p.data.copy_(state[0])
            optimizer.load_state_dict(state[1])
        for _ in range(steps):
            p.grad = p.detach() * 0.5 + 1
            optimizer.step()
        return p.detach().clone(), optimizer.state_dict()

    weights, saved = run(2)
    older = copy.deepcopy(saved)
    for group in older["param_groups"]:
        for name in ("foreach", "maximize", "capturable", "differentiable", "fused"):
            group.pop(name, None)
    for values in older["state"].values():
        for name in ("step", "eta", "mu", "mu_product"):
            if name in values:
                values[name] = values[name].item()
    assert torch.equal(run(2, (weights, older))[0], run(2, (weights, saved))[0])


def test_differentiable_steps_reach_their_own_state():
    decayed = torch.tensor(0.5, dtype=torch.float64, requires_grad=True)
    p = torch.tensor([1.0], dtype=torch.float64, requires_grad=True).clone()
    optimizer = optim.NAdam([p], differentiable=True)
    p.grad = torch.ones(1, dtype=torch.float64, requires_grad=True).clone()
    zeros = torch.zeros(1, dtype=torch.float64)
    optimizer.state[p] = {
        "step": torch.tensor(10.0, dtype=torch.float64),
        "mu_product": decayed.clone(),
        "exp_avg": zeros.clone(),
        "exp_avg_sq": zeros.clone(),
    }
    optimizer.step()
    (gradient,) = torch.autograd.grad(p.sum(), decayed)
    assert gradient.item() != 0


def test_fused_steps_refuse_other_devices_and_the_default_passes_them_by():
    p = nn.Parameter(torch.ones(2, device="meta"))
    p.grad = torch.ones(2, device="meta")
    optim.SGD([p], lr=0.1).step()
    with pytest.raises(RuntimeError, match="`fused=True` requires all the params to be floating point"):
        optim.SGD([p], lr=0.1, fused=True).step()


def test_schedules():
    optimizer = optim.SGD([nn.Parameter(torch.ones(1))], lr=1.0, momentum=0.9)
    chained = lrs.ChainedScheduler(
        [lrs.LinearLR(optimizer, 0.5, total_iters=2), lrs.ConstantLR(optimizer, 0.1, total_iters=2)]
    )
    schedule = lrs.SequentialLR(optimizer, [chained, lrs.ConstantLR(optimizer, 0.3, total_iters=9)], [2])
    seen = []
    for _ in range(4):
        seen.append(round(optimizer.param_groups[0]["lr"], 6))
        optimizer.step()
        schedule.step()
    assert seen == [0.05, 0.075, 0.3, 0.3]

    cycle = lrs.CyclicLR(optimizer, 0.1, 1.0, mode="triangular2", cycle_momentum=False)
    assert cycle._scale_fn_ref(3) == 0.25 and "_scale_fn_ref" not in cycle.state_dict()
    once = lrs.OneCycleLR(optimizer, 1.0, total_steps=10)
    del once._anneal_func_type  # as a file of version 1.13 or older has it
    once.load_state_dict({**once.state_dict(), "anneal_func": lrs.OneCycleLR._annealing_cos})
    assert math.isclose(once._anneal_func(0.0, 1.0, 0.5), 0.5)


def test_conversions_swap_when_asked_to(swapping):
    layer = nn.Linear(2, 3)
    weight, impl = layer.weight, layer.weight._cdata
    weight.grad = torch.ones_like(weight)
    layer.to(torch.float64)
    assert layer.weight is weight and weight._cdata != impl
    assert weight.dtype is weight.grad.dtype is torch.float64
    layer.load_state_dict({k: v * 0 for k, v in layer.state_dict().items()})
    assert layer.weight is weight and weight.abs().max() == 0


def test_conversions_keep_the_gradient_object():
    layer = nn.Linear(2, 3)
    grad = layer.weight.grad = torch.ones_like(layer.weight)
    layer.double()
    assert layer.weight.grad is grad and grad.dtype is torch.float64
    with pytest.raises(RuntimeError, match="does not accept copy argument"):
        layer.to("cpu", copy=True)


def test_parameter_dicts_sort_the_keys_of_plain_dicts():
    values = {"b": torch.ones(1), "a": torch.ones(2)}
    assert list(nn.ParameterDict(values).keys()) == ["a", "b"]
    assert list(nn.ParameterDict(list(values.items())).keys()) == ["b", "a"]


def test_spectral_norm_completes_files_without_a_version():
    torch.manual_seed(0)
    layer = nn.utils.spectral_norm(nn.Linear(4, 3))
    layer(torch.ones(1, 4))
    state = layer.state_dict()
    assert state._metadata[""]["spectral_norm"] == {"weight.version": 1}
    older = copy.copy(state)
    older._metadata = {"": {"version": 1}}
    older["weight"] = layer.weight.detach()
    del older["weight_v"]
    other = nn.utils.spectral_norm(nn.Linear(4, 3))
    other.load_state_dict(older)
    assert torch.allclose(other.eval()(torch.ones(1, 4)), layer.eval()(torch.ones(1, 4)), atol=1e-5)


def test_nested_functions():
    from rushlight.autograd.function import NestedIOFunction, _iter_tensors, _nested_map, _unflatten

    x, y = torch.ones(1), torch.zeros(2)
    nested = [x, (None, y), {"k": [y]}]
    assert [id(t) for t in _iter_tensors(nested)] == [id(x), id(y), id(y)]
    doubled = _nested_map(lambda o: isinstance(o, torch.Tensor), lambda o: o + 1)(nested)
    assert doubled[1][0] is None and doubled[2]["k"][0].tolist() == [1, 1]
    assert _unflatten([1, 2], [0, (None, 0)]) == [1, (None, 2)]
    with pytest.raises(ValueError, match="Auto nesting doesn't know how to process an input object of type"):
        list(_iter_tensors([3]))
    with pytest.raises(RuntimeError, match="Legacy autograd function"):
        NestedIOFunction()(x)


def test_testing_overrides_have_the_parameters_of_the_functions():
    import inspect

    overrides = torch.overrides.get_testing_overrides()
    assert set(overrides) == {f for fs in torch.overrides.get_overridable_functions().values() for f in fs}
    assert list(inspect.signature(overrides[torch.add]).parameters)[:2] == ["input", "other"]
    assert overrides[torch.add](1, 2) == -1


def test_records_of_any_names(tmp_path):
    import io

    for target in (io.BytesIO(), tmp_path / "records.zip"):
        with torch.serialization._open_zipfile_writer(target) as writer:
            writer.write_record("a/b", b"xyz", 3)
        if isinstance(target, io.BytesIO):
            target.seek(0)
        with torch.serialization._open_zipfile_reader(target) as reader:
            assert reader.get_record("a/b") == b"xyz"


def test_fill_takes_elements_that_share_memory():
    x = torch.empty(1).expand(3)
    assert x.fill_(2).tolist() == [2, 2, 2] and x.zero_().tolist() == [0, 0, 0]
    assert torch.empty_strided((2, 2), (1, 1)).fill_(3).tolist() == [[3, 3], [3, 3]]


def test_generators_have_no_states_to_share():
    with pytest.raises(NotImplementedError, match="graphsafe_get_state is not supported"):
        torch.Generator().graphsafe_get_state()


@pytest.mark.parametrize("dtype", [torch.float8_e4m3fn, torch.float8_e5m2])
def test_float8_compares(dtype):
    a, b = torch.tensor([1.0, 2.0, -3.0]).to(dtype), torch.tensor([1.0, 4.0, -3.0]).to(dtype)
    assert (a == b).tolist() == [True, False, True] and (a != 2.0).tolist() == [True, False, True]
    assert torch.equal(a, a.clone()) and a.abs().float().tolist() == [1, 2, 3]
    assert torch.equal(a * b, (a.float() * b.float()).to(dtype))
    with pytest.raises(NotImplementedError, match="not implemented for 'Float8"):
        a + b


def test_batch_norm_update_stats():
    mean, var = torch.zeros(4), torch.ones(4)
    x = torch.arange(24.0).view(2, 4, 3)
    found = torch.batch_norm_update_stats(x, mean, var, 0.1)
    assert torch.allclose(found[0], x.mean((0, 2))) and torch.allclose(
        found[1], x.var((0, 2), unbiased=False)
    )
    assert torch.allclose(mean, 0.1 * x.mean((0, 2))) and torch.allclose(var, 0.9 + 0.1 * x.var((0, 2)))
    with pytest.raises(RuntimeError, match="must have at least one element"):
        torch.batch_norm_update_stats(x[:0], mean, var, 0.1)


@pytest.mark.parametrize("layout", [torch.sparse_coo, torch.sparse_csr, torch.sparse_csc])
@pytest.mark.parametrize("shape", [(4,), (2, 4), (2, 3, 4), (0, 4)])
def test_sparse_weights_of_linear(layout, shape):
    dense = torch.rand(3, 4).round()
    x, bias = torch.rand(shape), torch.rand(3)
    found = nn.functional.linear(x, dense.to_sparse(layout=layout), bias)
    assert torch.allclose(found, nn.functional.linear(x, dense, bias))


def test_a_cross_product_without_a_dimension_is_told_once(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(
        "import torch\n"
        "for _ in range(2):\n"
        "    print(torch.cross(torch.eye(3)[0], torch.eye(3)[1]).tolist())\n"
    )
    ran = subprocess.run(
        [sys.executable, "-m", "rushlight", program], capture_output=True, text=True, timeout=60
    )
    assert ran.stdout == "[0.0, 0.0, 1.0]\n" * 2, ran.stderr
    assert (
        ran.stderr.count("UserWarning: Using torch.cross without specifying the dim arg is deprecated.") == 1
    )
