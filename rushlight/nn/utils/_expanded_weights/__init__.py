"""Weights of which every example gets a gradient of its own, written to ``grad_sample``."""

from rushlight.nn.utils._expanded_weights.expanded_weights_impl import ExpandedWeight

__all__ = ["ExpandedWeight"]
