"""Jacobians by finite differences and by backward passes, which PyTorch's gradcheck has as functions."""

import warnings

import rushlight
from rushlight.autograd.gradcheck import _Check, _tuple, _whole


def _deprecated(name, grad_out):
    warnings.warn(
        f"`{name}` was part of PyTorch's private API and not meant to be exposed. We are "
        f"deprecating it and it "
        "will be removed in a future version of PyTorch. If you have a specific use for this or feature "
        "request for this to be a stable API, please file us an issue at "
        "https://github.com/pytorch/pytorch/issues/new",
        FutureWarning,
        stacklevel=3,
    )
    if grad_out != 1.0:
        raise ValueError(f"Expected grad_out to be 1.0. {name} no longer supports values of grad_out != 1.0.")


def get_numerical_jacobian(fn, inputs, target=None, eps=1e-3, grad_out=1.0):
    """The Jacobian of the first output of ``fn(inputs)`` by finite differences, one per tensor of ``target``
    (by default of ``inputs``) that requires grad."""
    _deprecated("get_numerical_jacobian", grad_out)
    inputs = _tuple(inputs)
    check = _Check(lambda *values: fn(values), inputs, eps, 0, 0, 0, False, False)
    targets = inputs if target is None else _tuple(target)
    wanted = [x for x in targets if isinstance(x, rushlight.Tensor) and x.requires_grad]
    return [check.numerical_jacobian(0, x, _whole) for x in wanted]


def get_analytical_jacobian(inputs, output, nondet_tol=0.0, grad_out=1.0):
    """The Jacobian of an output by backward passes; with whether two passes agree and whether sizes and
    types fit."""
    _deprecated("get_analytical_jacobian", grad_out)
    check = _Check(lambda *a: output, inputs, 0, 0, 0, nondet_tol, False, False)
    first, second = check.analytical_jacobians(output, 1), check.analytical_jacobians(output, 1)
    reentrant = all(rushlight.allclose(a, b, 0.0, nondet_tol) for a, b in zip(first, second))
    return tuple(first), reentrant, True, True


def _iter_tensors(x, only_requiring_grad=False):
    """The tensors in nested lists and tuples."""
    if isinstance(x, rushlight.Tensor):
        if x.requires_grad or not only_requiring_grad:
            yield x
    elif isinstance(x, (tuple, list)):
        for item in x:
            yield from _iter_tensors(item, only_requiring_grad)


def _get_numerical_jacobian(fn, inputs, outputs=None, target=None, eps=1e-3, is_forward_ad=False):
    """For each tensor of ``target`` (by default of ``inputs``) that requires grad its Jacobians, one for each
    output of ``fn(*inputs)`` that is a number with fractions."""
    inputs = _tuple(inputs)
    outputs = _tuple(fn(*inputs) if outputs is None else outputs)
    if not is_forward_ad and any(o.is_complex() for o in _iter_tensors(outputs)):
        raise ValueError(
            "Expected output to be non-complex. get_numerical_jacobian no longer supports functions that "
            "return complex outputs."
        )
    check = _Check(fn, inputs, eps, 0, 0, 0, False, False)
    numbers = [i for i, o in enumerate(outputs) if o.is_floating_point() or o.is_complex()]
    return [
        tuple(check.numerical_jacobian(number, x, _whole) for number in numbers)
        for x in _iter_tensors(inputs if target is None else target, True)
    ]
