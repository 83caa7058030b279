"""Data parallelism: the same module in every process, each with its part of the data."""

import inspect
from contextlib import contextmanager

from ... import Tensor, cat, is_grad_enabled, no_grad
from ..modules import Module

_MIB = 1 << 20


class DistributedDataParallel(Module):
    """Wrap a module so that every backward pass averages its gradients over the processes.

    All processes must make the same module and run the same passes; the first one's parameters and buffers
    are given to the others. Gradients travel in buckets while the backward pass still runs.

    Args:
        module: the module; it must have parameters that require gradients.
        device_ids: the CUDA device of the module, [index]: inputs are brought there.
        output_device, dim: taken for PyTorch's sake.
        broadcast_buffers: give rank 0's buffers to the others before each forward pass in training.
        init_sync: give rank 0's parameters and buffers to the others now.
        process_group: the processes; None for all.
        bucket_cap_mb: size of a bucket in MiB; None for 25.
        find_unused_parameters: look before each backward pass for parameters that it will not reach.
        gradient_as_bucket_view: let gradients be views of the buckets, which saves their memory once.
        static_graph: the used parameters are the same in every pass.

    Raises:
        RuntimeError: no parameter requires a gradient; the shapes differ between processes; a backward pass
            ended without the gradients of some parameters (said before the next one, with their names).
        ValueError: arguments for devices that this build does not have.
    """

    def __init__(
        self,
        module,
        device_ids=None,
        output_device=None,
        dim=0,
        broadcast_buffers=None,
        init_sync=True,
        process_group=None,
        bucket_cap_mb=None,
        find_unused_parameters=False,
        check_reduction=False,
        gradient_as_bucket_view=False,
        static_graph=False,
        delay_all_reduce_named_params=None,
        param_to_hook_all_reduce=None,
        mixed_precision=None,
        device_mesh=None,
        skip_all_reduce_unused_params=False,
        bucket_cap_mb_list=None,
        batched_grad_copy=False,
        forward_sync_buffers=None,
    ):
        super().__init__()
        from ...distributed._process_group import _group_or_default

        self._join = self._join_config = None

        self._check_devices(module, device_ids, output_device)
        unsupported = {
            "delay_all_reduce_named_params": delay_all_reduce_named_params,
            "mixed_precision": mixed_precision,
        }
        for name, value in unsupported.items():
            if value is not None:
                raise NotImplementedError(f"DistributedDataParallel: {name} is not supported")
        if device_mesh is not None:
            process_group = device_mesh.get_group()
        self.process_group = _group_or_default(process_group)
        self.module, self.dim, self.output_device = module, dim, output_device
        self.device_ids = list(device_ids) if device_ids else None
        self.device_mesh = device_mesh
        self.find_unused_parameters, self.static_graph = find_unused_parameters, static_graph
        self.gradient_as_bucket_view = gradient_as_bucket_view
        self.broadcast_buffers = True if broadcast_buffers is None else broadcast_buffers
        self.require_backward_grad_sync = self.require_forward_param_sync = True
        self.parameters_to_ignore = set(getattr(module, "_ddp_params_and_buffers_to_ignore", ()))
        named = [
            (name, p)
            for name, p in module.named_parameters()
            if p.requires_grad and name not in self.parameters_to_ignore
        ]
        if not named:
            raise RuntimeError(
                "DistributedDataParallel is not needed when a module doesn't have any parameter that "
                "requires a gradient."
            )
        self._module_parameters = [p for _, p in named]
        self.modules_buffers = [
            b for name, b in module.named_buffers() if name not in self.parameters_to_ignore
        ]
        self._check_shapes(named)
        if init_sync:
            self._give_out([p.detach() for p in module.parameters()] + self.modules_buffers)
        self.bucket_bytes_cap = int((25 if bucket_cap_mb is None else bucket_cap_mb) * _MIB)
        self._make_reducer([name for name, _ in named])

    @staticmethod
    def _check_devices(module, device_ids, output_device):
        if not device_ids and output_device is None:
            return
        kinds = {p.device for p in module.parameters()}
        if len(kinds) != 1 or next(iter(kinds)).type == "cpu" or len(device_ids or [0]) > 1:
            raise ValueError(
                "DistributedDataParallel device_ids and output_device arguments only work with "
                "single-device/multiple-device GPU modules or CPU modules, but got device_ids "
                f"{device_ids}, output_device {output_device}, and module parameters "
                f"{kinds}."
            )

    def _sparse_parameters(self):
        """Indices of the parameters whose modules say that their gradients are sparse."""
        from ..modules.sparse import Embedding, EmbeddingBag

        found = {
            id(parameter)
            for module in self.module.modules()
            if isinstance(module, (Embedding, EmbeddingBag)) and module.sparse
            for parameter in module.parameters(recurse=False)
        }
        return {index for index, parameter in enumerate(self._module_parameters) if id(parameter) in found}

    def _make_reducer(self, names):
        from ...distributed._reducer import Reducer

        self.reducer = Reducer(
            self._module_parameters,
            names,
            self.process_group,
            self.bucket_bytes_cap,
            self.find_unused_parameters and not self.static_graph,
            self.gradient_as_bucket_view,
            self._sparse_parameters(),
        )

    def _check_shapes(self, named):
        from ...distributed import all_gather_object

        mine = [(name, tuple(p.shape), str(p.dtype)) for name, p in named]
        everyone = [None] * self.process_group.size()
        all_gather_object(everyone, mine, group=self.process_group)
        for rank, theirs in enumerate(everyone):
            if theirs == mine:
                continue
            if len(theirs) != len(mine):
                raise RuntimeError(
                    f"DDP expects same model across all ranks, but Rank {self.process_group.rank()} has "
                    f"{len(mine)} params, while rank {rank} has inconsistent {len(theirs)} params."
                )
            own, other = next((a, b) for a, b in zip(mine, theirs) if a != b)
            raise RuntimeError(
                f"DDP expects same model across all ranks: parameter {own[0]} is {own[2]}{list(own[1])} on "
                f"rank {self.process_group.rank()}, but {other[0]} is {other[2]}{list(other[1])} on rank "
                f"{rank}"
            )

    def _shares_buffers(self):
        return self.broadcast_buffers and self.modules_buffers and self.training

    def _give_out(self, tensors, root=0):
        """One rank's values for all, a message per dtype."""
        by_dtype = {}
        for tensor in tensors:
            by_dtype.setdefault(tensor.dtype, []).append(tensor.detach())
        with no_grad():
            for same in by_dtype.values():
                flat = cat([t.reshape(-1) for t in same])
                self.process_group.engine.broadcast(flat, root)
                for tensor, part in zip(same, flat.split([t.numel() for t in same])):
                    tensor.copy_(part.view_as(tensor))

    def forward(self, *inputs, **kwargs):
        syncs = is_grad_enabled() and self.require_backward_grad_sync
        joining = self._join is not None and self._join_config[0] and is_grad_enabled()
        if joining:
            self._join.begin(syncs)
        if self._shares_buffers() and syncs:
            self._give_out(self.modules_buffers, self._join.common_rank(True) if joining else 0)
        if self.device_ids:
            inputs, kwargs = self.scatter(inputs, kwargs, self.device_ids)
        outputs = self.module(*inputs, **kwargs)
        if syncs:
            self.reducer.prepare(outputs)
        return outputs

    @contextmanager
    def no_sync(self):
        """Accumulate gradients in this process only; the first pass outside averages the sums."""
        before, self.require_backward_grad_sync = self.require_backward_grad_sync, False
        try:
            yield
        finally:
            self.require_backward_grad_sync = before

    def join(self, divide_by_initial_world_size=True, enable=True, throw_on_early_termination=False):
        """Inside, processes may have different numbers of inputs: those done shadow the others' collectives.

        Args:
            divide_by_initial_world_size: average over all processes, or only over those with inputs.
            enable: False makes this nothing.
            throw_on_early_termination: raise everywhere as soon as one process is done.
        """
        from ...distributed.algorithms.join import Join

        return Join(
            [self],
            enable,
            throw_on_early_termination,
            divide_by_initial_world_size=divide_by_initial_world_size,
        )

    def join_hook(self, **kwargs):
        """What `Join` calls in processes that are done."""
        from ...distributed._ddp_join import DDPJoinHook, InTurn

        self._join = InTurn(self, kwargs.get("divide_by_initial_world_size", True))
        return DDPJoinHook(self)

    @property
    def join_device(self):
        return self._module_parameters[0].device

    @property
    def join_process_group(self):
        return self.process_group

    def register_comm_hook(self, state, hook):
        """Send gradients with `hook(state, bucket) -> Future` instead of averaging them as they are.

        Raises TypeError for what is not callable, ValueError for annotations that say otherwise, RuntimeError
        for a second hook."""
        if not callable(hook):
            raise TypeError("Communication hook must be callable.")
        _check_annotations(hook)
        self.reducer.register_comm_hook(state, hook)

    def _set_static_graph(self):
        self.static_graph = True
        self.reducer.find_unused = False

    def _get_ddp_logging_data(self):
        return {"world_size": self.process_group.size(), "bucket_cap_bytes": self.bucket_bytes_cap}

    def scatter(self, inputs, kwargs, device_ids):
        """The arguments with their tensors on the module's device."""
        device = self._module_parameters[0].device
        return _moved(inputs, device), _moved(kwargs, device)

    def gather(self, outputs, output_device):
        return outputs

    def train(self, mode=True):
        super().train(mode)
        return self

    def __getstate__(self):
        state = self.__dict__.copy()
        del state["reducer"], state["process_group"]
        return state

    def __setstate__(self, state):
        from ...distributed._process_group import _get_default_group

        self.process_group = _get_default_group()
        super().__setstate__(state)
        names = {id(p): name for name, p in self.module.named_parameters()}
        self._make_reducer([names[id(p)] for p in self._module_parameters])


def _moved(value, device):
    if isinstance(value, Tensor):
        return value.to(device, non_blocking=True)
    if isinstance(value, dict):
        return type(value)((key, _moved(item, device)) for key, item in value.items())
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(_moved(item, device) for item in value))
    if isinstance(value, (list, tuple)):
        return type(value)(_moved(item, device) for item in value)
    return value


def _find_tensors(value):
    from ...distributed._reducer import _tensors

    return list(_tensors(value))


__all__ = ["DistributedDataParallel"]


def _check_annotations(hook):
    try:
        signature = inspect.signature(hook)
    except (TypeError, ValueError):  # of C
        return
    empty = inspect.Signature.empty
    bucket = signature.parameters.get("bucket")
    if bucket is not None and bucket.annotation not in (empty, "dist.GradBucket", "GradBucket"):
        from ...distributed import GradBucket

        if bucket.annotation is not GradBucket:
            raise ValueError("Communication hook: bucket annotation should be dist.GradBucket.")
    result = signature.return_annotation
    if result is not empty and "Future" not in (result if isinstance(result, str) else repr(result)):
        raise ValueError(
            "Communication hook: return annotation should be torch.futures.Future or torch._C.Future."
        )
