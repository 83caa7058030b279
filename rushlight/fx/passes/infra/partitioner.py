"""The largest parts of a graph that a back end can take."""

from rushlight.fx.passes.utils.fuser_utils import fuse_by_partitions

__all__ = ["CapabilityBasedPartitioner", "Partition"]


class Partition:
    """Nodes that are to become one module."""

    def __init__(self, id=None, nodes=None):
        self.id = id
        self.nodes = dict.fromkeys(nodes or [])

    def __repr__(self):
        return str(self.nodes)

    def add_node(self, node, node_order=None):
        self.nodes[node] = node_order

    def remove_node(self, node):
        del self.nodes[node]

    def size(self):
        return len(self.nodes)


class CapabilityBasedPartitioner:
    """Groups supported nodes, as many as can stand together without a cycle.

    ``operator_support`` says which nodes are supported. Parts of one node, unless
    ``allows_single_node_partition``, and parts only of ``non_compute_ops`` are dropped.
    """

    def __init__(
        self,
        graph_module,
        operator_support,
        allows_single_node_partition=False,
        non_compute_ops=None,
        allowed_single_node_partition_ops=None,
    ):
        self.graph_module, self.operator_support = graph_module, operator_support
        self.allows_single_node_partition = allows_single_node_partition
        self.non_compute_ops = set(non_compute_ops or ())
        self.allowed_single_node_partition_ops = set(allowed_single_node_partition_ops or ())

    def _is_node_supported(self, node):
        return self.operator_support.is_node_supported(dict(self.graph_module.named_modules()), node)

    def propose_partitions(self):
        """The parts, in the graph's order."""
        part_of, parts = {}, {}
        for node in self.graph_module.graph.nodes:
            callable_node = node.op in ("call_function", "call_method", "call_module")
            if not callable_node or not self._is_node_supported(node):
                continue
            home = self._home(node, part_of, parts)
            parts.setdefault(home, Partition(home)).add_node(node)
            part_of[node] = home
        return [part for part in parts.values() if self._is_worth_it(part)]

    def _home(self, node, part_of, parts):
        """The part that the node may join without a path that leaves it and comes back; else a new one."""
        for used in reversed(node.all_input_nodes):
            home = part_of.get(used)
            if home is not None and self._may_join(node, home, part_of):
                return home
        return len(parts)

    def _may_join(self, node, home, part_of):
        """Whether no input of the node from outside of the part depends on the part."""
        pending = [used for used in node.all_input_nodes if part_of.get(used) != home]
        seen = set()
        while pending:
            current = pending.pop()
            if part_of.get(current) == home:
                return False
            if current in seen:
                continue
            seen.add(current)
            pending += current.all_input_nodes
            if current in part_of:  # modules run as a whole: its other nodes' inputs count as well
                pending += [n for n, p in part_of.items() if p == part_of[current] and n not in seen]
        return True

    def _is_worth_it(self, part):
        computing = [
            n for n in part.nodes if n.op == "call_function" and _name(n.target) not in self.non_compute_ops
        ]
        computing += [n for n in part.nodes if n.op != "call_function"]
        if not computing:
            return False
        if len(computing) > 1 or self.allows_single_node_partition:
            return True
        return any(_name(n.target) in self.allowed_single_node_partition_ops for n in computing)

    def fuse_partitions(self, partitions, prefix="fused_"):
        """Replace each part by a module."""
        return fuse_by_partitions(self.graph_module, [list(p.nodes) for p in partitions], prefix)

    def partition_and_fuse(self, prefix="fused_"):
        """Find the parts, and replace them."""
        return self.fuse_partitions(self.propose_partitions(), prefix)


def _name(target):
    from rushlight.fx._names import _get_qualified_name

    return _get_qualified_name(target) if callable(target) else str(target)
