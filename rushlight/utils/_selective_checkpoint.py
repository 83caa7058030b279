"""Selective checkpointing: within a checkpoint, a policy says which operators' results are kept after all."""

import enum
from collections import defaultdict, deque
from functools import cache

import rushlight
from rushlight._command.names import show_from
from rushlight.utils._python_dispatch import TorchDispatchMode
from rushlight.utils._pytree import tree_map_only

__all__ = ["CheckpointPolicy", "SelectiveCheckpointContext", "create_selective_checkpoint_contexts"]


class CheckpointPolicy(enum.Enum):
    """What becomes of an operator's result. A compiler may overrule what is only preferred; eagerly both mean
    the same."""

    MUST_SAVE = 0
    PREFER_SAVE = 1
    MUST_RECOMPUTE = 2
    PREFER_RECOMPUTE = 3
    MUST_CPU_OFFLOAD = 4
    PREFER_CPU_OFFLOAD = 5


_SAVING = (CheckpointPolicy.MUST_SAVE, CheckpointPolicy.PREFER_SAVE)
_OFFLOADING = (CheckpointPolicy.MUST_CPU_OFFLOAD, CheckpointPolicy.PREFER_CPU_OFFLOAD)


class SelectiveCheckpointContext:
    """What a policy is told besides the operator: whether this is the second computation."""

    def __init__(self, *, is_recompute, op_output=None):
        self.is_recompute, self.op_output = is_recompute, op_output


@cache
def ignored_operators():
    """What computes nothing, and is neither kept nor looked up."""
    return {rushlight.ops.aten.detach.default}


class _Kept:
    """A result, and its version then: it must not have changed when it is used."""

    def __init__(self, value):
        self.is_tensor = isinstance(value, rushlight.Tensor)
        self.version = value._version if self.is_tensor else None
        self.val = value.detach() if self.is_tensor else value

    def get(self, may_change):
        if self.is_tensor and not may_change and self.val._version != self.version:
            raise RuntimeError("Tensor cached during selective activation checkpoint has been mutated")
        return self.val.detach() if self.is_tensor else self.val


class _Mode(TorchDispatchMode):
    def __init__(self, policy, storage):
        super().__init__()
        self.policy, self.storage = policy, storage

    def keeps(self, func, args, kwargs, is_recompute):
        answer = self.policy(SelectiveCheckpointContext(is_recompute=is_recompute), func, *args, **kwargs)
        if isinstance(answer, bool):
            return answer
        if not isinstance(answer, CheckpointPolicy):
            raise ValueError(f"A checkpoint policy returns a CheckpointPolicy or a bool, but got {answer!r}")
        return answer in _SAVING or answer in _OFFLOADING


class _CachingTorchDispatchMode(_Mode):
    """The first computation."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if func in ignored_operators():
            return func(*args, **kwargs)
        keeps = self.keeps(func, args, kwargs, False)
        result = func(*args, **kwargs)
        if keeps:
            self.storage[func].append(tree_map_only(object, _Kept, result))
        return result


class _CachedTorchDispatchMode(_Mode):
    """The second computation."""

    def __init__(self, policy, storage, may_change):
        super().__init__(policy, storage)
        self.may_change = may_change

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if func in ignored_operators() or not self.keeps(func, args, kwargs, True):
            return func(*args, **kwargs)
        if not self.storage[func]:
            raise RuntimeError(
                f"{func} encountered during backward, but not found in storage. Trying to backward an extra "
                "time? You are only allowed to backward once on any region computed under selective "
                "activation checkpoint. Or the checkpointed function computes something else "
                "than it did the first time"
            )
        kept = self.storage[func].popleft()
        return tree_map_only(_Kept, lambda k: k.get(self.may_change), kept)


def _policy_of(policy_fn_or_list):
    if isinstance(policy_fn_or_list, list):
        for op in policy_fn_or_list:
            if not isinstance(op, rushlight._ops.OpOverload):
                extra = ""
                if isinstance(op, rushlight._ops.OpOverloadPacket):
                    extra = (
                        "Please update the OpOverloadPacket to a specific OpOverload. For example, "
                        "if you have `torch.ops.aten.mm`, change it to `torch.ops.aten.mm.default`."
                    )
                raise ValueError(
                    f"Expected op in `op_list` to be an OpOverload but got: {op} of type {type(op)}. {extra}"
                )
        kept = frozenset(policy_fn_or_list)
        return lambda ctx, op, *args, **kwargs: op in kept
    if callable(policy_fn_or_list):
        return policy_fn_or_list
    raise TypeError("policy_fn_or_list must be either a function or a list of ops.")


def create_selective_checkpoint_contexts(policy_fn_or_list, allow_cache_entry_mutation=False):
    """For ``checkpoint(context_fn=...)``: keep what a policy says, compute the rest again.

    Args:
        policy_fn_or_list: a function ``(ctx, op, *args, **kwargs)`` that returns a `CheckpointPolicy` or a
            bool, or the operators to keep, such as ``torch.ops.aten.mm.default``.
        allow_cache_entry_mutation: do not complain of kept results that were changed since.

    >>> context_fn = functools.partial(create_selective_checkpoint_contexts, [torch.ops.aten.mm.default])
    >>> checkpoint(f, x, use_reentrant=False, context_fn=context_fn)
    """
    policy, storage = _policy_of(policy_fn_or_list), defaultdict(deque)
    return _CachingTorchDispatchMode(policy, storage), _CachedTorchDispatchMode(
        policy, storage, allow_cache_entry_mutation
    )


show_from(
    "utils.checkpoint", CheckpointPolicy, SelectiveCheckpointContext, create_selective_checkpoint_contexts
)
