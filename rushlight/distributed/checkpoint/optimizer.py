"""Reading the state of an optimizer whose tensors were spread."""

from typing import Any

from rushlight.distributed.tensor import DTensor, Replicate

from ._flatten import nested
from .metadata import TensorStorageMetadata
from .state_dict_loader import load

__all__ = ["load_sharded_optimizer_state_dict"]


def load_sharded_optimizer_state_dict(model_state_dict, optimizer_key, storage_reader, planner=None):
    """{optimizer_key: state}: tensors are spread as the model's of the same names and shapes.

    Args:
        model_state_dict: the model's sharded state.
        optimizer_key: the key under which the optimizer's state was saved.
        storage_reader: where from.
    """
    from rushlight import empty

    index = storage_reader.read_metadata()
    flat: dict[tuple, Any] = {}
    for name, saved in index.state_dict_metadata.items():
        path = tuple(index.planner_data.get(name) or (name,))
        if path[0] != optimizer_key:
            continue
        flat[path] = None
        if isinstance(saved, TensorStorageMetadata):
            like = model_state_dict.get(path[2]) if len(path) > 2 else None
            flat[path] = empty(tuple(saved.size), dtype=saved.properties.dtype)
            if isinstance(like, DTensor) and like.shape == saved.size:
                whole = DTensor.from_local(
                    flat[path], like.device_mesh, [Replicate()] * like.device_mesh.ndim
                )
                flat[path] = whole.redistribute(placements=like.placements)
    state = nested(flat)
    load(state, storage_reader=storage_reader, planner=planner)
    return state
