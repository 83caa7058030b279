"""Remote procedure calls. This build has none: `is_available` says so, as PyTorch's does where it lacks
them."""


def is_available():
    return False
