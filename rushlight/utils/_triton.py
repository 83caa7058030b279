"""Whether Triton may be used: it compiles for GPUs, of which this build knows none."""

__all__ = ["has_triton", "has_triton_package"]


def has_triton_package():
    from importlib.util import find_spec

    return find_spec("triton") is not None


def has_triton():
    return False


has_triton_tma = has_triton_tma_device = has_triton
