"""Derivatives of functions as values: Jacobians, Hessians and their products with vectors."""

import rushlight

__all__ = ["hessian", "hvp", "jacobian", "jvp", "vhp", "vjp"]


def _inputs_tuple(value, what, function):
    """A tensor or tuple of tensors as a tuple, and whether it was one."""
    values = value if isinstance(value, tuple) else (value,)
    for i, element in enumerate(values):
        if not isinstance(element, rushlight.Tensor):
            place = f"value at index {i}" if isinstance(value, tuple) else what
            raise TypeError(
                f"The {what} given to {function} must be either a Tensor or a tuple of Tensors but the "
                f"given {place} has type {type(element)}."
            )
    return values, isinstance(value, tuple)


def _prepare(inputs, create_graph, need_graph=True):
    """Fresh tensors that require grad; under ``create_graph`` they stay connected to the given ones."""
    return tuple(
        x.view_as(x) if create_graph and x.requires_grad else x.detach().requires_grad_(need_graph)
        for x in inputs
    )


def _finish(values, create_graph, as_tuple):
    if not create_graph:
        values = tuple(v.detach() for v in values)
    return values if as_tuple else values[0]


_IS_CONSTANT = {
    "output": "Output {i} of the user-provided function does not require gradients. The outputs must be "
    "computed in a "
    "differentiable manner from the input when running in strict mode.",
    "input": "{which} of the user-provided function is independent of input {i}. This is not allowed in "
    "strict mode.",
    "graph": "{which} of the user-provided function is independent of input {i}. This is not allowed in "
    "strict mode when create_graph=True.",
    "first": "While computing the hessian, found that the jacobian of the user-provided function with "
    "respect to input {i} is independent of the input. This is not allowed in strict mode. You should ensure "
    "that your function is twice differentiable and that the jacobian depends on the inputs (this would be "
    "violated by a linear function for example).",
}


def _strict_error(kind, i, which="The output"):
    return RuntimeError(_IS_CONSTANT[kind].format(i=i, which=which))


def _check_first(gradients):
    """Second derivatives need first ones that depend on the inputs."""
    for i, g in enumerate(gradients):
        if not g.requires_grad:
            raise _strict_error("first", i)


def _grad(outputs, inputs, grad_outputs, create_graph, strict=False, which="The output", of="The jacobian"):
    """``autograd.grad`` with zeros for what is not reached, which strict mode refuses.

    ``which`` names what an unreached input is independent of, ``of`` what a constant result is; None allows
    constants.
    """
    live = [(o, g) for o, g in zip(outputs, grad_outputs) if o.requires_grad]
    if strict and len(live) < len(outputs):
        raise _strict_error("output", next(i for i, o in enumerate(outputs) if not o.requires_grad))
    if not live:
        return tuple(rushlight.zeros_like(x) for x in inputs)
    found = rushlight.autograd.grad(
        [o for o, _ in live],
        inputs,
        [g for _, g in live],
        allow_unused=True,
        create_graph=create_graph,
        retain_graph=True,
    )
    for i, g in enumerate(found):
        if strict and g is None:
            raise _strict_error("input", i, which)
        if strict and of is not None and create_graph and not g.requires_grad:
            raise _strict_error("graph", i, of)
    return tuple(rushlight.zeros_like(x) if g is None else g for g, x in zip(found, inputs))


def _check_vector(v, like, function, name="the input to the user-provided function is"):
    """The vector of a product, which must fit what it multiplies; ones where it may be left out."""
    if v is None:
        if len(like) != 1 or like[0].numel() != 1:
            raise RuntimeError(
                f"The vector v can only be None if {name} a single Tensor with a single element."
            )
        return tuple(rushlight.ones_like(x) for x in like)
    v, _ = _inputs_tuple(v, "v", function)
    if len(v) != len(like):
        if len(like) == 1:
            raise RuntimeError("The given v should contain a single Tensor.")
        raise RuntimeError(f"v is a tuple of invalid length: should be {len(like)} but got {len(v)}.")
    for i, (a, b) in enumerate(zip(v, like)):
        if a.size() != b.size():
            prefix = f"Entry {i} in " if len(like) > 1 else ""
            raise RuntimeError(f"{prefix}v has invalid size: should be {b.size()} but got {a.size()}.")
    return v


def _call(func, inputs, function):
    outputs = func(*inputs)
    return _inputs_tuple(outputs, "outputs of the user-provided function", function)


def vjp(func, inputs, v=None, create_graph=False, strict=False):
    """The outputs of ``func`` and the product of ``v`` with its Jacobian."""
    with rushlight.enable_grad():
        inputs, in_tuple = _inputs_tuple(inputs, "inputs", "vjp")
        inputs = _prepare(inputs, create_graph)
        outputs, out_tuple = _call(func, inputs, "vjp")
        v = _check_vector(v, outputs, "vjp", "the user-provided function returns")
        grads = _grad(outputs, inputs, v, create_graph, strict)
    return _finish(outputs, create_graph, out_tuple), _finish(grads, create_graph, in_tuple)


