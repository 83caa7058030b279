"""What `torch.ops.higher_order` has: functions, and the operators of those that graphs keep."""

from rushlight._higher_order_ops import associative_scan, map
from rushlight._higher_order_ops._choice_operator import choice_operator as cond
from rushlight._higher_order_ops._loop_operator import loop_operator as while_loop
from rushlight._higher_order_ops._map_operator import map_operator as map_impl
from rushlight._higher_order_ops._scan_operator import scan_operator as scan
from rushlight._higher_order_ops.wrap import wrap_with_autocast, wrap_with_set_grad_enabled

__all__ = [
    "associative_scan",
    "cond",
    "map",
    "map_impl",
    "scan",
    "while_loop",
    "wrap_with_autocast",
    "wrap_with_set_grad_enabled",
]
