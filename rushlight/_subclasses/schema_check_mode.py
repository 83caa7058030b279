"""A mode that holds operators to their schemas: what they write to, and whose memory results share."""

from collections import namedtuple
from itertools import combinations

import rushlight as torch
from rushlight.utils import _pytree as pytree
from rushlight.utils._python_dispatch import TorchDispatchMode

__all__ = ["Aliasing", "Mutation", "SchemaCheckMode"]

Mutation = namedtuple("Mutation", ["op_name", "arg_name"])
Aliasing = namedtuple("Aliasing", ["op_name", "arg_name", "output_number"])


class SchemaCheckMode(TorchDispatchMode):
    """Within it, an operator that writes to an argument, or returns its memory, and does not say so raises
    RuntimeError. ``ops``, ``mutated`` and ``aliasing`` keep what was seen."""

    def __init__(self):
        super().__init__()
        self.reset_cache()

    def reset_cache(self):
        self.ops: list = []
        self.mutated: list = []
        self.aliasing: list = []

    def display_ops(self):
        print(*self.ops, sep=",")

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        schema = func._schema
        given = {**{a.name: value for a, value in zip(schema.arguments, args)}, **kwargs}
        before = {name: [_copied(t) for t in _tensors(value)] for name, value in given.items()}
        memory = {name: {_memory(t) for t in _tensors(value)} - {None} for name, value in given.items()}
        result = func(*args, **kwargs)
        self.ops.append(func._qualified_op_name)
        returned = result if isinstance(result, tuple) and len(schema.returns) > 1 else (result,)
        for argument in schema.arguments:
            if argument.name in given:
                self._check_writes(func, argument, before[argument.name], given[argument.name])
                self._check_memory(func, argument, memory[argument.name], returned)
        self._check_results(func, returned)
        return result

    def _check_writes(self, func, argument, before, value):
        if all(map(_same, before, _tensors(value))):
            return
        if not argument.is_write:
            raise RuntimeError(
                f"{func}: Argument {argument.name} is not defined as mutable but was mutated: "
                "it was written to"
            )
        self.mutated.append(Mutation(func._qualified_op_name, argument.name))

    def _check_memory(self, func, argument, memory, returned):
        for i, value in enumerate(returned):
            if not memory & {_memory(t) for t in _tensors(value)}:
                continue
            if not _may_alias(argument, func._schema.returns[i]):
                raise RuntimeError(
                    f"{func}: Argument {argument.name} is not defined to alias output but was aliasing: a "
                    "result shares its memory"
                )
            self.aliasing.append(Aliasing(func._qualified_op_name, argument.name, f"output_{i}"))

    def _check_results(self, func, returned):
        marked = [r.alias_info is not None for r in func._schema.returns]
        found = [(i, {_memory(t) for t in _tensors(value)} - {None}) for i, value in enumerate(returned)]
        for (i, first), (j, second) in combinations(found, 2):
            if first & second and not (marked[i] and marked[j]):
                raise RuntimeError(f"{func}: Outputs {i} and {j} alias unexpectedly: they share memory")


def _tensors(value):
    return [t for t in pytree.tree_leaves(value) if isinstance(t, torch.Tensor)]


def _copied(t):
    return t.detach().clone() if t.layout is torch.strided else t


def _same(was, now):
    if was is now:  # of a layout that is not compared
        return True
    if was.shape != now.shape or was.stride() != now.stride():
        return False
    return torch.equal(was.nan_to_num(), now.detach().nan_to_num())


def _memory(t):
    if t.layout is not torch.strided or not t.numel():
        return None
    return t.untyped_storage()._cdata


def _may_alias(argument, result):
    """Whether a schema lets a result share an argument's memory: ``*`` stands for what is in a list."""
    ours = set() if argument.alias_info is None else argument.alias_info.after_set
    theirs = set() if result.alias_info is None else result.alias_info.after_set
    return bool(ours & theirs) or "*" in ours or ("*" in theirs and bool(ours))
