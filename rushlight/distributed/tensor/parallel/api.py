"""`parallelize_module`: give styles to the modules that a plan names."""

from __future__ import annotations

import warnings
from fnmatch import fnmatch

from rushlight.distributed.tensor._api import _current_mesh
from rushlight.distributed.tensor.parallel.style import ParallelStyle

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from rushlight.distributed.device_mesh import DeviceMesh
    from rushlight.nn import Module

__all__ = ["parallelize_module"]


def parallelize_module(
    module: Module,
    device_mesh: DeviceMesh | None = None,
    parallelize_plan: Any = None,
    *,
    src_data_rank: int | None = 0,
) -> Module:
    """Make a module, or those within it that a plan names, share their work over a mesh.

    Args:
        device_mesh: a mesh of one dimension.
        parallelize_plan: a style for the module, or {path: style}; paths may hold wildcards, as
            "layers.*.w1".
        src_data_rank: whose parameters count; None: every process cuts its own.

    Returns the module. Raises TypeError for a plan of another kind, ValueError for a mesh that does not fit.
    """
    mesh = _current_mesh(device_mesh)
    if mesh.ndim != 1:
        raise ValueError(
            f"parallelize_module: the mesh has {mesh.ndim} dimensions {mesh.mesh_dim_names}; take one of "
            "them, "
            "as mesh['tp']"
        )
    if parallelize_plan is None:
        warnings.warn(
            "No parallelize_plan is provided and auto-parallel is not supported at the moment, so this "
            "parallelize_module call will do nothing.",
            stacklevel=2,
        )
        return module
    if isinstance(parallelize_plan, ParallelStyle):
        parallelize_plan.src_data_rank = src_data_rank
        return parallelize_plan._apply(module, mesh)
    if not isinstance(parallelize_plan, dict):
        raise TypeError(
            "Expect Union[ParallelStyle, Dict[str, ParallelStyle]] for parallelize_plan, "
            f"{type(parallelize_plan)} found!"
        )
    for path, style in parallelize_plan.items():
        if path == "":
            parallelize_module(module, mesh, style, src_data_rank=src_data_rank)
            continue
        found = list(_named(module, path.split(".")))
        if not found:
            warnings.warn(
                f"Parallelize plan key '{path}' could not be resolved: no submodule matching it", stacklevel=2
            )
        for child in found:
            parallelize_module(child, mesh, style, src_data_rank=src_data_rank)
    return module


def _named(module, parts):
    """The modules at a path whose parts may hold wildcards."""
    if not parts:
        yield module
        return
    for name, child in module.named_children():
        if fnmatch(name, parts[0]):
            yield from _named(child, parts[1:])
