"""Operators by name, and what `torch.library` has of this module's names today."""

from rushlight._library.custom_ops import _definitions as global_registry
from rushlight._library.infer_schema import infer_schema
from rushlight._library.utils import lookup_op
from rushlight.library import get_ctx

__all__ = ["get_ctx", "get_op", "global_registry", "infer_schema"]


def get_op(qualname):
    """The operator of this name, ``"ns::name"``."""
    try:
        return lookup_op(qualname)
    except AttributeError:
        raise RuntimeError(
            f"The operator `{qualname}` was not registered. Please make sure that you have imported the "
            "module where it is defined."
        ) from None
