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
    from rushlight._subclasses.schema_check_mode import SchemaCheckMode

    args, kwargs = _copy(args), _copy(kwargs)
    with torch.no_grad(), SchemaCheckMode():
        op(*args, **kwargs)


_AUTOGRAD_KEYS = ("Autograd", "AutogradCPU", "AutogradCUDA", "CompositeImplicitAutograd")


def test_autograd_registration(op, args, kwargs, **tolerance):
    """Where results require gradients, there is a derivative registered where autograd looks for it."""
    args, kwargs = _copy(args), _copy(kwargs)
    wanted = [t for t in _tensors([args, kwargs]) if t.requires_grad]
    if not wanted:
        return
    given = {id(t) for t in _tensors([args, kwargs])}
    results = [t for t in _tensors(op(*args, **kwargs)) if t.requires_grad and id(t) not in given]
    if not results:
        return
    if not any(torch._C._dispatch_has_kernel_for_dispatch_key(op.name(), key) for key in _AUTOGRAD_KEYS):
        raise OpCheckError(
            f"{op}: its results require gradients, but the operator does not have an autograd kernel: one "
            "was registered for a device. Register it with torch.library.register_autograd, or for the key "
            "Autograd."
        )
    try:
        torch.autograd.grad([r.sum() for r in results], wanted, allow_unused=True)
    except RuntimeError as error:
        raise OpCheckError(f"{op}: the derivative does not work: {error}") from error


def test_faketensor(op, args, kwargs, **tolerance):
    """The fake function gives the real results' shapes, dtypes and strides."""
    from rushlight._subclasses.fake_tensor import DynamicOutputShapeException, FakeTensorMode

    with torch.no_grad():
        real = _tensors(op(*_copy(args), **_copy(kwargs)))
    mode = FakeTensorMode()
    fake_args, fake_kwargs = mode._from_real(_copy(args)), mode._from_real(_copy(kwargs))
    try:
        with mode:
            fake = _tensors(op(*fake_args, **fake_kwargs))
    except DynamicOutputShapeException:
        return  # sizes that depend on values: there is nothing to compare
    except NotImplementedError as error:
        raise OpCheckError(f"{op}: {error}") from error
    if len(fake) != len(real):
        raise OpCheckError(f"{op}: the fake function gives {len(fake)} tensors, the operator {len(real)}")
    for f, r in zip(fake, real, strict=True):
        for what, of in _DESCRIBED.items():
            if of(f) != of(r):
                raise OpCheckError(
                    f"{op}: {what} {of(f)} of the fake function and {of(r)} of the operator are not equal"
                )


_DESCRIBED = {
    "Shapes": lambda t: tuple(t.shape),
    "Dtypes": lambda t: t.dtype,
    "Strides": lambda t: tuple(n for n, size in zip(t.stride(), t.shape, strict=True) if size > 1),
    "Devices": lambda t: t.device,
}


def test_aot_dispatch_dynamic(op, args, kwargs, **tolerance):
    """Results and gradients are those of the operator inside of a compiled function with dynamic sizes."""
    _check_compiled(op, args, kwargs, dynamic=True, **tolerance)


def test_aot_dispatch_static(op, args, kwargs, **tolerance):
    """The same with static sizes."""
    _check_compiled(op, args, kwargs, dynamic=False, **tolerance)


def _check_compiled(op, args, kwargs, dynamic, atol=None, rtol=None):
    if (
        op._schema.is_mutable
        and any(r.alias_info is not None for r in op._schema.returns)
        and not _built_in(op)
    ):
        raise OpCheckError(
            f"{op}: We only support functionalizing operators whose outputs do not have alias annotations (a "
            f"Tensor(a) is a Tensor with one), but got {op._schema}"
        )
    compiled = torch.compile(lambda a, k: op(*a, **k), dynamic=dynamic)
    found = [_with_gradients(run, args, kwargs) for run in (lambda a, k: op(*a, **k), compiled)]
    words = f"{op}: Outputs of the operator are different in eager-mode PyTorch vs AOTAutograd"
    if len(found[0]) != len(found[1]):
        raise OpCheckError(f"{words}: {len(found[0])} and {len(found[1])} tensors")
    for x, y in zip(*found, strict=True):
        torch.testing.assert_close(
            y, x, atol=atol, rtol=rtol, equal_nan=True, msg=lambda text: f"{words}: {text}"
        )


def _built_in(op):
    return op.namespace == "aten"


def _with_gradients(run, args, kwargs):
    """The tensors of a call, what it wrote to its arguments, and the gradients of what requires them."""
    args, kwargs = _copy(args), _copy(kwargs)
    given = _tensors([args, kwargs])
    results = _tensors(run(args, kwargs))
    wanted = [t for t in given if t.requires_grad and t.is_leaf]
    sums = [r.sum() for r in results if r.requires_grad]
    grads = torch.autograd.grad(sums, wanted, allow_unused=True) if sums and wanted else ()
    return [*results, *given, *(g for g in grads if g is not None)]


_TESTS = {
    "test_schema": test_schema,
    "test_autograd_registration": test_autograd_registration,
    "test_faketensor": test_faketensor,
    "test_aot_dispatch_dynamic": test_aot_dispatch_dynamic,
}
_ON_REQUEST = {"test_aot_dispatch_static": test_aot_dispatch_static}


def run(op, args, kwargs, test_utils, raise_exception, atol, rtol):
    op = getattr(op, "_opoverload", op)
    if isinstance(op, torch._ops.OpOverloadPacket):
        op = op.default
    if not isinstance(op, torch._ops.OpOverload):
        raise ValueError(
            f"opcheck(op, ...): op must be instance of torch._ops.OpOverload (torch.ops.ns.name.default) or "
            f"a custom operator, got {type(op)}"
        )
    chosen = (
        list(_TESTS)
        if test_utils is None
        else [test_utils]
        if isinstance(test_utils, str)
        else list(test_utils)
    )
    known = {**_TESTS, **_ON_REQUEST}
    if set(chosen) - set(known):
        raise ValueError(
            f"opcheck(op, ..., test_utils={test_utils}): expected test_utils to be subset of {tuple(known)}"
        )
    outcome = {}
    for name in chosen:
        try:
            known[name](op, args, kwargs, atol=atol, rtol=rtol)
            outcome[name] = "SUCCESS"
        except Exception as error:
            if raise_exception:
                raise OpCheckError(f"opcheck(op, ...): {name} failed with {error}") from error
            outcome[name] = error
    return outcome
