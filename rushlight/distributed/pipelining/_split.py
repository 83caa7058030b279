"""A model as stages: its traced graph, cut where the program says."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from rushlight._command.names import is_own
from rushlight.fx import Graph, GraphModule, Tracer
from rushlight.fx.node import map_arg

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from rushlight.distributed._process_group import ProcessGroup
    from rushlight.nn import Module

__all__ = ["Pipe", "SplitPoint", "pipe_split", "pipeline"]


class SplitPoint(Enum):
    """Whether a stage begins before or after a module."""

    BEGINNING = 1
    END = 2


class _Tracing:
    tracer: _StageTracer | None = None  # the one at work


def pipe_split() -> None:
    """In a model's forward: the next stage begins here."""
    if _Tracing.tracer is not None:
        _Tracing.tracer.create_proxy("call_function", pipe_split, (), {})


class _StageTracer(Tracer):
    """Keeps modules whole that hold no split point."""

    def __init__(self, points):
        super().__init__()
        self._points = points

    def is_leaf_module(self, m, module_qualified_name):
        inside = [p for p in self._points if p.startswith(module_qualified_name + ".")]
        calls = not self._points and not is_own(m.__module__, "nn")
        return not inside and not calls and not is_own(m.__module__, "fx")


@dataclass
class PipeInfo:
    """What stages need to know of the model they are cut from."""

    graph: Graph
    num_stages: int
    has_loss_and_backward: bool = False


class Pipe:
    """A model cut into stages; made by `pipeline`."""

    def __init__(self, stages: list[Any], graph) -> None:
        self._stages, self._graph = stages, graph
        self.num_stages = len(stages)

    def get_stage_module(self, stage_idx: int) -> Module:
        """The module of a stage; its parameters have the model's names.

        Raises ValueError for a stage that is not there."""
        if not 0 <= stage_idx < self.num_stages:
            raise ValueError(f"Invalid stage index {stage_idx}!")
        return self._stages[stage_idx]

    def info(self):
        return PipeInfo(self._graph, self.num_stages)

    def build_stage(self, stage_index: int, device: Any, group: ProcessGroup | None = None) -> Any:
        """The stage for schedules."""
        from rushlight.distributed.pipelining.stage import PipelineStage

        return PipelineStage(
            self.get_stage_module(stage_index), stage_index, self.num_stages, device, group=group
        )

    def forward(self, *args: Any, **kwargs: Any):
        """All stages, one after the other, in this process."""
        values = self._stages[0](*args, **kwargs)
        for stage in self._stages[1:]:
            values = stage(*values) if isinstance(values, tuple) else stage(values)
        return values

    __call__ = forward

    def __repr__(self) -> str:
        return "\n".join(f"(stage {i}): {stage}" for i, stage in enumerate(self._stages))


def pipeline(
    module: Module,
    mb_args: tuple[Any, ...],
    mb_kwargs: dict[str, Any] | None = None,
    split_spec: dict[str, Any] | None = None,
    split_policy: Callable[..., Any] | None = None,
) -> Pipe:
    """Cut a model into stages.

    Args:
        module: the model; its forward is traced symbolically.
        mb_args, mb_kwargs: a micro-batch as example; `mb_kwargs` names the keyword arguments in use.
        split_spec: {path of a module: SplitPoint}; `pipe_split()` calls in forward count otherwise.
        split_policy: a function of the traced module that puts `pipe_split` calls into its graph.

    Raises ValueError for both of them, or paths that are not called; a parameter that two stages use.
    """
    if split_spec is not None and split_policy is not None:
        raise ValueError("Cannot specify both `split_spec` and `split_policy`. Please use only one of them.")
    tracer = _StageTracer(list(split_spec or ()))
    _Tracing.tracer = tracer
    try:
        concrete = {}
        graph = tracer.trace(module, concrete or None)
    finally:
        _Tracing.tracer = None
    traced = GraphModule(module, graph)
    if split_policy is not None:
        traced = split_policy(traced)
    stages = _assign(traced.graph, split_spec or {})
    _check_shared(traced.graph, stages)
    return Pipe(_modules(module, traced.graph, stages), traced.graph)


def _assign(graph, points):
    """{node: its stage}."""
    stage, found, used = 0, {}, set()
    for node in graph.nodes:
        point = points.get(node.target) if node.op == "call_module" else None
        if point is not None:
            used.add(node.target)
        if point is SplitPoint.BEGINNING:
            stage += 1
        if node.op == "call_function" and node.target is pipe_split:
            stage += 1
            continue
        found[node] = 0 if node.op == "placeholder" else stage
        if point is SplitPoint.END:
            stage += 1
    missing = set(points) - used
    if missing:
        raise ValueError(f"split_spec: the model calls no module at {sorted(missing)}")
    for node in found:
        if node.op == "get_attr" and node.users:
            found[node] = min(found[user] for user in node.users)
    return found


def _check_shared(graph, stages):
    homes: dict = {}
    for node, stage in stages.items():
        if node.op in ("get_attr", "call_module") and homes.setdefault(node.target, stage) != stage:
            raise ValueError(f"pipeline: two stages use {node.target}; cut the model where it is used once")


def _modules(module, graph, stages):
    count = max(stages.values()) + 1
    nodes = [n for n in graph.nodes if n in stages]
    last = next(n for n in nodes if n.op == "output")
    made, coming = [], [n for n in nodes if n.op == "placeholder"]
    for stage in range(count):
        own = [n for n in nodes if stages[n] == stage and n.op not in ("placeholder", "output")]
        later = [n for n in nodes if stages[n] > stage or n is last]
        wanted = [n for n in dict.fromkeys([*coming, *own]) if any(user in later for user in n.users)]
        part, table = Graph(), {}
        for node in coming:
            default = node.args if stage == 0 else ()
            table[node] = part.placeholder(node.name, default_value=default[0]) if default else (
                part.placeholder(node.name)
            )  # fmt: skip
        for node in own:
            table[node] = part.node_copy(node, table.__getitem__)
        if stage == count - 1:
            part.output(map_arg(last.args[0], lambda n, table=table: table[n]))
        else:
            results = tuple(table[n] for n in wanted)
            part.output(results[0] if len(results) == 1 else results)
        made.append(GraphModule(module, part, f"Stage{stage}"))
        coming = wanted
    return made
