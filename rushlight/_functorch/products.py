"""What the derivatives as transforms share: levels, chosen arguments, products with Jacobians."""

import rushlight
from rushlight import _C, autograd
from rushlight._C import _functorch
from rushlight.utils._pytree import (
    tree_flatten,
    tree_map,
    tree_map_only,
    tree_unflatten,
    treespec_pprint,
)

_Tensor = rushlight.Tensor


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
