"""What a program returns: containers with nodes of its graph in place of tensors, and filled with tensors."""

import dataclasses
from collections import OrderedDict

from rushlight.fx import Node
from rushlight.nn import Module

from ._reachable import is_plain_class

__all__ = [
    "Attribute",
    "Given",
    "begin_record",
    "collect",
    "fill_record",
    "filler",
    "form_of",
    "is_record",
    "runner",
]


class Attribute(str):
    """A step into an object: the name of an attribute."""

    __slots__ = ()


@dataclasses.dataclass(frozen=True)
class Given:
    """An object of the call, in place of itself."""

    root: int | str
    steps: tuple

    def find(self, args, kwargs):
        value = kwargs[self.root] if isinstance(self.root, str) else args[self.root]
        for step in self.steps:
            value = vars(value)[step] if isinstance(step, Attribute) else value[step]
        return value


def is_record(value):
    """Whether an object is what its attributes are, and its items if it is a dict: one of a plain class, or
    of a dataclass."""
    cls = type(value)
    if not hasattr(value, "__dict__") or hasattr(cls, "__del__"):
        return False
    if any(getattr(c, "__slots__", ()) for c in cls.__mro__):
        return False
    if dataclasses.is_dataclass(cls) and cls.__new__ in (dict.__new__, OrderedDict.__new__):
        return not isinstance(value, dict) or isinstance(value, OrderedDict)
    plain = cls.__new__ is object.__new__ and cls.__getattribute__ is object.__getattribute__
    return plain and is_plain_class(cls) and not isinstance(value, Module)


def begin_record(value):
    """An object of the same class without attributes and items."""
    return type(value).__new__(type(value))


def fill_record(made, value, function):
    """Give it those of the value, with the function applied."""
    made.__dict__.update({k: function(v) for k, v in vars(value).items()})
    if isinstance(value, OrderedDict):
        for key in OrderedDict.keys(value):
            OrderedDict.__setitem__(made, key, function(OrderedDict.__getitem__(value, key)))
    return made


def collect(value, nodes, seen=None):
    """Add the nodes in what a program returns, each once, in order."""
    seen = {} if seen is None else seen
    if isinstance(value, Node):
        nodes.setdefault(value, len(nodes))
    elif isinstance(value, (list, tuple, dict)) or is_record(value):
        if id(value) in seen:
            return
        seen[id(value)] = value
        for item in _parts(value):
            collect(item, nodes, seen)


def _parts(value):
    if is_record(value):
        yield from vars(value).values()
        if not isinstance(value, dict):
            return
    if isinstance(value, OrderedDict):
        yield from OrderedDict.values(value)
    else:
        yield from value.values() if isinstance(value, dict) else value


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
    make = _maker(output, places, {})
    return lambda inputs, args=(), kwargs=None: make(run(inputs), {"call": (args, kwargs)})


def runner(program, rest, output, filled=False):
    """The same for a function of tensors one by one."""

    def values(inputs):
        return program(*inputs, *rest)

    form = "l" if filled else form_of(output)
    if form == "t":
        return lambda inputs: values(inputs)[0]
    if form == "u":
        return lambda inputs: tuple(values(inputs))
    return filler(values, output)


def _maker(template, places, makers):
    """A function of the graph's results, and of objects made so far, that makes the like of a template."""
    if isinstance(template, Node):
        place = places[template]
        return lambda values, made: values[place]
    if isinstance(template, tuple):
        items = [_maker(item, places, makers) for item in template]
        make = type(template)._make if hasattr(template, "_fields") else type(template)
        return lambda values, made: make([item(values, made) for item in items])
    if isinstance(template, Given):
        return lambda values, made: template.find(*made["call"])
    if type(template) not in (list, dict) and not is_record(template):
        return lambda values, made: template
    key = id(template)  # which object it is, where the program returns one at several places
    if key in makers:
        return lambda values, made: makers[key](values, made)
    makers[key] = None
    if type(template) is list:
        contents = [_maker(item, places, makers) for item in template]
    elif type(template) is dict:
        contents = {k: _maker(v, places, makers) for k, v in template.items()}
    else:
        contents = fill_record(begin_record(template), template, lambda v: _maker(v, places, makers))

    def make_one(values, made):
        if key in made:
            return made[key]
        result = made[key] = begin_record(template)
        if type(template) is list:
            result.extend(item(values, made) for item in contents)
        elif type(template) is dict:
            result.update({k: item(values, made) for k, item in contents.items()})
        else:
            fill_record(result, contents, lambda item: item(values, made))
        return result

    makers[key] = make_one
    return make_one
