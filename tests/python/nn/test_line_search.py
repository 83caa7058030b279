"""The line search of L-BFGS: what packages with optimizers of their own take from its module."""

import pytest

import rushlight as torch


@pytest.fixture
def libraries():
    oracle = pytest.importorskip("torch")
    from torch.optim import lbfgs as theirs

    from rushlight.optim import lbfgs as mine

    return (torch, mine), (oracle, theirs)


@pytest.mark.parametrize("bounds", [None, (0.0, 0.3)])
@pytest.mark.parametrize("slopes", [(-1.0, 2.0), (2.0, 1.0), (-1.0, -0.2)])
def test_cubic_interpolation(libraries, slopes, bounds):
    def interpolated(library, module, x1, x2):
        first, second = (library.tensor(g) for g in slopes)
        return float(module._cubic_interpolate(x1, 1.0, first, x2, 0.5, second, bounds=bounds))

    for ends in ((0.0, 1.0), (1.0, 0.0)):
        mine, theirs = (interpolated(*each, *ends) for each in libraries)
        assert mine == pytest.approx(theirs)


@pytest.mark.parametrize("first", [0.01, 1.0, 30.0])
def test_search(libraries, first):
    def found(library, module):
        x, d = library.tensor([2.0, -1.0]), library.tensor([-1.0, 0.5])

        def objective(x, t, d):
            y = (x + t * d).requires_grad_()
            loss = (y**4).sum() + (y - 1).square().sum()
            (grad,) = library.autograd.grad(loss, y)
            return float(loss.detach()), grad

        loss, grad = objective(x, 0.0, d)
        value, gradient, t, calls = module._strong_wolfe(objective, x, first, d, loss, grad, grad.dot(d))
        return [float(value), *gradient.tolist(), float(t), calls]

    mine, theirs = (found(*each) for each in libraries)
    assert mine == pytest.approx(theirs, rel=1e-4)
