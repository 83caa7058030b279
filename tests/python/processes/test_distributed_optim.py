"""Optimizers that are given gradients, step within the backward pass, or average models."""

import distributed_programs as programs
import pytest

import rushlight as torch
from rushlight import distributed as dist
from rushlight import multiprocessing as mp
from rushlight import nn
from rushlight.distributed import optim


@pytest.mark.parametrize(
    "name", ["SGD", "Adam", "AdamW", "RMSprop", "Adagrad", "Adadelta", "Adamax", "Rprop"]
)
def test_functional_optimizers_step_like_plain_ones(name):
    cls = getattr(torch.optim, name)
    one, other = (torch.ones(4, requires_grad=True) for _ in range(2))
    plain, functional = cls([one], lr=0.1), optim.as_functional_optim(cls, lr=0.1)
    by_list = getattr(optim, f"_Functional{name}")([torch.ones(4, requires_grad=True)], lr=0.1)
    for i in range(3):
        gradient = torch.arange(4.0) + i
        one.grad = gradient.clone()
        plain.step()
        functional.step_param(other, gradient.clone())
        by_list.step([gradient.clone()])
        assert other.equal(one) and by_list.param_group["params"][0].equal(one) and other.grad is None
    with pytest.raises(ValueError, match="does not equal to the size of the parameters"):
        by_list.step([])


def test_what_has_no_functional_form():
    with pytest.raises(ValueError, match="does not have a functional counterpart"):
        optim.as_functional_optim(torch.optim.LBFGS)
    with pytest.raises(ValueError, match="empty parameter list"):
        optim._FunctionalSGD([], lr=1)
    with pytest.raises(AttributeError, match="has no attribute"):
        getattr(optim, "Nothing")  # noqa: B009


def test_steps_within_the_backward_pass():
    torch.manual_seed(0)
    model, x = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 1)), torch.rand(5, 3)
    expected = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 1))
    expected.load_state_dict(model.state_dict())
    optim._apply_optimizer_in_backward(torch.optim.SGD, model.parameters(), {"lr": 0.5})
    plain = torch.optim.SGD(expected.parameters(), lr=0.5)
    for _ in range(3):
        model(x).sum().backward()
        expected(x).sum().backward()
        plain.step()
        plain.zero_grad()
    for p, q in zip(model.parameters(), expected.parameters()):
        assert torch.allclose(p, q) and p.grad is None
    assert len(optim._get_in_backward_optimizers(model)) == 4


@pytest.mark.skipif(not dist.is_available(), reason="this build has no Gloo (libgloo-dev)")
@pytest.mark.timeout(120)
def test_models_are_averaged_now_and_then(tmp_path, monkeypatch):
    monkeypatch.setenv("GLOO_SOCKET_IFNAME", "lo")
    mp.spawn(programs.local_steps, args=(2, str(tmp_path / "store")), nprocs=2)


def test_former_names():
    from rushlight.distributed._tensor import experimental
    from rushlight.distributed.tensor.experimental import local_map

    assert experimental.local_map is local_map
