"""Lists of tensors with lists of numbers of any kind, and the operators on lists that take no numbers."""

import pytest

import rushlight as torch

oracle = pytest.importorskip("torch")

NAMES = ["add", "sub", "mul", "div", "pow", "clamp_min", "clamp_max", "minimum", "maximum"]
DTYPES = ["float32", "float64", "bfloat16", "int64", "uint8", "bool", "complex64"]
FACTORS = {
    "ints": [1, 2, 3],
    "mixed": [1, 2.5, 3],
    "bools": [True, False, True],
    "complex": [1 + 2j, 2, 0.5],
    "few": [1.0],
}


def outcome(library, name, dtype, numbers):
    """Values, dtypes and versions, or the type of the error."""
    tensors = [library.tensor([1.0, 2.0, 5.0]).to(getattr(library, dtype)) for _ in range(3)]
    try:
        result = getattr(library, name)(tensors, numbers)
    except NotImplementedError:
        return "NotImplementedError"
    except RuntimeError:
        return "RuntimeError"
    kept = result is tensors, [t._version for t in tensors]
    return kept, [(str(t.dtype), t.to(library.complex128).tolist()) for t in result]


def close(ours, theirs):
    if isinstance(ours, str) or isinstance(theirs, str):
        return ours == theirs
    same = ours[0] == theirs[0] and [t for t, _ in ours[1]] == [t for t, _ in theirs[1]]
    pairs = [zip(a, b, strict=True) for (_, a), (_, b) in zip(ours[1], theirs[1], strict=True)]
    return same and all(str(a) == str(b) or abs(a - b) <= 1e-5 * abs(b) for row in pairs for a, b in row)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", NAMES)
def test_lists_of_numbers(name, dtype):
    for function in (f"_foreach_{name}", f"_foreach_{name}_"):
        for kind, numbers in FACTORS.items():
            ours, theirs = (outcome(library, function, dtype, numbers) for library in (torch, oracle))
            assert close(ours, theirs), (function, kind, ours, theirs)


def test_an_empty_list_is_one_of_numbers():
    with pytest.raises(RuntimeError, match="^Tensor list must have same number of elements as scalar list"):
        torch._foreach_add([torch.ones(1)], [])


@pytest.mark.parametrize("name", ["_foreach_addcmul", "_foreach_addcdiv"])
def test_factors_that_the_dtype_cannot_hold(name):
    x = [torch.ones(2)]
    with pytest.raises(RuntimeError, match="^value cannot be converted to type float without overflow"):
        getattr(torch, name)(x, x, x, [1j])
    z = [torch.ones(2, dtype=torch.complex64)]
    assert getattr(torch, name)(z, z, z, [1j])[0].tolist() == [1 + 1j, 1 + 1j]


def test_interpolation_by_complex_and_bool_weights():
    with pytest.raises(RuntimeError, match="^value cannot be converted to type float without overflow"):
        torch.lerp(torch.ones(2), torch.zeros(2), 1j)
    a, b = torch.ones(2, requires_grad=True), torch.zeros(2, requires_grad=True)
    torch._foreach_lerp([a], [b], True)[0].sum().backward()
    assert a.grad.tolist() == [0, 0] and b.grad.tolist() == [1, 1]


def test_products_of_matrices():
    a, b = torch.ones(2, 3, requires_grad=True), torch.ones(3, 4)
    (product,) = torch._foreach_mm([a], [b])
    product.sum().backward()
    assert product.shape == (2, 4) and (a.grad == 4).all()
    with pytest.raises(RuntimeError, match="_foreach_mm: self and mat2 must have the same number of tensors"):
        torch._foreach_mm([a], [b, b])


@pytest.mark.parametrize("order", [0, 0.5, 1, 2, 3, float("inf"), -1])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "complex64"])
def test_norms_and_sums_of_powers(dtype, order):
    for name in ("_foreach_norm", "_foreach_powsum"):
        for wide in ("float64", None)[dtype == "complex64" and name == "_foreach_norm" :]:
            ours, theirs = (
                getattr(m, name)([m.arange(-2, 4).to(getattr(m, dtype))], order, wide and getattr(m, wide))[0]
                for m in (torch, oracle)
            )
            assert str(ours.dtype) == str(theirs.dtype)
            error = 1e-2 if ours.dtype == torch.bfloat16 else 1e-5
            assert ours.item() == pytest.approx(theirs.item(), rel=error)
    with pytest.raises(NotImplementedError, match="powsum_cpu"):
        torch._foreach_powsum([torch.ones(2, dtype=torch.int64)])


def test_numbers_reach_modes_and_graphs_as_they_were_given():
    seen = []

    class Mode(torch.utils._python_dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            seen.append((str(function), args[1:]))
            return function(*args, **(kwargs or {}))

    with Mode():
        torch._foreach_add([torch.ones(1)], [2 + 1j])
    assert any("add" in name and 2 + 1j in args for name, args in seen), seen


def test_packed_factors_lie_together():
    x = [torch.ones(2), torch.ones(2)]
    with pytest.raises(RuntimeError, match="^Expected scalars to be contiguous"):
        torch._foreach_addcmul(x, x, x, torch.ones(4)[::2])


def test_shapes_are_told_before_dtypes():
    z = torch.ones(10, 10, dtype=torch.complex64), torch.ones(11, 11, dtype=torch.complex64)
    with pytest.raises(RuntimeError, match=r"The size of tensor a \(10\) must match the size of tensor b"):
        torch._foreach_maximum([z[0]], [z[1]])
