"""Random numbers, which whoever runs the file draws anew at each run."""

import rushlight as torch

from ._registry import RULES, rule
from .reductions import top_elements


def _drawn(g, kind, like):
    return g.cast(g.op(kind, g.cast(like, torch.float32)), g.out.dtype)


def _like(kind):
    return lambda g, x, *_, **options: _drawn(g, kind, x)


def _sized(kind):
    def translate(g, size, *_, **options):
        zeros = g.op("ConstantOfShape", g.ints(list(size)), dtype=torch.float32, shape=g.out.shape)
        return _drawn(g, kind, zeros)

    return translate


for _name, _kind in (("rand", "RandomUniformLike"), ("randn", "RandomNormalLike")):
    RULES[_name], RULES[f"{_name}_like"] = _sized(_kind), _like(_kind)


@rule("bernoulli")
def bernoulli(g, probabilities, *_, **options):
    """ONNX's Bernoulli is defined the wrong way round where it has no kernel."""
    drawn = g.op("RandomUniformLike", probabilities)
    return g.cast(g.op("Less", drawn, probabilities, dtype=torch.bool), g.out.dtype)


@rule("multinomial")
def multinomial(g, probabilities, num_samples, replacement=False, *, generator=None):
    p = g.cast(probabilities, torch.float32)
    last = p.dim - 1
    if not replacement:
        # The largest of log p + Gumbel's numbers are a sample without replacement.
        drawn = g.op("RandomUniformLike", p)
        noise = g.op("Neg", g.op("Log", g.op("Neg", g.op("Log", drawn))))
        keys = g.op("Add", g.op("Log", p), noise)
        return top_elements(g, keys, num_samples, last, True, True)[1]
    # How many running sums lie at or below a number between 0 and the whole sum.
    sums = g.op("CumSum", p, g.constant(last, torch.int64))
    whole = g.op("ReduceSum", p, g.ints([last]), keepdims=1, shape=(*p.shape[:-1], 1))
    sizes = g.ints([*(g.size(p, d) for d in range(last)), num_samples])
    zeros = g.op("ConstantOfShape", sizes, dtype=torch.float32, shape=g.out.shape)
    drawn = g.op("Mul", g.op("RandomUniformLike", zeros), whole)
    each = g.op("Unsqueeze", drawn, g.ints([-1]), shape=(*drawn.shape, 1))
    sums = g.op("Unsqueeze", sums, g.ints([-2]), shape=(*p.shape[:-1], 1, p.shape[-1]))
    below = g.op("LessOrEqual", sums, each, dtype=torch.bool, shape=(*drawn.shape, p.shape[-1]))
    return g.op("ReduceSum", g.cast(below, torch.int64), g.ints([-1]), keepdims=0, shape=g.out.shape)
