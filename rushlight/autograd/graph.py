"""The recorded graph: its nodes, and hooks on what it saves and computes."""

import threading
from abc import ABC, abstractmethod
from collections import namedtuple

import rushlight
from rushlight import _C

__all__ = [
    "GradientEdge",
    "Node",
    "allow_mutation_on_saved_tensors",
    "disable_saved_tensors_hooks",
    "get_gradient_edge",
    "increment_version",
    "register_multi_grad_hook",
    "save_on_cpu",
    "saved_tensors_hooks",
    "set_override_stale_capture_stream",
    "set_warn_on_accumulate_grad_stream_mismatch",
]


class Node(ABC):
    """What every node of the graph offers; ``tensor.grad_fn`` is one."""

    @abstractmethod
    def name(self):
        """The node's name, such as "AddBackward0"."""

    @property
    @abstractmethod
    def next_functions(self):
        """Pairs of the nodes that receive this node's results, and the number of their input."""

    @abstractmethod
    def metadata(self):
        """A dict that stays with the node."""

    @property
    @abstractmethod
    def _input_metadata(self):
        """Shape, dtype and device of the gradients that come in."""

    @abstractmethod
    def register_hook(self, fn):
        """Call ``fn(grad_inputs, grad_outputs)`` after the node ran; it may return other ``grad_inputs``."""

    @abstractmethod
    def register_prehook(self, fn):
        """Call ``fn(grad_outputs)`` before the node runs; it may return other ``grad_outputs``."""

    @classmethod
    def __subclasshook__(cls, subclass):
        if cls is Node and issubclass(subclass, (_C._Node, _C._FunctionBase)):
            return True
        return NotImplemented


GradientEdge = namedtuple("GradientEdge", ["node", "output_nr", "ownership_token"], defaults=(None,))


def get_gradient_edge(tensor):
    """Where the gradient of a tensor goes: a node and the number of its input."""
    if not tensor.requires_grad:
        raise RuntimeError(
            "It is not possible to get the gradient edge for a Tensor that does not require gradients"
        )
    node = _accumulator(tensor) if tensor.grad_fn is None else tensor.grad_fn
    # The token keeps alive what the node holds for nobody else.
    return GradientEdge(node, tensor.output_nr, ownership_token=tensor.grad_fn)


def _accumulator(tensor):
    with rushlight.enable_grad():
        return tensor.view_as(tensor).grad_fn.next_functions[0][0]


def increment_version(tensor):
    """Tell autograd that tensors were changed by means that it does not see."""
    for t in (tensor,) if isinstance(tensor, rushlight.Tensor) else tensor:
        _C._increment_version(t)


class saved_tensors_hooks:
    """Inside, ``pack_hook(tensor)`` is kept in place of each saved tensor, and ``unpack_hook`` gives it
    back."""

    def __init__(self, pack_hook, unpack_hook):
        self.pack_hook = pack_hook
        self.unpack_hook = unpack_hook

    def __enter__(self):
        _C._push_saved_tensors_hooks(self.pack_hook, self.unpack_hook)

    def __exit__(self, *exc):
        _C._pop_saved_tensors_hooks()


class save_on_cpu(saved_tensors_hooks):
    """Inside, saved tensors wait in the CPU's memory until backward needs them."""

    def __init__(self, pin_memory=False, device_type="cuda"):
        def pack(tensor):
            if not pin_memory or tensor.is_cpu:
                return tensor.device, tensor.cpu()
            kept = rushlight.empty(tensor.size(), dtype=tensor.dtype, layout=tensor.layout, pin_memory=True)
            return tensor.device, kept.copy_(tensor)

        def unpack(packed):
            device, tensor = packed
            return tensor.to(device, non_blocking=pin_memory)

        super().__init__(pack, unpack)


class disable_saved_tensors_hooks:
    """Inside, hooks on saved tensors fail with the given message. A context manager and a decorator."""

    def __init__(self, error_message):
        self.error_message = error_message

    def __enter__(self):
        self._before = _C._saved_tensors_hooks_disabled_message()
        _C._disable_saved_tensors_hooks(self.error_message)

    def __exit__(self, *exc):
        if self._before is None:
            _C._enable_saved_tensors_hooks()
        else:
            _C._disable_saved_tensors_hooks(self._before)

    def __call__(self, func):
        from rushlight.utils._contextlib import context_decorator

        return context_decorator(lambda: disable_saved_tensors_hooks(self.error_message), func)


class _MultiHandle:
    def __init__(self, handles):
        self.handles = handles

    def remove(self):
        for handle in self.handles:
            handle.remove()

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.remove()


def register_multi_grad_hook(tensors, fn, *, mode="all"):
    """Call ``fn`` in a backward pass when the gradients of all of the tensors, or of any one, are there.

    With "all", ``fn`` receives the list of gradients, None for tensors that the pass does not reach; with
    "any", the first gradient.
    """
    if mode not in ("all", "any"):
        raise ValueError(f"Expects mode to be one of ('all', 'any') but got {mode}")
    lock, passes = threading.Lock(), {}

    def hook(i):
        def inner(grad):
            task = _C._current_graph_task_id()
            with lock:
                seen = passes.get(task)
                if seen is None:
                    while len(passes) > 64:  # passes that ended; others may run on other threads
                        passes.pop(next(iter(passes)))
                    reached = [_reached(t) for t in tensors] if mode == "all" else []
                    seen = passes[task] = {
                        "grads": [None] * len(tensors),
                        "left": sum(reached),
                        "called": False,
                    }
                seen["grads"][i] = grad
                seen["left"] -= 1
                call = seen["left"] == 0 if mode == "all" else not seen["called"]
                seen["called"] = seen["called"] or call
            if call:
                fn(seen["grads"] if mode == "all" else grad)

        return inner

    def _reached(tensor):
        return _C._will_engine_execute_node(get_gradient_edge(tensor).node)

    return _MultiHandle([t.register_hook(hook(i)) for i, t in enumerate(tensors)])


def allow_mutation_on_saved_tensors():
    """A context in which tensors that backward needs may be changed in place: they are copied before that.

    Backward must run inside of the context, or after it if nothing was changed.
    """
    from rushlight.autograd._saved_mutation import allow_mutation

    return allow_mutation()


_stream_settings = {"warn on mismatch": True, "override stale capture stream": False}


def set_warn_on_accumulate_grad_stream_mismatch(enabled):
    """Whether to warn when gradients arrive on another stream than they are summed on; the CPU has one."""
    _stream_settings["warn on mismatch"] = bool(enabled)


def set_override_stale_capture_stream(enabled):
    """What to do about streams that a capture does not know: the CPU has but one."""
    _stream_settings["override stale capture stream"] = bool(enabled)
