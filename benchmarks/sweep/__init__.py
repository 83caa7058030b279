"""A sweep over all operators: samples by dtype, layout and size, forward and backward, beside PyTorch."""
