"""Plain tensors among spread ones, and plain functions on their parts."""

import contextlib
import functools

import rushlight
from rushlight.distributed.tensor._api import DTensor
from rushlight.distributed.tensor._dispatch import Settings
from rushlight.distributed.tensor.experimental._attention import context_parallel as context_parallel
from rushlight.utils._pytree import tree_flatten, tree_map, tree_unflatten

__all__ = ["context_parallel", "implicit_replication", "local_map", "register_sharding"]


@contextlib.contextmanager
def implicit_replication():
    """Inside, a plain tensor among DTensors counts as one that every process holds."""
    before, Settings.implicit_replication = Settings.implicit_replication, True
    try:
        yield
    finally:
        Settings.implicit_replication = before


def register_sharding(op):
    """Register how an operator shares its work over one dimension of a mesh.

    The function gets the operator's arguments, with a layout for each tensor. It lists pairs of placements:
    of the outputs, and of the arguments, with None for one that is no tensor.
    """

    def ways_of(function, call):
        specs = iter(call.specs)
        values = tree_map(
            lambda value: next(specs) if isinstance(value, rushlight.Tensor) else value, call.args
        )
        named = tree_map(
            lambda value: next(specs) if isinstance(value, rushlight.Tensor) else value, call.kwargs
        )
        for outputs, inputs in function(*values, **named):
            yield list(outputs), [placement for placement in inputs if placement is not None]

    def register(function):
        from rushlight.distributed.tensor import _ops

        for each in op if isinstance(op, (list, tuple)) else [op]:
            _ops.REGISTERED[each] = functools.partial(ways_of, function)
        return function

    return register


def local_map(
    func=None, out_placements=None, in_placements=None, in_grad_placements=None, device_mesh=None, *,
    redistribute_inputs=False,
):  # fmt: skip
    """A function of DTensors from one of their parts.

    Args:
        func: gets the parts of its DTensor arguments.
        out_placements: how the results lie, one list of placements or one for each; None leaves one plain.
        in_placements: how each argument must lie; None for one that is not checked.
        in_grad_placements: how the gradients of the parts lie.
        device_mesh: that of the results; the arguments' if None.
        redistribute_inputs: whether arguments that lie otherwise are redistributed, instead of refused.
    """
    if func is None:
        return functools.partial(
            local_map, out_placements=out_placements, in_placements=in_placements,
            in_grad_placements=in_grad_placements, device_mesh=device_mesh,
            redistribute_inputs=redistribute_inputs,
        )  # fmt: skip

    @functools.wraps(func)
    def mapped(*args, **kwargs):
        leaves, shape = tree_flatten(args)
        mesh, local = device_mesh, []
        for i, leaf in enumerate(leaves):
            if isinstance(leaf, DTensor):
                mesh = mesh or leaf.device_mesh
                wanted = None if in_placements is None else in_placements[i]
                if wanted is not None and leaf.placements != tuple(wanted):
                    if not redistribute_inputs:
                        raise ValueError(
                            f"arg {leaf} in local_map has a mismatched placements: expected {wanted}, "
                            "but got "
                            f"{leaf.placements}"
                        )
                    leaf = leaf.redistribute(placements=wanted)
                grads = None if in_grad_placements is None else in_grad_placements[i]
                leaf = leaf.to_local(grad_placements=grads)
            local.append(leaf)
        result = func(*tree_unflatten(local, shape), **tree_map(_local, kwargs))
        if mesh is None:
            return result
        return _spread(result, out_placements, mesh)

    return mapped


def _local(value):
    return value.to_local() if isinstance(value, DTensor) else value


def _spread(result, placements, mesh):
    leaves, shape = tree_flatten(result)
    single = placements is None or not placements or not isinstance(placements[0], (list, tuple, type(None)))
    each = [placements] * len(leaves) if single else placements
    if len(each) != len(leaves):
        raise ValueError(
            f"local_map requires one PlacementType for each output value, received {len(each)} "
            "placements but "
            f"{len(leaves)} is expected!"
        )
    made = [v if p is None else DTensor.from_local(v, mesh, p) for v, p in zip(leaves, each)]
    return tree_unflatten(made, shape)
