"""Kinds of quantisation: when the numbers that integers stand for are found."""

import enum

__all__ = ["QuantType", "quant_type_to_str"]


class QuantType(enum.IntEnum):
    """When scales are found: at each call, once from samples, in training, or for weights only."""

    DYNAMIC = 0
    STATIC = 1
    QAT = 2
    WEIGHT_ONLY = 3


def quant_type_to_str(quant_type):
    """The kind as programs that read configurations spell it."""
    return QuantType(quant_type).name.lower()


_get_quant_type_to_str = quant_type_to_str


def _quant_type_from_str(name):
    try:
        return QuantType[name.upper()]
    except KeyError:
        raise ValueError(
            f"unknown kind of quantisation {name!r}: one of {[quant_type_to_str(k) for k in QuantType]}"
        ) from None
