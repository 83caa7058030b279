"""Styles: how a module's parameters are cut, and how its inputs and outputs lie."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import rushlight as torch
from rushlight.distributed.tensor._api import DTensor, distribute_module, distribute_tensor
from rushlight.distributed.tensor.placement_types import Replicate, Shard

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = [
    "ColwiseParallel",
    "ParallelStyle",
    "PrepareModuleInput",
    "PrepareModuleInputOutput",
    "PrepareModuleOutput",
    "RowwiseParallel",
    "SequenceParallel",
]

nn = torch.nn


class ParallelStyle(ABC):
    """What a plan gives to a module."""

    src_data_rank: int | None = 0

    @abstractmethod
    def _apply(self, module, device_mesh):
        """The module, sharing its work over the mesh."""


def _spread_parameters(module, mesh, placements, source):
    """Make parameters DTensors; `placements` by name."""
    for name, parameter in module.named_parameters(recurse=False):
        spread = distribute_tensor(parameter.detach(), mesh, placements[name], src_data_rank=source)
        module.register_parameter(name, nn.Parameter(spread, parameter.requires_grad))


def _laid_out(value, mesh, given, wanted):
    """A DTensor that lies as wanted, from one, or from a plain tensor that lies as given."""
    if not isinstance(value, DTensor):
        value = DTensor.from_local(value, mesh, given, run_check=False)
    return value if value.placements == tuple(wanted) else value.redistribute(placements=wanted)


def _as_output(value, wanted, use_local):
    if value.placements != tuple(wanted):
        value = value.redistribute(placements=wanted)
    return value.to_local() if use_local else value


class _Layered(ParallelStyle):
    """Styles of linear and embedding layers."""

    def __init__(self, given, wanted_output, use_local_output):
        super().__init__()
        self.input_layouts, self.output_layouts = (given,), (wanted_output,)
        self.desired_input_layouts = (Replicate(),)
        self.use_local_output = use_local_output

    @abstractmethod
    def _placements(self, module):
        """The placements of the module's parameters, by name; None for a module of another kind."""

    def _partition(self, name, module, mesh):
        placements = self._placements(module)
        if placements is not None:
            _spread_parameters(module, mesh, placements, self.src_data_rank)

    def _input(self, module, inputs, mesh):
        value = _laid_out(inputs[0], mesh, self.input_layouts, self.desired_input_layouts)
        return (value, *inputs[1:])

    def _output(self, module, output, mesh):
        return _as_output(output, self.output_layouts, self.use_local_output)

    def _apply(self, module, device_mesh):
        if self._placements(module) is None:
            raise NotImplementedError(
                f"{type(self).__name__} currently only support nn.Linear and nn.Embedding!"
            )
        return distribute_module(module, device_mesh, self._partition, self._input, self._output)

    def __repr__(self):
        return (
            f"{type(self).__name__}(input_layouts={self.input_layouts}, "
            f"output_layouts={self.output_layouts}, "
            f"use_local_output={self.use_local_output})"
        )


class ColwiseParallel(_Layered):
    """Each process computes some of the columns of the output of a Linear or Embedding.

    Args:
        input_layouts: how plain inputs lie; replicated when left out.
        output_layouts: how the output shall lie; cut along the last dimension when left out.
        use_local_output: whether the output is a plain tensor.
    """

    def __init__(
        self, *, input_layouts: Any = None, output_layouts: Any = None, use_local_output: bool = True
    ) -> None:
        super().__init__(input_layouts or Replicate(), output_layouts or Shard(-1), use_local_output)

    def _output(self, module, output, mesh):
        wanted = [Shard(p.dim % output.dim()) if p.is_shard() else p for p in self.output_layouts]
        return _as_output(output, wanted, self.use_local_output)

    def _placements(self, module):
        if isinstance(module, nn.Linear):
            return {"weight": [Shard(0)], "bias": [Shard(0)]}
        return {"weight": [Shard(1)]} if isinstance(module, nn.Embedding) else None


