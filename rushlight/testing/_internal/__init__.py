"""What packages call of PyTorch's own test helpers."""
