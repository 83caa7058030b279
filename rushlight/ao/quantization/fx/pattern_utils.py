"""Tables of patterns that programs add to: older programs fuse and quantise by them."""

import copy

from ..fake_quantize import FixedQParamsFakeQuantize

__all__ = [
    "get_default_fusion_patterns",
    "get_default_output_activation_post_process_map",
    "get_default_quant_patterns",
]

_DEFAULT_FUSION_PATTERNS: dict = {}
_DEFAULT_QUANTIZATION_PATTERNS: dict = {}
_DEFAULT_OUTPUT_FAKE_QUANTIZE_MAP: dict = {}
_DEFAULT_OUTPUT_OBSERVER_MAP: dict = {}


def _register_fusion_pattern(pattern):
    """A decorator of what fuses a pattern."""

    def insert(handler):
        _DEFAULT_FUSION_PATTERNS[pattern] = handler
        return handler

    return insert


def _register_quant_pattern(pattern, fixed_qparams_observer=None):
    """A decorator of what quantises a pattern, whose range may be known."""

    def insert(handler):
        _DEFAULT_QUANTIZATION_PATTERNS[pattern] = handler
        if fixed_qparams_observer is not None:
            rounding = FixedQParamsFakeQuantize.with_args(observer=fixed_qparams_observer)
            _DEFAULT_OUTPUT_FAKE_QUANTIZE_MAP[pattern] = rounding
            _DEFAULT_OUTPUT_OBSERVER_MAP[pattern] = fixed_qparams_observer
        return handler

    return insert


def get_default_fusion_patterns():
    return copy.copy(_DEFAULT_FUSION_PATTERNS)


def get_default_quant_patterns():
    return copy.copy(_DEFAULT_QUANTIZATION_PATTERNS)


def get_default_output_activation_post_process_map(is_training):
    """What watches results whose range is known."""
    return copy.copy(_DEFAULT_OUTPUT_FAKE_QUANTIZE_MAP if is_training else _DEFAULT_OUTPUT_OBSERVER_MAP)
