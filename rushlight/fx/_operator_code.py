"""A graph as a Python function that calls operators directly, and lets go of tensors after their last use."""

import operator

from rushlight.fx.node import Node

__all__ = ["compiled", "generate", "written"]


def generate(module):
    """The function of a module's graph: takes the inputs, returns the tuple of results."""
    return compiled(*written(module.graph))


def written(graph):
    """(source, constants by name) of a graph's function; its inputs are `v0`, `v1` and so on."""
    names: dict = {}
    constants: dict = {}
    lines, inputs = [], []
    last = _last_uses(graph)
    for i, node in enumerate(graph.nodes):
        names[node] = f"v{i}"
        if node.op == "placeholder":
            inputs.append(names[node])
        elif node.op == "output":
            lines.append(f"return {_text(node.args[0], names, constants)}")
        else:
            lines.append(f"{names[node]} = {_call(node, names, constants)}")
            dead = [names[n] for n in last.get(node, ())]
            if dead:
                lines.append(" = ".join(dead) + " = None")
    body = "\n    ".join(lines)
    return f"def run({', '.join(inputs)}):\n    {body}\n", constants


def compiled(source, constants):
    """The function that a source defines."""
    space = dict(constants)
    exec(compile(source, "<compiled graph>", "exec"), space)
    return space["run"]


def _last_uses(graph):
    """node -> the values that nobody needs after it."""
    last: dict = {}
    seen = set()
    for node in reversed(graph.nodes):
        if node.op == "output":
            seen.update(node.all_input_nodes)
            continue
        for used in [*node.all_input_nodes, node]:
            if used not in seen and used.op != "placeholder":
                seen.add(used)
                last.setdefault(node, []).append(used)
    return last


def _call(node, names, constants):
    if node.target is operator.getitem:
        return f"{names[node.args[0]]}[{node.args[1]!r}]"
    function = f"f{len(constants)}"
    constants[function] = node.target._op  # of an operator, or of a call that is one step of autograd
    arguments = [_text(a, names, constants) for a in node.args]
    arguments += [f"{k}={_text(v, names, constants)}" for k, v in node.kwargs.items()]
    return f"{function}({', '.join(arguments)})"


def _text(value, names, constants):
    if isinstance(value, Node):
        return names[value]
    if isinstance(value, (list, tuple)):
        items = [_text(item, names, constants) for item in value]
        if isinstance(value, list):
            return f"[{', '.join(items)}]"
        return f"({', '.join(items)}{',' if len(items) == 1 else ''})"
    if value is None or type(value) in (bool, int):
        return repr(value)
    name = f"c{len(constants)}"
    constants[name] = value
    return name
