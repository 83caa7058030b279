"""Derivatives as transforms of functions: grad, vjp, jvp, Jacobians and Hessians."""

import functools

import rushlight
from rushlight import _C, autograd
from rushlight._C import _functorch
from rushlight._command.names import show_public_from
from rushlight._errors.advice import advised
from rushlight._functorch.vmap import get_name, vmap_impl
from rushlight.utils._pytree import (
    tree_flatten,
    tree_map,
    tree_map_only,
    tree_unflatten,
    treespec_pprint,
)

_Tensor = rushlight.Tensor


# --- levels


class _GradLevel:
    """The extent of one grad level; gradients are recorded inside."""

    def __enter__(self):
        # Hooks would get wrappers that outlive their level.
        self.hooks = autograd.graph.disable_saved_tensors_hooks(
            "torch.func.{grad, vjp, jacrev, hessian} don't yet support saved tensor hooks. Please open an "
            "issue with your use case."
        )
        self.hooks.__enter__()
        level = _functorch._grad_increment_nesting()
        self.enabled = rushlight.is_grad_enabled()
        _C._set_grad_enabled(True)
        return level

    def __exit__(self, *error):
        _C._set_grad_enabled(self.enabled)
        _functorch._grad_decrement_nesting()
        self.hooks.__exit__(*error)


class _JvpLevel:
    """The extent of one jvp level. All nested ones share one dual level: tangents belong to wrappers."""

    def __enter__(self):
        level = _functorch._jvp_increment_nesting()
        self.allowed = _C._is_fwd_grad_enabled()
        _C._set_fwd_grad_enabled(True)
        self.outermost = _C._dual_level_depth() == 0
        if self.outermost:
            _C._enter_dual_level()
        return level

    def __exit__(self, *error):
        if self.outermost:
            _C._exit_dual_level()
        _C._set_fwd_grad_enabled(self.allowed)
        _functorch._jvp_decrement_nesting()


def _wrap_all(tree, level):
    if not tree and type(tree) in (tuple, dict):
        return tree
    return tree_map(lambda t: _functorch._wrap_for_grad(t, level) if isinstance(t, _Tensor) else t, tree)


def _unwrap_all(tree, level):
    if tree is None:
        return None
    return tree_map(lambda t: _functorch._unwrap_for_grad(t, level) if isinstance(t, _Tensor) else t, tree)


def _create_differentiable(tree, level):
    def track(x):
        if not isinstance(x, _Tensor):
            raise ValueError(f"Thing passed to transform API must be Tensor, got {type(x)}")
        return _functorch._require_grad(_functorch._wrap_for_grad(x, level))

    return tree_map(track, tree)


# --- arguments


def _check_unique(argnums, names):
    if isinstance(argnums, tuple):
        if len(argnums) == 0:
            raise RuntimeError("argnums must be non-empty")
        if len(set(argnums)) != len(argnums):
            raise RuntimeError(f"argnums elements must be unique, got {argnums}")


def _validate_argnums(argnums, count):
    numbers = argnums if isinstance(argnums, tuple) else (argnums,)
    if isinstance(argnums, tuple) and not all(isinstance(n, int) for n in argnums):
        raise RuntimeError(f"argnum must be int, got {[type(n) for n in argnums]}")
    if not all(isinstance(n, int) for n in numbers):
        raise RuntimeError(f"argnum must be int or Tuple[int], got: {type(argnums)}")
    _check_unique(argnums, count)
    wrapped = []
    for n in numbers:
        if not -count <= n < count:
            raise RuntimeError(f"Got argnum={n}, but only {count} positional inputs")
        wrapped.append(n % count)
    if len(set(wrapped)) != len(wrapped):
        raise RuntimeError(f"argnums elements must be unique, got {argnums}")
    return tuple(wrapped) if isinstance(argnums, tuple) else wrapped[0]


def _slice_argnums(args, argnums, as_tuple=True):
    argnums = _validate_argnums(argnums, len(args))
    if isinstance(argnums, tuple):
        return tuple(args[n] for n in argnums)
    return (args[argnums],) if as_tuple else args[argnums]


def _replace_argnums(args, argnums, values):
    argnums = _validate_argnums(argnums, len(args))
    replaced = list(args)
    for n, value in zip(argnums, values) if isinstance(argnums, tuple) else ((argnums, values),):
        replaced[n] = value
    return tuple(replaced)


