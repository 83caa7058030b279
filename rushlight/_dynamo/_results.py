"""What a program returns: containers with nodes of its graph in place of tensors, and filled with tensors."""

import dataclasses
from collections import OrderedDict

from rushlight.fx import Node

__all__ = ["collect", "filler", "form_of", "is_record", "map_record", "runner"]


def is_record(value):
    """Whether an object is what its attributes are, and its items if it is a dict: one of a dataclass."""
    cls = type(value)
    if not dataclasses.is_dataclass(cls) or not hasattr(value, "__dict__") or hasattr(cls, "__del__"):
        return False
    if cls.__new__ in (object.__new__, dict.__new__, OrderedDict.__new__):
        slots = any(getattr(c, "__slots__", ()) for c in cls.__mro__)
        return not slots and (not isinstance(value, dict) or isinstance(value, OrderedDict))
    return False


def map_record(function, value):
    """The same object with the function applied to its attributes and items."""
    made = type(value).__new__(type(value))
    made.__dict__.update({k: function(v) for k, v in vars(value).items()})
    if isinstance(value, OrderedDict):
        for key in OrderedDict.keys(value):
            OrderedDict.__setitem__(made, key, function(OrderedDict.__getitem__(value, key)))
    return made


def collect(value, nodes):
    """Add the nodes in what a program returns, each once, in order."""
    if isinstance(value, Node):
        nodes.setdefault(value, len(nodes))
    elif is_record(value):
        collect([vars(value), list(OrderedDict.values(value)) if isinstance(value, dict) else None], nodes)
    elif isinstance(value, dict):
        for item in value.values():
            collect(item, nodes)
    elif isinstance(value, (list, tuple)):
        for item in value:
            collect(item, nodes)


def form_of(output):
    """What a program returns: a tensor, a tuple of tensors, or something else, filled from a list."""
    if isinstance(output, Node):
        return "t"
    plain = type(output) is tuple and all(isinstance(item, Node) for item in output)
    return "u" if plain and len(set(output)) == len(output) else "l"


def filler(run, output):
    """A function of the inputs that returns what the program returns."""
    places: dict = {}
    collect(output, places)
    return lambda inputs: _fill(output, run(inputs), places)


def runner(program, rest, output):
    """The same for a function of tensors one by one."""

    def values(inputs):
        return program(*inputs, *rest)

    form = form_of(output)
    if form == "t":
        return lambda inputs: values(inputs)[0]
    if form == "u":
        return lambda inputs: tuple(values(inputs))
    return filler(values, output)


def _fill(template, values, places):
    """The program's result, with tensors in place of nodes."""
    if isinstance(template, Node):
        return values[places[template]]
    if is_record(template):
        return map_record(lambda v: _fill(v, values, places), template)
    if isinstance(template, dict):
        return {k: _fill(v, values, places) for k, v in template.items()}
    if isinstance(template, tuple) and hasattr(template, "_fields"):
        return type(template)(*(_fill(v, values, places) for v in template))
    if type(template) in (list, tuple):
        return type(template)(_fill(v, values, places) for v in template)
    return template
