"""Models of one file and of ONNX that read numbers from their data, take them, or return them."""

import math

import pytest

import rushlight as torch
from rushlight import nn
from rushlight.export import Dim, load_file, save_file

DYNAMIC = Dim.DYNAMIC


def module(function):
    return type("Program", (nn.Module,), {"forward": staticmethod(function)})()


def first(x, n):
    count = n.item()
    torch._check(count >= 1)
    torch._check(count <= x.shape[0])
    return x[:count].sum(0), x.new_zeros(count, 2) + count


def counted(n):
    count = n.item()
    torch._check(count >= 1)
    torch._check(count <= 100)
    return torch.arange(count).float() / count


def columns(x, k):
    return x[:, :k] * k, k + 1, x.shape[0] * 2, 7


def quotients(x):
    n, m = x.shape
    return x / math.sqrt(n) + n / m - (1 - 1 / n) + n % 3, n / 4


def fractions(x):
    n, m = x.shape
    total = x.sum() * (n / 3)  # of no dimensions, and float32 all the same
    return total, x + n // 2.5, torch.full((2,), n / m), x * (n * 0.5) ** 0.5


def either(x):
    return torch.cond(x.sum() > 0, lambda x: x.sin(), lambda x: x.cos() * x.shape[0], (x,))


def example(x=6, n=3):
    return torch.randn(x, 6), torch.tensor(n)


CASES = {
    "a number of the data": (first, example, [(6, 3), (2, 1), (20, 17)], ({0: DYNAMIC}, None)),
    "a length": (counted, lambda n: (torch.tensor(n),), [(5,), (1,), (17,)], None),
    "an input": (
        columns,
        lambda x, k: (torch.randn(x, 6), k),
        [(3, 3), (1, 1), (5, 4)],
        ({0: DYNAMIC}, DYNAMIC),
    ),
    "quotients": (
        quotients,
        lambda n, m: (torch.randn(n, m),),
        [(6, 7), (1, 1), (17, 5)],
        ({0: DYNAMIC, 1: DYNAMIC},),
    ),
    "fractions": (
        fractions,
        lambda n, m: (torch.randn(n, m),),
        [(6, 7), (1, 1), (17, 5)],
        ({0: DYNAMIC, 1: DYNAMIC},),
    ),
    "a choice": (either, lambda n, s: (s * torch.rand(n, 3),), [(4, 1), (1, -1), (7, -1)], ({0: DYNAMIC},)),
}


def check(run, function, inputs):
    found, expected = run(*map(torch.as_tensor, inputs)), function(*inputs)
    found = found if isinstance(found, (tuple, list)) else (found,)
    expected = expected if isinstance(expected, tuple) else (expected,)
    for a, b in zip(found, expected, strict=True):
        if isinstance(b, torch.Tensor):
            torch.testing.assert_close(a, b)
        else:
            assert a.dim() == 0 and a.item() == b


@pytest.mark.parametrize("name", CASES)
def test_files_hold_them(name, tmp_path):
    function, inputs, sizes, shapes = CASES[name]
    path = tmp_path / "model.rl"
    save_file(module(function), path, inputs(*sizes[0]), dynamic_shapes=shapes)
    model = load_file(path)
    for size in sizes:
        check(model, function, inputs(*size))


@pytest.mark.parametrize("name", CASES)
def test_onnx_holds_them(name):
    pytest.importorskip("onnx")
    pytest.importorskip("onnxruntime")
    function, inputs, sizes, shapes = CASES[name]
    program = torch.onnx.export(module(function), inputs(*sizes[0]), dynamic_shapes=shapes)
    for size in sizes:
        given = inputs(*size)
        check(lambda *tensors, given=given: program(*given), function, given)


def test_what_was_said_of_a_number_is_checked_when_the_file_runs(tmp_path):
    save_file(module(first), tmp_path / "model.rl", example(), dynamic_shapes=({0: DYNAMIC}, None))
    model = load_file(tmp_path / "model.rl")
    for count in (0, 7):
        with pytest.raises(RuntimeError, match="Runtime assertion failed for expression u0"):
            model(torch.randn(6, 6), torch.tensor(count))


def test_a_range_of_an_input_is_checked_when_the_file_runs(tmp_path):
    inputs, shapes = (torch.randn(3, 6), 3), (None, Dim("k", min=2, max=5))
    save_file(module(lambda x, k: x[:, :k]), tmp_path / "model.rl", inputs, dynamic_shapes=shapes)
    model = load_file(tmp_path / "model.rl")
    assert model(inputs[0], torch.tensor(5)).shape == (3, 5)
    for k in (1, 6):
        with pytest.raises(RuntimeError, match=r"k is outside of \[2, 5\]"):
            model(inputs[0], torch.tensor(k))
