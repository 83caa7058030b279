"""Averages of parameters over processes."""

from __future__ import annotations

import rushlight as torch
from rushlight import distributed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from rushlight.distributed._process_group import ProcessGroup

__all__ = ["average_parameters", "average_parameters_or_parameter_groups", "get_params_to_average"]


def average_parameters(params: Any, process_group: ProcessGroup | None) -> None:
    """Replace parameters by their averages over the group, in one vector for each dtype."""
    group = process_group or distributed.group.WORLD
    if distributed.get_rank(group) < 0:
        return
    by_dtype: dict = {}
    for p in params:
        by_dtype.setdefault(p.dtype, []).append(p.detach())
    with torch.no_grad():
        for same in by_dtype.values():
            flat = torch.cat([p.reshape(-1) for p in same])
            flat.div_(distributed.get_world_size(group))
            distributed.all_reduce(flat, group=group)
            for p, part in zip(same, flat.split([p.numel() for p in same])):
                p.copy_(part.view_as(p))


def get_params_to_average(params: Any):
    """Those that have gradients, of parameters or of groups of them; TypeError for other things."""
    found = []
    for entry in params:
        members = entry["params"] if isinstance(entry, dict) else [entry]
        for p in members:
            if not isinstance(p, torch.Tensor):
                raise TypeError(f"Parameter input of type {type(entry)} is not supported")
        found += [p for p in members if p.grad is not None]
    return found


def average_parameters_or_parameter_groups(params: Any, process_group: ProcessGroup | None):
    """`average_parameters` of parameters with gradients."""
    average_parameters(get_params_to_average(params), process_group)
