"""A graph as the text that the executor in C++ reads."""

import json
import math
import operator

import rushlight as torch
from rushlight.fx import Node

__all__ = ["NotLowered", "graph_text"]


class NotLowered(Exception):
    """The executor has no word for something in the graph."""


def graph_text(graph):
    """The text of a graph."""
    names: dict = {}
    inputs, lines = [], []
    for node in graph.nodes:
        if node.op == "placeholder":
            names[node] = f"%v{len(names)}"
            value = node.meta["val"]
            inputs.append(f"{names[node]}: {_type(value)}")
        elif node.op == "output":
            lines.append(f"  return ({', '.join(names[n] for n in node.args[0])})")
        elif node.target is operator.getitem:
            pass  # named with what it takes from
        else:
            lines.append(_line(node, names))
    body = "\n".join(lines)
    return f"rushlight graph 1\ngraph({', '.join(inputs)}) {{\n{body}\n}}\n"


def _type(value):
    return f"{str(value.dtype).removeprefix('torch.')}{list(value.shape)}"


def _line(node, names):
    arguments = [_text(a, names) for a in node.args] + [
        f"{k}={_text(v, names)}" for k, v in node.kwargs.items()
    ]
    return f"  {_results(node, names)} = {_operator(node.target)}({', '.join(arguments)})"


def _results(node, names):
    value = node.meta["val"]
    if isinstance(value, torch.Tensor):
        names[node] = f"%v{len(names)}"
        return f"{names[node]}: {_type(value)}"
    if not isinstance(value, (tuple, list)):
        raise NotLowered(f"{node.target} gives no tensor")
    given = ["_"] * len(value)
    for user in node.users:
        if user.target is not operator.getitem:
            raise NotLowered(f"{user.target} takes all that {node.target} gives")
        if not isinstance(user.meta["val"], torch.Tensor):
            raise NotLowered(f"{node.target} gives a list among others")
        names[user] = f"%v{len(names)}"
        given[user.args[1]] = f"{names[user]}: {_type(user.meta['val'])}"
    return ", ".join(given)


def _operator(target):
    record, form = target._entry.schema, target._entry.form
    if isinstance(record, str):  # an operator of the program's, by the name that it defined
        return record.partition("(")[0]
    if target.namespace != "aten" or form > 1:
        raise NotLowered(f"{target} is no operator of the library")
    space = f"{record['space']}::" if record["space"] else ""
    overload = f".{record['overload']}" if record["overload"] else ""
    return f"{space}{record['name']}{'_' if form else ''}{overload}"


def _text(value, names):
    if isinstance(value, Node):
        return names[value]
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(_text(item, names) for item in value)}]"
    if value is None or isinstance(value, (bool, int)):
        return str(value)
    if isinstance(value, float):
        return (
            repr(value)
            if math.isfinite(value)
            else "nan"
            if value != value
            else "inf"
            if value > 0
            else "-inf"
        )
    if isinstance(value, (torch.dtype, torch.layout, torch.memory_format)):
        return str(value).removeprefix("torch.")
    if isinstance(value, (str, torch.device)):
        return json.dumps(str(value))
    raise NotLowered(f"a {type(value).__name__} has no literal")
