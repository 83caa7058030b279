"""Gradients through remote calls.

Inside `with context() as context_id`, a message that carries tensors which require gradients leaves a record
on both sides: the sender keeps the tensors, the receiver what stands for them. `backward(context_id, roots)`
first asks which of these messages lie between the roots and the parameters, then lets the gradients flow back
along them. Each worker sends the gradients of a message once, when all that contribute are there. Sums are
kept in the context, `get_gradients(context_id)`, and not in `.grad`, so several contexts may be under way.
"""

from __future__ import annotations

import itertools
import threading
from typing import Any

from ... import Tensor, zeros_like
from ... import autograd as _local_autograd
from ..rpc import _state, _wire

_thread = threading.local()
_numbers = itertools.count(1)
_contexts: dict = {}
_lock = threading.Lock()


def is_available() -> bool:
    return True


class _Record:
    """A message that carried tensors: those sent, or those that stand for them where they arrived."""

    def __init__(self, tensors, peer):
        self.tensors, self.peer = tensors, peer


class DistAutogradContext:
    """What one worker knows of a pass: messages, and the sums of gradients of its own parameters."""

    def __init__(self, context_id: int) -> None:
        self.id, self.lock = context_id, threading.Lock()
        self.sent, self.received = {}, {}  # message -> _Record
        self.gradients = {}
        self.known_workers = set()
        self.plan = None  # of the backward pass under way

    def _context_id(self):
        return self.id

    def _known_worker_ids(self):
        return {info.id for info in self.known_workers}


def _context(context_id):
    with _lock:
        return _contexts.setdefault(context_id, DistAutogradContext(context_id))


def _retrieve_context(context_id):
    if context_id not in _contexts:
        raise RuntimeError(f"Could not find autograd context with id: {context_id}")
    return _contexts[context_id]


class _inside:
    """The thread takes part in a context (None: in none)."""

    def __init__(self, context_id):
        self._id = context_id

    def __enter__(self):
        self._before = getattr(_thread, "context", None)
        _thread.context = self._id

    def __exit__(self, *exc):
        _thread.context = self._before


class context:
    """`with context() as context_id`: calls in it, and what these call, are recorded for a backward pass."""

    def __enter__(self):
        if getattr(_thread, "context", None) is not None:
            raise RuntimeError("Already have an autograd context id for this thread")
        self.id = _state.agent().info.id << 48 | next(_numbers)
        _context(self.id)
        _thread.context = self.id
        return self.id

    def __exit__(self, *exc) -> None:
        _thread.context = None
        _release(self.id)


def _release(context_id):
    with _lock:
        left = _contexts.pop(context_id, None)
    if left is not None and _state.current is not None:
        for worker in left.known_workers:
            _state.current.post(worker, "autograd_release", (context_id,))


# --- recording


class _Sender:
    """Notes the tensors of a message on their way out."""

    def __init__(self, to):
        self._to, self._context, self._tensors = to, getattr(_thread, "context", None), []

    def add(self, tensor):
        self._tensors.append(tensor)

    def finish(self):
        """(who sends, context, message) for the receiver."""
        sender = _state.agent().info.id
        if self._context is None:
            return sender, None, None
        own, message = _context(self._context), None
        own.known_workers.add(self._to)
        if self._tensors:
            message = (sender, next(_numbers))
            own.sent[message] = _Record(self._tensors, self._to)
        return sender, self._context, message


class _Receiver:
    """Gives what stands for the tensors of a message that came in."""

    def __init__(self, trace, sender):
        _, context_id, self._message = trace
        self._record = None
        if context_id is not None:
            own = _context(context_id)
            own.known_workers.add(sender)
            if self._message is not None:
                self._record = own.received[self._message] = _Record([], sender)

    def take(self, tensor):
        tensor.requires_grad_()
        if self._record is None:
            return tensor
        self._record.tensors.append(tensor)
        return tensor.clone()  # an ordinary result: it may be written to


# --- the backward pass


def _leaves(tensors):
    """The leaves that tensors depend on."""
    nodes = [t.grad_fn for t in tensors if t.grad_fn is not None]
    found = {id(t): t for t in tensors if t.grad_fn is None and t.requires_grad}
    seen = set(nodes)
    while nodes:
        node = nodes.pop()
        variable = getattr(node, "variable", None)
        if variable is not None:
            found[id(variable)] = variable
        for following, _ in node.next_functions:
            if following is not None and following not in seen:
                seen.add(following)
                nodes.append(following)
    return list(found.values())


