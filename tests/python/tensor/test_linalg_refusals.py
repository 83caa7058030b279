"""What linear algebra refuses, and what it says."""

import warnings

import pytest

import rushlight as torch

A = torch.eye(2) + 1


def test_orders_that_are_complex():
    for call in (torch.linalg.matrix_norm, torch.linalg.vector_norm):
        with pytest.raises(RuntimeError, match="Expected a non-complex scalar as the order of norm"):
            call(A, ord=1 + 2j)


@pytest.mark.parametrize("name", ["cond", "pinv", "matrix_power", "tensorsolve", "matrix_rank"])
def test_results_that_do_not_fit_out(name):
    arguments = {"matrix_power": (A, 2), "tensorsolve": (A, A[0])}.get(name, (A,))
    out = torch.empty(2, dtype=torch.bool)
    with pytest.raises(RuntimeError, match=f"{name}: Expected result to be safely castable.*dtype Bool"):
        getattr(torch.linalg, name)(*arguments, out=out)
    with pytest.raises(RuntimeError, match="result type Float can't be cast to the desired output type Bool"):
        torch.add(A, A, out=out)


@pytest.mark.parametrize("name", ["lstsq", "solve", "eig", "symeig", "matrix_rank"])
def test_functions_that_were_removed(name):
    with pytest.raises(
        RuntimeError, match=f"deprecated since version 1.9 and is now removed: torch.{name}; use"
    ):
        getattr(torch, name)(A, A)
    if name != "matrix_rank":
        with pytest.raises(RuntimeError, match="is now removed"):
            getattr(A, name)(A)


def test_older_overloads_are_named_as_they_were_called():
    batch = torch.ones(3, 2, 2)
    with pytest.warns(UserWarning, match="This overload of addbmm_ is deprecated"):
        A.clone().addbmm_(2, batch, batch)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        A.clone().addbmm_(batch, batch, beta=2)


def test_activation_writes_to_out():
    out = torch.empty(2, 2)
    assert torch._addmm_activation(-A[0], A, A, out=out) is out
    assert torch.equal(out, torch.relu(torch.addmm(-A[0], A, A)))


def test_gradients_along_points_on_another_device():
    with pytest.raises(
        RuntimeError, match="each tensor to be on the same device, but got devices cpu and meta"
    ):
        torch.gradient(A[0], spacing=(torch.ones(2, device="meta"),))


def test_orders_that_are_no_norm():
    oracle = pytest.importorskip("torch")
    for shape in ((2, 2), (2, 3)):
        problems = []
        for t in (torch, oracle):
            with pytest.raises(RuntimeError) as problem:
                t.norm(t.ones(shape), "nothing")
            problems.append(str(problem.value))
        assert problems[0].startswith(problems[1])
