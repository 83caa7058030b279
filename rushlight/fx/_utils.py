"""Text of graphs for logs."""

__all__ = ["first_call_function_nn_module_stack", "get_node_context", "lazy_format_graph_code"]


class _Lazy:
    """Text that is made when it is shown."""

    def __init__(self, make):
        self.make = make

    def __str__(self):
        return self.make()


def _format_graph_code(name, filename, graph_str):
    return f"TRACED GRAPH\n {name} {filename} {graph_str}\n"


def lazy_format_graph_code(name, gm, maybe_id=None, **kwargs):
    """The module's readable source, for a log that may not be shown."""
    shown = f"{name} {maybe_id}" if maybe_id is not None else name
    return _Lazy(
        lambda: _format_graph_code(
            f"===== {shown} =====\n", gm.forward.__code__.co_filename, gm.print_readable(print_output=False)
        )
    )


def first_call_function_nn_module_stack(graph):
    """The module stack of the first call of a function, or None."""
    for node in graph.nodes:
        if node.op == "call_function" and "nn_module_stack" in node.meta:
            return node.meta["nn_module_stack"]
    return None


def get_node_context(node, num_nodes=2):
    """A node and those before it, as text."""
    lines, current = [], node
    for _ in range(num_nodes + 1):
        if current.op == "root":
            break
        lines.insert(0, current.format_node())
        current = current.prev
    return "\n".join(lines)
