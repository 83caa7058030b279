"""Arguments of a call replaced by something near them that nobody should pass."""

import math
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python" / "tensor"))

from hostile import LAYOUTS  # noqa: E402
from odd_values import odd_tensors, odd_value  # noqa: E402
from operator_samples import DTYPES  # noqa: E402

HUGE = (
    2**31 - 1,
    2**31,
    2**32 + 1,
    2**62,
    2**63 - 1,
    2**63,
    2**64,
    -(2**31),
    -(2**62),
    -(2**63),
    -(2**64),
    10**30,
)
SMALL = (-3, -2, -1, 0, 1, 2, 3, 7, 64, 65)
FLOATS = (0.0, -0.0, 1.5, -1.0, 1e-300, 1e30, 1e308, -1e308, math.inf, -math.inf, math.nan)
EXPECTED = (
    ArithmeticError, AttributeError, BufferError, LookupError, MemoryError, RuntimeError, TypeError,
    ValueError,
)  # fmt: skip


class Damage:
    """One argument replaced by something near it that nobody should pass."""

    def __init__(self, rl, rng):
        self.rl, self.rng = rl, rng

    def chance(self, probability):
        return self.rng.random() < probability

    def anything(self):
        rl, pick = self.rl, self.rng.choice
        loop = [1.0]
        loop.append(loop)
        nest = []
        nest.append(nest)
        makers = (
            lambda: None,
            lambda: pick(HUGE),
            lambda: pick(SMALL),
            lambda: pick(FLOATS),
            lambda: pick((True, 1 + 2j, complex("nan"), "", "bogus", "\0", "é" * 300, b"x")),
            lambda: pick(
                ([], (), [None], [[]], [1, "a"], {}, {1: 2}, set(), [2**64] * 3, [-1] * 70, [1.5, 2])
            ),
            lambda: pick(
                (loop, nest, range(3), iter([1]), slice(None), slice(2**70), ..., object(), int, len)
            ),
            lambda: pick(
                (rl.float32, rl.bool, rl.complex64, rl.strided, rl.device("meta"), rl.channels_last)
            ),
            lambda: rl.zeros(pick(((), (0,), (1,), (2, 0, 3), (3, 3), (1,) * 70))),
            lambda: [rl.ones(2), rl.ones(3, dtype=rl.int64)],
            lambda: rl.zeros(3, device="meta"),
            lambda: [[1.0] * 3, [2.0] * pick((2, 3))],
            lambda: odd_value(self.rng),
            lambda: pick(odd_tensors(rl))(),
        )
        return pick(makers)()

    def integer(self, value):
        near = (value + 1, value - 1, -value, value * 2, value + 0.5, float(value), str(value), bool(value))
        return self.rng.choice((self.rng.choice(HUGE), self.rng.choice(SMALL), self.rng.choice(near)))

    def sequence(self, value):
        changed = list(value)
        if changed and self.chance(0.6):
            at = self.rng.randrange(len(changed))
            changed[at] = self.damaged(changed[at])
        elif self.chance(0.2):
            changed.append(changed)
        elif self.chance(0.3):
            changed *= self.rng.choice((2, 40))
        elif self.chance(0.5):
            changed = changed[: len(changed) // 2]
        else:
            changed.insert(0, self.anything())
        return tuple(changed) if type(value) is tuple else changed

    def reshaped(self, t):
        rng = self.rng
        options = [
            lambda: t.unsqueeze(0),
            lambda: t.unsqueeze(-1),
            lambda: t.reshape(-1),
            lambda: t.new_zeros(()),
        ]
        if t.dim():
            at = rng.randrange(t.dim())
            options += [lambda: t.narrow(at, 0, 0), lambda: t.select(at, 0), lambda: t.sum(at, dtype=t.dtype)]
            options += [lambda: t.narrow(at, 0, 1), lambda: self.rl.cat([t, t], at), lambda: t.movedim(at, 0)]
            options += [lambda: t.unsqueeze(at).expand(*t.shape[:at], 3, *t.shape[at:])]
        return rng.choice(options)()

    def restrided(self, t):
        """Elements that lie on top of each other, or one element with strides that no memory has."""
        rng, room = self.rng, t.untyped_storage().nbytes() // max(1, t.element_size())
        if self.chance(0.5) or room <= sum(n - 1 for n in t.shape):
            shape = [rng.choice((0, 1)) for _ in t.shape]
            return t.as_strided(shape, [rng.choice((0, 1, 2**40, 2**62)) for _ in shape])
        return t.as_strided(t.shape, [rng.choice((0, 1)) for _ in t.shape], 0)

    def with_values(self, t):
        rng = self.rng
        if t.dtype == self.rl.bool or not t.numel():
            return ~t if t.dtype == self.rl.bool else t
        if t.is_floating_point() or t.is_complex():
            values = (math.nan, math.inf, -math.inf, 0.0, -1.0, 1e30)
        else:
            info = self.rl.iinfo(t.dtype)
            values = (info.max, info.min, 0, 100, info.max // 2)
        t = t.detach().clone()
        if self.chance(0.3):
            return t.fill_(rng.choice(values))
        t.view(-1)[rng.randrange(t.numel())] = rng.choice(values)
        return t

    def emptied(self, t):
        t = t.detach().clone()
        t.untyped_storage().resize_(0)
        return t

    def tensor(self, t):
        rl, rng = self.rl, self.rng
        other = lambda: t.detach().to(
            getattr(rl, rng.choice((*DTYPES, "complex128", "int8", "uint16", "uint64")))
        )
        options = (
            *[self.reshaped, self.with_values] * 3,
            *[lambda t: other()] * 3,
            lambda t: rng.choice(LAYOUTS)(rl, t.detach()),
            lambda t: t.detach().to("meta"),
            lambda t: t.detach().requires_grad_(not t.requires_grad),
            lambda t: t.detach().numpy(),
            lambda t: t.tolist(),
            lambda t: t.detach().to_sparse(),
            lambda t: t.conj(),
            self.emptied,
            self.restrided,
            lambda t: rng.choice(odd_tensors(rl))(),
            lambda t: t.new_empty(0),
            lambda t: self.anything(),
        )
        return rng.choice(options)(t)

    def damaged(self, value):
        if self.chance(0.12):
            return self.anything()
        try:
            if isinstance(value, self.rl.Tensor):
                return self.tensor(value)
        except EXPECTED:
            return self.anything()
        if isinstance(value, bool):
            return self.rng.choice((not value, 2, None, "yes", -1))
        if isinstance(value, int):
            return self.integer(int.__add__(value, 0))  # of subclasses, whose methods may fail
        if isinstance(value, float):
            whole = int(value) if math.isfinite(value) else 0
            return self.rng.choice((self.rng.choice(FLOATS), -value, whole, str(value)))
        if isinstance(value, str):
            return self.rng.choice((value.upper(), value + "x", "", value * 40, "mean", "none", "sum"))
        if isinstance(value, (list, tuple)):
            return self.sequence(value)
        if isinstance(value, dict) and value and self.chance(0.7):
            at = self.rng.choice(list(value))
            return {**value, at: self.damaged(value[at])}
        if isinstance(value, slice):
            return slice(self.damaged(value.start or 0), value.stop, value.step)
        return self.anything()

    def target(self, args):
        """An `out` of some type, shape and place: the operand itself, part of it, or a list."""
        rl, rng = self.rl, self.rng
        operand = next((a for a in args if isinstance(a, rl.Tensor)), rl.ones(2, 3))
        dtype = getattr(rl, rng.choice(DTYPES))
        made = (
            lambda: rl.empty(operand.shape, dtype=dtype),
            lambda: rl.empty(0, dtype=dtype),
            lambda: operand,
            lambda: operand[..., :1].expand(operand.shape),
            lambda: rng.choice(LAYOUTS)(rl, rl.zeros(operand.shape, dtype=dtype)),
            lambda: operand.detach().to("meta"),
            lambda: operand.detach().to_sparse(),
            lambda: (
                rl.zeros(operand.shape, dtype=dtype, requires_grad=True) if dtype.is_floating_point else None
            ),
            lambda: self.anything(),
        )
        one = rng.choice(made)()
        return rng.choice((one, one, one, (one, rl.empty(0, dtype=rl.int64)), [one] * 3))

    def call(self, args, kwargs):
        """The arguments with one or two damaged, sometimes left out or more than there are."""
        args, kwargs = list(args), dict(kwargs)
        for _ in range(self.rng.choice((1, 1, 2))):
            places = [*range(len(args)), *kwargs]
            if not places:
                break
            at = self.rng.choice(places)
            where = args if isinstance(at, int) else kwargs
            where[at] = self.damaged(where[at])
        if self.chance(0.06):
            try:
                kwargs["out"] = self.target(args)
            except EXPECTED:
                kwargs["out"] = self.anything()
        elif self.chance(0.03) and args:
            args.pop()
        elif self.chance(0.03):
            args.append(self.anything())
        elif self.chance(0.02):
            kwargs[self.rng.choice(("out", "dtype", "dim", "bogus", "generator", "input"))] = self.anything()
        return args, kwargs
