"""The smallest part of a graph that still fails: steps are cut off, or become inputs, as long as it does."""

import rushlight as torch
from rushlight import fx

from .compile_utils import get_outputs, get_placeholders

__all__ = ["minifier"]


def minifier(fail_f, inps, module_fails, dump_state=None, *, max_granularity=None):
    """A small graph, and inputs of it, with which ``module_fails(graph_module, inputs)`` is true.

    Args:
        fail_f (GraphModule): the graph that fails.
        inps (list of Tensor): what it fails with.
        module_fails (callable): whether a graph fails with some inputs.
        dump_state (callable): called with each smaller graph and its inputs, to keep them.
        max_granularity (int): how many steps are tried at once at most.

    Returns: (GraphModule, list of inputs).

    Raises: RuntimeError where `fail_f` does not fail.
    """
    if not module_fails(fail_f, list(inps)):
        raise RuntimeError("Input graph did not fail the tester")
    state = _Failing(fail_f, module_fails, dump_state)
    state.graph, state.inputs = fail_f.graph, list(inps)
    step = 1 << max(len(fail_f.graph.nodes).bit_length() - 1, 0)
    step = step if max_granularity is None else min(step, max_granularity)
    while True:
        if not any(
            cut(step) for cut in (state.cut_outputs, state.cut_end, state.cut_start, state.drop_inputs)
        ):
            if step == 1:
                break
            step //= 2
    return fx.GraphModule(fail_f, state.graph), state.inputs


class _Failing:
    """The smallest graph yet, and its inputs."""

    graph: fx.Graph
    inputs: list

    def __init__(self, root, fails, dump):
        self.root, self.fails, self.dump = root, fails, dump

    def _take(self, graph, inputs):
        """Keep a candidate if it is smaller and fails."""
        graph.eliminate_dead_code()
        if _cost(graph) >= _cost(self.graph):
            return False
        module = fx.GraphModule(self.root, graph)
        if not self.fails(module, list(inputs)):
            return False
        self.graph, self.inputs = graph, inputs
        if self.dump is not None:
            self.dump(module, list(inputs))
        return True

    def _copy(self):
        graph, env = fx.Graph(self.root), {}
        graph.output(graph.graph_copy(self.graph, env))
        return graph, env

    def cut_outputs(self, step):
        """Return fewer values."""
        outputs = get_outputs(self.graph)
        for start in range(0, len(outputs), step):
            kept = outputs[:start] + outputs[start + step :]
            graph, env = self._copy()
            graph.output_node().args = (tuple(env.get(n) if isinstance(n, fx.Node) else n for n in kept),)
            if kept and self._take(graph, self.inputs):
                return True
        return False

    def cut_end(self, step):
        """Return a step before the last ones."""
        values = self._values()
        steps = [n for n in self.graph.nodes if n.op != "output" and isinstance(values.get(n), torch.Tensor)]
        for node in steps[::step]:
            graph, env = self._copy()
            graph.output_node().args = ((env[node],),)
            if self._take(graph, self.inputs):
                return True
        return False

    def cut_start(self, step):
        """Take what some steps make as inputs."""
        values = self._values()
        steps = [n for n in self.graph.nodes if n.op not in ("placeholder", "output")]
        for start in range(0, len(steps), step):
            replaced = [n for n in steps[start : start + step] if isinstance(values[n], torch.Tensor)]
            if not replaced:
                continue
            graph, env = self._copy()
            made = []
            for node in replaced:
                with graph.inserting_before(next(iter(graph.nodes))):
                    made.append(graph.placeholder(f"{node.name}_given"))
                env[node].replace_all_uses_with(made[-1])
            given = [values[n].detach().clone() for n in reversed(replaced)]  # each stands before the last
            if self._take(*_without_unused(graph, given + self.inputs)):
                return True
        return False

    def drop_inputs(self, step):
        return self._take(*_without_unused(self._copy()[0], self.inputs))

    def _values(self):
        """What each node makes."""
        found = {}

        class Keeping(fx.Interpreter):
            def run_node(self, n):
                found[n] = super().run_node(n)
                return found[n]

        with torch.random.fork_rng():
            Keeping(fx.GraphModule(self.root, self.graph), graph=self.graph).run(*self.inputs)
        return found


def _without_unused(graph, inputs):
    graph.eliminate_dead_code()
    kept = []
    for node, value in zip(get_placeholders(graph), inputs, strict=True):
        if node.users:
            kept.append(value)
        else:
            graph.erase_node(node)
    return graph, kept


def _cost(graph):
    inputs = len(get_placeholders(graph))
    return len(graph.nodes) - inputs, inputs, len(get_outputs(graph))
