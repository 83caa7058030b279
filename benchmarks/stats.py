"""Statistics of paired samples. A ratio above 1 means that we need less (time, memory) than the peer."""

import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

CONFIDENCE = 0.9


@dataclass(frozen=True)
class Ratio:
    """The median of the rounds' ratios and, as estimate of its noise, a confidence interval of it."""

    value: float
    low: float
    high: float

    @property
    def noise(self) -> float:
        """Half the width of the interval, relative to the ratio."""
        return (self.high - self.low) / (2 * self.value)


def paired_ratio(ours: Sequence[float], peer: Sequence[float]) -> Ratio:
    """Samples with one index come from one round: what disturbs the machine then disturbs both."""
    if not ours or len(ours) != len(peer):
        raise ValueError(f"paired_ratio: needs samples in pairs, received {len(ours)} and {len(peer)}")
    ratios = sorted(theirs / own for own, theirs in zip(ours, peer))
    rank = interval_rank(len(ratios))
    return Ratio(statistics.median(ratios), ratios[rank], ratios[-1 - rank])


def interval_rank(count: int) -> int:
    """How many of the sorted samples to leave out at each end, so that the rest still holds the true median
    with a probability of CONFIDENCE, whatever the distribution; 0 also where there are too few for that."""
    outside, rank = 0.0, 0
    while rank < (count - 1) // 2:
        outside += 2 * math.comb(count, rank) / 2**count
        if 1 - outside - 2 * math.comb(count, rank + 1) / 2**count < CONFIDENCE:
            break
        rank += 1
    return rank


def geometric_mean(values: Iterable[float]) -> float:
    logarithms = [math.log(value) for value in values]
    return math.exp(statistics.fmean(logarithms)) if logarithms else math.nan


def format_value(value: float, unit: str) -> str:
    """Three digits with a fitting unit: 12.3 µs."""
    if unit != "s":
        return f"{value:.3g} {unit}" if value < 1000 else f"{value:.0f} {unit}"
    for factor, name in ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs")):
        if value >= factor:
            return f"{value / factor:.3g} {name}" if value / factor < 1000 else f"{value / factor:.0f} {name}"
    return f"{value * 1e9:.3g} ns"
