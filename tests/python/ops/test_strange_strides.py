"""The stride of a dimension of one element means nothing: kernels give the same whatever it is."""

import engine
import loader
import pytest

import rushlight as torch

LEFT_OUT = ("empty", "rand", "dropout", "multinomial", "resize", "view_as_complex", "Tensor.view", "rrelu")


def changed(value, change):
    """The value with its tensors changed, also those of lists."""
    if type(value) in (list, tuple):
        return type(value)(changed(v, change) for v in value)
    if isinstance(value, dict):
        return {name: changed(v, change) for name, v in value.items()}
    return change(value) if isinstance(value, torch.Tensor) and value.layout == torch.strided else value


def first_along(dim):
    return lambda t: t.narrow(dim, 0, 1).clone() if t.dim() > dim and t.shape[dim] > 1 else t


def strange(t):
    """The same elements, with 97 for the stride of each dimension of one element."""
    if 1 not in t.shape:
        return t
    steps = [97 if size == 1 else step for size, step in zip(t.shape, t.contiguous().stride())]
    return t.new_empty(t.numel() + 400).as_strided(t.shape, steps).copy_(t)


def same(a, b):
    if isinstance(a, torch.Tensor):
        if a.layout != torch.strided:
            return True
        alike = a.shape == b.shape and a.dtype == b.dtype
        if not (a.is_floating_point() or a.is_complex()):
            return alike and torch.equal(a, b)
        return alike and torch.allclose(a, b, rtol=1e-4, atol=1e-5, equal_nan=True)
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(same(x, y) for x, y in zip(a, b))
    return True


def cases(rows):
    for row in rows:
        if any(word in row.id for word in LEFT_OUT):
            continue
        dtype, function = loader.main_dtype(row), engine.resolve(torch, row.name)
        for number, sample in enumerate(loader.samples(row, dtype)[:4]):
            for dim in (None, 0, 1, 2):
                change = (lambda t: t.clone()) if dim is None else first_along(dim)
                yield f"{row.id}, sample {number}, {dim}", function, sample, dtype, change


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("part", range(8))
def test_dimensions_of_one_element_may_have_any_stride(part):
    # Memory that is not written shows.
    junk = [torch.full((n,), 0x5A5A5A5A5A, dtype=torch.int64) for n in (1, 2, 3, 4, 5, 8) for _ in range(50)]
    del junk
    ran, unlike = 0, []
    for name, function, sample, dtype, change in cases(loader.ROWS[part::8]):
        try:
            given = changed(engine.arguments(torch, sample, dtype, requires_grad=False), change)
            odd = changed(given, strange)
            if not any(97 in t.stride() for t in engine.tensors_in([odd[0], list(odd[1].values())])):
                continue
            args, kwargs = changed(given, lambda t: t.clone())
            expected = function(*args, **kwargs)
        except (RuntimeError, IndexError, ValueError, TypeError):
            continue  # narrowed, they do not fit any more
        found = function(*odd[0], **odd[1])
        ran += 1
        unlike += [name] if not same(expected, found) else []
    assert ran > 100 and not unlike
