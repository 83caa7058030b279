"""What a checkpoint's reader and writer may be told."""


class DefaultSavePlanner:
    """Writes every chunk once."""

    def __init__(
        self,
        flatten_state_dict=True,
        flatten_sharded_tensors=True,
        dedup_replicated_tensors=None,
        dedup_save_to_lowest_rank=False,
        enable_plan_caching=False,
    ):
        self.flatten_state_dict = flatten_state_dict


class DefaultLoadPlanner:
    """Reads every key; with `allow_partial_load` keys that the checkpoint lacks keep their values."""

    def __init__(self, flatten_state_dict=True, flatten_sharded_tensors=True, allow_partial_load=False):
        self.flatten_state_dict, self.allow_partial_load = flatten_state_dict, allow_partial_load


class _EmptyStateDictLoadPlanner(DefaultLoadPlanner):
    """Reads what the checkpoint has, or what begins with `keys`, into an empty state dict."""

    def __init__(self, keys=None, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.keys = keys

    def _wants(self, name, path):
        if self.keys is None or name in self.keys:
            return True
        return any(".".join(map(str, path[:n])) in self.keys for n in range(1, len(path)))

    def fill(self, state_dict, index):
        from ... import empty
        from ._flatten import nested
        from .metadata import TensorStorageMetadata

        if state_dict:
            raise ValueError("an empty state dict is filled; give {}")
        flat = {}
        for name, saved in index.state_dict_metadata.items():
            path = tuple((index.planner_data or {}).get(name) or (name,))
            if self._wants(name, path):
                tensor = isinstance(saved, TensorStorageMetadata)
                flat[path] = empty(tuple(saved.size), dtype=saved.properties.dtype) if tensor else None
        state_dict.update(nested(flat))
