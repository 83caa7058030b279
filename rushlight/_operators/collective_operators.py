"""`torch.ops._c10d_functional`: collectives that give new tensors, under the names that graphs and
packages use."""

import rushlight as torch

_library = torch.library.Library("_c10d_functional", "FRAGMENT")


def _collectives():
    """Imported when one runs: most programs name these operators and run none."""
    from rushlight.distributed import _functional_collectives

    return _functional_collectives


_OPERATORS = {
    "all_gather_into_tensor(Tensor input, int group_size, str group_name) -> Tensor": (
        lambda input, group_size, group_name: _collectives().all_gather_tensor(input, 0, group_name)
    ),
    "all_reduce(Tensor input, str reduce_op, str group_name) -> Tensor": (
        lambda input, reduce_op, group_name: _collectives().all_reduce(input, reduce_op, group_name)
    ),
    "broadcast(Tensor input, int src, str group_name) -> Tensor": (
        lambda input, src, group_name: _collectives().broadcast(input, src, group_name)
    ),
    "reduce_scatter_tensor(Tensor input, str reduce_op, int group_size, str group_name) -> Tensor": (
        lambda input, reduce_op, group_size, group_name: _collectives().reduce_scatter_tensor(
            input, reduce_op, 0, group_name
        )
    ),
    "all_to_all_single(Tensor input, SymInt[] output_split_sizes, SymInt[] input_split_sizes, "
    "str group_name) -> Tensor": (
        lambda input, received, sent, group_name: _collectives().all_to_all_single(
            input, received, sent, group_name
        )
    ),
    "wait_tensor(Tensor tensor) -> Tensor": lambda tensor: _collectives().wait_tensor(tensor).clone(),
    "_wrap_tensor_autograd(Tensor input) -> Tensor": lambda input: input.clone(),
}

for _schema, _function in _OPERATORS.items():
    _library.define(_schema)
    _library.impl(_schema.partition("(")[0], _function, "CompositeExplicitAutograd")


# The older namespace: a group is named by a tag and its ranks.
_older = torch.library.Library("c10d_functional", "FRAGMENT")
for _schema, _function in {
    "all_gather_into_tensor(Tensor input, str tag, int[] ranks, int group_size) -> Tensor": (
        lambda input, tag, ranks, group_size: _collectives().all_gather_tensor(input, 0, list(ranks), tag)
    ),
    "all_reduce(Tensor input, str reduce_op, str tag, int[] ranks, int group_size) -> Tensor": (
        lambda input, reduce_op, tag, ranks, group_size: _collectives().all_reduce(
            input, reduce_op, list(ranks), tag
        )
    ),
    "reduce_scatter_tensor(Tensor input, str reduce_op, str tag, int[] ranks, int group_size) -> Tensor": (
        lambda input, reduce_op, tag, ranks, group_size: _collectives().reduce_scatter_tensor(
            input, reduce_op, 0, list(ranks), tag
        )
    ),
    "all_to_all_single(Tensor input, SymInt[]? output_split_sizes, SymInt[]? input_split_sizes, str tag, "
    "int[] ranks, int group_size) -> Tensor": (
        lambda input, received, sent, tag, ranks, group_size: _collectives().all_to_all_single(
            input, received, sent, list(ranks), tag
        )
    ),
    "broadcast(Tensor self, int src, str tag, int[] ranks, int group_size) -> Tensor": (
        lambda self, src, tag, ranks, group_size: _collectives().broadcast(self, src, list(ranks), tag)
    ),
    "wait_tensor(Tensor tensor) -> Tensor": lambda tensor: _collectives().wait_tensor(tensor).clone(),
}.items():
    _older.define(_schema)
    _older.impl(_schema.partition("(")[0], _function, "CompositeExplicitAutograd")


# What `torch.distributed.scatter` and `broadcast` are as operators: lists of tensors, and a group by
# its name.
_c10d = torch.library.Library("c10d", "FRAGMENT")


def _scatter(output_tensors, input_tensors, process_group, root_rank, asyncOp=True, timeout=-1):
    """One output a rank; the inputs are the root's, a part for each rank."""
    from rushlight import distributed

    group = distributed._resolve_process_group(process_group)
    (output,) = output_tensors
    parts = list(input_tensors) if group.rank() == root_rank else None
    distributed.scatter(output, parts, distributed.get_global_rank(group, root_rank), group)
    return [output]


def _broadcast(tensors, process_group, root_rank, root_tensor, asyncOp=True, timeout=-1):
    from rushlight import distributed

    group = distributed._resolve_process_group(process_group)
    for tensor in tensors:
        distributed.broadcast(tensor, distributed.get_global_rank(group, root_rank), group)
    return list(tensors)


for _schema, _function in {
    "scatter_(Tensor[] output_tensors, Tensor[] input_tensors, str process_group, int root_rank, "
    "bool asyncOp=True, int timeout=-1) -> Tensor[]": _scatter,
    "broadcast_(Tensor[] tensors, str process_group, int root_rank, int root_tensor, bool asyncOp=True, "
    "int timeout=-1) -> Tensor[]": _broadcast,
}.items():
    _c10d.define(_schema)
    _c10d.impl(_schema.partition("(")[0], _function, "CompositeExplicitAutograd")
