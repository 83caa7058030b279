"""Derivatives within vmap over every operator row: what a loop over the examples gives."""

import pytest
from engine import tensors_in, variables
from loader import each, main_dtype, samples

import rushlight as rl
from rushlight.func import jvp, vjp, vmap

# What vmap says of operators that it cannot map, and function transforms of writes that they cannot see.
REFUSALS = (
    "dynamic shape",
    "data-dependent control flow",
    "randomness error mode",
    "calling .item()",
    "which will be updated in place, were not batched",
    "mutate a captured Tensor",
    "use the form that is not in place",
)
BATCH = 3
RESIZED = {"Tensor.resize_as_": "resizes the memory of all examples, of which a gradient knows nothing"}


def differentiable(t):
    return t.is_floating_point() or t.is_complex()


def cases(row):
    """(function of a tuple of tensors, operands, directions of the operands and of the results)."""
    for sample in samples(row)[:3]:
        values, function = variables(rl, row, sample, main_dtype(row))
        values = tuple(v.detach() for v in values)

        def call(*tensors, function=function):
            return tuple(t for t in tensors_in(function(tensors)) if differentiable(t))

        results = call(*values) if values else ()
        if results and all(t.isfinite().all() for t in results):
            many = lambda t: rl.randn(BATCH, *t.shape, dtype=t.dtype)  # noqa: E731
            yield call, values, tuple(map(many, values)), tuple(map(many, results))


def forward(call, values, tangents):
    return jvp(call, values, tangents)[1]


def reverse(call, values, directions):
    return vjp(call, *values)[1](directions)


def compare(found, rows):
    for k, result in enumerate(found):
        expected = rl.stack([r[k] for r in rows])
        rl.testing.assert_close(result, expected, rtol=1e-5, atol=1e-6, equal_nan=True)


def check(row, loop_dims, run):
    """``run(call, values, tangents, directions)`` mapped over the operands that ``loop_dims`` names."""
    if row.name in RESIZED:
        pytest.skip(RESIZED[row.name])
    rl.manual_seed(0)
    compared = 0
    for call, values, tangents, directions in cases(row):
        batches = {"values": tuple(rl.stack([v] * BATCH) for v in values), "tangents": tangents}
        batches["directions"] = directions
        given = {"values": values} | {n: tuple(t[0] for t in batches[n]) for n in ("tangents", "directions")}
        names = ("values", "tangents", "directions")
        operands = [batches[n] if n in loop_dims else given[n] for n in names]
        in_dims = tuple(0 if n in loop_dims else None for n in names)
        try:
            rows = []
            for k in range(BATCH):
                one = [tuple(t[k].clone() for t in o) if d == 0 else o for o, d in zip(operands, in_dims)]
                rows.append(run(call, *one))
            found = vmap(lambda *a, call=call: run(call, *a), in_dims)(*operands)
        except RuntimeError as error:
            if any(text in str(error) for text in REFUSALS):
                pytest.skip(f"refused: {str(error).splitlines()[0]}")
            raise
        compare(found, rows)
        compared += 1
    if not compared:
        pytest.skip("no sample has floating operands and finite results")


@pytest.mark.parametrize("which", ["values", "tangents", "values tangents"])
@each("forward")
def test_forward_mode_in_vmap(row, which):
    check(row, which.split(), lambda call, v, t, d: forward(call, v, t))


@pytest.mark.parametrize("which", ["values", "directions", "values directions"])
@each("gradients")
def test_reverse_mode_in_vmap(row, which):
    check(row, which.split(), lambda call, v, t, d: reverse(call, v, d))


@each("gradients")
def test_vmap_recorded_by_autograd(row):
    """The leaves lie outside: what composites ask of examples must not hide that they are trained."""
    rl.manual_seed(0)
    compared = 0
    for call, values, _, directions in cases(row):
        if row.name in RESIZED:
            pytest.skip(RESIZED[row.name])
        rows = []
        try:
            for k in range(BATCH):
                rows.append(reverse(call, values, tuple(d[k].clone() for d in directions)))
            leaves = tuple(rl.stack([v] * BATCH).requires_grad_() for v in values)
            results = vmap(call)(*leaves)
        except RuntimeError as error:
            if any(text in str(error) for text in REFUSALS):
                pytest.skip(f"refused: {str(error).splitlines()[0]}")
            raise
        live = [(r, d) for r, d in zip(results, directions) if r.requires_grad]
        if live:
            outputs, seeds = zip(*live)
            compare(rl.autograd.grad(outputs, leaves, seeds, materialize_grads=True), rows)
        else:
            compare([rl.zeros_like(leaf) for leaf in leaves], rows)
        compared += 1
    if not compared:
        pytest.skip("no sample has floating operands and finite results")


def test_derivatives_of_products_with_zeros_in_vmap():
    """Which of the examples have zeros cannot be asked: the rule that divides by the factors gave NaN."""
    x = rl.tensor([[0.0, 2.0, 3.0], [1.0, 0.0, 0.0], [4.0, 5.0, 6.0]], dtype=rl.float64)
    for function in (lambda v: v.cumprod(0) @ rl.arange(1.0, 4.0, dtype=v.dtype), lambda v: v.prod()):
        gradient, hessian = rl.func.grad(function), rl.func.hessian(function)
        rl.testing.assert_close(vmap(gradient)(x), rl.stack([gradient(row) for row in x]))
        rl.testing.assert_close(vmap(hessian)(x), rl.stack([hessian(row) for row in x]))
    assert vmap(rl.func.grad(lambda v: v.prod()))(x).tolist() == [[6, 0, 0], [0, 0, 0], [30, 24, 20]]


def test_tangents_lie_as_the_tensors_they_move():
    """as_strided looks at memory: a tangent cut from another tensor has other offsets."""
    values, tangents = rl.arange(12.0).view(3, 4), rl.randn(2, 3, 4)

    def corner(v):
        return v.as_strided((2, 2), (4, 1), 1)

    for tangent in tangents:
        rl.testing.assert_close(jvp(corner, (values,), (tangent,))[1], tangent[:2, 1:3])
