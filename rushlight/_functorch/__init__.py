"""The function transforms behind ``torch.func`` and ``torch.vmap``."""
