"""Which modules' code is running."""

import weakref

from rushlight.autograd.graph import register_multi_grad_hook
from rushlight.nn.modules.module import (
    register_module_forward_hook,
    register_module_forward_pre_hook,
)
from rushlight.utils._pytree import tree_leaves

__all__ = ["ModuleTracker"]


class ModuleTracker:
    """Inside of the context ``parents`` holds the paths of the modules that are running, forward or backward.

    >>> with ModuleTracker() as tracker:
    ...     model(x)  # somewhere inside: tracker.parents == {"Global", "Net", "Net.layers.0"}
    """

    def __init__(self):
        self.parents = {"Global"}
        self._names = weakref.WeakKeyDictionary()

    @property
    def is_bw(self):
        """Whether this is a backward pass."""
        from rushlight import _C

        return _C._current_graph_task_id() != -1

    def _name(self, module):
        if module not in self._names:
            name = type(module).__name__
            self._names[module] = name
            for path, child in module.named_modules():
                if path:
                    self._names.setdefault(child, f"{name}.{path}")
        return self._names[module]

    def _enter(self, name):
        def enter(*_):
            self.parents.add(name)

        return enter

    def _leave(self, name):
        def leave(*_):
            self.parents.discard(name)

        return leave

    @staticmethod
    def _wanting(value):
        return [t for t in tree_leaves(value) if hasattr(t, "requires_grad") and t.requires_grad]

    def _before(self, module, args):
        name = self._name(module)
        self.parents.add(name)
        inputs = self._wanting(args)
        if inputs:  # backward leaves a module when the gradients of its inputs are there
            register_multi_grad_hook(inputs, self._leave(name))

    def _after(self, module, args, output):
        name = self._name(module)
        self.parents.discard(name)
        outputs = self._wanting(output)
        if outputs:
            register_multi_grad_hook(outputs, self._enter(name), mode="any")

    def __enter__(self):
        self._hooks = [
            register_module_forward_pre_hook(self._before),
            register_module_forward_hook(self._after, always_call=True),
        ]
        return self

    def __exit__(self, *exc):
        for hook in self._hooks:
            hook.remove()
