"""Derivatives as transforms of functions: grad, vjp, jvp; Jacobians and Hessians lie in `jacobians`."""

import functools

import rushlight
from rushlight._C import _functorch
from rushlight._command.names import show_public_from
from rushlight._errors.advice import advised
from rushlight._functorch.jacobians import hessian, jacfwd, jacrev
from rushlight._functorch.products import (
    _create_differentiable,
    _gradients,
    _GradLevel,
    _jvp_with_argnums,
    _replace_argnums,
    _slice_argnums,
    _split_aux,
    _unwrap_all,
    _vjp_with_argnums,
    _wrap_all,
)
from rushlight._functorch.vmap import get_name
from rushlight.utils._pytree import (
    tree_flatten,
    tree_map,
    tree_unflatten,
)

_Tensor = rushlight.Tensor


# --- levels


# --- arguments


# --- reverse mode


def grad_and_value(func, argnums=0, has_aux=False):
    """A function that gives the gradient of `func` and its value.

    Args:
        func (callable): takes and returns tensors (or trees of them), without side effects.
        argnums (int or tuple): by which arguments it is differentiated.
        has_aux (bool): whether func returns (what is differentiated, something else).

    Returns: (gradient, value), or (gradient, (value, aux)).

    Raises: RuntimeError where func does not return a tensor of one number.

    Example:
        >>> torch.func.grad_and_value(lambda x: x**2)(torch.tensor(3.0))
        (tensor(6.), tensor(9.))
    """

    @functools.wraps(func)
    def wrapper(*args, **kwargs):
        return grad_and_value_impl(func, argnums, has_aux, args, kwargs)

    return wrapper


def grad_and_value_impl(func, argnums, has_aux, args, kwargs):
    with _GradLevel() as level:
        args, kwargs = _wrap_all(args, level), _wrap_all(kwargs, level)
        chosen = tree_map(lambda x: _create_differentiable(x, level), _slice_argnums(args, argnums, False))
        args = _replace_argnums(args, argnums, chosen)
        output, aux = _split_aux(func(*args, **kwargs), has_aux, "grad_and_value(f)(*args)")
        if not isinstance(output, _Tensor):
            raise RuntimeError(
                f"grad_and_value(f)(*args): Expected f(*args) to return a Tensor, got {type(output)}"
            )
        if output.dim() != 0:
            raise advised(
                RuntimeError(
                    "grad_and_value(f)(*args): Expected f(*args) to return a scalar Tensor, got tensor with "
                    f"{output.dim()} dims. Maybe you wanted to use the vjp or jacrev APIs instead?"
                )
            )
        if output.is_complex():
            raise RuntimeError(
                f"grad can be implicitly created only for real scalar outputs but got {output.dtype}"
            )
        flat, spec = tree_flatten(chosen)
        grads = _gradients((output,), tuple(flat), (rushlight.ones_like(output),))
        grads = _unwrap_all(tree_unflatten(grads, spec), level)
        output, aux = _unwrap_all(output, level), _unwrap_all(aux, level)
    return (grads, (output, aux)) if has_aux else (grads, output)


def grad(func, argnums=0, has_aux=False):
    """A function that gives the gradient of `func`.

    Args:
        func (callable): takes and returns tensors (or trees of them), without side effects.
        argnums (int or tuple): by which arguments it is differentiated.
        has_aux (bool): whether func returns (what is differentiated, something else).

    Returns: the gradient, of the argument's shape (a tuple where `argnums` is one), with aux behind.

    Raises: RuntimeError where func does not return a tensor of one number.

    Example:
        >>> torch.func.grad(lambda x: (x**3).sum())(torch.tensor([1.0, 2.0]))
        tensor([ 3., 12.])
    """

    @functools.wraps(func)
    def wrapper(*args, **kwargs):
        return grad_impl(func, argnums, has_aux, args, kwargs)

    return wrapper


def grad_impl(func, argnums, has_aux, args, kwargs):
    grads, rest = grad_and_value_impl(func, argnums, has_aux, args, kwargs)
    return (grads, rest[1]) if has_aux else grads


def vjp(func, *primals, has_aux=False):
    """The outputs of `func`, and the function from cotangents to products with its Jacobian (reverse mode).

    Args:
        func (callable): takes and returns tensors (or trees of them), without side effects.
        primals: where it is evaluated.
        has_aux (bool): whether func returns (what is differentiated, something else).

    Returns: (outputs, function), with aux behind; the function gives a tuple, one for each primal.

    Example:
        >>> y, pull = torch.func.vjp(torch.sin, torch.tensor(0.0))
        >>> pull(torch.tensor(2.0))
        (tensor(2.),)
    """
    return _vjp_with_argnums(func, *primals, has_aux=has_aux)


# --- forward mode


