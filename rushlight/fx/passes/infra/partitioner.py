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


class _Parts:
    """Parts of a graph while they grow from its end. Nodes are bits, sets of them whole numbers."""

    def __init__(self, nodes):
        self.nodes = nodes
        self.bit = {node: 1 << i for i, node in enumerate(nodes)}
        self.members: dict = {}  # part -> its nodes, in the order in which parts came to be
        self.first: dict = {}  # part -> the number of the first part that it has taken in
        self.downstream: dict = {}
        for node in reversed(nodes):
            reached = 0
            for user in node.users:
                reached |= self.bit[user] | self.downstream[user]
            self.downstream[node] = reached

    def add(self, part, node):
        self.members[part] = self.bit[node]
        self.first[part] = part

    def merge(self, one, other):
        """The part that both become, or None where a path would leave it and come back."""
        together = self.members[one] | self.members[other]
        if self._reached_from(together) & together:
            return None
        larger, smaller = (one, other) if self._size(one) >= self._size(other) else (other, one)
        self.members[larger] = together
        self.first[larger] = min(self.first[larger], self.first.pop(smaller))
        del self.members[smaller]
        return larger

    def _size(self, part):
        return self.members[part].bit_count()

    def _reached_from(self, together):
        """The nodes that depend on a part by way of others; all users of a part depend on all of it."""
        reached = self._after(together)
        rest = [m for m in self.members.values() if not m & together]
        while touched := [m for m in rest if m & reached]:
            rest = [m for m in rest if not m & reached]
            for members in touched:
                reached |= self._after(members)
        return reached

    def _after(self, members):
        """What comes after the users that a part has outside of it."""
        reached = 0
        for node in self.those(members):
            for user in node.users:
                if not self.bit[user] & members:
                    reached |= self.bit[user] | self.downstream[user]
        return reached

    def those(self, members):
        """The nodes of a set, in the graph's order."""
        while members:
            lowest = members & -members
            yield self.nodes[lowest.bit_length() - 1]
            members ^= lowest


class CapabilityBasedPartitioner:
    """Groups supported nodes, as many as can stand together without a cycle, dependent on each other or not.

    ``operator_support`` says which nodes are supported. Parts in which fewer than two functions compute are
    dropped, unless ``allows_single_node_partition``; ``non_compute_ops`` do not count. With
    ``skip_horizontal_fusion`` a node joins the parts of its users alone.
    """

    def __init__(
        self,
        graph_module,
        operator_support,
        allows_single_node_partition=False,
        non_compute_ops=None,
        allowed_single_node_partition_ops=None,
        skip_horizontal_fusion=False,
    ):
        self.graph_module, self.operator_support = graph_module, operator_support
        self.allows_single_node_partition = allows_single_node_partition
        self.non_compute_ops = set(non_compute_ops or ())
        self.allowed_single_node_partition_ops = set(allowed_single_node_partition_ops or ())
        self.skip_horizontal_fusion = skip_horizontal_fusion

    def _is_node_supported(self, node):
        return self.operator_support.is_node_supported(dict(self.graph_module.named_modules()), node)

    def propose_partitions(self):
        """The parts, those at the graph's end first."""
        nodes = list(self.graph_module.graph.nodes)
        parts = _Parts(nodes)
        for order, node in enumerate(reversed(nodes)):
            own = node.op not in ("placeholder", "output") and self._is_node_supported(node)
            if own:
                parts.add(order, node)
            self._merge(parts, node, order if own else None)
        found = {part: [*parts.those(members)] for part, members in parts.members.items()}
        self._move_items(found)
        proposed = [Partition(part, members) for part, members in found.items() if members]
        return [part for part in proposed if self.allows_single_node_partition or self._is_worth_it(part)]

    def _merge(self, parts, node, own):
        """Let a node's part, or else the first one, take in what it can."""
        if not self.skip_horizontal_fusion:
            ordered = sorted(parts.members, key=parts.first.__getitem__)
        else:
            bits = [parts.bit[user] for user in node.users] if own is not None else []
            ordered = list(dict.fromkeys(p for bit in bits for p, m in parts.members.items() if m & bit))
        first, *others = [p for p in (own, *ordered) if p is not None] or [None]
        for other in others:
            merged = parts.merge(first, other) if other != own else None
            first = first if merged is None else merged

    def _move_items(self, found):
        """Put the items of a result into the part of the node that gives it, or out of all parts with it."""
        home = {node: part for part, members in found.items() for node in members}
        moved = True
        while moved:
            moved = False
            for node in self.graph_module.graph.nodes:
                if not all(_is_item(user) for user in node.users):
                    continue
                for user in node.users:
                    if home.get(user) == home.get(node):
                        continue
                    if user in home:
                        found[home.pop(user)].remove(user)
                    if node in home:
                        found[home[node]].append(user)
                        home[user] = home[node]
                    moved = True

    def _is_worth_it(self, part):
        names = [_name(n.target) for n in part.nodes if n.op == "call_function"]
        idle = {"torch.ops.aten.view", "_operator.getitem", *self.non_compute_ops}
        weight = sum(name not in idle for name in names)
        return weight + sum(name in self.allowed_single_node_partition_ops for name in names) > 1

    def remove_bookend_non_compute_ops(self, partitions):
        """Take those of ``non_compute_ops`` out of parts before which, or after which, nothing computes."""
        for part in partitions:
            while idle := [node for node in part.nodes if self._is_bookend(node, part)]:
                for node in idle:
                    part.remove_node(node)

    def _is_bookend(self, node, part):
        if node.op != "call_function" or _name(node.target) not in self.non_compute_ops:
            return False
        return any(
            all(other not in part.nodes for other in side) for side in (node.all_input_nodes, node.users)
        )

    def fuse_partitions(self, partitions, prefix="fused_"):
        """Replace each part by a module."""
        return fuse_by_partitions(self.graph_module, [list(p.nodes) for p in partitions], prefix)

    def partition_and_fuse(self, prefix="fused_"):
        """Find the parts, and replace them."""
        return self.fuse_partitions(self.propose_partitions(), prefix)


def _is_item(node):
    return node.op == "call_function" and _name(node.target) == "_operator.getitem"


def _name(target):
    from rushlight.fx._names import _get_qualified_name

    return _get_qualified_name(target) if callable(target) else str(target)
