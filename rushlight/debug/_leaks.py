"""What keeps tensors alive."""

import gc
import sys
import types
import weakref
from collections import Counter
from types import FrameType

import rushlight as torch
from rushlight.debug._places import program_line
from rushlight.utils._python_dispatch import TorchDispatchMode
from rushlight.utils._pytree import tree_leaves

__all__ = ["find_leaks", "who_holds"]

_DEPTH = 4


def _key_in(holder, value):
    """How the holder knows the value: `['loss']`, `[3]`, or nothing."""
    if isinstance(holder, dict):
        return next((f"[{key!r}]" for key, v in holder.items() if v is value), "")
    if isinstance(holder, (list, tuple)):
        return next((f"[{i}]" for i, v in enumerate(holder) if v is value), "")
    return ""


def _attribute_of(holder, value):
    attributes = getattr(holder, "__dict__", {})
    return next((name for name, v in attributes.items() if v is value), None)


def _running_frames():
    for innermost in sys._current_frames().values():
        frame: FrameType | None = innermost
        while frame is not None:
            if frame.f_code.co_filename != __file__:
                yield frame
            frame = frame.f_back


def _variables(value):
    """The local variables that refer to the value."""
    for frame in _running_frames():
        if frame.f_locals is not frame.f_globals:
            for name, v in frame.f_locals.items():
                if v is value:
                    yield f"variable {name} of {frame.f_code.co_name}(), line {frame.f_lineno}"


def _name_holder(holder, value, modules):
    """What to call the holder, and whether to ask who holds it in turn."""
    if id(holder) in modules:
        return f"{_key_in(holder, value)[2:-2]} of module {modules[id(holder)]}", False
    if isinstance(holder, types.CellType):
        return "a variable that a function keeps", True
    attribute = _attribute_of(holder, value)
    if attribute:
        return f"attribute {attribute} of a {type(holder).__name__}", True
    return f"a {type(holder).__name__}{_key_in(holder, value)}", True


class _Search:
    """Goes from a value to its holders, theirs, and so on; objects younger than the search are its own."""

    def __init__(self):
        self._known = {id(o) for o in gc.get_objects()}
        self._modules = {id(vars(m)): name for name, m in list(sys.modules.items()) if hasattr(m, "__dict__")}
        self._seen = set()
        self.lines = []

    def add(self, value, depth=0):
        self.lines += ["  " * depth + text for text in _variables(value)]
        for holder in gc.get_referrers(value):
            if id(holder) not in self._known or isinstance(holder, types.FrameType):
                continue
            text, more = _name_holder(holder, value, self._modules)
            self.lines.append("  " * depth + text)
            if more and depth < _DEPTH and id(holder) not in self._seen:
                self._seen.add(id(holder))
                self.add(holder, depth + 1)


def _live_tensors():
    """Every tensor that a Python object or a running function refers to."""
    found = {}
    for holder in gc.get_objects():
        found.update((id(o), o) for o in gc.get_referents(holder) if issubclass(type(o), torch.Tensor))
    for frame in _running_frames():
        found.update((id(o), o) for o in frame.f_locals.values() if isinstance(o, torch.Tensor))
    return list(found.values())


def _graph_reaches(tensor, node):
    waiting, seen = [tensor.grad_fn], {tensor.grad_fn}
    while waiting:
        at = waiting.pop()
        if at == node:
            return True
        for parent, _ in at.next_functions:
            if parent is not None and parent not in seen:
                seen.add(parent)
                waiting.append(parent)
    return False


class Holders:
    """What holds a tensor, a line for each, holders of holders indented."""

    def __init__(self, lines):
        self.lines = lines

    def __str__(self):
        return "\n".join(self.lines) or "nothing that Python knows of"

    __repr__ = __str__


def who_holds(tensor):
    """What keeps the tensor in memory: variables, attributes, lists, and tensors whose graph it is part of.

    >>> rushlight.debug.who_holds(loss)
    a list[0]
      losses of module __main__
    the graph of a float32 [] made by SumBackward0
    """
    search = _Search()
    search.add(tensor)
    if tensor.grad_fn is not None:
        for other in _live_tensors():
            if other is not tensor and other.grad_fn is not None and _graph_reaches(other, tensor.grad_fn):
                dtype = str(other.dtype).removeprefix("torch.")
                search.lines.append(
                    f"the graph of a {dtype} {list(other.shape)} made by {other.grad_fn.name()}"
                )
    return Holders(search.lines)


class find_leaks(TorchDispatchMode):
    """Finds the tensors that were made within the context and are still there at its end.

    ``leaks`` then counts them: ``((line, dtype, shape, bytes, whether a graph hangs on it), count)``, most
    bytes first.

    >>> with rushlight.debug.find_leaks() as found:
    ...     for batch in loader:
    ...         losses.append(train(batch))  # instead of train(batch).item()
    >>> print(found)
    train.py:12: 100 x float32[], 4 bytes each, with their graphs
    """

    def __init__(self):
        super().__init__()
        self._made = []
        self.leaks = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        line = program_line()
        self._made += [(weakref.ref(t), line) for t in tree_leaves(result) if isinstance(t, torch.Tensor)]
        return result

    def __exit__(self, *exc):
        super().__exit__(*exc)
        gc.collect()
        counts, seen = Counter(), set()
        for reference, line in self._made:
            tensor = reference()
            if tensor is not None and id(tensor) not in seen:
                seen.add(id(tensor))
                dtype = str(tensor.dtype).removeprefix("torch.")
                graph = tensor.grad_fn is not None
                counts[line, dtype, tuple(tensor.shape), tensor.nbytes, graph] += 1
        self._made.clear()
        self.leaks = sorted(counts.items(), key=lambda item: -item[0][3] * item[1])

    def __str__(self):
        return "\n".join(
            f"{line}: {n} x {dtype}{list(shape)}, {size} bytes each{', with their graphs' * graph}"
            for (line, dtype, shape, size, graph), n in self.leaks
        )
