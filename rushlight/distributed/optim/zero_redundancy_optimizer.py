"""An optimizer of which each process runs a part, and gives the new parameters to the others.

Source: Rajbhandari et al., "ZeRO: Memory Optimizations Toward Training Trillion Parameter Models", SC 2020,
stage 1.
"""

from __future__ import annotations

import copy
from typing import Any

import rushlight as torch
from rushlight import distributed
from rushlight.distributed.algorithms.join import Joinable, JoinHook
from rushlight.optim import Optimizer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from rushlight.distributed._process_group import ProcessGroup

__all__ = ["ZeroRedundancyOptimizer"]


class _ZeroJoinHook(JoinHook):
    """A process without inputs still steps: its parameters' gradients come from the others."""

    def __init__(self, zero):
        self.zero = zero

    def main_hook(self):
        self.zero.step()


class ZeroRedundancyOptimizer(Optimizer, Joinable):
    """Shares the states of an optimizer among processes that hold the same parameters and gradients.

    Args:
        params: parameters, or groups of them; the same in every process.
        optimizer_class: the class that steps.
        process_group: the processes; all of them if None.
        parameters_as_bucket_view: accepted; parameters keep their memory, and travel as one vector a process.
        overlap_with_ddp: step within the backward pass of a DistributedDataParallel, whose communication
            hook one of `algorithms.ddp_comm_hooks.ddp_zero_hook` makes; `step` does nothing then.
        **defaults: for `optimizer_class`.

    Raises TypeError for what are no parameters, and RuntimeError for several groups with `overlap_with_ddp`.
    """

    def __init__(
        self,
        params: Any,
        optimizer_class: Any,
        process_group: ProcessGroup | None = None,
        parameters_as_bucket_view: bool = False,
        overlap_with_ddp: bool = False,
        **defaults,
    ) -> None:
        params = list(params)
        for p in params:
            if not isinstance(p, (torch.Tensor, dict)):
                raise TypeError(f"`params` should be Tensors or dicts of them, but got {type(p)}")
        self.process_group = process_group or distributed.group.WORLD
        self.world_size, self.rank = self.process_group.size(), self.process_group.rank()
        self._optim_constructor, self._optim_defaults = optimizer_class, defaults
        self._all_state_dicts: list = []
        self._overlap_with_ddp, self._buckets = overlap_with_ddp, None
        self.optim: Any = None
        Joinable.__init__(self)
        Optimizer.__init__(self, params, defaults)
        if not overlap_with_ddp:
            self._shares = self._partition()
            self._make_local()
        elif len(self.param_groups) > 1:
            self._refuse_groups()

    # --- who has what

    def _partition(self):
        """For each process, its groups' parameters: large ones first, each to who has least."""
        load = [0] * self.world_size
        shares: list = [[[] for _ in self.param_groups] for _ in range(self.world_size)]
        numbered = [(p, g) for g, group in enumerate(self.param_groups) for p in group["params"]]
        for p, g in sorted(numbered, key=lambda item: -item[0].numel()):
            rank = load.index(min(load))
            load[rank] += p.numel()
            shares[rank][g].append(p)
        return shares

    def _make_local(self):
        groups = [
            {**{k: v for k, v in group.items() if k != "params"}, "params": mine}
            for group, mine in zip(self.param_groups, self._shares[self.rank])
        ]
        kept = [g for g in groups if g["params"]]
        self._local_groups = [i for i, g in enumerate(groups) if g["params"]]
        self.optim = self._optim_constructor(kept, **self._optim_defaults) if kept else None
        if self.optim is not None:
            for i, group in zip(self._local_groups, self.optim.param_groups):
                for key, value in group.items():
                    self.param_groups[i].setdefault(key, value)

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add a group; every process must do so."""
        if self._overlap_with_ddp and self.param_groups:
            self._refuse_groups()
        super().add_param_group(param_group)
        if self.optim is not None:
            before = self.optim.state
            self._shares = self._partition()
            self._make_local()
            if self.optim is not None:
                for p in (q for g in self.optim.param_groups for q in g["params"]):
                    if p in before:
                        self.optim.state[p] = before[p]

    # --- steps within a backward pass

    def _refuse_groups(self):
        raise RuntimeError(
            "ZeroRedundancyOptimizer with `overlap_with_ddp=True` only supports a single parameter group"
        )

    def _share_buckets(self, buckets, several):
        """Give each bucket to one rank, or its parameters to several."""
        known = {id(p) for p in self.param_groups[0]["params"]}
        load, self._buckets = [0] * self.world_size, []
        for bucket in buckets:
            owners: dict = {}
            rank = load.index(min(load))
            for p in bucket:
                if id(p) not in known:
                    raise ValueError(
                        "ZeroRedundancyOptimizer: DistributedDataParallel has a parameter of shape "
                        f"{tuple(p.shape)} that the optimizer lacks; overlap_with_ddp needs all of them"
                    )
                rank = load.index(min(load)) if several else rank
                load[rank] += p.numel()
                owners.setdefault(rank, []).append(p)
            self._buckets.append(sorted(owners.items()))
        self._shares = [
            [[p for owners in self._buckets for r, own in owners if r == rank for p in own]]
            for rank in range(self.world_size)
        ]
        self._make_local()

    def _owners_of(self, bucket):
        """[(rank, its parameters)] of a bucket."""
        return self._buckets[bucket]

    def _step_some(self, parameters, gradients):
        """Step with those of the parameters that this rank owns."""
        own = {id(p) for p in self._shares[self.rank][0]}
        chosen = [(p, g) for p, g in zip(parameters, gradients) if id(p) in own]
        if not chosen:
            return
        self._options_to_local()
        (group,) = self.optim.param_groups
        everything, before = group["params"], [p.grad for p, _ in chosen]
        group["params"] = [p for p, _ in chosen]
        try:
            for p, g in chosen:
                p.grad = g.detach()
            self.optim.step()
        finally:
            group["params"] = everything
            for (p, _), g in zip(chosen, before):
                p.grad = g

    def _send(self, parameters, root):
        """The Work of sharing parameters out that `root` has stepped."""
        engine = self.process_group.engine
        sizes = [p.numel() for p in parameters]

        def collect():
            with torch.no_grad():
                box.copy_(torch.cat([p.detach().reshape(-1) for p in parameters]))

        def hand_out():
            with torch.no_grad():
                for p, part in zip(parameters, box.split(sizes)):
                    p.copy_(part.view_as(p))
            return [box]

        box = torch.empty(sum(sizes), dtype=parameters[0].dtype)
        if self.rank == root:
            engine.submit(collect)
            return engine.broadcast(box, root, True)
        engine.broadcast(box, root, True)
        return engine.submit(hand_out)

    # --- a step

    def _options_to_local(self):
        for i, group in zip(self._local_groups, self.optim.param_groups):
            for key, value in self.param_groups[i].items():
                if key != "params":
                    group[key] = value

    def step(self, closure: Callable[[], Any] | None = None, **kwargs: Any) -> Any:
        """Step with this process's part, and share the new parameters out."""
        from rushlight.distributed.algorithms.join import Join

        if self._overlap_with_ddp:
            if closure is None:
                return None
            with torch.enable_grad():
                return closure()

        Join.notify_join_context(self)
        loss = None
        if self.optim is not None:
            self._options_to_local()
            loss = self.optim.step(closure, **kwargs) if closure is not None else self.optim.step(**kwargs)
        elif closure is not None:
            with torch.enable_grad():
                loss = closure()
        self._share_parameters()
        return loss

    def _share_parameters(self):
        shares = [[p.detach() for group in share for p in group] for share in self._shares]
        with torch.no_grad():
            for dtype in {p.dtype for share in shares for p in share}:
                self._gather([[p for p in share if p.dtype == dtype] for share in shares], dtype)

    def _gather(self, shares, dtype):
        """Everybody's parameters of a type to everybody: parts of one length, for a single pass."""
        counts = [sum(p.numel() for p in share) for share in shares]
        longest, own = max(counts), shares[self.rank]
        whole = torch.empty(
            len(shares), longest, dtype=dtype, device=next(p for s in shares for p in s).device
        )
        part = whole[self.rank]
        if own:
            torch.cat([p.reshape(-1) for p in own], out=part[: counts[self.rank]])
        if longest * len(shares) > 2 * sum(counts):  # one of them has most: the others have nothing to send
            for rank, count in enumerate(counts):
                root = distributed.get_global_rank(self.process_group, rank)
                if count:
                    distributed.broadcast(whole[rank, :count], root, self.process_group)
        else:
            distributed.all_gather_into_tensor(whole.view(-1), part.clone(), self.process_group)
        for rank, share in enumerate(shares):
            if rank != self.rank and share:
                parts = whole[rank, : counts[rank]].split([p.numel() for p in share])
                for p, part in zip(share, parts):
                    p.copy_(part.view_as(p))

    # --- states

    def _check_shared(self):
        if self._overlap_with_ddp and self._buckets is None:
            raise RuntimeError(
                "This method should not be called until this ZeroRedundancyOptimizer instance has been fully "
                "initialized: make the hook of its DistributedDataParallel first"
            )

    def _numbers(self):
        parameters = [p for group in self.param_groups for p in group["params"]]
        return {p: number for number, p in enumerate(parameters)}

    def consolidate_state_dict(self, to: Any = 0) -> None:
        """Collect the states of all processes on rank `to`, for `state_dict` there."""
        self._check_shared()
        numbers = self._numbers()
        held = self.optim.state if self.optim is not None else {}
        mine = {numbers[p]: dict(state) for p, state in held.items()}
        everyone = [None] * self.world_size if self.rank == to else None
        distributed.gather_object(
            mine, everyone, distributed.get_global_rank(self.process_group, to), self.process_group
        )
        self._all_state_dicts = everyone or []

    def state_dict(self) -> dict[str, Any]:
        """The whole state, on the rank that `consolidate_state_dict` named.

        Raises RuntimeError before that, and elsewhere."""
        if not self._all_state_dicts:
            raise RuntimeError(
                f"Optimizer state has not been consolidated on this rank. Please call "
                f"`consolidate_state_dict(to={self.rank})` on all ranks beforehand if you meant to save the "
                "global state."
            )
        numbers = self._numbers()
        state = {key: value for part in self._all_state_dicts for key, value in part.items()}
        groups = [
            {
                **{k: v for k, v in group.items() if k != "params"},
                "params": [numbers[p] for p in group["params"]],
            }
            for group in self.param_groups
        ]
        return {"state": dict(sorted(state.items())), "param_groups": groups}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take this process's part out of a whole state."""
        self._check_shared()
        numbers = self._numbers()
        for group, saved in zip(self.param_groups, state_dict["param_groups"]):
            group.update({k: v for k, v in copy.deepcopy(saved).items() if k != "params"})
        if self.optim is None:
            return
        self._options_to_local()
        own = [p for group in self.optim.param_groups for p in group["params"]]
        local = self.optim.state_dict()
        state = state_dict["state"]
        local["state"] = {i: state[numbers[p]] for i, p in enumerate(own) if numbers[p] in state}
        self.optim.load_state_dict(local)

    # --- processes that run out of inputs

    def join_hook(self, **kwargs: Any):
        return _ZeroJoinHook(self)

    @property
    def join_device(self):
        return torch.device("cpu")

    @property
    def join_process_group(self):
        return self.process_group