class RowwiseParallel(_Layered):
    """Each process computes a term of the output of a Linear or Embedding, from some of the input's columns,
    or
    from some of the table's rows.

    Args:
        input_layouts: how plain inputs lie; cut along the last dimension when left out.
        output_layouts: how the output shall lie; replicated when left out.
        use_local_output: whether the output is a plain tensor.
    """

    def __init__(
        self, *, input_layouts: Any = None, output_layouts: Any = None, use_local_output: bool = True
    ) -> None:
        super().__init__(input_layouts or Shard(-1), output_layouts or Replicate(), use_local_output)

    def _placements(self, module):
        if isinstance(module, nn.Linear):
            self.desired_input_layouts: tuple[Any, ...] = (Shard(-1),)
            return {"weight": [Shard(1)], "bias": [Replicate()]}
        if isinstance(module, nn.Embedding):
            self.desired_input_layouts = (Replicate(),)
            return {"weight": [Shard(0)]}
        return None

    def _input(self, module, inputs, mesh):
        rank = inputs[0].dim()
        wanted = [Shard(p.dim % rank) if p.is_shard() else p for p in self.desired_input_layouts]
        return (_laid_out(inputs[0], mesh, self.input_layouts, wanted), *inputs[1:])


class SequenceParallel(ParallelStyle):
    """Inputs and outputs are cut along the sequence; parameters are whole. For LayerNorm, RMSNorm, Dropout.

    Args:
        sequence_dim: the dimension that is cut.
        use_local_output: whether the output is a plain tensor.
    """

    def __init__(self, *, sequence_dim: int = 1, use_local_output: bool = False) -> None:
        super().__init__()
        self.sequence_sharding = (Shard(sequence_dim),)
        self.use_local_output = use_local_output

    def _partition(self, name, module, mesh):
        whole = dict.fromkeys(dict(module.named_parameters(recurse=False)), [Replicate()])
        _spread_parameters(module, mesh, whole, self.src_data_rank)

    def _input(self, module, inputs, mesh):
        value = inputs[0]
        if not isinstance(value, torch.Tensor):
            raise ValueError(f"expecting input of {module} to be a torch.Tensor or DTensor, but got {value}")
        return (_laid_out(value, mesh, self.sequence_sharding, self.sequence_sharding), *inputs[1:])

    def _output(self, module, outputs, mesh):
        return outputs.to_local() if self.use_local_output else outputs

    def _apply(self, module, device_mesh):
        return distribute_module(module, device_mesh, self._partition, self._input, self._output)

    def __repr__(self) -> str:
        return (
            f"SequenceParallel(sequence_dim={self.sequence_sharding[0].dim}, "
            f"use_local_output={self.use_local_output})"
        )


def _several(layouts):
    return (layouts,) if not isinstance(layouts, (tuple, list)) and layouts is not None else layouts


class PrepareModuleInput(ParallelStyle):
    """Lay out a module's inputs.

    Args:
        input_layouts: how plain inputs lie, one for each; None leaves an input alone.
        desired_input_layouts: how they shall lie.
        input_kwarg_layouts, desired_input_kwarg_layouts: the same by name, for keyword arguments.
        use_local_output: whether the module gets plain tensors.
    """

    def __init__(
        self,
        *,
        input_layouts: Any = None,
        desired_input_layouts: Any = None,
        input_kwarg_layouts: Any = None,
        desired_input_kwarg_layouts: Any = None,
        use_local_output: bool = False,
    ) -> None:
        self.input_layouts, self.desired_input_layouts = (
            _several(input_layouts),
            _several(desired_input_layouts),
        )
        self.use_local_output = use_local_output
        if self.input_layouts is not None:
            if self.desired_input_layouts is None:
                raise AssertionError("desired module inputs should not be None!")
            if len(self.input_layouts) != len(self.desired_input_layouts):
                raise AssertionError("input_layouts and desired_input_layouts should have same length!")
        self.with_kwargs = input_kwarg_layouts is not None
        self.input_kwarg_layouts = input_kwarg_layouts or {}
        self.desired_input_kwarg_layouts = desired_input_kwarg_layouts or {}
        if set(self.input_kwarg_layouts) != set(self.desired_input_kwarg_layouts):
            raise AssertionError("input_kwarg_layouts and desired_input_kwarg_layouts should have same keys!")

    def _one(self, value, mesh, given, wanted):
        if given is None or not isinstance(value, torch.Tensor):
            return value
        value = _laid_out(value, mesh, (given,), (given if wanted is None else wanted,))
        return value.to_local() if self.use_local_output else value

    def _inputs(self, inputs, mesh):
        if self.input_layouts is None:
            return inputs
        inputs = inputs if isinstance(inputs, tuple) else (inputs,)
        if len(inputs) != len(self.input_layouts):
            raise ValueError(
                "module inputs and input_layouts should have same length! got "
                f"{len(inputs)} inputs and {len(self.input_layouts)} layouts"
            )
        layouts = zip(inputs, self.input_layouts, self.desired_input_layouts)
        return tuple(self._one(value, mesh, given, wanted) for value, given, wanted in layouts)

    def _keywords(self, kwargs, mesh):
        return {
            name: self._one(
                value, mesh, self.input_kwarg_layouts.get(name), self.desired_input_kwarg_layouts.get(name)
            )
            for name, value in kwargs.items()
        }

    def _apply(self, module, device_mesh):
        def before(_, args, kwargs):
            return self._inputs(args, device_mesh), self._keywords(kwargs, device_mesh)

        if self.with_kwargs:
            module.register_forward_pre_hook(before, with_kwargs=True)
        else:
            module.register_forward_pre_hook(lambda _, inputs: self._inputs(inputs, device_mesh))
        return module

    def __repr__(self) -> str:
        return (
            f"PrepareModuleInput(input_layouts={self.input_layouts}, "
            f"desired_input_layouts={self.desired_input_layouts}, "
            f"input_kwarg_layouts={self.input_kwarg_layouts}, "
            f"desired_input_kwarg_layouts={self.desired_input_kwarg_layouts}, "
            f"use_local_output={self.use_local_output})"
        )


