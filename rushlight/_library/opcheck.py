"""``torch.library.opcheck``: is an operator what its registrations say?"""

import rushlight as torch

__all__ = ["OpCheckError", "run"]


class OpCheckError(Exception):
    pass


def _tensors(value):
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    return [t for item in value for t in _tensors(item)] if isinstance(value, (list, tuple)) else []


def _copy(value):
    if isinstance(value, torch.Tensor):
        return value.detach().clone().requires_grad_(value.requires_grad)
    if isinstance(value, (list, tuple)):
        return type(value)(map(_copy, value))
    return {k: _copy(v) for k, v in value.items()} if isinstance(value, dict) else value


def test_schema(op, args, kwargs, **tolerance):
    """Only what the schema marks is written, and results alias no argument unless it says so."""
    args, kwargs = _copy(args), _copy(kwargs)
    names = [a.name for a in op._schema.arguments]
    given = {**dict(zip(names, args)), **kwargs}
    before = {name: [t.detach().clone() for t in _tensors(value)] for name, value in given.items()}
    with torch.no_grad():
        result = op(*args, **kwargs)
    for argument in op._schema.arguments:
        for was, now in zip(before.get(argument.name, ()), _tensors(given.get(argument.name))):
            if not argument.is_write and not torch.equal(was.nan_to_num(), now.nan_to_num()):
                raise OpCheckError(
                    f"{op}: argument {argument.name} was written to, but the schema does not say so"
                )
    aliased = any(r.alias_info is not None for r in op._schema.returns)
    memory = {t.untyped_storage()._cdata for t in _tensors([args, kwargs]) if t.numel()}
    if not aliased and any(t.untyped_storage()._cdata in memory for t in _tensors(result) if t.numel()):
        raise OpCheckError(f"{op}: a result shares memory with an argument, but the schema does not say so")


def test_autograd_registration(op, args, kwargs, **tolerance):
    """Where results require gradients, there is a derivative registered."""
    args, kwargs = _copy(args), _copy(kwargs)
    if not any(t.requires_grad for t in _tensors([args, kwargs])):
        return
    results = [t for t in _tensors(op(*args, **kwargs)) if t.requires_grad]
    if not results:
        return
    try:
        torch.autograd.grad(
            [r.sum() for r in results],
            [t for t in _tensors([args, kwargs]) if t.requires_grad],
            allow_unused=True,
        )
    except RuntimeError as error:
        raise OpCheckError(f"{op}: the derivative does not work: {error}") from error


def test_faketensor(op, args, kwargs, **tolerance):
    """The fake function gives the real results' shapes, dtypes and strides."""
    from rushlight._subclasses.fake_tensor import FakeTensorMode

    with torch.no_grad():
        real = _tensors(op(*_copy(args), **_copy(kwargs)))
    mode = FakeTensorMode()
    fake_args, fake_kwargs = mode._from_real(_copy(args)), mode._from_real(_copy(kwargs))
    with mode:
        fake = _tensors(op(*fake_args, **fake_kwargs))
    described = [[(tuple(t.shape), t.dtype, t.stride(), t.device) for t in ts] for ts in (real, fake)]
    if described[0] != described[1]:
        raise OpCheckError(f"{op}: the fake function gives {described[1]}, the operator {described[0]}")


def test_aot_dispatch_dynamic(op, args, kwargs, *, atol=None, rtol=None):
    """Two runs with gradients agree."""
    found = []
    for _ in range(2):
        a, k = _copy(args), _copy(kwargs)
        results = _tensors(op(*a, **k))
        wanted = [t for t in _tensors([a, k]) if t.requires_grad]
        sums = [r.sum() for r in results if r.requires_grad]
        grads = torch.autograd.grad(sums, wanted, allow_unused=True) if sums else ()
        found.append([*results, *(g for g in grads if g is not None)])
    for x, y in zip(*found, strict=True):
        torch.testing.assert_close(x, y, atol=atol, rtol=rtol, equal_nan=True)


_TESTS = {
    "test_schema": test_schema,
    "test_autograd_registration": test_autograd_registration,
    "test_faketensor": test_faketensor,
    "test_aot_dispatch_dynamic": test_aot_dispatch_dynamic,
}


def run(op, args, kwargs, test_utils, raise_exception, atol, rtol):
    op = getattr(op, "_opoverload", op)
    if isinstance(op, torch._ops.OpOverloadPacket):
        op = op.default
    chosen = (
        list(_TESTS)
        if test_utils is None
        else [test_utils]
        if isinstance(test_utils, str)
        else list(test_utils)
    )
    if set(chosen) - set(_TESTS):
        raise ValueError(
            f"opcheck(op, ..., test_utils={test_utils}): expected test_utils to be subset of {tuple(_TESTS)}"
        )
    outcome = {}
    for name in chosen:
        try:
            _TESTS[name](
                op, args, kwargs, **({"atol": atol, "rtol": rtol} if name.endswith("dynamic") else {})
            )
            outcome[name] = "SUCCESS"
        except Exception as error:
            if raise_exception:
                raise OpCheckError(f"opcheck(op, ...): {name} failed with {error}") from error
            outcome[name] = error
    return outcome