def _split_aux(output, has_aux, who):
    if not has_aux:
        return output, None
    if not (isinstance(output, tuple) and len(output) == 2):
        raise RuntimeError(f"{who}: output of function f should be a tuple: (output, aux) if has_aux is True")
    for x in tree_flatten(output[1])[0]:
        if x is not None and not isinstance(x, _Tensor):
            raise RuntimeError(f"Expected tensors, got unsupported type {type(x)}")
    return output


def _check_tensors(flat, who, what):
    if not flat or (len(flat) == 1 and flat[0] is None):
        raise RuntimeError(
            f"{who}: Expected f to be a function that has non-empty output (got output = {flat})"
        )
    for x in flat:
        if not isinstance(x, _Tensor):
            raise RuntimeError(
                f"{who}: expected {what} to return only tensors, got unsupported type {type(x)}"
            )


# --- reverse mode


def _gradients(outputs, inputs, cotangents, retain_graph=True, create_graph=True):
    """Gradients of the outputs that depend on something; zeros for inputs that nothing reaches."""
    for i, (o, g) in enumerate(zip(outputs, cotangents)):
        if g is not None and g.shape != o.shape:
            raise RuntimeError(
                f"Mismatch in shape: grad_output[{i}] has a shape of {g.shape} and output[{i}] has a shape "
                f"of {o.shape}."
            )
    live = [(o, g) for o, g in zip(outputs, cotangents) if o.requires_grad]
    if not live:
        return tuple(rushlight.zeros_like(x) for x in inputs)
    outs, grads = zip(*live)
    grads = autograd._make_grads(outs, grads)
    found = _C._engine_run(outs, grads, retain_graph, create_graph, inputs, True, False)
    return tuple(rushlight.zeros_like(x) if g is None else g for g, x in zip(found, inputs))


def grad_and_value(func, argnums=0, has_aux=False):
    """A function that gives the gradient of ``func`` and its value."""

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
        flat, spec = tree_flatten(chosen)
        grads = _gradients((output,), tuple(flat), (rushlight.ones_like(output),))
        grads = _unwrap_all(tree_unflatten(grads, spec), level)
        output, aux = _unwrap_all(output, level), _unwrap_all(aux, level)
    return (grads, (output, aux)) if has_aux else (grads, output)


def grad(func, argnums=0, has_aux=False):
    """A function that gives the gradient of ``func`` with respect to the arguments ``argnums``."""

    @functools.wraps(func)
    def wrapper(*args, **kwargs):
        return grad_impl(func, argnums, has_aux, args, kwargs)

    return wrapper


def grad_impl(func, argnums, has_aux, args, kwargs):
    grads, rest = grad_and_value_impl(func, argnums, has_aux, args, kwargs)
    return (grads, rest[1]) if has_aux else grads


def vjp(func, *primals, has_aux=False):
    """The outputs of ``func``, and the function from cotangents to products with the Jacobian."""
    return _vjp_with_argnums(func, *primals, has_aux=has_aux)


def _vjp_with_argnums(func, *primals, argnums=None, has_aux=False):
    with _GradLevel() as level:
        primals = _wrap_all(primals, level)
        if argnums is None:
            chosen = _create_differentiable(primals, level)
            output = func(*chosen)
        else:
            chosen = _create_differentiable(_slice_argnums(primals, argnums, False), level)
            output = func(*_replace_argnums(primals, argnums, chosen))
        output, aux = _split_aux(output, has_aux, "vjp(f, *primals)")
        flat_output, out_spec = tree_flatten(output)
        _check_tensors(flat_output, "vjp(f, *primals)", "f(*primals)")
        flat_inputs, in_spec = tree_flatten(chosen)
        for t in flat_output:
            t.grad_fn  # noqa: B018 - of a view whose base was written to: found while the level is alive
        results = _unwrap_all(output, level)
        aux = _unwrap_all(aux, level)

    def wrapper(cotangents, retain_graph=True, create_graph=None):
        if create_graph is None:
            create_graph = rushlight.is_grad_enabled()
        flat, spec = tree_flatten(cotangents)
        if spec != out_spec:
            raise RuntimeError(
                "Expected pytree structure of cotangents to be the same as pytree structure of outputs to "
                f"the function. cotangents: {treespec_pprint(spec)}, "
                f"primal output: {treespec_pprint(out_spec)}"
            )
        grads = _gradients(flat_output, tuple(flat_inputs), flat, retain_graph, create_graph)
        grads = [_functorch.unwrap_if_dead(g) for g in grads]
        return tree_unflatten(grads, in_spec)

    return (results, wrapper, aux) if has_aux else (results, wrapper)


