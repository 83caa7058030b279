"""What a call brings: tensors in containers and plain objects. The program is captured with copies of these,
and what it did to the copies is done to the objects of each call.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from types import FunctionType
from typing import Any

import rushlight as torch

from ._reachable import is_constant, is_part_of_program
from ._results import Attribute, Given, begin_record, is_record
from .exc import Unsupported

__all__ = [
    "Attribute",
    "Copies",
    "Effect",
    "Given",
    "Held",
    "Leaf",
    "each_once",
    "distinct_leaves",
    "find_leaves",
    "is_fixed",
    "is_object",
]

__capture__ = "skip"  # Note [Capture marks]

_DEPTH = 64  # of containers among the arguments


@dataclass
class Leaf:
    """Where a tensor of a call is found: an argument, and steps into it."""

    root: int | str  # position, or name of a keyword
    steps: tuple = ()  # positions, keys and attributes
    tensor: Any = None

    @property
    def kind(self):
        """What graphs for several sizes have in common."""
        return self.root, self.steps, self.tensor.dtype, self.tensor.dim(), self.tensor.requires_grad


def is_fixed(value):
    """Whether a value among the arguments is one that a graph is for: by what it is, or which."""
    return is_constant(value) or is_part_of_program(value) or isinstance(value, (type, FunctionType))


def is_object(value):
    """Whether a program may read, and change, the attributes of an argument."""
    return is_record(value) and not isinstance(value, dict)


def find_leaves(args, kwargs):
    """The tensors among the arguments; all else must be containers of Python, plain objects, or fixed."""
    leaves: list = []
    objects: set = set()

    def look(value, root, steps):
        if len(steps) > _DEPTH:
            raise Unsupported(f"argument {root!r} holds itself, or is nested too deeply")
        if isinstance(value, torch.Tensor):
            leaves.append(Leaf(root, steps, value))
        elif type(value) in (list, dict) or isinstance(value, tuple):
            for key, item in value.items() if isinstance(value, dict) else enumerate(value):
                look(item, root, (*steps, key))
        elif not is_fixed(value):
            where = f"argument {root!r}" + "".join(f"[{s!r}]" for s in steps)
            if not is_object(value):
                raise Unsupported(f"{where} is of type {type(value).__qualname__}")
            if id(value) in objects:
                raise Unsupported(f"{where} is an object that the arguments have twice")
            objects.add(id(value))
            for name, item in vars(value).items():
                look(item, root, (*steps, Attribute(name)))

    for i, value in enumerate(args):
        look(value, i, ())
    for name, value in kwargs.items():
        look(value, name, ())
    return leaves


def each_once(leaves):
    return [leaf for i, leaf in enumerate(leaves) if all(leaf.tensor is not o.tensor for o in leaves[:i])]


def distinct_leaves(args, kwargs):
    """The tensors among the arguments of a call, each once: the inputs that its graph begins with."""
    return each_once(find_leaves(args, kwargs))


@dataclass(frozen=True, eq=False)
class Held:
    """An object or dict of the program's state: the same in all calls."""

    object: Any

    def find(self, args, kwargs):
        return self.object


@dataclass(frozen=True)
class Kept:
    """An item of a list that the program left there, at a place of its own or another."""

    position: int


@dataclass
class Effect:
    """What the program did to an object of the call: entries that it set and deleted, or a list's items."""

    target: Given | Held
    contents: object  # a dict or a list, with nodes in place of tensors
    deleted: tuple = ()

    def apply(self, target, contents):
        if isinstance(target, list):
            target[:] = [target[item.position] if isinstance(item, Kept) else item for item in contents]
            return
        table = target if isinstance(target, dict) else vars(target)
        for name in self.deleted:
            del table[name]
        table.update(contents)


@dataclass
class Copies:
    """Copies of the containers and objects among the arguments, with fakes in place of tensors."""

    fake_of: Callable
    known: dict = field(default_factory=dict)  # id of a copy -> (it, its source, Given, contents)
    has_objects: bool = False
    shared: bool = False  # a list or dict is met twice

    def of(self, value, root, steps=()):
        if isinstance(value, torch.Tensor):
            return self.fake_of(value)
        if isinstance(value, tuple) and type(value) is not torch.Size:
            items = [self.of(item, root, (*steps, i)) for i, item in enumerate(value)]
            return type(value)(*items) if hasattr(value, "_fields") else tuple(items)
        if type(value) in (list, dict):
            copy = type(value)()
        elif not is_fixed(value):
            copy, self.has_objects = begin_record(value), True
        else:
            return value
        self.shared |= any(source is value for _, source, _, _ in self.known.values())
        if type(value) is list:
            copy.extend(self.of(item, root, (*steps, i)) for i, item in enumerate(value))
        else:
            is_dict = isinstance(value, dict)
            table = copy if is_dict else copy.__dict__
            for key, item in value.items() if is_dict else vars(value).items():
                table[key] = self.of(item, root, (*steps, key if is_dict else Attribute(key)))
        at_first = list(copy) if type(copy) is list else dict(copy if isinstance(copy, dict) else vars(copy))
        self.known[id(copy)] = copy, value, Given(root, steps), at_first
        return copy

    def effects(self, output):
        """What the program did to the copies; `output` puts nodes in place of tensors."""
        found = []
        for copy, _, given, before in self.known.values():
            if isinstance(copy, list):
                if len(copy) == len(before) and all(map(_same, copy, before)):
                    continue
                places = {id(item): i for i, item in enumerate(before)}
                items = [Kept(places[id(v)]) if id(v) in places else output(v) for v in copy]
                found.append(Effect(given, items))
                continue
            table = copy if isinstance(copy, dict) else vars(copy)
            changed = {k: v for k, v in table.items() if k not in before or not _same(v, before[k])}
            deleted = tuple(k for k in before if k not in table)
            if list(table) != [k for k in before if k in table] + [k for k in table if k not in before]:
                raise Unsupported("the program deletes an entry of an argument and sets it again")
            if not all(map(is_constant, changed)):
                raise Unsupported("the program gives a dict of its caller's keys that are no constants")
            if any(_counts(before[k], v) for k, v in changed.items() if k in before):
                raise Unsupported("the program counts in an object of its caller's: no two calls are alike")
            if changed or deleted:
                found.append(Effect(given, {k: output(v) for k, v in changed.items()}, deleted))
        return found


def _counts(before, now):
    return type(before) is type(now) and type(now) in (int, float)


def _same(now, before):
    return now is before or (type(now) is type(before) and is_constant(now) and now == before)
