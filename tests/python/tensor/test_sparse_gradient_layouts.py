"""In which layout gradients reach sparse leaves: those of products and of conversions, beside PyTorch's."""

import pytest

import rushlight as torch
from rushlight._command.names import is_aliased

VALUES = [[2.0, 0.0, 1.0, 0.0], [0.0, 3.0, 0.0, 0.0], [0.5, 0.0, 0.0, 4.0], [0.0, 0.0, 1.5, 0.0]]
CONVERSIONS = {
    "to_dense": (),
    "to_sparse": (),
    "to_sparse_csr": (),
    "to_sparse_csc": (),
    "to_sparse_bsr": (2,),
    "to_sparse_bsc": (2,),
}


def oracle():
    if is_aliased():
        pytest.skip("needs PyTorch beside")
    return pytest.importorskip("torch")


def product(library, name, layout, on_left):
    sparse = getattr(library.tensor(VALUES, dtype=library.float64), layout)().requires_grad_()
    dense = library.arange(16, dtype=library.float64).reshape(4, 4).requires_grad_()
    factors = (sparse, dense) if on_left else (dense, sparse)
    where = library
    for part in name.split(".")[:-1]:
        where = getattr(where, part)
    start = (library.ones(4, 4, dtype=library.float64),) if "addmm" in name else ()
    y = getattr(where, name.rpartition(".")[2])(*start, *factors)
    y.backward(library.arange(16, dtype=library.float64).reshape(4, 4) + 1)
    return [(str(t.grad.layout), t.grad.to_dense().tolist()) for t in factors]


@pytest.mark.parametrize("on_left", [True, False])
@pytest.mark.parametrize("layout", ["to_sparse", "to_sparse_csr"])
@pytest.mark.parametrize("name", ["mm", "matmul", "addmm", "sparse.mm", "sparse.addmm"])
def test_gradients_of_sparse_factors(name, layout, on_left):
    if name == "addmm" and layout == "to_sparse" and not on_left:
        pytest.skip("PyTorch has no such product")
    if name.startswith("sparse") and not on_left and (layout, name) != ("to_sparse", "sparse.mm"):
        pytest.skip("PyTorch has no such gradient")
    assert product(torch, name, layout, on_left) == product(oracle(), name, layout, on_left)


def test_gradients_of_two_sparse_factors():
    for layout in ("to_sparse", "to_sparse_csr", "to_sparse_csc"):
        a = getattr(torch.tensor(VALUES), layout)().requires_grad_()
        b = torch.tensor(VALUES).t().contiguous().to_sparse_csr().requires_grad_()
        c, d = (t.detach().to_dense().requires_grad_() for t in (a, b))
        torch.mm(a, b).to_dense().sum().backward()
        y = torch.mm(c, d)
        y.backward((y != 0).float())  # to_dense sends gradients to what is listed
        assert a.grad.layout is a.layout and b.grad.layout is b.layout
        assert torch.equal(a.grad.to_dense(), c.grad) and torch.equal(b.grad.to_dense(), d.grad)


def test_second_derivatives_of_sparse_products():
    indices = torch.tensor([[0, 1, 1], [1, 0, 2]])
    values = torch.rand(3, dtype=torch.float64, requires_grad=True)
    dense = torch.rand(3, 2, dtype=torch.float64, requires_grad=True)

    def through(product):
        return lambda v, d: product(torch.sparse_coo_tensor(indices, v, (2, 3)), d)

    for product in (torch.mm, torch.sparse.mm):
        torch.autograd.gradcheck(through(product), (values, dense))
        torch.autograd.gradgradcheck(through(product), (values, dense))


def converted(library, first, second):
    x = library.tensor(VALUES, dtype=library.float64)
    x = getattr(x, first)(*CONVERSIONS[first]).detach().requires_grad_()
    g = library.arange(16, dtype=library.float64).reshape(4, 4) + 1
    try:
        y = getattr(x, second)(*CONVERSIONS[second])
    except (RuntimeError, NotImplementedError):
        return None
    (grad,) = library.autograd.grad(y, x, getattr(g, second)(*CONVERSIONS[second]))
    return str(grad.layout), grad.to_dense().tolist()


@pytest.mark.parametrize("second", list(CONVERSIONS)[1:])
@pytest.mark.parametrize("first", CONVERSIONS)
def test_gradients_of_conversions(first, second):
    found = converted(torch, first, second)
    if first[-3:] not in ("csr", "csc") or "bs" not in second:  # PyTorch has no way back from blocks
        assert found == converted(oracle(), first, second)
    elif found is not None:
        assert found[1] == (torch.arange(16, dtype=torch.float64).reshape(4, 4) + 1).tolist()


def test_a_conversion_does_not_keep_a_dense_operand():
    x = torch.rand(3, 3, requires_grad=True)
    held = []
    with torch.autograd.graph.saved_tensors_hooks(held.append, lambda t: t):
        (x * 2).to_sparse_csr()
    assert held == []