# --- forward mode


def jvp(func, primals, tangents, *, strict=False, has_aux=False):
    """The outputs of ``func``, and the product of its Jacobian with ``tangents``."""
    return _jvp_with_argnums(func, primals, tangents, None, strict=strict, has_aux=has_aux)


def _jvp_with_argnums(func, primals, tangents, argnums, *, strict=False, has_aux=False):
    who = "jvp(f, primals, tangents)"
    if not isinstance(primals, tuple):
        raise RuntimeError(
            f"{who}: Expected primals to be a tuple. E.g. it should be valid to call f(*primals)."
        )
    chosen = primals if argnums is None else _slice_argnums(primals, argnums, False)
    flat_primals, spec = tree_flatten(chosen)
    flat_tangents, tangent_spec = tree_flatten(tangents)
    if spec != tangent_spec:
        raise RuntimeError(
            f"{who}: Expected primals and tangents to have the same python structure. For example, if "
            "primals is a tuple of 3 tensors, tangents also must be. Got primals with structure "
            f"{spec} and tangents with structure {tangent_spec}"
        )
    _check_given(flat_primals, who, "primals")
    _check_given(flat_tangents, who, "tangents")
    with _JvpLevel() as level:
        duals = [
            _C._make_dual(_functorch._wrap_for_grad(p, level), _functorch._wrap_for_grad(t, level))
            for p, t in zip(flat_primals, flat_tangents)
        ]
        duals = tree_unflatten(duals, spec)
        if argnums is not None:
            duals = _replace_argnums(_wrap_all(primals, level), argnums, duals)
        output, aux = _split_aux(func(*duals), has_aux, who)
        aux = _unwrap_all(tree_map_only(_Tensor, lambda t: _C._unpack_dual(t)[0], aux), level)
        flat, out_spec = tree_flatten(output)
        _check_tensors(flat, who, "f(*primals)")
        pairs = [_safe_unpack(x, strict) for x in flat]
        values = tree_unflatten([_unwrap_all(p, level) for p, _ in pairs], out_spec)
        products = tree_unflatten([_unwrap_all(t, level) for _, t in pairs], out_spec)
    return (values, products, aux) if has_aux else (values, products)


def _check_given(flat, who, what):
    if not flat:
        raise RuntimeError(f"{who}: Expected {what} to be non-empty (and have at least one Tensor)")
    for x in flat:
        if not isinstance(x, _Tensor):
            raise RuntimeError(f"{who}: Expected {what} to only contain Tensors, got {type(x)}")


def _safe_unpack(dual, strict):
    primal, tangent = _C._unpack_dual(dual)
    if tangent is None:
        if strict:
            raise RuntimeError(
                "jvp(f, primals, tangents, strict=True): The output of f is independent of the inputs. This "
                "is not allowed with strict=True."
            )
        tangent = rushlight.zeros_like(primal)
    return primal, tangent


