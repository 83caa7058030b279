"""The parameters of one wrapper as one flat vector, of which each process keeps an equal part."""

from typing import Any

import rushlight as torch
from rushlight import distributed
from rushlight.distributed._reduce_op import ReduceOp
from rushlight.distributed.fsdp._fsdp_param import _write

__all__ = ["FlatParamGroup"]


class Entry:
    """A parameter's place: in modules, and in the vector."""

    def __init__(self, parameter, places, name, start):
        self.places, self.name, self.start = places, name, start
        self.shape, self.numel = parameter.shape, parameter.numel()
        self.requires_grad = parameter.requires_grad
        self.original: Any = None  # the Parameter that optimizers see, if they see single ones


class FlatParamGroup:
    """Gathers a flat vector before its module runs, and reduces its gradient; as FSDPParamGroup does.

    Args:
        found: [(parameter, [(module, name)], full name)].
        group: the processes that share the vector; None keeps it whole.
        copies: the processes that hold the same part; None if there are no others.
        policy: MixedPrecision.
        use_originals: whether optimizers see parameters (1-d parts of them) or the vector's part.
    """

    def __init__(self, found, group, copies, policy, use_originals):
        self.group, self.copies, self.policy = group, copies, policy
        self.ranks = group.size() if group is not None else 1
        self.rank = group.rank() if group is not None else 0
        self.use_originals = use_originals
        self.entries, start = [], 0
        aligned = max(16 // found[0][0].element_size(), 1) if use_originals else 1
        for parameter, places, name in found:
            start = -(-start // aligned) * aligned
            self.entries.append(Entry(parameter, places, name, start))
            start += parameter.numel()
        self._check([p for p, _, _ in found])
        self.numel, self.step = start, -(-start // self.ranks)
        self.dtype = found[0][0].dtype
        whole = torch.zeros(self.step * self.ranks, dtype=self.dtype)
        with torch.no_grad():
            for entry, (parameter, _, _) in zip(self.entries, found):
                whole[entry.start : entry.start + entry.numel] = parameter.detach().reshape(-1)
        part = whole[self.rank * self.step : (self.rank + 1) * self.step].clone()
        self.part = torch.nn.Parameter(part, requires_grad=any(e.requires_grad for e in self.entries))
        self.whole: Any = None
        self.is_unsharded = False
        self.reduces = self.reduces_copies = True
        self.reshards_after_backward = True
        self.hook: Any = None
        self._gathering = self._reducing = None
        self.async_unshard = False
        if use_originals:
            self._make_originals()

    def _check(self, parameters):
        if len({p.dtype for p in parameters}) > 1:
            raise ValueError(
                "Must flatten tensors with uniform dtype but got "
                + " and ".join(sorted({str(p.dtype) for p in parameters}))
            )
        if any(hasattr(p, "placements") for p in parameters):
            raise ValueError(
                "FullyShardedDataParallel: parameters that are DTensors take fully_shard instead"
            )
        if not self.use_originals and len({p.requires_grad for p in parameters}) > 1:
            raise ValueError("Must flatten tensors with uniform requires_grad when use_orig_params=False")

    @property
    def parameters(self):
        return [self]

    # --- the part of this process

    def range_of(self, entry):
        """Which elements of a parameter this process holds: (first, end), and where in the part."""
        low, high = self.rank * self.step, (self.rank + 1) * self.step
        first = min(max(low - entry.start, 0), entry.numel)
        end = min(max(high - entry.start, 0), entry.numel)
        return first, max(first, end), max(entry.start - low, 0)

    def part_of(self, entry, flat=None):
        """The elements of a parameter within this process's part, 1-d."""
        first, end, at = self.range_of(entry)
        flat = self.part.detach() if flat is None else flat
        return flat.narrow(0, min(at, flat.numel()), end - first)

    def _make_originals(self):
        for entry in self.entries:
            entry.original = torch.nn.Parameter(self.part_of(entry), requires_grad=entry.requires_grad)

    def show_sharded(self):
        """The modules get their parts: as parameters, or, where optimizers see the vector, to look at."""
        for entry in self.entries:
            for module, name in entry.places:
                if self.use_originals:
                    module._parameters[name] = entry.original
                else:
                    module._parameters.pop(name, None)
                    module.__dict__[name] = self.part_of(entry)

    def adopt(self):
        """Parts that the program wrote into other memory, as `param.data = ...` does, are taken over."""
        if not self.use_originals:
            return
        with torch.no_grad():
            for entry in self.entries:
                mine = self.part_of(entry)
                if mine.numel() and entry.original.data_ptr() != mine.data_ptr():
                    mine.copy_(entry.original.detach().reshape(-1))
                    entry.original.data = mine

    # --- the whole

    @property
    def compute_dtype(self):
        return self.policy.param_dtype or self.dtype

    def start_unshard(self, async_op):
        if self.is_unsharded or self._gathering is not None:
            return
        self.adopt()
        with torch.no_grad():
            part = self.part.detach().to(self.compute_dtype)
            if self.ranks == 1:
                self._gathering = (part, part, None)
                return
            whole = part.new_empty(self.ranks * part.numel())
            work = distributed.all_gather_into_tensor(whole, part, self.group, async_op=async_op)
        self._gathering = (part, whole, work)

    def forget_kept(self):
        """Nothing is kept between forward and backward pass."""

    def wait_for_unshard(self, keeps=False):
        if self._gathering is None:
            return
        _, gathered, work = self._gathering
        self._gathering = None
        if work is not None:
            work.wait()
        if self.whole is None or self.whole.dtype != self.compute_dtype:
            self.whole = torch.empty(self.step * self.ranks, dtype=self.compute_dtype)
        else:
            self.whole.untyped_storage().resize_(self.step * self.ranks * self.whole.element_size())
        self.whole.requires_grad_(any(e.requires_grad for e in self.entries))
        _write(self.whole, gathered, 0)
        self.is_unsharded = True

    def unshard(self):
        self.start_unshard(False)
        self.wait_for_unshard()

    def show_views(self):
        """The modules compute with views of the vector, so that gradients reach it."""
        for entry in self.entries:
            view = self.whole.narrow(0, entry.start, entry.numel).view(entry.shape)
            view = view if entry.requires_grad else view.detach()
            for module, name in entry.places:
                if self.use_originals:
                    module._parameters[name] = view
                else:
                    module.__dict__[name] = view

    def reshard(self):
        self.wait_for_unshard()
        if self.is_unsharded:
            self.whole.untyped_storage().resize_(0)
            self.is_unsharded = False
        self.show_sharded()

    # --- gradients

    def has_gradients(self):
        return self.whole is not None and self.whole.grad is not None

    def post_backward(self):
        if self.reduces:
            self._reduce()
        if self.reshards_after_backward:
            self.reshard()

    def _reduce(self):
        self.finish_reduce()
        if self.whole is None or self.whole.grad is None:
            return
        gradient, self.whole.grad = self.whole.grad, None
        wanted = self.policy.reduce_dtype or self.compute_dtype
        gradient = gradient.to(wanted)
        if self.hook is not None:
            self._reducing = (self._hooked(gradient), None)
            return
        processes = self.ranks * (self.copies.size() if self.copies is not None else 1)
        gradient.div_(processes)
        if self.ranks == 1:
            self._reducing = (gradient, None)
            return
        part = gradient.new_empty(self.step)
        work = distributed.reduce_scatter_tensor(part, gradient, ReduceOp.SUM, self.group, async_op=True)
        self._reducing = (part, work)

    def _hooked(self, gradient):
        hook, state = self.hook
        if self.ranks == 1:
            hook(state, gradient)
            return gradient
        part = gradient.new_empty(self.step)
        hook(state, gradient, part)
        return part

    def finish_reduce(self):
        if self._reducing is None:
            return
        (part, work), self._reducing = self._reducing, None
        if work is not None:
            work.wait()
        with torch.no_grad():
            if self.copies is not None and self.hook is None:
                distributed.all_reduce(part, ReduceOp.SUM, self.copies)
            self._hand_out(part if self.policy.keep_low_precision_grads else part.to(self.dtype))

    def _hand_out(self, part):
        if not self.use_originals:
            self.part.grad = part if self.part.grad is None else self.part.grad.add_(part)
            return
        for entry in self.entries:
            mine = self.part_of(entry, part)
            if not entry.requires_grad or not mine.numel():
                continue
            original = entry.original
            original.grad = mine.clone() if original.grad is None else original.grad.add_(mine)

    def gradients(self):
        """The reduced gradients of this process's part."""
        held = [e.original for e in self.entries] if self.use_originals else [self.part]
        return [p.grad for p in held if p.grad is not None]

    # --- whole tensors for programs

    def gathered(self, flat):
        """A vector of all processes' parts."""
        if self.ranks == 1:
            return flat
        whole = flat.new_empty(self.ranks * flat.numel())
        distributed.all_gather_into_tensor(whole, flat.contiguous(), self.group)
        return whole

    def whole_of(self, entry, vector):
        return vector.narrow(0, entry.start, entry.numel).view(entry.shape)

    def write_back(self, vector):
        """Take over this process's part of a whole vector."""
        with torch.no_grad():
            self.part.detach().copy_(vector.narrow(0, self.rank * self.step, self.step))
