"""Ranges of symbolic sizes, by the names of PyTorch's own modules for them."""