def linearize(func, *primals):
    """The outputs of ``func`` at ``primals``, and its derivative there as a linear function of tangents.

    ``func`` runs once; each call of the derivative runs only the recorded operators that tangents pass
    through. Within other transforms, and where ``primals`` ask for gradients, it is evaluated anew each time
    instead, so that derivatives of the derivative stay right.
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


def _refuse_complex(tensors, who, what):
    for i, t in enumerate(tensors):
        if t.is_complex():
            raise RuntimeError(
                f"{who}: Expected all {what} to be real but received complex tensor at flattened input "
                f"idx: {i}"
            )


def _basis(tensors, start, stop):
    """Rows ``start`` to ``stop`` of the identity, cut up into the shapes of ``tensors``."""
    parts, at = [], 0
    count = stop - start
    for t in tensors:
        n = t.numel()
        low, high = max(start, at), min(stop, at + n)
        part = rushlight.zeros(count, n, dtype=t.dtype, device=t.device)
        if low < high:
            rows, columns = part[low - start : high - start], slice(low - at, high - at)
            rows[:, columns].fill_diagonal_(1)
        parts.append(part.view((count, *t.shape)))
        at += n
    return parts


def _of_its_own(rows):
    """What no row depends on came out expanded; results can be written to."""
    return rows.contiguous() if 0 in rows.stride() else rows


def jacrev(func, argnums=0, *, has_aux=False, chunk_size=None, _preallocate_and_copy=False):
    """The Jacobian of ``func`` by reverse mode, one row of it per element of the output."""
    if not (chunk_size is None or chunk_size > 0):
        raise ValueError("jacrev: `chunk_size` should be greater than 0.")

    @functools.wraps(func)
    def wrapper(*args, **kwargs):
        inputs, in_spec = tree_flatten(_slice_argnums(args, argnums, False))
        _refuse_complex(inputs, "jacrev", "inputs")
        found = _vjp_with_argnums(functools.partial(func, **kwargs), *args, argnums=argnums, has_aux=has_aux)
        output, vjp_fn, aux = found if has_aux else (*found, None)
        flat, out_spec = tree_flatten(output)
        _refuse_complex(flat, "jacrev", "outputs")
        total = sum(o.numel() for o in flat)
        step = total if chunk_size is None else chunk_size

        def rows(*cotangents):
            return tuple(tree_flatten(vjp_fn(tree_unflatten(cotangents, out_spec)))[0])

        def chunk(a):
            basis = _basis(flat, a, min(a + step, total))
            if step == 1:  # as it is, without the bounds of vmap
                return tuple(row.unsqueeze(0) for row in rows(*(b.squeeze(0) for b in basis)))
            return vmap_impl(rows, 0, 0, "error", None, *basis)

        chunks = [chunk(a) for a in range(0, total, max(step, 1))]
        columns = [
            rushlight.cat(c) if len(c) > 1 else _of_its_own(c[0]) for c in zip(*chunks)
        ] if chunks else [x.new_zeros(0, *x.shape) for x in inputs]  # fmt: skip
        sizes = [o.numel() for o in flat]
        by_input = [
            [part.view((*o.shape, *x.shape)) for o, part in zip(flat, c.split(sizes))]
            for x, c in zip(inputs, columns)
        ]
        by_output = [tree_unflatten(list(parts), in_spec) for parts in zip(*by_input)]
        result = tree_unflatten(by_output, out_spec)
        return (result, aux) if has_aux else result

    return wrapper


def jacfwd(func, argnums=0, has_aux=False, *, randomness="error"):
    """The Jacobian of ``func`` by forward mode, one column of it per element of the input."""

    @functools.wraps(func)
    def wrapper(*args, **kwargs):
        bound = functools.partial(func, **kwargs)
        inputs, in_spec = tree_flatten(_slice_argnums(args, argnums, False))
        _refuse_complex(inputs, "jacfwd", "inputs")
        total = sum(x.numel() for x in inputs)

        def push(*tangents):
            tree = tree_unflatten(tangents, in_spec)
            output, products, *rest = _jvp_with_argnums(bound, args, tree, argnums, has_aux=has_aux)
            return (products, output, rest[0]) if has_aux else (products, output)

        dims = (0, None, None) if has_aux else (0, None)
        found = vmap_impl(push, 0, dims, randomness, None, *_basis(inputs, 0, total))
        products, output = found[:2]
        flat, out_spec = tree_flatten(output)
        _refuse_complex(flat, "jacfwd", "outputs")
        sizes = [x.numel() for x in inputs]
        by_output = []
        for o, p in zip(flat, tree_flatten(products)[0]):
            parts = [
                part.movedim(0, -1).reshape((*o.shape, *x.shape))
                for x, part in zip(inputs, _of_its_own(p).split(sizes))
            ]
            by_output.append(tree_unflatten(parts, in_spec))
        result = tree_unflatten(by_output, out_spec)
        return (result, found[2]) if has_aux else result

    return wrapper


def hessian(func, argnums=0):
    """The second derivatives of ``func``: forward mode over reverse mode."""
    return jacfwd(jacrev(func, argnums), argnums)


def functionalize(func, *, remove="mutations"):
    """``func`` without mutation: dispatch modes around the call, such as `make_fx`'s, see in-place and
    ``out=`` operators as pure ones, and new values of arguments as one ``copy_`` at the end. Results are
    the same.

    ``remove="mutations_and_views"`` also turns views into copies (``aten.view_copy``).
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

        if _get_current_dispatch_mode() is None:
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
    """What a tensor inside a transform stands for; for printing while debugging."""
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
