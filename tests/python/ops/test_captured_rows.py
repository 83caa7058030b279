"""Over every operator row: a program that was captured with some values computes with others, compiled and
from a file. What a capture reads must not become part of it."""

import pytest
from engine import arguments, flatten, resolve, tensors_in, variables
from loader import each, main_dtype, samples

import rushlight as rl
from rushlight.export import load_file, save_file

# What captures refuse: programs whose shapes or paths depend on values.
REFUSED = (NotImplementedError, RuntimeError, ValueError, TypeError)


class Call(rl.nn.Module):
    def __init__(self, call):
        super().__init__()
        self.call = call

    def forward(self, *operands):
        return self.call(*operands)


def moved(t):
    """Other values of the same kind."""
    if t.numel() == 0 or t.dtype == rl.bool:
        return t.clone()
    return t.reshape(-1).roll(1).reshape(t.shape).clone()


def cases(row):
    """(function of the tensor operands, operands to capture it with, others, what it gives for these)."""
    function = resolve(rl, row.name)
    for sample in samples(row)[:2]:
        args, kwargs = arguments(rl, sample, main_dtype(row))
        where = [i for i, a in enumerate(args) if isinstance(a, rl.Tensor)]
        if not where:
            continue

        def call(*operands, args=args, kwargs=kwargs, where=where):
            given = list(args)
            for i, operand in zip(where, operands):
                given[i] = operand.clone()
            found = flatten(function(*given, **kwargs))
            return tuple(f for f in found if isinstance(f, rl.Tensor))

        first = tuple(args[i].clone() for i in where)
        others = tuple(moved(t) for t in first)
        try:
            shapes = [r.shape for r in call(*first)]
            rl.manual_seed(0)
            expected = call(*others)
        except (RuntimeError, ValueError, IndexError):  # out of the domain
            continue
        if expected and shapes == [r.shape for r in expected]:
            yield call, first, others, expected


def compiled(call, operands, folder):
    return rl.compile(call)


def filed(call, operands, folder):
    save_file(Call(call), folder / "program.rl", operands)
    program = load_file(folder / "program.rl")

    def run(*given):
        found = program(*given)
        return found if isinstance(found, tuple) else (found,)

    return run


@pytest.mark.parametrize("how", [compiled, filed])
@each("vmap")
def test_captured_programs_keep_no_values(row, how, tmp_path):
    compared = 0
    for call, first, others, expected in cases(row):
        try:
            program = how(call, first, tmp_path)
            program(*(t.clone() for t in first))
        except REFUSED as error:
            pytest.skip(f"refused: {str(error).splitlines()[0]}")
        rl.manual_seed(0)
        found = program(*(t.clone() for t in others))
        for a, b in zip(found, expected, strict=True):
            rl.testing.assert_close(a, b, rtol=1e-6, atol=1e-6, equal_nan=True)
        compared += 1
    if not compared:
        pytest.skip("no sample has tensor operands that can be moved")


@each("gradients")
def test_compiled_training_keeps_no_values(row):
    compared = 0
    for sample in samples(row)[:2]:
        values, function = variables(rl, row, sample, main_dtype(row))
        if not values:
            continue

        def gradients(call, operands, function=function):
            leaves = tuple(t.detach().clone().requires_grad_() for t in operands)
            rl.manual_seed(0)
            found = [t for t in tensors_in(call(leaves)) if t.requires_grad]
            seeds = [rl.ones_like(t) * (1 + i) for i, t in enumerate(found)]
            return rl.autograd.grad(found, leaves, seeds, allow_unused=True) if found else ()

        others = tuple(moved(t.detach()) for t in values)
        try:
            expected = gradients(function, others)
        except (RuntimeError, ValueError, IndexError):  # out of the domain
            continue
        program = rl.compile(lambda operands, function=function: tuple(tensors_in(function(operands))))
        gradients(program, values)
        found = gradients(program, others)
        for a, b in zip(found, expected, strict=True):
            assert (a is None) == (b is None)
            if a is not None:
                rl.testing.assert_close(a, b, rtol=1e-6, atol=1e-6, equal_nan=True)
        compared += 1
    if not compared:
        pytest.skip("no sample has operands with gradients that can be moved")


SPECIAL = {
    "prod": lambda x: x.prod(),
    "prod of rows": lambda x: x.view(2, 2).prod(1).sum(),
    "cumprod": lambda x: x.cumprod(0).sum(),
    "det": lambda x: rl.linalg.det(x.view(2, 2)),
    "norm": lambda x: x.norm(),
    "cdist": lambda x: rl.cdist(x.view(2, 2), x.view(2, 2)).sum(),
    "std": lambda x: x.std(),
    "xlogy": lambda x: rl.xlogy(x, x).sum(),
    "max": lambda x: x.max(),
    "renorm": lambda x: rl.renorm(x.view(2, 2), 2, 0, 1.0).sum(),
    "scattered": lambda x: rl.zeros(2).scatter_reduce(0, rl.tensor([0, 0, 1, 1]), x, "prod").sum(),
}


@pytest.mark.parametrize("name", SPECIAL)
def test_compiled_gradients_where_eager_takes_another_way(name):
    """Captured without zeros or equal elements, run with them."""
    function = SPECIAL[name]
    program = rl.compile(function)
    program(rl.tensor([1.0, 2.0, 3.0, 5.0], requires_grad=True)).backward()
    for values in ([0.0, 2.0, 3.0, 4.0], [0.0, 0.0, 3.0, 4.0], [0.0] * 4, [2.0] * 4, [1e30, 1.0, -1.0, 0.0]):
        operands = [rl.tensor(values, requires_grad=True) for _ in range(2)]
        for call, x in zip((program, function), operands):
            call(x).backward()
        rl.testing.assert_close(operands[0].grad, operands[1].grad, equal_nan=True)
