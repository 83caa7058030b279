"""Equal bits on 1, 2 and 4 threads, over every operator row: results and gradients, of operands large enough
to be shared out where the row's shapes may be enlarged."""

import engine
import numpy as np
import pytest
from loader import ROWS, main_dtype

import rushlight as rl

MOST = 150_000  # elements of an operand
FACTORS = (100, 40, 16, 6, 3, 1)
# What enlarged operands meet where a row's other arguments do not fit them.
UNFIT = (RuntimeError, ValueError, IndexError, TypeError, AssertionError, OverflowError)


@pytest.fixture(autouse=True)
def deterministic():
    threads = rl.get_num_threads()
    rl.use_deterministic_algorithms(True, warn_only=True)
    yield
    rl.use_deterministic_algorithms(False)
    rl.set_num_threads(threads)


def _enlarged(make, factor):
    """Every size but 1 is multiplied, so that most operands still fit each other."""

    def made(*shape, **domain):
        shape = tuple(n * factor if n > 1 else n for n in shape)
        if np.prod(shape) > MOST:
            raise OverflowError
        return make(*shape, **domain)

    return made


def _leaves(value):
    if isinstance(value, rl.Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for v in value:
            yield from _leaves(v)


def _computed(row, sample, dtype):
    """The results, and the gradients of the operands where there are some."""
    function = engine.resolve(rl, row.name)
    args, kwargs = engine.arguments(rl, sample, dtype)
    operands = [t for t in _leaves([args, list(kwargs.values())]) if t.is_floating_point()]
    for recording in (True, False):
        rl.manual_seed(0)
        try:
            for t in operands:
                t.requires_grad_(recording and t.layout == rl.strided)
            results = list(_leaves(function(*args, **kwargs)))
            break
        except RuntimeError:
            if not recording:
                raise
    found = [t.detach().clone() for t in results]
    roots = [t for t in results if t.requires_grad and t.is_floating_point()]
    if roots:
        leaves = [t for t in operands if t.requires_grad]
        try:
            gradients = rl.autograd.grad(roots, leaves, [t * 0 + 1.25 for t in roots], allow_unused=True)
        except (NotImplementedError, RuntimeError):
            return found
        found += [g for g in gradients if g is not None]
    return found


def _bits(t):
    if t.is_quantized:
        t = t.int_repr()
    if t.layout != rl.strided:
        t = t.to_dense()
    t = t.detach().resolve_conj().resolve_neg().contiguous()
    return t.clone().untyped_storage().tolist()[: t.numel() * t.element_size()], t.shape, t.dtype


def _sizes(row, dtype):
    """Samples by the largest factor with which one of them can be computed."""
    for factor in FACTORS:
        try:
            samples = list(row.samples(_enlarged(engine.maker(row, dtype), factor)))
        except UNFIT:  # the row's own numbers do not fit enlarged shapes
            continue
        rl.set_num_threads(1)
        found = []
        for sample in samples[:2]:
            try:
                found.append((sample, [_bits(t) for t in _computed(row, sample, dtype)]))
            except UNFIT:  # nor do this sample's
                continue
        if found:
            return found
    return []


@pytest.mark.parametrize("family", sorted({row.family for row in ROWS}))
def test_threads_do_not_change_a_bit(family):
    compared = 0
    for row in ROWS:
        if row.family != family:
            continue
        dtype = "float32" if "float32" in row.dtypes else main_dtype(row)
        for sample, alone in _sizes(row, dtype):
            for threads in (2, 4):
                rl.set_num_threads(threads)
                together = [_bits(t) for t in _computed(row, sample, dtype)]
                assert together == alone, (row.id, dtype, threads, sample)
            compared += 1
    assert compared