class _Plan:
    """One worker's part of a backward pass.

    `roots`: what gradients come in at, by message (None for the pass's own roots): tensors, the leaves they
    reach, and the incoming messages among these. `waiting`: how many roots are yet to contribute to a
    message.
    """

    def __init__(self):
        self.roots, self.waiting, self.sums = {}, {}, {}


def _discover(own, message, tensors):
    """Add a root to the plan, and the roots of other workers to theirs."""
    with own.lock:
        if own.plan is None:
            own.plan = _Plan()
        plan = own.plan
        if message in plan.roots:
            return
        leaves = _leaves(tensors)
        stand_ins = {id(t): name for name, record in own.received.items() for t in record.tensors}
        messages = {stand_ins[id(leaf)] for leaf in leaves if id(leaf) in stand_ins}
        plan.roots[message] = tensors, leaves, messages
        for name in messages:
            plan.waiting[name] = plan.waiting.get(name, 0) + 1
    _ask_all(own, "autograd_discover", [(own.received[name].peer, name, None) for name in messages])


def _ask_all(own, kind, requests):
    agent = _state.agent()
    futures = [
        agent.ask(worker, kind, (own.id, name), _wire.pack(value, lambda tensor: None))
        for worker, name, value in requests
    ]
    for future in futures:
        head, parts = future.wait()
        if head[2:3] == ("failed",):
            raise _wire.unpack(parts, None).error()


def _flow(own, message, gradients):
    """Gradients have come in at a root: compute those of its leaves, send on what is complete."""
    plan = own.plan
    tensors, leaves, messages = plan.roots[message]
    pairs = [(t, g) for t, g in zip(tensors, gradients) if g is not None]
    found: Any = [None] * len(leaves)
    if pairs and leaves:
        outputs, seeds = zip(*pairs)
        found = _local_autograd.grad(outputs, leaves, seeds, retain_graph=True, allow_unused=True)
    complete = []
    with own.lock:
        stand_ins = {id(t) for record in own.received.values() for t in record.tensors}
        for leaf, gradient in zip(leaves, found):
            if gradient is None:
                continue
            sums = plan.sums if id(leaf) in stand_ins else own.gradients
            sums[leaf] = sums[leaf] + gradient if leaf in sums else gradient
        for name in messages:
            plan.waiting[name] -= 1
            if plan.waiting[name] == 0:
                complete.append(name)
    sends = []
    for name in complete:
        record = own.received[name]
        sends.append((record.peer, name, [plan.sums.get(tensor) for tensor in record.tensors]))
    _ask_all(own, "autograd_flow", sends)


def _on_discover(agent, answer, head, parts):
    own = _retrieve_context(head[0])
    _discover(own, head[1], own.sent[head[1]].tensors)
    answer(("returned",))


def _on_flow(agent, answer, head, parts):
    _flow(_retrieve_context(head[0]), head[1], _wire.unpack(parts, None))
    answer(("returned",))


def _on_finish(agent, answer, head, parts):
    own = _contexts.get(head[0])
    if own is not None and own.plan is not None:
        own.plan = None
        _ask_all(own, "autograd_finish", [(worker, None, None) for worker in own.known_workers])
    answer(("returned",))


def _on_release(agent, answer, head, parts):
    answer()
    _release(head[0])


def backward(context_id: int, roots: list[Tensor], retain_graph: bool = False) -> None:
    """Add the gradients of the sum of `roots`, tensors of one element, to the context's, on all workers.

    Raises RuntimeError for roots that do not require gradients or have more elements, and what goes wrong
    elsewhere. Graphs are kept until the context ends, whatever `retain_graph` says.
    """
    own = _retrieve_context(context_id)
    if not roots:
        raise RuntimeError("No tensors provided for gradient computation.")
    for root in roots:
        if not isinstance(root, Tensor) or not root.requires_grad:
            raise RuntimeError("requires_grad not set on root")
        if root.numel() != 1:
            raise RuntimeError(f"{root} is not a scalar, all roots need to be scalar")
    with _inside(None):
        try:
            _discover(own, None, list(roots))
            _flow(own, None, [zeros_like(root, requires_grad=False) + 1 for root in roots])
        finally:
            own.plan = None
            _ask_all(own, "autograd_finish", [(worker, None, None) for worker in own.known_workers])


def get_gradients(context_id: int) -> dict[Tensor, Tensor]:
    """The sums of gradients of this worker's tensors, as a dict from tensors."""
    return dict(_retrieve_context(context_id).gradients)


_HANDLERS = {
    "autograd_discover": (_on_discover, "thread"),
    "autograd_flow": (_on_flow, "thread"),
    "autograd_finish": (_on_finish, "thread"),
    "autograd_release": (_on_release, "thread"),
}

__all__ = ["DistAutogradContext", "backward", "context", "get_gradients", "is_available"]
