"""What a backward pass computes again instead of reading it: pointwise values whose operands it has anyway.

Reading and writing memory is what short operators cost, so a value that the forward pass would write for the
backward pass alone is cheaper computed twice, as part of the chains on both sides. Results are the same: the
steps are, and so is what they start from. No tensor is kept that was not kept before, and none that the
program may write to is read that was not read before.
"""

from dataclasses import dataclass

from rushlight._operators.traits import gives_a_view
from rushlight._ops import OpOverload
from rushlight.fx import Node
from rushlight.fx.node import map_arg

from ._fuse import is_costly, pointwise_nodes
from ._passes import has_effects, storage_of, written_by

__all__ = ["Recomputed"]

_LONGEST = 12  # steps that are repeated for one value


@dataclass
class _Recipe:
    """How a node is computed; the forward graph's own nodes are rewritten later."""

    target: object
    args: tuple
    kwargs: dict
    value: object


class Recomputed:
    """Which values of a forward graph its backward graphs compute again."""

    def __init__(self, graph, results, backwards, device):
        """`backwards`: pairs of a graph, and whether there is no other one for the same results."""
        placeholders = [node for node in graph.nodes if node.op == "placeholder"]
        takes = [set(backward.takes) if only else set() for backward, only in backwards]
        self.read_anyway = set.intersection(*takes) if takes else set()
        self.visible = {storage_of(node) for node in (*placeholders, *results)}
        self.written = {storage_of(t) for node in graph.nodes for t in written_by(node)}
        self.kept = {node for backward, _ in backwards for node in backward.takes}
        self.steps = pointwise_nodes(graph, device)
        self.recipes: dict = {}
        live = _live(graph, [*results, *self.kept])
        whole = _read_whole([backward for backward, _ in backwards], device) | set(results)
        position = {node: i for i, node in enumerate(graph.nodes)}
        for node in sorted(self.kept - whole, key=position.__getitem__, reverse=True):
            if node not in self.steps or not self._is_fused(node, live):
                continue
            self.kept.discard(node)
            cone: dict = {}
            if self._expand(node, cone, 0) and sum(n in self.steps for n in cone) <= _LONGEST:
                self.recipes.update(cone)
            else:
                self.kept.add(node)

    def _is_fused(self, node, live):
        """Whether nobody but steps of chains reads a value in the forward graph."""
        shape = node.meta["val"].shape
        users = [user for user in node.users if user in live]
        return users and all(user in self.steps and user.meta["val"].shape == shape for user in users)

    def _expand(self, node, cone, depth):
        """Find how a node follows from what is kept; False where it does not."""
        if storage_of(node) in self.written or depth > 2 * _LONGEST:
            return False
        if node in cone:
            return True
        if node in self.kept:
            return storage_of(node) not in self.visible or node in self.read_anyway
        if node.op != "call_function" or (node not in self.steps and not _is_view(node)):
            return False
        if node in self.steps and is_costly(self.steps[node]):
            return False
        if not all(self._expand(operand, cone, depth + 1) for operand in node.all_input_nodes):
            return False
        cone[node] = _Recipe(node.target, node.args, dict(node.kwargs), node.meta["val"])
        return True

    def rewrite(self, backward):
        """Compute again what a backward graph takes of these values."""
        graph = backward.graph
        position = {node: i for i, node in enumerate(graph.nodes)}
        found = [node for node in backward.takes if node in self.recipes and node not in self.kept]
        old = {node: _placeholder(backward, node) for node in found}
        first = {node: min(old[node].users, key=position.__getitem__) for node in found if old[node].users}
        made: dict = {}
        for node in sorted(first, key=lambda node: position[first[node]]):
            with graph.inserting_before(first[node]):
                old[node].replace_all_uses_with(self._make(node, backward, made))
        for node in found:
            graph.erase_node(old[node])
        backward.takes = [node for node in backward.takes if node not in old]

    def _make(self, node, backward, made):
        if node not in made:
            made[node] = self._made_again(node, backward, made)
        return made[node]

    def _made_again(self, node, backward, made):
        recipe = None if node in self.kept else self.recipes[node]
        if recipe is None:
            return _placeholder(backward, node)
        arguments, named = map_arg(
            (recipe.args, recipe.kwargs), lambda operand: self._make(operand, backward, made)
        )
        again = backward.graph.call_function(recipe.target, arguments, named)
        again.meta["val"] = recipe.value
        return again


def _read_whole(backwards, device):
    """What backward graphs read otherwise than in chains."""
    found: set = set()
    for backward in backwards:
        steps = pointwise_nodes(backward.graph, device)
        inputs = [n for n in backward.graph.nodes if n.op == "placeholder"]
        pairs = zip(backward.takes, inputs)
        found |= {node for node, place in pairs if any(user not in steps for user in place.users)}
    return found


def _live(graph, values):
    """The nodes that values are computed from, themselves included, and what has effects."""
    pending = [*values, *(node for node in graph.nodes if has_effects(node) and node.op != "output")]
    found: set = set()
    while pending:
        node = pending.pop()
        if node not in found:
            found.add(node)
            pending += node.all_input_nodes
    return found


def _placeholder(backward, node):
    """The input that stands for a value of the forward graph; a new one where there is none."""
    inputs = [n for n in backward.graph.nodes if n.op == "placeholder"]
    if node in backward.takes:
        return inputs[backward.takes.index(node)]
    count = len(backward.takes)
    before = inputs[count] if count < len(inputs) else next(iter(backward.graph.nodes))
    with backward.graph.inserting_before(before):
        made = backward.graph.placeholder(f"again_{count}")
    made.meta["val"] = node.meta["val"]
    backward.takes.append(node)
    return made


def _is_view(node):
    return (
        isinstance(node.target, OpOverload) and gives_a_view(node.target) and isinstance(node.args[0], Node)
    )
