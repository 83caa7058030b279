"""What a profile learns from Python while it records: calls of modules, and which memory is known by name."""

import sys
import threading
import weakref
from collections import Counter

from rushlight import _C
from rushlight.autograd._profiler_tree import _NNModuleInfo, _TensorMetadata

__all__ = ["ModuleScopes", "OtherThreads", "known_blocks", "record_calls"]


class OtherThreads:
    """Records the program's other threads too: those that run, and those that begin until it is removed.

    Threads join at their next Python call, through the hook that profilers of Python use. One that has such
    a hook already is left alone.
    """

    def __init__(self, with_calls=False):
        session = _C._profiler_invite_threads()
        self._before = threading.getprofile()

        def join(frame, event, argument):
            sys.setprofile(self._before)
            _C._profiler_join(session)
            if with_calls:
                record_calls()

        threading.setprofile(join)

    def remove(self):
        threading.setprofile(self._before)


class ModuleScopes:
    """Makes each call of a module an event, until it is removed.

    An event's name is the module's path below the first module that was called, and the class; without
    `by_path` PyTorch's name, the class and a number.
    """

    def __init__(self, by_path=True):
        from rushlight.nn.modules import module

        self.called = []  # what is known of each module, in the order in which they were first called
        self._by_path = by_path
        self._names = weakref.WeakKeyDictionary()
        self._numbers = weakref.WeakKeyDictionary()
        self._of_class = Counter()
        self._open = threading.local()
        self._hooks = [
            module.register_module_forward_pre_hook(self._before),
            module.register_module_forward_hook(self._after, always_call=True),
        ]

    def remove(self):
        for hook in self._hooks:
            hook.remove()

    def _path_name(self, module):
        if module not in self._names:
            for path, child in module.named_modules():
                kind = type(child).__name__
                name = f"nn.Module: {path} ({kind})" if path else f"nn.Module: {kind}"
                self._names.setdefault(child, name)
        return self._names[module]

    def _known(self, module):
        """The name, and the place in `called`. Modules may compare as they like, or not be hashed."""
        kind = type(module).__name__
        try:
            if module not in self._numbers:
                self._numbers[module] = len(self.called), self._of_class[kind]
                self._of_class[kind] += 1
                self.called.append(module_info(module))
            number, in_class = self._numbers[module]
            name = self._path_name(module) if self._by_path else f"nn.Module: {kind}_{in_class}"
            return name, number
        except Exception:
            return f"nn.Module: {kind}", -1

    def _ranges(self):
        if not hasattr(self._open, "ranges"):
            self._open.ranges = []
        return self._open.ranges

    def _before(self, module, args):
        self._ranges().append(_C._profiler_enter_module(*self._known(module)))

    def _after(self, module, args, output):
        ranges = self._ranges()
        if ranges:  # empty for a module that was running when the recording began
            _C._profiler_exit(ranges.pop())


def record_calls(all_threads=False):
    """Make calls of Python functions events, but for what the hooks on modules do."""
    own = (ModuleScopes._before.__code__, ModuleScopes._after.__code__)
    _C._profiler_record_calls(own, all_threads)


def module_info(module):
    """A module's class, and its parameters with their gradients."""
    parameters = [
        (name, tensor_info(parameter), tensor_info(parameter.grad))
        for name, parameter in module._parameters.items()
        if parameter is not None
    ]
    return _NNModuleInfo(type(module).__name__, id(module), id(type(module)), parameters)


def tensor_info(tensor):
    """The form and the memory of a tensor; None of what has no memory."""
    try:
        memory = tensor.untyped_storage().data_ptr()
        form = list(tensor.shape), list(tensor.stride())
        return _TensorMetadata(tensor.dtype, *form, tensor._cdata, memory, tensor.device, tensor.layout)
    except Exception:
        return None


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
