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
    RuntimeError. ``ops``, ``mutated`` and ``aliasing`` keep what was seen. Arguments that share memory count
    as one: what may be done to one of them may be done to all."""

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
        values = {**{a.name: value for a, value in zip(schema.arguments, args)}, **kwargs}
        given = [_Argument(a, values[a.name]) for a in schema.arguments if a.name in values]
        unmarked = _unmarked_writes(func, values)
        result = func(*args, **kwargs)
        self.ops.append(func._qualified_op_name)
        returned = result if isinstance(result, tuple) and len(schema.returns) > 1 else (result,)
        for argument in given:
            self._check_memory(func, argument, given, returned)
            self._check_writes(func, argument, given, unmarked)
        self._check_results(func, returned)
        return result

    def _check_writes(self, func, argument, given, unmarked):
        if not argument.has_changed():
            return
        if not any(a.argument.is_write or a.argument.name in unmarked for a in argument.same(given)):
            raise RuntimeError(
                f"{func}: Argument {argument.shown} is not defined as mutable but was mutated: "
                "it was written to"
            )
        self.mutated.append(Mutation(func._qualified_op_name, argument.shown))

    def _check_memory(self, func, argument, given, returned):
        for i, value in enumerate(returned):
            if argument.memory & _memory_of(value) and not _hides_aliases(func):
                ours = argument.same(given)
                if not any(_may_alias(a.argument, r) for a in ours for r in func._schema.returns):
                    raise RuntimeError(
                        f"{func}: Argument {argument.shown} is not defined to alias output but was "
                        "aliasing: a result shares its memory"
                    )
                self.aliasing.append(Aliasing(func._qualified_op_name, argument.shown, f"output_{i}"))
            is_itself = isinstance(value, torch.Tensor) and value is argument.value
            if (
                is_itself
                and not any(a.argument.is_write for a in argument.same(given))
                and not _may_return_input(func)
            ):
                raise RuntimeError(
                    "Dispatcher operators below autograd are not allowed to directly return inputs.\n"
                    f"However, we found that `outputs[{i}] is {argument.shown}"
                )

    def _check_results(self, func, returned):
        marked = [r.alias_info is not None for r in func._schema.returns]
        found = [(i, _memory_of(value)) for i, value in enumerate(returned)]
        for (i, first), (j, second) in combinations(found, 2):
            if first & second and not (marked[i] and marked[j]):
                raise RuntimeError(f"{func}: Outputs {i} and {j} alias unexpectedly: they share memory")


class _Argument:
    """An argument of a call, as it was before."""

    def __init__(self, argument, value):
        self.argument, self.value = argument, value
        self.shown = "input" if argument.name == "self" else argument.name
        self.memory = _memory_of(value)
        self._tensors = [t for t in _tensors(value) if t.layout is torch.strided]
        self._before = [(t.detach().clone(), t.stride(), _memory(t)) for t in self._tensors]

    def same(self, given):
        """This argument and those that share memory with it."""
        return [a for a in given if a is self or a.memory & self.memory]

    def has_changed(self):
        return any(
            t.shape != was.shape or t.stride() != strides or _memory(t) != memory or not _equal(was, t)
            for t, (was, strides, memory) in zip(self._tensors, self._before)
        )


def _tensors(value):
    """The tensors in a value; those of a class that wraps one as `elem` stand for that."""
    leaves = [t for t in pytree.tree_leaves(value) if isinstance(t, torch.Tensor)]
    return [t if type(t) is torch.Tensor else getattr(t, "elem", t) for t in leaves]


def _equal(was, now):
    return torch.equal(was.nan_to_num(), now.detach().nan_to_num())


def _memory(t):
    if t.layout is not torch.strided or not t.numel():
        return None
    return t.untyped_storage()._cdata


def _memory_of(value):
    return {_memory(t) for t in _tensors(value)} - {None}


def _unmarked_writes(func, values):
    """Names of arguments that this call may write to though the schema does not say so."""
    traits, arguments = func.traits, func._schema.arguments
    if not traits.writes_unmarked:
        return ()
    if traits.writes_where >= 0 and not values.get(arguments[traits.writes_where].name):
        return ()
    return [a.name for i, a in enumerate(arguments) if traits.writes_unmarked >> i & 1]


def _hides_aliases(func):
    """Whether results share memory by intent without the schema's saying so (`_unsafe_view`)."""
    unmarked = not any(a.alias_info for a in func._schema.arguments)
    return unmarked and (func.traits.family == "view" or _may_return_input(func))


def _may_return_input(func):
    return not func._defined_in_python and func.traits.aliasing == "may return input"


def _may_alias(argument, result):
    """Whether a schema lets a result share an argument's memory: ``*`` stands for what is in a list."""
    ours = set() if argument.alias_info is None else argument.alias_info.after_set
    theirs = set() if result.alias_info is None else result.alias_info.after_set
    return bool(ours & theirs) or "*" in ours or ("*" in theirs and bool(ours))
