"""Random numbers of spread tensors: those that one process would draw, of which each keeps its part.

The processes of a mesh must draw alike, so the first one's generator state is given to all when a mesh draws
for the first time. Who draws apart afterwards, outside of spread tensors, parts the streams again.
"""

import rushlight as torch
from rushlight import distributed
from rushlight.distributed.tensor._dtensor_spec import local_shape_and_offset

__all__ = ["manual_seed", "own_part"]


def _synchronised():
    """The meshes that draw alike since this process joined its job."""
    world = distributed.group.WORLD
    if not hasattr(world, "_drawing_meshes"):
        world._drawing_meshes = set()
    return world._drawing_meshes


def _synchronise(mesh):
    if mesh.size() == 1 or mesh in _synchronised():
        return
    _synchronised().add(mesh)
    state = torch.get_rng_state()
    for i in range(mesh.ndim):
        group = mesh.get_group(i)
        distributed.broadcast(state, distributed.get_global_rank(group, 0), group)
    torch.set_rng_state(state)


def own_part(draw, mesh, placements):
    """This process's part of the whole tensor that `draw()` gives."""
    if mesh.get_coordinate() is None:
        return torch.empty(0)
    _synchronise(mesh)
    whole = draw()
    shape, offset = local_shape_and_offset(whole.shape, mesh, placements)
    part = whole
    for dim, (size, start) in enumerate(zip(shape, offset)):
        part = part.narrow(dim, start, size)
    return part if part.numel() == whole.numel() else part.clone(memory_format=torch.contiguous_format)


def manual_seed(seed, device_mesh):
    """Seed the generator of all processes of a mesh; every one must call it, with the same seed.

    Raises RuntimeError when seeds differ."""
    seeds = torch.tensor([seed, -seed])
    for i in range(device_mesh.ndim):
        distributed.all_reduce(seeds, distributed.ReduceOp.MAX, device_mesh.get_group(i))
    if seeds.tolist() != [seed, -seed]:
        raise RuntimeError("manual_seed: the processes of the mesh gave different seeds")
    torch.manual_seed(seed)
    _synchronised().add(device_mesh)
