"""Inputs that both libraries make alike, and comparison of nested lists of numbers."""

import torch


def ones(*shape):
    return lambda t: t.ones(shape)


def wave(*shape):
    """Numbers without ties or symmetries, the same in both libraries."""
    n = 1
    for s in shape:
        n *= s
    return lambda t: (t.arange(float(n)) * 0.731).sin().reshape(shape)


def integers(*shape, high):
    n = 1
    for s in shape:
        n *= s
    return lambda t: (t.arange(n) * 7 % high).reshape(shape)


def tensors_in(value, lib):
    if isinstance(value, lib.Tensor):
        return [value]
    if isinstance(value, (list, tuple)):
        return [t for v in value for t in tensors_in(v, lib)]
    return []


def assert_close(ours, theirs, where=""):
    if isinstance(theirs, dict):
        assert list(ours) == list(theirs), where
        for key in theirs:
            assert_close(ours[key], theirs[key], f"{where} {key}")
    elif theirs is None or isinstance(theirs, str):
        assert ours == theirs, where
    elif isinstance(theirs, list) and any(v is None or isinstance(v, list) for v in theirs):
        assert len(ours) == len(theirs), where
        for mine, reference in zip(ours, theirs):
            assert_close(mine, reference, where)
    else:
        torch.testing.assert_close(torch.tensor(ours), torch.tensor(theirs), rtol=1e-4, atol=2e-5, msg=where)
