"""The former home of parts of `torch.library`."""

from rushlight.library import get_ctx, impl_abstract

__all__ = ["get_ctx", "impl_abstract"]