class PrepareModuleOutput(ParallelStyle):
    """Lay out a module's outputs.

    Args:
        output_layouts: how plain outputs lie, one for each; None leaves an output alone.
        desired_output_layouts: how they shall lie.
        use_local_output: whether they become plain tensors.
    """

    def __init__(
        self, *, output_layouts: Any, desired_output_layouts: Any, use_local_output: bool = True
    ) -> None:
        self.output_layouts, self.desired_output_layouts = (
            _several(output_layouts),
            _several(desired_output_layouts),
        )
        self.use_local_output = use_local_output
        if len(self.output_layouts) != len(self.desired_output_layouts):
            raise AssertionError("output_layouts and desired_output_layouts should have same length!")

    def _outputs(self, outputs, mesh):
        single = not isinstance(outputs, tuple)
        values = (outputs,) if single else outputs
        if len(values) != len(self.output_layouts):
            raise ValueError(
                "module outputs and output_layouts should have same length! got "
                f"{len(values)} outputs and {len(self.output_layouts)} layouts"
            )
        prepared = []
        for value, given, wanted in zip(values, self.output_layouts, self.desired_output_layouts):
            if given is not None:
                value = _laid_out(value, mesh, (given,), (wanted,))
                value = value.to_local() if self.use_local_output else value
            prepared.append(value)
        return prepared[0] if single else tuple(prepared)

    def _apply(self, module, device_mesh):
        module.register_forward_hook(lambda _, inputs, outputs: self._outputs(outputs, device_mesh))
        return module

    def __repr__(self) -> str:
        return (
            f"PrepareModuleOutput(output_layouts={self.output_layouts}, "
            f"desired_output_layouts={self.desired_output_layouts}, use_local_output={self.use_local_output})"
        )


class PrepareModuleInputOutput(ParallelStyle):
    """`PrepareModuleInput` and `PrepareModuleOutput` together."""

    def __init__(
        self,
        *,
        input_layouts: Any = None,
        desired_input_layouts: Any = None,
        input_kwarg_layouts: Any = None,
        desired_input_kwarg_layouts: Any = None,
        use_local_input: bool = False,
        output_layouts: Any,
        desired_output_layouts: Any,
        use_local_output: bool = True,
    ) -> None:
        self.prepare_module_input = PrepareModuleInput(
            input_layouts=input_layouts,
            desired_input_layouts=desired_input_layouts,
            input_kwarg_layouts=input_kwarg_layouts,
            desired_input_kwarg_layouts=desired_input_kwarg_layouts,
            use_local_output=use_local_input,
        )
        self.prepare_module_output = PrepareModuleOutput(
            output_layouts=output_layouts,
            desired_output_layouts=desired_output_layouts,
            use_local_output=use_local_output,
        )

    def _apply(self, module, device_mesh):
        self.prepare_module_input._apply(module, device_mesh)
        return self.prepare_module_output._apply(module, device_mesh)
