"""What a checkpoint's reader and writer may be told."""


class DefaultSavePlanner:
    """Writes every key once."""

    def __init__(self, flatten_state_dict=True, flatten_sharded_tensors=True, dedup_replicated_tensors=None):
        self.flatten_state_dict = flatten_state_dict


class DefaultLoadPlanner:
    """Reads every key; with `allow_partial_load` keys that the checkpoint lacks keep their values."""

    def __init__(self, flatten_state_dict=True, flatten_sharded_tensors=True, allow_partial_load=False):
        self.flatten_state_dict, self.allow_partial_load = flatten_state_dict, allow_partial_load
