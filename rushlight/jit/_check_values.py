"""What an expression of a script may be besides a value with a type."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

__all__ = ["Bound", "Checking", "Container", "Iterated", "Method", "NotAValue", "Python", "declared_type"]


class Checking:
    """What the parts of the checker share."""

    unit: Any
    annotations: Any
    module: Any
    frames: list[dict[str, Any]]
    exact_list: Any  # a list whose elements no conversion makes fit: one that is assigned or returned
    refuse: Callable[..., Any]
    lookup: Callable[..., Any]
    name: Callable[..., Any]
    refine: Callable[..., Any]
    store: Callable[..., Any]
    converted: Callable[..., Any]
    expression: Callable[..., Any]
    simple: Callable[..., Any]
    named: Callable[..., Any]
    not_a_value: Callable[..., Any]
    condition: Callable[..., Any]
    unrolled: Callable[..., Any]
    element: Callable[..., Any]
    made_dict: Callable[..., Any]
    schema_of_method: Callable[..., Any]


class NotAValue:
    """Something of Python's that a script names and that is no value of its own."""

    assignable = True


class Python(NotAValue):
    """A function, class or module from outside, and the name that the resolver gave it."""

    def __init__(self, value, name):
        self.value, self.name = value, name


class Bound(NotAValue):
    """A method of a value."""

    def __init__(self, owner, name):
        self.owner, self.name = owner, name


class Container(NotAValue):
    """A module, or several of them, of which the instance itself is known."""

    def __init__(self, module):
        self.module = module

    def parts(self, count):
        return None


class Method(NotAValue):
    """A method of a module: its unit, or the function that stays Python."""

    def __init__(self, module, unit, function=None):
        self.module, self.unit, self.function = module, unit, function


def declared_type(module, name):
    """The type that a scripted module's class gives an attribute, None if it says none."""
    return getattr(type(module), "_declared", {}).get(name)


class Iterated(NotAValue):
    """`range`, `enumerate`, `zip` and views of dictionaries: to go through, and not to keep."""

    def __init__(self, name, element, fixed=None, counted=False):
        self.name, self.element, self.fixed = name, element, fixed
        self.counted = counted  # how many steps there are is known
