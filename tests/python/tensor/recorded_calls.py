"""Valid calls of operators that no function of a program names, recorded while others call them.

Kernels behind `torch.ops` alone, most of them gradients, want arguments that fit each other; random ones are
refused before a kernel runs. So the rows of the operator tests run forward and backward under a mode that
keeps such calls.
"""

import warnings

DTYPES = ("float32", "float64", "bfloat16", "complex64", "int64")
SAMPLES_OF_ROW = 6
CALLS_OF_OPERATOR = 24


def name_of(record):
    return ".".join([f"{record['space'] or 'aten'}::{record['name']}", *filter(None, [record["overload"]])])


def copied(rl, value):
    """Another object for each tensor and list, which a call may write to; the strides stay."""
    if isinstance(value, (list, tuple)):
        return type(value)(copied(rl, item) for item in value)
    if not isinstance(value, rl.Tensor) or value.layout != rl.strided:
        return value
    return value.detach().clone()


def recorded(rl, engine, rows, records):
    """{name: [(record, args, kwargs)]} of calls of `records` that the rows lead to."""
    from rushlight.utils._python_dispatch import TorchDispatchMode

    wanted = {name_of(record): record for record in records}
    calls = {}

    class Recorder(TorchDispatchMode):
        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            overload = function._overloadname
            name = function._schema.name + ("" if overload == "default" else "." + overload)
            kept = calls.setdefault(name, []) if name in wanted else None
            if kept is not None and len(kept) < CALLS_OF_OPERATOR:
                kept.append((wanted[name], copied(rl, list(args)), dict(kwargs or {})))
            return function(*args, **(kwargs or {}))

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for row, dtype in [(r, dtype) for r in rows for dtype in r.dtypes if dtype in DTYPES]:
            function = engine.resolve(rl, row.name)
            for sample in list(row.samples(engine.maker(row, dtype)))[:SAMPLES_OF_ROW]:
                args, kwargs = engine.arguments(rl, sample, dtype)
                for value in [*args, *kwargs.values()]:
                    if isinstance(value, rl.Tensor) and (value.is_floating_point() or value.is_complex()):
                        value.requires_grad_()
                with Recorder():
                    run_with_gradients(rl, function, args, kwargs)
    return calls


def run_with_gradients(rl, function, args, kwargs):
    """A call and its gradient; rows also hold samples whose gradients are refused."""
    try:
        result = function(*args, **kwargs)
        results = result if isinstance(result, (list, tuple)) else [result]
        results = [r for r in results if isinstance(r, rl.Tensor) and r.requires_grad]
        if results:
            rl.autograd.backward(results, [rl.ones_like(r) for r in results])
    except RuntimeError:
        pass


def variant(maker, t):
    """A tensor that differs from `t` in one way: shape, strides, dtype, device or values."""
    rl, pick = maker.rl, maker.rng.choice
    dim = maker.rng.randrange(t.dim()) if t.dim() else 0
    changes = [
        lambda: t.unsqueeze(0),
        lambda: t.flatten(),
        lambda: t.new_zeros(()),
        lambda: t.to(getattr(rl, pick(DTYPES))),
        lambda: t.to(rl.int32),
        lambda: t.to(rl.uint8),
        lambda: t.to("meta"),
        lambda: rl.cat([t, t], dim),
        lambda: t.narrow(dim, 0, t.shape[dim] // 2),
        lambda: t.narrow(dim, 0, min(1, t.shape[dim])),
        lambda: t.narrow(dim, 0, 0),
        lambda: t.select(dim, 0),
        lambda: t.transpose(dim, -1),
        lambda: t.narrow(dim, 0, 1).expand(t.shape),
        lambda: maker.tensor(),
    ]
    if t.dtype in (rl.int32, rl.int64):
        changes += [lambda: t + pick([1, 3, 1000, 2**31 - 1]), lambda: t - pick([1, 3, 1000, 2**31 - 1])] * 3
    return pick(changes)()


def call_from(maker, calls):
    """(record, args, kwargs): one of the recorded calls with one or two arguments replaced."""
    rl = maker.rl
    record, args, kwargs = maker.rng.choice(calls)
    args, kwargs = copied(rl, args), {name: copied(rl, value) for name, value in kwargs.items()}
    for value in [*args, *kwargs.values()]:
        if isinstance(value, rl.Tensor) and value.is_floating_point() and maker.chance(0.3):
            value.requires_grad_()
    for _ in range(maker.rng.randint(1, 2)):
        at = maker.rng.choice([*range(len(args)), *kwargs])
        where = args if isinstance(at, int) else kwargs
        tensor = isinstance(where[at], rl.Tensor) and maker.chance(0.9)
        where[at] = variant(maker, where[at]) if tensor else maker.mutated(where[at], "")
    return record, args, kwargs
