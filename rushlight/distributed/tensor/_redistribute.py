"""Moving a spread tensor from one placement to another.

A dimension of the mesh that cuts within the parts of another one must be undone before that one can be. So
the plan is: sums that become whole first, while parts are small; then cuts are undone, the innermost first;
then what is left is cut, the outermost first.
"""

import rushlight as torch
from rushlight.distributed import _functional_collectives as collectives
from rushlight.distributed.tensor._dtensor_spec import DTensorSpec, local_shape_and_offset, shard_order
from rushlight.distributed.tensor.placement_types import Partial, Replicate, Shard, pad_dim

__all__ = ["Redistribute", "redistribute_local_tensor"]


def redistribute_local_tensor(local, current, target):
    """This process's part under the placements of `target`, from its part under those of `current`."""
    if current.placements == target.placements or current.mesh.get_coordinate() is None:
        return local
    return _Move(local, current, target).run()


def _plain(placements):
    """Without the marks that some whole tensors carry."""
    return [Replicate() if p.is_replicate() else p for p in placements]


def _changed(now, then):
    return {i for i, (a, b) in enumerate(zip(now, then)) if a != b}


class _Move:
    def __init__(self, local, current, target):
        self.local, self.mesh, self.shape = local, current.mesh, list(current.shape)
        self.now, self.then = _plain(current.placements), _plain(target.placements)
        self.coordinate = self.mesh.get_coordinate()

    def run(self):
        for i, (a, b) in enumerate(zip(self.now, self.then)):
            if isinstance(a, Partial) and a != b and not b.is_shard():
                self._set(i, self._summed(i, a), Replicate())
        swapped = self._swaps()
        for i in reversed(self._undone(swapped)):
            self._set(i, self._gathered(i), Replicate())
        for i in swapped:
            self._set(i, self._swapped(i), self.then[i])
        for i in shard_order(self.then):
            if self.now[i] != self.then[i]:
                cut = self._scattered if isinstance(self.now[i], Partial) else self._cut
                self._set(i, cut(i), self.then[i])
        for i in _changed(self.now, self.then):
            self._set(i, self._as_term(i), self.then[i])
        return self.local

    def _set(self, i, local, placement):
        self.local, self.now[i] = local, placement

    def _swaps(self):
        """Mesh dimensions that cut one dimension instead of another, which nobody else cuts."""
        found = []
        for i, (a, b) in enumerate(zip(self.now, self.then)):
            if not (type(a) is Shard and type(b) is Shard and a != b):
                continue
            others = [p for ps in (self.now, self.then) for j, p in enumerate(ps) if j != i and p.is_shard()]
            if not any(p.dim in (a.dim, b.dim) for p in others):
                found.append(i)
        return found

    def _undone(self, swapped):
        """Mesh dimensions whose cuts are undone, in the order in which they were made."""
        changed = _changed(self.now, self.then) - set(swapped)
        undone, order, after = [], shard_order(self.now), shard_order(self.then)
        for place, i in enumerate(order):
            if i in swapped:
                continue
            dim = self.now[i].dim
            before = set(order[:place]) | (set(after[: after.index(i)]) if i in after else set())
            outer = any(
                j in changed and (self.now[j].is_shard(dim) or self.then[j].is_shard(dim)) for j in before
            )
            if i in changed or outer:
                undone.append(i)
        return undone

    def _group(self, i):
        return self.mesh.get_group(i)

    def _summed(self, i, partial):
        reduced = collectives.all_reduce(partial._before(self.local), partial.reduce_op, self._group(i))
        return partial._after(reduced)

    def _extent(self, i, placements, dim):
        """How many rows of a dimension the processes along mesh dimension i cut among them."""
        return local_shape_and_offset(self.shape, self.mesh, placements, self.coordinate, upto=i)[0][dim]

    def _gathered(self, i):
        dim, ranks = self.now[i].dim, self.mesh.size(i)
        rows = self._extent(i, self.now, dim)
        step = -(-rows // ranks)
        local = pad_dim(self.local, dim, step - self.local.shape[dim])
        whole = collectives.all_gather_tensor(local, dim, self._group(i))
        return whole if whole.shape[dim] == rows else whole.narrow(dim, 0, rows).contiguous()

    def _parts(self, i, dim):
        placement = Shard(dim)
        return placement._split_tensor(self.local, self.mesh.size(i))[0]

    def _own(self, i, dim, rows, tensor):
        length, _ = Shard.local_shard_size_and_offset(rows, self.mesh.size(i), self.coordinate[i])
        return tensor if tensor.shape[dim] == length else tensor.narrow(dim, 0, length).contiguous()

    def _scattered(self, i):
        partial, dim = self.now[i], self.then[i].dim
        rows = self.local.shape[dim]
        together = torch.cat(self._parts(i, dim), dim)
        part = collectives.reduce_scatter_tensor(
            partial._before(together), partial.reduce_op, dim, self._group(i)
        )
        return partial._after(self._own(i, dim, rows, part))

    def _cut(self, i):
        dim, ranks = self.then[i].dim, self.mesh.size(i)
        length, start = Shard.local_shard_size_and_offset(self.local.shape[dim], ranks, self.coordinate[i])
        return self.local.narrow(dim, start, length).clone(memory_format=torch.contiguous_format)

    def _swapped(self, i):
        old, new, ranks = self.now[i].dim, self.then[i].dim, self.mesh.size(i)
        rows, columns = self.shape[old], self.local.shape[new]
        step = -(-rows // ranks)
        parts = [pad_dim(part, old, step - part.shape[old]) for part in self._parts(i, new)]
        stacked = torch.stack(parts)
        received = collectives.all_to_all_single(stacked, None, None, self._group(i))
        whole = torch.cat(received.unbind(0), old).narrow(old, 0, rows)
        return self._own(i, new, columns, whole).contiguous()

    def _as_term(self, i):
        """A whole tensor as terms of a reduction: the first process's, and the neutral ones."""
        partial = self.then[i]
        if partial.reduce_op != "sum" or self.coordinate[i] == 0:
            return self.local
        return torch.zeros_like(self.local)


def backward_placements(placements):
    """Gradients are whole where a tensor is a sum: each term's gradient is the sum's."""
    return tuple(Replicate() if isinstance(p, Partial) else p for p in placements)


class Redistribute(torch.autograd.Function):
    """`DTensor.redistribute`: the gradient goes back to where the tensor was."""

    @staticmethod
    def forward(ctx, tensor, mesh, placements, forward_dtype=None, backward_dtype=None):
        from rushlight.distributed.tensor._api import DTensor

        ctx.spec, ctx.original_dtype, ctx.dtype = tensor._spec, tensor.dtype, backward_dtype
        local, spec = tensor._local_tensor, tensor._spec
        if forward_dtype is not None and forward_dtype != local.dtype:
            local = local.to(forward_dtype)
            spec = DTensorSpec(spec.mesh, spec.placements, spec.tensor_meta._replace(dtype=forward_dtype))
        target = DTensorSpec(mesh, placements, spec.tensor_meta)
        output = redistribute_local_tensor(local, spec, target)
        return DTensor(output.view_as(output), target, requires_grad=False)

    @staticmethod
    def backward(ctx, gradient):
        from rushlight.distributed.tensor._api import DTensor

        spec, local = gradient._spec, gradient._local_tensor
        if ctx.dtype is not None:
            local = local.to(ctx.dtype)
        target = DTensorSpec(spec.mesh, backward_placements(ctx.spec.placements), spec.tensor_meta)
        local = redistribute_local_tensor(local, spec, target).to(ctx.original_dtype)
        meta = target.tensor_meta._replace(dtype=ctx.original_dtype)
        result = DTensor(local, DTensorSpec(target.mesh, target.placements, meta), requires_grad=False)
        return result, None, None, None, None
