"""The planners of `save` and `load`: every chunk written once, every rank reads what its parts need."""

import io
from dataclasses import replace

from ... import empty
from ...serialization import load as load_file
from ...serialization import save as save_file
from ._chunks import chunk_of, is_tensor
from ._flatten import flatten, name_of, nested, put
from .filesystem import CheckpointException
from .metadata import BytesStorageMetadata, Metadata, TensorStorageMetadata
from .planner import LoadPlan, LoadPlanner, SavePlan, SavePlanner
from .planner_helpers import _create_read_items, _create_write_items

__all__ = [
    "DefaultLoadPlanner",
    "DefaultSavePlanner",
    "create_default_global_load_plan",
    "create_default_global_save_plan",
    "create_default_local_load_plan",
    "create_default_local_save_plan",
]


def _flat(state_dict, flattens):
    """{name: value} and {name: path} of a state dict."""
    leaves = flatten(state_dict) if flattens else {(key,): value for key, value in state_dict.items()}
    return {name_of(p): value for p, value in leaves.items()}, {name_of(p): p for p in leaves}


# --- writing


def create_default_local_save_plan(state_dict, is_coordinator=False):
    """Everything that this rank holds."""
    return SavePlan([item for name, value in state_dict.items() for item in _create_write_items(name, value)])


_SHARED_OUT = 1 << 16  # bytes of a chunk from which on it matters who writes it


def create_default_global_save_plan(all_plans, rewrite_index_hints=True, to_lowest_rank=False):
    """What all ranks hold, each chunk once and the work shared out by size; and the index."""
    sizes = [{item.index: _item_bytes(item) for item in plan.items} for plan in all_plans]
    writers = _shared_out(sizes, float("inf") if to_lowest_rank else _SHARED_OUT)
    plans = [
        replace(plan, items=[item for item in plan.items if writers[item.index] == rank])
        for rank, plan in enumerate(all_plans)
    ]
    return plans, Metadata(_described(all_plans))


def _item_bytes(item):
    if item.tensor_data is None:
        return item.bytes_io_data.nbytes if item.bytes_io_data else 64
    return item.tensor_data.chunk.sizes.numel() * item.tensor_data.properties.dtype.itemsize


def _shared_out(everyone, least):
    """{index: rank that writes it}: large ones first, each to the least busy rank that has it.

    Chunks of fewer bytes than `least` are written by the first rank that has them: buffers, such as running
    means, differ between the ranks of a data parallel job, and the first rank's are those that count there.
    """
    load, writers = [0] * len(everyone), {}
    keys = {key: size for theirs in reversed(everyone) for key, size in theirs.items()}
    for key in sorted(keys, key=lambda k: (-keys[k], k.fqn, tuple(k.offset or ()))):
        having = [r for r, theirs in enumerate(everyone) if key in theirs]
        writers[key] = min(having, key=load.__getitem__) if keys[key] >= least else having[0]
        load[writers[key]] += keys[key]
    return writers


def _described(plans):
    """{name: what is saved} of the plans of all ranks."""
    found: dict = {}
    for item in (item for plan in plans for item in plan.items):
        name, data = item.index.fqn, item.tensor_data
        if data is None:
            found.setdefault(name, BytesStorageMetadata())
            continue
        known = found.setdefault(name, TensorStorageMetadata(data.properties, data.size, []))
        if not isinstance(known, TensorStorageMetadata) or known.size != data.size:
            other = list(getattr(known, "size", ()))
            raise CheckpointException(
                f"save: the ranks hold tensors of different sizes for {name}: {other}, {list(data.size)}"
            )
        if not any(tuple(chunk.offsets) == tuple(data.chunk.offsets) for chunk in known.chunks):
            known.chunks.append(data.chunk)
    return found


class DefaultSavePlanner(SavePlanner):
    """Writes every chunk once. A subclass may override any step, `lookup_object` (which value an index names)
    and `transform_object` (what is written for it). With `dedup_save_to_lowest_rank` the first rank writes
    all that several ranks hold, small or large."""

    def __init__(
        self,
        flatten_state_dict=True,
        flatten_sharded_tensors=True,
        dedup_replicated_tensors=None,
        dedup_save_to_lowest_rank=False,
        enable_plan_caching=False,
    ):
        self.flatten_state_dict, self.to_lowest_rank = flatten_state_dict, dedup_save_to_lowest_rank
        self.mappings: dict = {}

    def set_up_planner(self, state_dict, storage_meta=None, is_coordinator=False):
        self.state_dict, self.mappings = _flat(state_dict, self.flatten_state_dict)
        self.is_coordinator = is_coordinator

    def create_local_plan(self):
        plan = create_default_local_save_plan(self.state_dict, self.is_coordinator)
        self.plan = replace(plan, planner_data=self.mappings)
        return self.plan

    def create_global_plan(self, all_plans):
        plans, metadata = create_default_global_save_plan(all_plans, to_lowest_rank=self.to_lowest_rank)
        # Names of what no rank holds a part of (empty shards everywhere) stay known by their paths.
        metadata.planner_data = {k: p for plan in all_plans for k, p in (plan.planner_data or {}).items()}
        self.global_plan, self.metadata = plans, metadata
        return plans, metadata

    def finish_plan(self, new_plan):
        self.plan = new_plan
        return new_plan

    def resolve_data(self, write_item):
        return self.transform_object(write_item, self.lookup_object(write_item.index))

    def lookup_object(self, index):
        """The value that an index of the plan names."""
        value = self.state_dict[index.fqn]
        return chunk_of(value)[1] if is_tensor(value) else value

    def transform_object(self, write_item, object):
        """A tensor with memory of its own size, or the bytes of another value."""
        if is_tensor(object):
            own = object.detach()
            return own.clone() if own.untyped_storage().nbytes() != own.nbytes else own
        stream = io.BytesIO()
        save_file(object, stream)
        stream.seek(0)
        return stream


