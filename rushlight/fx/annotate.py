"""`annotate`: say what type a traced value has."""

from __future__ import annotations

from .proxy import Proxy

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["annotate"]


def annotate(val: Any, type: Any) -> Any:
    """The value; the node of a proxy gets the type."""
    if isinstance(val, Proxy):
        if val.node.type:
            raise RuntimeError(
                f"Tried to annotate a value that already had a type on it! Existing type is {val.node.type} "
                f"and new type is {type}. This could happen if you tried to annotate a function parameter "
                "value (in which case you should use the type slot on the function signature) or you called "
                "annotate on the same value twice"
            )
        val.node.type = type
    return val
