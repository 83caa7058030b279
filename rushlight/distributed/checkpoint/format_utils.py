"""Distributed checkpoints as single files, and back."""

from __future__ import annotations

from .default_planner import _EmptyStateDictLoadPlanner
from .state_dict_loader import load
from .state_dict_saver import save

TYPE_CHECKING = False
if TYPE_CHECKING:
    from os import PathLike

__all__ = ["dcp_to_torch_save", "torch_save_to_dcp"]


def dcp_to_torch_save(dcp_checkpoint_dir: str | PathLike[str], torch_save_path: str | PathLike[str]) -> None:
    """Write the whole state of a distributed checkpoint to a single file; one process does it."""
    from ...serialization import save as save_file

    state: dict = {}
    load(state, checkpoint_id=dcp_checkpoint_dir, planner=_EmptyStateDictLoadPlanner(), no_dist=True)
    save_file(state, torch_save_path)


def torch_save_to_dcp(torch_save_path: str | PathLike[str], dcp_checkpoint_dir: str | PathLike[str]) -> None:
    """Write the state in a single file as a distributed checkpoint; one process does it."""
    from ...serialization import load as load_file

    save(load_file(torch_save_path, weights_only=True), checkpoint_id=dcp_checkpoint_dir, no_dist=True)
