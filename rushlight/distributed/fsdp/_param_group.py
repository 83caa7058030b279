"""The parameters of one `fully_shard` call, which are gathered and reduced together."""

from typing import Any

import rushlight as torch
from rushlight import distributed
from rushlight.distributed._reduce_op import ReduceOp
from rushlight.distributed.fsdp._communication import DefaultAllGather, DefaultReduceScatter

__all__ = ["FSDPParamGroup"]


class FSDPParamGroup:
    """Gathers its parameters' parts before they are used, and reduces their gradients.

    Args:
        parameters: FSDPParams.
        mesh: 1-d, or 2-d with copies along the first dimension.
        policy: the MixedPrecisionPolicy.
    """

    def __init__(self, parameters, mesh, policy):
        self.parameters, self.policy = parameters, policy
        self.group = mesh.get_group(mesh.ndim - 1)
        self.copies = mesh.get_group(0) if mesh.ndim == 2 else None
        self.is_unsharded = False
        self.reduces = self.reduces_copies = self.reshards_after_backward = True
        self.divide_factor, self.all_reduce_hook = None, None
        self._gathering = None  # (buffers, works) under way
        self.near: Any = (
            None  # a smaller group, whose members keep the whole among them after the forward pass
        )
        self._kept: dict = {}  # this rank's share of that, by the number of the dtype
        self._partial = None  # reduced over the parts but not over the copies
        self._reducing = None
        self.async_unshard = False
        self.all_gather, self.reduce_scatter = DefaultAllGather(), DefaultReduceScatter()

    def _by_dtype(self):
        chosen: dict = {}
        for parameter in self.parameters:
            chosen.setdefault(parameter.compute_dtype, []).append(parameter)
        return chosen.values()

    # --- gathering

    def start_unshard(self, async_op):
        if self.is_unsharded or self._gathering is not None:
            return
        for parameter in self.parameters:
            parameter.adopt()
        started, kept = [], self._kept
        with torch.no_grad():
            for number, together in enumerate(self._by_dtype()):
                if number in kept:
                    part, group = kept[number], self.near
                else:
                    part, group = torch.cat([p.padded_part() for p in together]), self.group
                size = (group.size() * part.numel(),)
                whole = self.all_gather.allocate(size, dtype=part.dtype, device=part.device)
                work = self.all_gather(whole, part, group, async_op)
                started.append((together, part, whole, work))
        self._gathering, self._kept = started, {}

    def wait_for_unshard(self, keeps=False):
        """With `keeps` a share stays here for the backward pass, if there are neighbours to gather from."""
        if self._gathering is None:
            return
        for number, (together, _, whole, work) in enumerate(self._gathering):
            if work is not None:
                work.wait()
            if keeps and self.near is not None:
                self._kept[number] = whole.view(self.near.size(), -1)[self.near.rank()].clone()
            rows = whole.view(self.group.size(), -1)
            pieces = rows.split([p.part_numel for p in together], 1)
            with torch.no_grad():
                for parameter, piece in zip(together, pieces):
                    parameter.fill([part for part in piece.unbind(0)])
        self._gathering, self.is_unsharded = None, True

    def keep_near(self, group):
        """Let the backward pass gather from a smaller group of neighbours what its members keep for it."""
        self.near = group

    def forget_kept(self):
        """What the last forward pass left may be older than the parameters."""
        self._kept = {}

    def unshard(self):
        self.start_unshard(False)
        self.wait_for_unshard()

    def reshard(self):
        self.wait_for_unshard()
        if self.is_unsharded:
            for parameter in self.parameters:
                parameter.free()
            self.is_unsharded = False

    def show_views(self):
        """The modules have the whole parameters already."""

    # --- reducing

    def has_gradients(self):
        return any(p.unsharded is not None and p.unsharded.grad is not None for p in self.parameters)

    def post_backward(self):
        """The module's gradients are here: reduce them, give the wholes back."""
        if self.reduces:
            self._reduce()
        if self.reshards_after_backward:
            self.reshard()

    def _reduce(self):
        self.finish_reduce()
        found = [(p, g) for p in self.parameters if (g := p.take_gradient()) is not None]
        if not found:
            return
        dtype = self.policy.reduce_dtype or found[0][1].dtype
        with torch.no_grad():
            rows = torch.cat([p.padded_gradient(g, dtype) for p, g in found], 1)
            self._scale(rows, self.group.size() * (self.copies.size() if self.copies else 1))
            part = self.reduce_scatter.allocate((rows.shape[1],), dtype=rows.dtype, device=rows.device)
            work = self.reduce_scatter(part, rows.reshape(-1), self.group, ReduceOp.SUM, True)
        self._reducing = ([p for p, _ in found], rows, part, work)

    def _scale(self, gradients, processes):
        """Divide by the number of processes before sums may overflow."""
        gradients.div_(self.divide_factor or processes)

    def finish_reduce(self):
        """Wait for the reduction under way, and hand the parts out."""
        if self._reducing is None:
            return
        parameters, _, part, work = self._reducing
        self._reducing = None
        if work is not None:
            work.wait()
        with torch.no_grad():
            if self._partial is not None:
                part = part.add_(self._partial)
                self._partial = None
            if self.copies is not None:
                if not self.reduces_copies:
                    self._partial = part
                    return
                distributed.all_reduce(part, ReduceOp.SUM, self.copies)
            if self.all_reduce_hook is not None:
                self.all_reduce_hook(part)
            for parameter, piece in zip(parameters, part.split([p.part_numel for p in parameters])):
                parameter.add_gradient(piece)