def jvp(func, primals, tangents, *, strict=False, has_aux=False):
    """The outputs of `func`, and the product of its Jacobian with tangents (forward mode).

    Args:
        func (callable): takes and returns tensors (or trees of them), without side effects.
        primals (tuple): where it is evaluated.
        tangents (tuple): directions, of the primals' shapes.
        strict (bool): is not used.
        has_aux (bool): whether func returns (what is differentiated, something else).

    Returns: (outputs, tangents of the outputs), with aux behind.

    Raises: RuntimeError where primals and tangents do not fit.

    Example:
        >>> torch.func.jvp(torch.sin, (torch.tensor(0.0),), (torch.tensor(2.0),))
        (tensor(0.), tensor(2.))
    """
    return _jvp_with_argnums(func, primals, tangents, None, strict=strict, has_aux=has_aux)


def linearize(func, *primals):
    """The outputs of `func` at some primals, and its derivative there as a linear function of tangents.

    Args:
        func (callable): takes and returns tensors (or trees of them).
        primals: where it is evaluated.

    `func` runs once; each call of the derivative runs only the recorded operators that tangents pass through.
    Within other transforms, and where primals ask for gradients, it is evaluated anew each time instead, so
        that
    derivatives of the derivative stay right.

    Returns: (outputs, function).

    Example:
        >>> y, push = torch.func.linearize(torch.sin, torch.tensor(0.0))
        >>> push(torch.tensor(2.0))
        tensor(2.)
    """
    flat_primals, spec = tree_flatten(primals)
    program = None
    if _functorch.maybe_current_level() is None and not _recorded_by_autograd(flat_primals):
        from .linear_trace import trace_linear

        output, program = trace_linear(func, primals, flat_primals, spec)
    else:
        output, _ = jvp(func, primals, tree_map(rushlight.zeros_like, primals))

    def jvp_fn(*tangents):
        flat, tangent_spec = tree_flatten(tangents)
        if tangent_spec != spec:
            raise RuntimeError(
                f"Expected the tangents {tangent_spec} to have the same argspec as the primals {spec}"
            )
        for i, (p, t) in enumerate(zip(flat_primals, flat)):
            for what in ("shape", "device", "dtype"):
                if getattr(p, what) != getattr(t, what):
                    raise RuntimeError(
                        f"Expected {what} of tangent {getattr(t, what)} at flattened index {i} to match the "
                        f"primal: {getattr(p, what)}"
                    )
        return jvp(func, primals, tangents)[1] if program is None else program(*flat)

    return output, jvp_fn


def _recorded_by_autograd(tensors):
    return rushlight.is_grad_enabled() and any(t.requires_grad for t in tensors)


# --- Jacobians


def functionalize(func, *, remove="mutations"):
    """`func` without writes: what is recorded around the call sees pure operators, and one `copy_` for each
    argument
    that is written to. Results are the same.

    Args:
        func (callable): takes and returns tensors (or trees of them).
        remove (str): 'mutations', or 'mutations_and_views', which turns views into copies too.

    Raises: RuntimeError for another word.

    Example:
        >>> torch.func.functionalize(lambda x: x.clone().add_(1))(torch.tensor([1.0]))
        tensor([2.])
    """
    if remove not in ("mutations", "mutations_and_views"):
        raise RuntimeError(
            "functionalize(f, remove='mutations'): received invalid argument for remove= . Valid options "
            f"are:\n     remove='mutations': all inplace and out= operators will be removed.\n     "
            f"remove='mutations_and_views': ... Got: {remove}"
        )

    @functools.wraps(func)
    def wrapped(*args, **kwargs):
        from rushlight.utils._python_dispatch import _get_current_dispatch_mode

        # Within another transform a recorder sees what that makes of tensors: this has no part in it.
        if _get_current_dispatch_mode() is None or _functorch.maybe_current_level() is not None:
            return func(*args, **kwargs)
        from .functionalization import FunctionalizeMode

        mode = FunctionalizeMode(copies=remove == "mutations_and_views")
        mode.add_inputs((args, kwargs))
        with mode:
            result = func(*args, **kwargs)
        result = mode.values(result)
        mode.write_inputs()
        return result

    return wrapped


def debug_unwrap(tensor, *, recurse=True):
    """What a tensor inside a transform stands for, to be printed while debugging.

    Args:
        tensor (Tensor): an argument inside the function.
        recurse (bool): whether all transforms are seen through, or the innermost one.

    Example:
        >>> seen = []
        >>> f = lambda x: (seen.append(torch.func.debug_unwrap(x).shape), x.sum())[1]
        >>> _ = torch.func.vmap(f)(torch.ones(3, 2))
        >>> seen
        [torch.Size([3, 2])]
    """
    if not _functorch.is_functorch_wrapped_tensor(tensor):
        return tensor
    result = _functorch.get_unwrapped(tensor)
    return debug_unwrap(result) if recurse else result


__all__ = [
    "debug_unwrap",
    "functionalize",
    "get_name",
    "grad",
    "grad_and_value",
    "hessian",
    "jacfwd",
    "jacrev",
    "jvp",
    "linearize",
    "vjp",
]


show_public_from("func", globals())