def _double_backward(outputs, inputs, v, create_graph, strict, which="The output", of="The jacobian"):
    """The product of the Jacobian with ``v`` by two backward passes: the first is linear in its gradients."""
    dummies = tuple(rushlight.zeros_like(o, requires_grad=True) for o in outputs)
    grads = _grad(outputs, inputs, dummies, True, strict, which)
    return _grad(grads, dummies, v, create_graph, strict, which, of)


def jvp(func, inputs, v=None, create_graph=False, strict=False):
    """The outputs of ``func`` and the product of its Jacobian with ``v``."""
    with rushlight.enable_grad():
        inputs, _ = _inputs_tuple(inputs, "inputs", "jvp")
        inputs = _prepare(inputs, create_graph)
        v = _check_vector(v, inputs, "jvp")
        outputs, out_tuple = _call(func, inputs, "jvp")
        products = _double_backward(outputs, inputs, v, create_graph, strict)
    return _finish(outputs, create_graph, out_tuple), _finish(products, create_graph, out_tuple)


def jacobian(func, inputs, create_graph=False, strict=False, vectorize=False, strategy="reverse-mode"):
    """The Jacobian of ``func``: per output and input a tensor of the output's shape followed by the input's.

    A tuple of outputs gives a tuple, a tuple of inputs a tuple within. ``vectorize`` computes all rows in one
    pass under vmap; ``strategy="forward-mode"`` goes by columns instead.
    """
    if strategy not in ("forward-mode", "reverse-mode"):
        raise AssertionError(
            'Expected strategy to be either "forward-mode" or "reverse-mode". Hint: If your function has '
            'more outputs than inputs, "forward-mode" tends to be more performant. Otherwise, prefer to use '
            '"reverse-mode".'
        )
    if strategy == "forward-mode":
        return _forward_jacobian(func, inputs, create_graph, strict, vectorize)
    if strict and vectorize:
        raise RuntimeError(
            "torch.autograd.functional.jacobian: `strict=True` and `vectorized=True` are not supported "
            "together. Please either set `strict=False` or `vectorize=False`."
        )
    rows_of = _jacobian_at_once if vectorize else _jacobian_of
    with rushlight.enable_grad():
        inputs, in_tuple = _inputs_tuple(inputs, "inputs", "jacobian")
        inputs = _prepare(inputs, create_graph)
        outputs, out_tuple = _call(func, inputs, "jacobian")
        rows = tuple(rows_of(o, inputs, create_graph, strict, i) for i, o in enumerate(outputs))
    rows = tuple(_finish(row, create_graph, in_tuple) for row in rows)
    return rows if out_tuple else rows[0]


def _jacobian_of(output, inputs, create_graph, strict, number):
    if strict and not output.requires_grad:
        raise _strict_error("output", number)
    unit = rushlight.zeros_like(output, memory_format=rushlight.contiguous_format)
    rows = []
    for j in range(output.numel()):
        start = unit.clone()
        start.view(-1)[j] = 1
        rows.append(_grad((output,), inputs, (start,), create_graph, strict, f"Output {number}"))
    if not rows:
        return tuple(x.new_zeros(output.size() + x.size()) for x in inputs)
    return tuple(
        rushlight.stack(column).view(output.size() + x.size()) for column, x in zip(zip(*rows), inputs)
    )


def _jacobian_at_once(output, inputs, create_graph, strict, number):
    """As ``_jacobian_of``, all rows in one backward pass."""
    if not output.requires_grad or output.numel() == 0:
        return tuple(x.new_zeros(output.size() + x.size()) for x in inputs)
    unit = rushlight.eye(output.numel(), dtype=output.dtype, device=output.device)
    found = rushlight.autograd.grad(
        output,
        inputs,
        unit.view(-1, *output.size()),
        allow_unused=True,
        create_graph=create_graph,
        retain_graph=True,
        is_grads_batched=True,
    )
    return tuple(
        x.new_zeros(output.size() + x.size()) if g is None else g.reshape(output.size() + x.size())
        for g, x in zip(found, inputs)
    )


_NOT_TOGETHER = (
    'torch.autograd.functional.jacobian: `{}=True` and `strategy="forward-mode"` are not supported together '
    '(yet). Please either set `{}=False` or `strategy="reverse-mode"`.'
)


def _check_forward(create_graph, strict, vectorize):
    if strict:
        raise RuntimeError(_NOT_TOGETHER.format("strict", "strict"))
    if not vectorize:
        raise NotImplementedError(
            "Computing Jacobian using forward-AD or forward-over-reverse Hessian is"
            "only implemented for `vectorize=True`."
        )
    if create_graph:
        raise NotImplementedError(_NOT_TOGETHER.format("create_graph", "create_graph"))


def _forward_jacobian(func, inputs, create_graph, strict, vectorize):
    _check_forward(create_graph, strict, vectorize)
    from rushlight.func import jacfwd

    inputs, in_tuple = _inputs_tuple(inputs, "inputs", "jacobian")

    def checked(*args):
        outputs, is_tuple = _call(func, args, "jacobian")
        return outputs if is_tuple else outputs[0]

    result = jacfwd(checked, tuple(range(len(inputs))))(*inputs)
    if in_tuple:
        return result
    return tuple(row[0] for row in result) if isinstance(result[0], tuple) else result[0]


