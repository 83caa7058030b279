"""Random numbers, which whoever runs the file draws anew at each run."""

import rushlight as torch

from ._registry import RULES, rule


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
