"""What a profile learns from Python while it records: calls of modules, and which memory is known by name."""

import sys
import threading
import weakref

from rushlight import _C

__all__ = ["ModuleScopes", "OtherThreads", "known_blocks"]


class OtherThreads:
    """Records the program's other threads too: those that run, and those that begin until it is removed.

    Threads join at their next Python call, through the hook that profilers of Python use. One that has such
    a hook already is left alone.
    """

    def __init__(self):
        session = _C._profiler_invite_threads()
        self._before = threading.getprofile()

        def join(frame, event, argument):
            sys.setprofile(self._before)
            _C._profiler_join(session)

        threading.setprofile(join)

    def remove(self):
        threading.setprofile(self._before)


class ModuleScopes:
    """Makes each call of a module an event, until it is removed."""

    def __init__(self):
        from rushlight.nn.modules import module

        self._names = weakref.WeakKeyDictionary()
        self._open = threading.local()
        self._hooks = [
            module.register_module_forward_pre_hook(self._before),
            module.register_module_forward_hook(self._after, always_call=True),
        ]

    def remove(self):
        for hook in self._hooks:
            hook.remove()

    def _name(self, module):
        """The path below the first module that was called, and the class."""
        try:
            if module not in self._names:
                for path, child in module.named_modules():
                    kind = type(child).__name__
                    name = f"nn.Module: {path} ({kind})" if path else f"nn.Module: {kind}"
                    self._names.setdefault(child, name)
            return self._names[module]
        except Exception:  # a class may compare its objects as it likes, or refuse to be hashed
            return f"nn.Module: {type(module).__name__}"

    def _ranges(self):
        if not hasattr(self._open, "ranges"):
            self._open.ranges = []
        return self._open.ranges

    def _before(self, module, args):
        self._ranges().append(_C._profiler_enter_module(self._name(module)))

    def _after(self, module, args, output):
        ranges = self._ranges()
        if ranges:  # empty for a module that was running when the recording began
            _C._profiler_exit(ranges.pop())


def known_blocks():
    """{address: (category, bytes)} of the parameters, gradients and optimizers' states that are alive."""
    from rushlight.nn import Parameter
    from rushlight.optim import Optimizer

    found = {}
    things = _C._live_objects(Optimizer, Parameter)
    for thing in things:
        if isinstance(thing, Optimizer):
            for tensor in _state_of(thing):
                _add(found, tensor, "optimizer_state")
    for thing in things:
        if isinstance(thing, Parameter):
            _add(found, thing, "parameter")
            _add(found, thing.grad, "gradient")
    return found


def _state_of(optimizer):
    """What an optimizer keeps; a class of the program's may keep it in other ways, or nothing yet."""
    try:
        return [tensor for state in optimizer.state.values() for tensor in state.values()]
    except Exception:
        return []


def _add(found, tensor, category):
    try:
        if not hasattr(tensor, "untyped_storage"):
            return
        storage = tensor.untyped_storage()
        if storage.data_ptr():
            found[storage.data_ptr()] = (category, storage.nbytes())
    except Exception:
        pass  # sparse tensors, fake ones, lazy ones: no block of memory is theirs
