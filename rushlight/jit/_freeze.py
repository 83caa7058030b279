"""Scripts for inference alone: what nothing writes to becomes constant, and layers are folded."""

from __future__ import annotations

import copy

import rushlight
from rushlight.jit._attribute_changes import changes_of, tensors_in
from rushlight.jit._check_values import declared_type
from rushlight.jit._frozen_folds import fold_layers
from rushlight.jit._frozen_modules import fold, is_frozen
from rushlight.jit._script import ScriptModule
from rushlight.nn import Module


def freeze(
    mod: Module, preserved_attrs: list[str] | None = None, optimize_numerics: bool = True
) -> ScriptModule:
    """A copy of a script in evaluation mode whose attributes are constants, but for those that its methods
    write to. It has no parameters or state_dict, shares the memory of its tensors, and cannot return to
    training.

    Args:
        preserved_attrs: names of attributes and methods of `mod` that stay what they are; ``"part.name"`` is
            one of a module in it.
        optimize_numerics: fold batch normalization into convolutions, which rounds otherwise.
    """
    if not isinstance(mod, ScriptModule):
        raise RuntimeError(
            "Freezing expects a ScriptModule as input. Please use torch.jit.script or torch.jit.trace to "
            "script your 'nn.Module'."
        )
    if mod.training:
        raise RuntimeError(
            "Freezing is currently only implemented for modules in eval mode. Please call .eval() on your "
            "module before freezing."
        )
    return frozen(mod, preserved_attrs or (), optimize_numerics)


def frozen(mod, preserved, numerics):
    """The frozen copy of a script, also of one in training."""
    plan = _Plan(mod, preserved)
    made = copy.deepcopy(mod, plan.shared())
    plan = plan.moved(dict(zip(mod.modules(), made.modules(), strict=True)))
    if not mod.training:
        fold_layers(made, plan.is_unwritten, plan.is_constant, numerics)
    plan.fold(made)
    return made


class _Plan:
    """What stays of a module: for each module in it, the names that are kept and the methods."""

    def __init__(self, root, preserved):
        self.root, self.kept, self.methods = root, {m: set() for m in root.modules()}, {}
        self.methods[root] = ["forward"]
        self.whole = set()  # modules of which everything is kept
        for path in preserved:
            self._preserve(path)
        entries = [(m, name) for m, names in self.methods.items() for name in names]
        self.changes = [changes_of(m, [n for o, n in entries if o is m]) for m in self.methods]
        _refuse(root, self.changes)
        self.written = {key for c in self.changes for key in c.written}
        self._keep_overlapping()
        for changes in self.changes:
            for module in changes.returned:
                if module in self.kept:
                    self.whole.update(module.modules())
        self._spread()

    def _preserve(self, path):
        *parts, name = path.split(".")
        owner = self.root
        for part in parts:
            owner = getattr(owner, part)
        if name in owner._method_names():
            self.methods.setdefault(owner, []).append(name)
        elif isinstance(owner._modules.get(name), Module):
            self.whole.update(owner._modules[name].modules())
        elif hasattr(owner, name):
            self.kept[owner].add(name)
        else:
            raise RuntimeError(f"{owner.original_name} has no attribute {path!r} to preserve")

    def _keep_overlapping(self):
        """Attributes that share memory with one that is written to may change as well."""
        inside = {key for c in self.changes for key in c.written_inside}
        used = {key for c in self.changes for key in c.used} | self.written
        memory = {key: _memory(key) for key in used | inside}
        changed = frozenset().union(*(memory[key] for key in self.written))
        for key in used | inside:
            shares = memory[key] & frozenset().union(*(memory[k] for k in inside if k != key))
            if shares:
                raise RuntimeError("module contains attributes values that overlaps")
            if memory[key] & changed:
                self.written.add(key)

    def _spread(self):
        """Keep what holds something that is kept; modules of one class keep the same names."""
        for owner, name in self.written:
            if owner in self.kept:
                self.kept[owner].add(name)
        by_class = {}
        for module, names in self.kept.items():
            if module in self.whole:
                names.update(_names_of(module))
            by_class.setdefault(type(module), set()).update(names)
        for module, names in self.kept.items():
            if names:
                names |= by_class[type(module)]
        for module in reversed(list(self.kept)):
            for name, child in module._modules.items():
                if child is not None and (self.kept.get(child) or child in self.methods):
                    self.kept[module].add(name)

    def shared(self):
        """For a copy: tensors, and what methods write to, stay the same objects."""
        memo = {}
        for module in self.kept:
            for table in (module._parameters, module._buffers, module.__dict__):
                memo.update({id(t): t for value in table.values() for t in tensors_in(value)})
        for owner, name in self.written:
            value = getattr(owner, name, None)
            if isinstance(value, (list, dict)):
                memo[id(value)] = value
        return memo

    def moved(self, copies):
        """The plan for a copy."""
        made = copy.copy(self)
        made.root, made.kept = copies[self.root], {copies[m]: names for m, names in self.kept.items()}
        made.methods = {copies[m]: names for m, names in self.methods.items()}
        made.whole = {copies[m] for m in self.whole}
        made.written = {(copies.get(m, m), name) for m, name in self.written}
        return made

    def is_unwritten(self, module, name):
        return (module, name) not in self.written and name not in self.kept.get(module, ())

    def is_constant(self, module):
        return not self.kept.get(module) and module not in self.whole and module not in self.methods

    def fold(self, root):
        for module, names in self.kept.items():
            if is_frozen(module) or module in self.whole:
                continue
            if module is root or names or module in self.methods:
                _detach(module, names)
                fold(module, names, self.methods.get(module, ()) if module in self.methods else ["forward"])
            else:
                _detach(module, names)


def _detach(module, kept):
    """Parameters and buffers become plain attributes."""
    for table in (module._parameters, module._buffers):
        for name in [n for n in table if n not in kept]:
            tensor = table.pop(name)
            module.__dict__[name] = None if tensor is None else tensor.detach()
    module._non_persistent_buffers_set.intersection_update(module._buffers)


def _names_of(module):
    return {*module._parameters, *module._buffers, *module._modules, *vars(module)}


def _memory(key):
    """The storages of an attribute's tensors."""
    found = set()
    for tensor in tensors_in(getattr(key[0], key[1], None)):
        if tensor.layout is rushlight.strided and tensor.numel():
            found.add(tensor.untyped_storage().data_ptr())
    return frozenset(found)


def _refuse(root, changes):
    if any(c.chosen_by_value for c in changes):
        raise RuntimeError(
            "Freezing modules containing prim::ModuleContainerIndex is not supported: a run chooses a module "
            "of a container by an index or key"
        )
    for owner, name in {key for c in changes for key in c.written}:
        said = declared_type(owner, name)
        if said is not None and said.kind == "Interface":
            raise RuntimeError("Freezing does not support SetAttr on an interface type.")
    if any(root in c.returned for c in changes):
        raise RuntimeError("attempted to freeze a module that return itself")


def run_frozen_optimizations(
    mod: Module, optimize_numerics: bool = True, preserved_methods: list[str] | None = None
) -> None:
    """Nothing is left to do: `freeze` folds what can be folded."""


def optimize_for_inference(mod: Module, other_methods: list[str] | None = None) -> ScriptModule:
    """The script, frozen."""
    if not isinstance(mod, ScriptModule):
        raise ValueError(
            "optimize_for_inference expects ScriptModule as input. Please use torch.jit.script first."
        )
    return mod if is_frozen(mod) else freeze(mod.eval(), preserved_attrs=other_methods)
