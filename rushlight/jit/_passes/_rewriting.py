"""Passes that put other operations in place of those that a pattern describes."""

from rushlight.jit._graph_constants import _blocks, _constant
from rushlight.jit._graph_edits import own, schema_of
from rushlight.jit._graph_text import parse_ir
from rushlight.jit._passes._remove_mutation import remove_tensor_mutation

__all__ = [
    "_jit_pass_custom_pattern_based_rewrite",
    "_jit_pass_custom_pattern_based_rewrite_graph",
    "_jit_pass_fuse_linear",
]


def _jit_pass_custom_pattern_based_rewrite_graph(pattern, fused_node_name, g, value_name_pairs=()):
    """Put the second text's operations in place of the first one's, wherever these stand in a graph.

    Args:
        value_name_pairs: a value of the second text, and one of the first from whose place in the source its
            operation comes.
    """
    _rewrite(g, parse_ir(pattern), parse_ir(fused_node_name), dict(value_name_pairs))


def _jit_pass_custom_pattern_based_rewrite(pattern, fused_node_name, m):
    """The same in `forward` of a module."""
    _jit_pass_custom_pattern_based_rewrite_graph(pattern, fused_node_name, m._get_method("forward").graph)


def _jit_pass_fuse_linear(graph):
    """Put `linear` in place of products with a transposed matrix, to which a bias may be added."""
    linear = "graph(%x, %w, %b):\n  %r = aten::linear(%x, %w, %b)\n  return (%r)"
    head = "graph(%x, %w, %b{more}):\n  %t = aten::t(%w)\n  "
    remove_tensor_mutation(graph, lambda node: node._kind == "aten::add_" and _is_product(node._inputs[0]))
    text = head.format(more=", %n") + "%m = aten::matmul(%x, %t)\n  %r = aten::add(%m, %b, %n)\n  return (%r)"
    new = linear.replace("%b):", "%b, %n):")
    _rewrite(graph, parse_ir(text), parse_ir(new), {"r": "m"}, lambda found: _constant(found["n"]) == (1,))
    text = head.format(more=", %n, %k") + "%r = aten::addmm(%b, %x, %t, %n, %k)\n  return (%r)"
    new = linear.replace("%b):", "%b, %n, %k):")
    ones = lambda found: _constant(found["n"]) == _constant(found["k"]) == (1,)  # noqa: E731
    _rewrite(graph, parse_ir(text), parse_ir(new), {"r": "r"}, ones)
    plain = "graph(%x, %w):\n  %t = aten::t(%w)\n  %r = aten::matmul(%x, %t)\n  return (%r)"
    without = (
        "graph(%x, %w):\n  %b : NoneType = prim::Constant()\n  %r = aten::linear(%x, %w, %b)\n  return (%r)"
    )
    _rewrite(graph, parse_ir(plain), parse_ir(without), {"r": "r"})


def _is_product(value):
    return value._node is not None and value._node._kind == "aten::matmul"


def _rewrite(graph, pattern, replacement, origins, fits=None):
    own(graph)
    for block in list(_blocks(graph)):
        for node in list(block._nodes):
            if node not in block._nodes:
                continue  # of what was replaced
            found = _Match(graph, pattern, node).found()
            if found is None:
                continue
            values, nodes = found
            with graph.insert_point_guard(node):
                named = _complete(graph, pattern, values)
                if fits is not None and not fits({v._name: value for v, value in named.items()}):
                    continue
                given = [named[value] for value in pattern._inputs]
                lines = {v._name: node._line for told, node in nodes.items() for v in told._outputs}
                before = len(block._nodes)
                results = graph.insertGraph(replacement, given)
            _place(block, replacement, origins, lines, node, len(block._nodes) - before)
            for old, new in zip(pattern._outputs, results, strict=True):
                new.copyMetadata(values[old])
                values[old].replaceAllUsesWith(new)
            for target in sorted(nodes.values(), key=block._nodes.index, reverse=True):
                target.destroy()


def _place(block, replacement, origins, lines, node, count):
    """Tell the new operations from which places of the source they come."""
    at = block._nodes.index(node)
    for made, told in zip(block._nodes[at - count : at], replacement._nodes, strict=False):
        said = next((origins[v._name] for v in told._outputs if v._name in origins), None)
        made._line = lines.get(said)


def _complete(graph, pattern, values):
    """The values for a pattern's inputs: what an operation leaves out is a constant."""
    made = dict(values)
    for value, default in values.items():
        if isinstance(default, _Default):
            made[value] = graph.insertConstant(default.value)
    return made


class _Default:
    def __init__(self, value):
        self.value = value


class _Match:
    """One try to find a pattern whose last operation is a node of the graph."""

    def __init__(self, graph, pattern, node):
        self.graph, self.pattern = graph, pattern
        self.values, self.nodes = {}, {}
        self.good = self.fits(pattern._nodes[-1], node)

    def found(self):
        """(values by those of the pattern, nodes by those of the pattern), or None."""
        if not self.good or len(self.nodes) < len(self.pattern._nodes):
            return None
        if any(value not in self.values for value in self.pattern._inputs):
            return None
        inside = set(map(id, self.nodes.values()))
        for pattern, node in self.nodes.items():
            for told, value in zip(pattern._outputs, node._outputs, strict=True):
                if told not in self.pattern._outputs and any(
                    id(use.user) not in inside for use in value.uses()
                ):
                    return None
        return self.values, self.nodes

    def fits(self, pattern, node):
        if node is None or pattern in self.nodes:
            return node is not None and self.nodes[pattern] is node
        last = self.nodes.get(self.pattern._nodes[-1], node)
        if node._block is not last._block or not self.same_kind(pattern, node):
            return False
        if len(pattern._outputs) != len(node._outputs) or len(pattern._inputs) < len(node._inputs):
            return False
        self.nodes[pattern] = node
        given = [*node._inputs, *_defaults(node, len(pattern._inputs))]
        if len(given) != len(pattern._inputs):
            return False
        return all(map(self.bind, pattern._inputs, given)) and all(
            map(self.bind, pattern._outputs, node._outputs)
        )

    def bind(self, told, value):
        if told in self.values:
            known = self.values[told]
            return (
                known is value
                or isinstance(known, _Default)
                and isinstance(value, _Default)
                and (known.value == value.value)
            )
        self.values[told] = value
        if told._node is None:
            return True
        return not isinstance(value, _Default) and self.fits(told._node, value._node)

    def same_kind(self, pattern, node):
        if pattern._kind == "match::module":
            module = _module_of(self.graph, node._outputs[0]) if node._kind == "prim::GetAttr" else None
            names = (getattr(module, "original_name", None), type(module).__name__)
            return module is not None and pattern._attributes["name"] in names
        return pattern._kind == node._kind and all(
            node._attributes.get(name) == value for name, value in pattern._attributes.items()
        )


def _defaults(node, count):
    """What an operation computes with where its last operands are left out."""
    schema = schema_of(node) if len(node._inputs) < count else None
    missing = schema.arguments[len(node._inputs) : count] if schema is not None else ()
    return [_Default(argument.default_value) for argument in missing if argument.has_default_value()]


def _module_of(graph, value):
    """The module that a value of a graph stands for."""
    if value._node is None:
        return graph.module() if value._name == "self" else None
    if value._node._kind != "prim::GetAttr":
        return None
    owner = _module_of(graph, value._node._inputs[0])
    return getattr(owner, value._node._attributes["name"], None)
