"""Quantisation of traced graphs: the steps that `quantize_fx` joins."""