def _scalar(func, function, strict):
    """``func``, checked to return one number."""

    def checked(*args):
        out = func(*args)
        outputs, _ = _inputs_tuple(out, "outputs of the user-provided function", function)
        if strict and not all(o.requires_grad for o in outputs):
            raise _strict_error("output", next(i for i, o in enumerate(outputs) if not o.requires_grad))
        if not isinstance(out, rushlight.Tensor):
            raise RuntimeError(f"The function given to {function} should return a single Tensor")
        if out.numel() != 1:
            raise RuntimeError(
                f"The Tensor returned by the function given to {function} should contain a single element"
            )
        return out.squeeze()

    return checked


def hessian(
    func, inputs, create_graph=False, strict=False, vectorize=False, outer_jacobian_strategy="reverse-mode"
):
    """The second derivatives of a function that returns one number."""
    given, in_tuple = _inputs_tuple(inputs, "inputs", "hessian")
    if outer_jacobian_strategy not in ("forward-mode", "reverse-mode"):
        raise AssertionError('Expected strategy to be either "forward-mode" or "reverse-mode".')
    scalar = _scalar(func, "hessian", strict)
    if outer_jacobian_strategy == "forward-mode":
        _check_forward(create_graph, strict, vectorize)
        from rushlight.func import jacfwd, jacrev

        every = tuple(range(len(given)))
        result = jacfwd(jacrev(scalar, every), every)(*given)
        return result if in_tuple else result[0][0]

    def gradient(*args):
        first = jacobian(scalar, args, create_graph=True, strict=False)
        if strict:
            _check_first(first)
        return first

    result = jacobian(gradient, given, create_graph=create_graph, strict=strict, vectorize=vectorize)
    return result if in_tuple else result[0][0]


def _first_derivatives(func, inputs, create_graph, strict, function):
    inputs = _prepare(inputs, create_graph)
    outputs, out_tuple = _call(func, inputs, function)
    if out_tuple or outputs[0].numel() != 1:
        raise RuntimeError(
            f"The Tensor returned by the function given to {function} should contain a single element"
            if not out_tuple
            else f"The function given to {function} should return a single Tensor"
        )
    first = _grad(outputs, inputs, (rushlight.ones_like(outputs[0]),), True, strict, of=None)
    if strict:
        _check_first(first)
    return inputs, outputs, first


def vhp(func, inputs, v=None, create_graph=False, strict=False):
    """The value of a function that returns one number, and the product of ``v`` with its Hessian."""
    with rushlight.enable_grad():
        given, in_tuple = _inputs_tuple(inputs, "inputs", "vhp")
        v = _check_vector(v, given, "vhp")
        inputs, outputs, first = _first_derivatives(func, given, create_graph, strict, "vhp")
        products = _grad(first, inputs, v, create_graph, strict, "The jacobian", "The hessian")
    return _finish(outputs, create_graph, False), _finish(products, create_graph, in_tuple)


def hvp(func, inputs, v=None, create_graph=False, strict=False):
    """The value of a function that returns one number, and the product of its Hessian with ``v``."""
    with rushlight.enable_grad():
        given, in_tuple = _inputs_tuple(inputs, "inputs", "hvp")
        v = _check_vector(v, given, "hvp")
        inputs, outputs, first = _first_derivatives(func, given, create_graph, strict, "hvp")
        products = _double_backward(first, inputs, v, create_graph, strict, "The jacobian", "The hessian")
    return _finish(outputs, create_graph, False), _finish(products, create_graph, in_tuple)


def _construct_standard_basis_for(tensors, tensor_numels):
    """Rows that together are an identity matrix, cut into one block of columns per tensor."""
    total = sum(tensor_numels)
    blocks = []
    start = 0
    for tensor, count in zip(tensors, tensor_numels):
        block = tensor.new_zeros(total, count)
        block.diagonal(-start).fill_(1)
        blocks.append(block)
        start += count
    return tuple(blocks)


# What packages use of PyTorch's own file beside the functions.


def _as_tuple(inp, arg_name=None, fn_name=None):
    """Whether this is a tuple of tensors, and the tuple of what it is; without names, that tuple alone."""
    if arg_name is None and fn_name is None:
        return tuple(inp) if isinstance(inp, (tuple, list)) else (inp,)
    values, is_tuple = _inputs_tuple(inp, arg_name, fn_name)
    return is_tuple, values


def _tuple_postprocess(res, to_unpack):
    """The reverse: a tuple of one without it, unless `to_unpack` says that a tuple was given; of tuples of
    tuples, two such answers."""
    if not isinstance(to_unpack, tuple):
        return res if to_unpack else res[0]
    outer, inner = to_unpack
    rows = res if inner else tuple(row[0] for row in res)
    return rows if outer else rows[0]


def _grad_postprocess(inputs, create_graph):
    """Tensors, in tuples or tuples of them, without their history unless a graph is wanted."""
    if create_graph:
        return inputs
    return tuple(
        x.detach() if isinstance(x, rushlight.Tensor) else _grad_postprocess(x, create_graph) for x in inputs
    )
