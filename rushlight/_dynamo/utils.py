"""What a device can be compiled for."""

__all__ = ["is_compile_supported"]


def is_compile_supported(device_type):
    """Whether functions of tensors on a device can be compiled: on none."""
    return False