# --- reading


def create_default_local_load_plan(state_dict, metadata, strict=True):
    """What fills a flat state dict; raises RuntimeError for names that are not saved, unless not `strict`."""
    known, items = metadata.state_dict_metadata, []
    missing = [name for name in state_dict if name not in known]
    if missing and strict:
        raise RuntimeError(f"Missing key in checkpoint state_dict: {', '.join(missing)}.")
    for name, value in state_dict.items():
        if name not in known:
            continue
        saved = known[name]
        if is_tensor(value) and isinstance(saved, TensorStorageMetadata) and value.shape != saved.size:
            raise ValueError(
                f"Size mismatch between saved {list(saved.size)} and current: {list(value.shape)} for {name}"
            )
        items += _create_read_items(name, saved, value)
    return LoadPlan(items)


def create_default_global_load_plan(all_plans):
    return all_plans


class DefaultLoadPlanner(LoadPlanner):
    """Reads every key; with `allow_partial_load` keys that the checkpoint lacks keep their values. A subclass
    may override any step, `lookup_tensor` and `transform_tensor`."""

    def __init__(self, flatten_state_dict=True, flatten_sharded_tensors=True, allow_partial_load=False):
        self.flatten_state_dict, self.allow_partial_load = flatten_state_dict, allow_partial_load

    def set_up_planner(self, state_dict, metadata=None, is_coordinator=False):
        self.original_state_dict, self.metadata = state_dict, metadata
        self.state_dict, self.mappings = _flat(state_dict, self.flatten_state_dict)
        self.is_coordinator = is_coordinator
        for name, value in self.state_dict.items():
            saved = metadata.state_dict_metadata.get(name)
            if isinstance(saved, TensorStorageMetadata) and not is_tensor(value):
                self._replace(name, empty(tuple(saved.size), dtype=saved.properties.dtype))

    def _replace(self, name, value):
        self.state_dict[name] = value
        put(self.original_state_dict, self.mappings[name], value)

    def create_local_plan(self):
        return create_default_local_load_plan(self.state_dict, self.metadata, not self.allow_partial_load)

    def create_global_plan(self, global_plan):
        return create_default_global_load_plan(global_plan)

    def finish_plan(self, central_plan):
        return central_plan

    def load_bytes(self, read_item, value):
        loaded = load_file(value, map_location="cpu", weights_only=True)
        self._replace(read_item.dest_index.fqn, loaded)

    def resolve_tensor(self, read_item):
        return self.transform_tensor(read_item, self.lookup_tensor(read_item.dest_index))

    def commit_tensor(self, read_item, tensor):
        pass

    def lookup_tensor(self, index):
        """This process's part of the tensor that an index of the plan names."""
        return chunk_of(self.state_dict[index.fqn])[1]

    def transform_tensor(self, read_item, tensor):
        """The box of the tensor that the item fills."""
        for dim, (begin, length) in enumerate(zip(read_item.dest_offsets, read_item.lengths)):
            tensor = tensor.narrow(dim, begin, length)
        return tensor


class _EmptyStateDictLoadPlanner(DefaultLoadPlanner):
    """Reads what the checkpoint has, or what begins with `keys`, into an empty state dict."""

    def __init__(self, keys=None, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.keys = keys

    def _wants(self, name, path):
        if self.keys is None or name in self.keys:
            return True
        return any(".".join(map(str, path[:n])) in self.keys for n in range(1, len(path)))

    def set_up_planner(self, state_dict, metadata=None, is_coordinator=False):
        if state_dict:
            raise ValueError("an empty state dict is filled; give {}")
        flat = {}
        for name, saved in metadata.state_dict_metadata.items():
            path = tuple((metadata.planner_data or {}).get(name) or (name,))
            if self._wants(name, path):
                tensor = isinstance(saved, TensorStorageMetadata)
                flat[path] = empty(tuple(saved.size), dtype=saved.properties.dtype) if tensor else None
        state_dict.update(nested(flat))
        super().set_up_planner(state_dict, metadata, is_coordinator)
