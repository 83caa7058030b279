"""One stage of a pipeline: it receives activations, runs its module, sends on; and the reverse for gradients.

Sends do not block, so any order of forward and backward steps that is possible at all runs without deadlock.
"""

from __future__ import annotations

import contextlib

import rushlight as torch
from rushlight import distributed
from rushlight.distributed._process_group import _group_or_default
from rushlight.distributed.pipelining._backward import input_gradients

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from rushlight.distributed._process_group import ProcessGroup
    from rushlight.nn import Module

__all__ = ["PipelineStage", "build_stage"]


class PipelineStage:
    """A stage and its connections to those before and after it.

    Args:
        submodule: what the stage computes; takes what the stage before it gives.
        stage_index, num_stages: which stage this is, and of how many.
        device: the CPU.
        input_args, output_args: accepted; shapes are told with the first micro-batch.
        group: the processes; stage i runs in process i modulo their number, but for schedules like a V.
        dw_builder: for modules that put the gradients of their parameters off by themselves: called after
            each backward pass, it gives the function that computes them.
    """

    def __init__(
        self,
        submodule: Module,
        stage_index: int,
        num_stages: int,
        device: Any,
        input_args: Any = None,
        output_args: Any = None,
        output_grads: Any = None,
        input_grads: Any = None,
        group: ProcessGroup | None = None,
        dw_builder: Any = None,
        get_mesh: Any = None,
    ) -> None:
        if not 0 <= stage_index < num_stages:
            raise ValueError(f"Stage index {stage_index} is out of range of {num_stages}")
        self.submod, self.stage_index, self.num_stages = submodule, stage_index, num_stages
        self.device, self.group = torch.device(device), _group_or_default(group)
        self.group_rank, self.group_size = self.group.rank(), self.group.size()
        if num_stages % self.group_size:
            raise ValueError(f"{num_stages} stages are not a multiple of the {self.group_size} processes")
        self.stage_index_to_group_rank = {i: i % self.group_size for i in range(num_stages)}
        self._dw_builder = dw_builder
        self._sent_shapes: list | None = None
        self._incoming: list | None = None
        self._neighbours: dict = {}  # stages of this process, by index
        self.clear_runtime_states()

    @property
    def is_first(self) -> bool:
        return self.stage_index == 0

    @property
    def is_last(self) -> bool:
        return self.stage_index == self.num_stages - 1

    def clear_runtime_states(self):
        """Forget the micro-batches of a step."""
        self._kept: dict = {}  # micro-batch -> (inputs, outputs)
        self.output_chunks: list = []
        self._boxes: dict = {}  # what a stage of the same process left here
        self._sending: list = []
        self._put_off: dict = {}  # micro-batch -> what adds its gradients to the parameters'

    # --- messages

    def _tag(self, stage, microbatch, backward):
        return ((stage * 4096 + microbatch) << 1) + int(backward)

    def _send(self, tensors, other, microbatch, backward):
        """To stage `other`."""
        key = (self.stage_index, microbatch, backward)
        if other in self._neighbours:
            self._neighbours[other]._boxes[key] = [t.detach() for t in tensors]
            return
        rank, tag = self.stage_index_to_group_rank[other], self._tag(*key)
        for t in tensors:
            self._sending.append(self.group.engine.send(t.detach().contiguous(), rank, tag))

    def _receive(self, shapes, other, microbatch, backward):
        key = (other, microbatch, backward)
        if key in self._boxes:
            return self._boxes.pop(key)
        rank, tag, received = self.stage_index_to_group_rank[other], self._tag(*key), []
        for shape, dtype in shapes:
            box = torch.empty(shape, dtype=dtype)
            self.group.engine.receive(box, rank, tag).wait()
            received.append(box)
        return received

    def wait_for_sends(self):
        for work in self._sending:
            work.wait()
        self._sending = []

    def _tell_shapes(self, outputs, following):
        shapes = [(tuple(t.shape), t.dtype) for t in outputs]
        if self._sent_shapes is None:
            self._sent_shapes = shapes
            if following not in self._neighbours:
                rank = distributed.get_global_rank(self.group, self.stage_index_to_group_rank[following])
                distributed.send_object_list([shapes], rank, self.group)
        elif self._sent_shapes != shapes:
            raise RuntimeError(
                f"stage {self.stage_index}: micro-batches must all have the same shapes, but its outputs are "
                f"{shapes} after {self._sent_shapes}"
            )

    def _learn_shapes(self, before):
        if self._incoming is None and before not in self._neighbours:
            box = [None]
            rank = distributed.get_global_rank(self.group, self.stage_index_to_group_rank[before])
            distributed.recv_object_list(box, rank, self.group)
            self._incoming = box[0]
        return self._incoming or []

    # --- one micro-batch

    def forward_one_chunk(self, microbatch, args, kwargs=None, keeps=True):
        """Run a micro-batch; the first stage takes `args`, the others what they receive."""
        if self.is_first:
            inputs = list(args)
        else:
            before = self.stage_index - 1
            inputs = self._receive(self._learn_shapes(before), before, microbatch, False)
            if keeps:
                inputs = [t.requires_grad_() if t.is_floating_point() else t for t in inputs]
        output = self.submod(*inputs, **(kwargs or {}))
        outputs = list(output) if isinstance(output, (tuple, list)) else [output]
        if not self.is_last:
            self._tell_shapes(outputs, self.stage_index + 1)
            self._send(outputs, self.stage_index + 1, microbatch, False)
        else:
            self.output_chunks.append(output)
        if keeps:
            self._kept[microbatch] = (inputs, outputs)
        return output

    def backward_one_chunk(self, microbatch, loss=None, full_backward=True, last_backward=False):
        """The gradients of a micro-batch: of its loss in the last stage, of what it gave elsewhere.

        Without `full_backward` those of the parameters wait for `backward_weight_one_chunk`."""
        inputs, outputs = self._kept.pop(microbatch)
        outputs, gradients = self._what_came_back(outputs, loss, microbatch)
        sources = [t for t in inputs if t.is_floating_point()] if not self.is_first else []
        with self._synchronising(last_backward):
            if full_backward or self._dw_builder is not None or self._shares_gradients():
                if outputs:
                    torch.autograd.backward(outputs, gradients)
                found = [t.grad for t in sources]
                self._put_off[microbatch] = self._dw_builder() if self._dw_builder is not None else _nothing
            elif self.is_first:
                found, self._put_off[microbatch] = (
                    [],
                    lambda: torch.autograd.backward(outputs, gradients) if outputs else None,
                )
            else:
                found, self._put_off[microbatch] = input_gradients(
                    outputs, gradients, sources, list(self.submod.parameters())
                )
        if full_backward:
            self.backward_weight_one_chunk(microbatch)
        if not self.is_first:
            full = [torch.zeros_like(t) if g is None else g for t, g in zip(sources, found)]
            self._send(full, self.stage_index - 1, microbatch, True)

    def backward_weight_one_chunk(self, microbatch):
        """The gradients of the parameters that a backward pass left for later."""
        self._put_off.pop(microbatch)()

    def _what_came_back(self, outputs, loss, microbatch):
        """What to differentiate, and the gradients to begin with."""
        if self.is_last:
            return [loss], [torch.ones_like(loss)]
        floating = [t for t in outputs if t.is_floating_point()]
        shapes = [(t.shape, t.dtype) for t in floating]
        gradients = self._receive(shapes, self.stage_index + 1, microbatch, True)
        pairs = [(t, g) for t, g in zip(floating, gradients) if t.requires_grad]
        return [t for t, _ in pairs], [g for _, g in pairs]

    def _shares_gradients(self):
        """Whether a wrapper sends gradients to other processes, once for each backward pass."""
        wrapper = torch.nn.parallel.DistributedDataParallel
        return hasattr(self.submod, "set_requires_gradient_sync") or isinstance(self.submod, wrapper)

    def _synchronising(self, last):
        """Wrappers that share gradients with other processes do so for the last micro-batch only."""
        if hasattr(self.submod, "set_requires_gradient_sync"):
            self.submod.set_is_last_backward(last)
            self.submod.set_reshard_after_backward(last)
            self.submod.set_requires_gradient_sync(last)
        elif isinstance(self.submod, torch.nn.parallel.DistributedDataParallel):
            self.submod.require_backward_grad_sync = last
        return contextlib.nullcontext()

    def scale_grads(self, count):
        """Gradients of a sum of losses as those of their mean."""
        for p in self.submod.parameters():
            if p.grad is not None:
                p.grad.div_(count)


def _nothing():
    pass


def build_stage(
    stage_module: Module, stage_index: int, pipe_info: Any, device: Any, group: ProcessGroup | None = None
) -> Any:
    """A stage of a model that `pipeline` cut; `pipe_info` is `pipe.info()`."""
    return PipelineStage(stage_module, stage_index, pipe_info.num_stages, device, group=group)
