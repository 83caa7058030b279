"""From a capture to the checks that each later call must pass."""

import sys
from types import FunctionType

import rushlight as torch
from rushlight import _C
from rushlight._subclasses.fake_tensor import FakeTensor

from ._arguments import Attribute, is_fixed, is_object
from ._reachable import ABSENT, is_constant

__all__ = ["Guards"]


class Guards:
    """What a graph takes for granted: checked in C, explained here."""

    def __init__(self, captured, args, kwargs, symbols=None):
        self.set = _C._GuardSet()
        self.symbols = symbols  # sizes that may change, or None
        self.reasons = []
        self._sources = {}
        self._tensors = []  # sources of all tensors among the arguments
        self._checked = []  # (check, tensor) of these
        self._check_arguments(args, kwargs)
        self._replaced = {(id(leaf.root.object), leaf.steps[0]): leaf for leaf in captured.replaced}
        self._check_state(captured.reachable)
        if captured.apart:
            self._check_apart(captured)
        if symbols is not None:
            self._open_sizes(captured.leaves, symbols)
        self._checked.clear()
        inputs = [self._sources[leaf.root, leaf.steps] for leaf in captured.leaves]
        self.set.complete(self._tensors, inputs, args, kwargs)
        self.match = self.set.match

    def explain(self, failed):
        """Why a call did not match, in one line."""
        if failed == -1:
            return "grad mode, autocasting, the default dtype or a mode is another"
        if failed == -2:
            return "other arguments are the same tensor"
        return self.reasons[failed]

    def _add(self, index, reason):
        self.reasons.append(reason)

    # --- arguments ------------------------------------------------------------------------------------

    def _check_arguments(self, args, kwargs):
        names = ", ".join([str(len(args)), *kwargs])
        self._add(self.set.arguments(len(args), tuple(kwargs)), f"other arguments than ({names})")
        for i, value in enumerate(args):
            self._check_value(self.set.argument(i), value, i, ())
        for name, value in kwargs.items():
            self._check_value(self.set.keyword(name), value, name, ())

    def _check_apart(self, captured):
        """Objects of the call are several, and none is one that the program finds otherwise."""
        classes = {type(value) for value, _ in captured.apart}
        others = [owner.holder for owner in captured.reachable.owners] + [
            container for container, _, _ in captured.reachable.containers
        ]
        others = [o for o in others if type(o) in classes and id(o) not in captured.reachable.given]
        sources = tuple(self._sources[given.root, given.steps] for _, given in captured.apart)
        self._add(
            self.set.apart(sources, tuple(others)), "objects among the arguments are one, or known otherwise"
        )

    def _open_sizes(self, leaves, symbols):
        """Let sizes of arguments be any that the graph is for."""
        numbers = {
            name: self.set.symbol(low, min(high, sys.maxsize)) for name, (low, high) in symbols.bounds.items()
        }
        for check, tensor in self._checked:
            i = next(i for i, leaf in enumerate(leaves) if leaf.tensor is tensor)
            sizes = tuple(numbers.get(symbols.places.get((i, d)), -1) for d in range(tensor.dim()))
            if any(number >= 0 for number in sizes):
                in_order = tensor.stride() == torch.empty(tensor.shape, device="meta").stride()
                self.set.sizes_of(check, sizes, in_order)
                self.reasons[check] += f", with {symbols}"

    def _check_value(self, source, value, root, steps):
        self._sources[root, steps] = source
        where = f"argument {root!r}" + "".join(f"[{s!r}]" for s in steps)
        if isinstance(value, torch.Tensor):
            told = f"{where} was {str(value.dtype)[6:]}{list(value.shape)}, strides {list(value.stride())}"
            told += ", requires_grad" if value.requires_grad else ""
            self._tensors.append(source)
            self._checked.append((self.set.tensor(source, value), value))
            self._add(self._checked[-1][0], told)
        elif is_constant(value):
            self._add(self.set.equal(source, value), f"{where} was {value!r}")
        elif is_fixed(value):
            self._add(self.set.equal(source, value), f"{where} was another {type(value).__qualname__}")
        elif is_object(value):
            self._add(self.set.form(source, value), f"{where} was a {type(value).__qualname__}")
            table = self.set.attributes(source)
            self._add(self.set.keys_of(table, vars(value)), f"{where} has other attributes")
            for name, item in vars(value).items():
                self._check_value(self.set.item(table, name, 0), item, root, (*steps, Attribute(name)))
        else:
            self._add(
                self.set.form(source, value), f"{where} was a {type(value).__name__} of length {len(value)}"
            )
            if isinstance(value, dict):
                self._add(self.set.keys_of(source, value), f"{where} has other keys, or in another order")
            items = value.items() if isinstance(value, dict) else enumerate(value)
            for key, item in items:
                of_dict = isinstance(value, dict)
                part = self.set.item(source, key if of_dict else None, 0 if of_dict else key)
                self._check_value(part, item, root, (*steps, key))

    # --- state ----------------------------------------------------------------------------------------

    def _check_state(self, state):
        replaced = {id(leaf.tensor) for leaf in self._replaced.values()}
        for tensor, label in state.tensors.values():
            if isinstance(tensor, FakeTensor) or id(tensor) in replaced:  # an argument, or read anew
                continue
            self._add(
                self.set.held_tensor(tensor), f"{label} has another shape, dtype, layout or requires_grad"
            )
        for table, name, value, _ in state.globals.values():
            if value is ABSENT:
                self._add(self.set.absent(table, name), f"the global {name} exists now")
            else:
                self._entry(table, name, value, f"the global {name}")
        for owner in state.owners:
            self._check_owner(owner, state)
        for container, _, label in state.containers:
            if id(container) not in state.given:
                self._check_container(container, label)
        for cell, content, label in state.cells:
            self._add(
                self.set.cell(cell, content is not ABSENT and is_constant(content)),
                f"{label} of a closure changed",
            )
        for function in state.functions:
            self._add(self.set.code(function), f"{function.__qualname__} has other code or defaults")
        for cls in state.classes:
            self._add(self.set.version(cls), f"the class {cls.__qualname__} changed")

    def _entry(self, table, name, value, label):
        leaf = self._replaced.get((id(table), name))
        if leaf is not None:
            if (leaf.root, leaf.steps) not in self._sources:
                source = self._sources[leaf.root, leaf.steps] = self.set.entry_of(table, name)
                self._tensors.append(source)
                self._add(self.set.tensor(source, value), f"{label} has another shape, dtype or layout")
            return
        self._add(
            self.set.entry(table, name, value, is_constant(value)),
            f"{label} was {value!r}" if is_constant(value) else f"{label} is another object",
        )

    def _check_owner(self, owner, state):
        if owner.holder is None:
            if owner in state.modules:
                for name in owner.read:
                    self._entry(owner.table, name, owner.saved[name], f"{owner.label}.{name}")
                self._check_missing(owner, state.maybe_missing - owner.saved.keys())
            return
        if id(owner.holder) in state.given:  # checked where the call has it
            return
        cls = type(owner.holder)
        missing = {n for n in state.maybe_missing - owner.saved.keys() if not hasattr(cls, n)}
        if cls is FunctionType and not (owner.read or missing or state.everything):
            return  # which hardly any program uses as an object
        self._add(self.set.instance_dict(owner.holder, owner.table), f"{owner.label} has another __dict__")
        for name in owner.read:
            self._entry(owner.table, name, owner.saved[name], f"{owner.label}.{name}")
        if owner.alone is not None:
            return
        if state.everything or owner.everything:
            self._add(self.set.length(owner.table), f"{owner.label} gained or lost attributes")
            return
        self._check_missing(owner, missing)
        shadowable = {n for n in state.user_names if hasattr(cls, n)} | {"forward"}
        for name in shadowable - owner.saved.keys():
            self._add(self.set.absent(owner.table, name), f"{owner.label}.{name} is set on the object")

    def _check_missing(self, owner, names):
        for name in names:
            self._add(self.set.absent(owner.table, name), f"{owner.label}.{name} exists now")

    def _check_container(self, container, label):
        if isinstance(container, set):
            self._add(self.set.members(container), f"{label} has other members, or in another order")
            return
        if isinstance(container, dict):
            self._add(self.set.keys(container), f"{label} has other keys, or in another order")
            for key, value in container.items():
                self._entry(container, key, value, f"{label}[{key!r}]")
        else:
            self._add(self.set.length(container), f"{label} had {len(container)} items")
            for i, value in enumerate(container):
                self._add(
                    self.set.element(container, i, value, is_constant(value)), f"{label}[{i}] is another"
                )
