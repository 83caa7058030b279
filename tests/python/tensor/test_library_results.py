"""What operators of a program take and give besides tensors: nothing, numbers, and lists beside others."""

import pytest

import rushlight as torch
from rushlight import library
from rushlight.utils._python_dispatch import TorchDispatchMode

Tensor = torch.Tensor


class Seeing(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.seen = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.seen.append(str(func))
        return func(*args, **(kwargs or {}))


def test_none_stands_for_no_tensor(lib):
    lib.define("second(Tensor first, Tensor second) -> (Tensor, Tensor)")
    lib.impl("second", lambda first, second: (first, second * 2), "CPU")
    assert torch.ops.tests.second(None, torch.ones(2))[0] is None
    assert torch.ops.tests.second(None, torch.ones(2))[1].tolist() == [2, 2]


def test_no_results_may_be_called_none(lib):
    seen = []
    lib.define("tell(Tensor x) -> None")
    lib.impl("tell", lambda x: seen.append(x.item()), "CPU")
    assert torch.ops.tests.tell(torch.tensor(3.0)) is None
    assert seen == [3.0]


def test_results_of_several_kinds(lib):
    """Numbers stay numbers and lists lists beside tensors, also where calls are recorded or transformed."""
    lib.define("mixed(Tensor x, int n) -> (Tensor[], int, Tensor, float, bool, Tensor[])")
    lib.impl(
        "mixed",
        lambda x, n: ([x + i for i in range(n)], n, x * 2, 0.5, n > 1, [x.sum()]),
        "CompositeExplicitAutograd",
    )
    x = torch.arange(3.0)

    def check(result):
        many, n, twice, half, more, last = result
        assert [type(v) for v in result] == [list, int, Tensor, float, bool, list]
        assert (n, half, more, len(many), len(last)) == (2, 0.5, True, 2, 1)
        assert torch.equal(many[1], x + 1) and torch.equal(twice, x * 2) and torch.equal(last[0], x.sum())

    check(torch.ops.tests.mixed(x, 2))
    assert torch.ops.tests.mixed(x, 0)[0] == []
    with Seeing() as mode:
        check(torch.ops.tests.mixed(x, 2))
    assert mode.seen[0] == "tests.mixed.default"

    library.register_vmap(
        "tests::mixed",
        lambda info, dims, x, n: (
            ([x + i for i in range(n)], n, x * 2, 0.5, n > 1, [x.sum(1)]),
            ([0] * n, None, 0, None, None, [0]),
        ),
    )
    many, n, twice, half, more, last = torch.vmap(
        lambda row: (lambda r: (r[0], torch.tensor(r[1]), r[2], torch.tensor(r[3]), r[2] * r[4], r[5]))(
            torch.ops.tests.mixed(row, 2)
        )
    )(torch.stack([x, x]))
    assert n.tolist() == [2, 2] and half.tolist() == [0.5, 0.5] and torch.equal(many[1][0], x + 1)
    assert torch.equal(more, twice) and last[0].tolist() == [3, 3]


def test_a_list_beside_other_results_has_no_loop_over_examples(lib):
    lib.define("parts(Tensor x) -> (Tensor[], Tensor)")
    lib.impl("parts", lambda x: ([x + 1], x * 2), "CompositeExplicitAutograd")
    with pytest.raises(RuntimeError, match="register_vmap"):
        torch.vmap(lambda row: torch.ops.tests.parts(row)[1])(torch.ones(2, 3))


def test_gradients_through_a_list_beside_a_number():
    @library.custom_op("tests::cut", mutates_args=())
    def cut(x: Tensor, at: int) -> tuple[list[Tensor], int]:
        return [x[:at].clone(), x[at:].clone()], at

    cut.register_fake(lambda x, at: ([torch.empty_like(x[:at]), torch.empty_like(x[at:])], at))
    cut.register_autograd(
        lambda ctx, grads, _: (torch.cat(grads), None), setup_context=lambda ctx, inputs, output: None
    )
    x = torch.ones(5, requires_grad=True)
    (first, second), at = cut(x, 2)
    assert type(at) is int and at == 2
    (first.sum() * 2 + second.sum() * 3).backward()
    assert x.grad.tolist() == [2, 2, 3, 3, 3]
    with torch._subclasses.FakeTensorMode() as fakes:
        (first, second), at = cut(fakes.from_tensor(torch.ones(5)), 2)
    assert first.shape == (2,) and second.shape == (3,) and at == 2


def test_gradients_through_a_list():
    @library.custom_op("tests::pieces", mutates_args=())
    def pieces(x: Tensor, at: int) -> list[Tensor]:
        return [x[:at].clone(), x[at:].clone()]

    pieces.register_autograd(
        lambda ctx, grads: (torch.cat(grads), None), setup_context=lambda ctx, inputs, output: None
    )
    x = torch.ones(5, requires_grad=True)
    result = pieces(x, 2)
    assert type(result) is list
    (result[0].sum() * 2 + result[1].sum() * 3).backward()
    assert x.grad.tolist() == [2, 2, 3, 3, 3]
