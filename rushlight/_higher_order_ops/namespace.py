"""What `torch.ops.higher_order` has: functions, and the operator of those that graphs keep."""

from rushlight._higher_order_ops import associative_scan, cond, map, scan
from rushlight._higher_order_ops._loop_operator import loop_operator as while_loop

__all__ = ["associative_scan", "cond", "map", "scan", "while_loop"]
