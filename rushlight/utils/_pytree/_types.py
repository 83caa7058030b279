"""Names for the types of this package."""

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

T = TypeVar("T")
PyTree = Any
Context = Any
DumpableContext = Any
FlattenFn = FlattenFunc = Callable[[PyTree], tuple[list, Context]]
UnflattenFn = UnflattenFunc = Callable[[Iterable, Context], PyTree]
ToDumpableContextFn = Callable[[Context], DumpableContext]
FromDumpableContextFn = Callable[[DumpableContext], Context]
DEFAULT_TREESPEC_SERIALIZATION_PROTOCOL = 1
NO_SERIALIZED_TYPE_NAME_FOUND = "NO_SERIALIZED_TYPE_NAME_FOUND"
