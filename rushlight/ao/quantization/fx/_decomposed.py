"""`torch.ops.quantized_decomposed`: rounding to integers and back as graphs write it down.

The operators are the core's. This module is where programs import them from.
"""

import rushlight

__all__ = ["quantized_decomposed_lib"]

quantized_decomposed_lib = rushlight.library.Library("quantized_decomposed", "FRAGMENT")


def _per_token_quant_qparam_dim_check(input, scales, zero_points):
    """There is one scale and one zero point for each token."""
    tokens = input.numel() // input.size(-1)
    if tokens != scales.numel():
        raise AssertionError(f"num_tokens: {tokens} scales: {scales.size()}")
    if tokens != zero_points.numel():
        raise AssertionError(f"num_tokens: {tokens} zero_points: {zero_points.size()}")
