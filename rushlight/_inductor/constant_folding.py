"""Parts of a graph that depend on weights alone, computed once."""

import rushlight as torch

__all__ = ["constant_fold"]


def constant_fold(gm, constraint_fn=None):
    """Compute what depends on attributes only, and put the values into the graph."""
    constants = {}
    for node in list(gm.graph.nodes):
        if node.op == "get_attr":
            value = gm
            for name in node.target.split("."):
                value = getattr(value, name)
            if isinstance(value, torch.Tensor):
                constants[node] = value
        elif node.op == "call_function" and node.all_input_nodes and not node.is_impure():
            if all(operand in constants for operand in node.all_input_nodes):
                if constraint_fn is not None and not constraint_fn(node):
                    continue
                args, kwargs = torch.fx.map_arg((node.args, node.kwargs), constants.__getitem__)
                with torch.no_grad():
                    result = node.target(*args, **kwargs)
                if isinstance(result, torch.Tensor):
                    constants[node] = result
    number = 0
    for node in list(gm.graph.nodes):
        if node.op != "call_function" or node not in constants:
            continue
        if all(user in constants for user in node.users):
            continue
        while hasattr(gm, f"_frozen_param{number}"):
            number += 1
        name = f"_frozen_param{number}"
        gm.register_buffer(name, constants[node])
        with gm.graph.inserting_before(node):
            made = gm.graph.create_node("get_attr", name)
        made.meta.update(node.meta)
        node.replace_all_uses_with(made)
        gm.graph.erase_node(node)
    gm.graph.eliminate_dead_code()
    gm.recompile()
