"""Facts about a tensor that its class answers: sizes, strides, device, layout.

A class asks for that when it makes a tensor (`_make_wrapper_subclass` with ``dispatch_sizes_strides_policy``,
``dispatch_device`` or ``dispatch_layout``). Its `__torch_dispatch__` then gets an operator in whose name the
tensor was asked; None leaves the answer to the tensor."""

import rushlight as torch

__all__ = ["ask"]


def _operator(fact, argument):
    if fact in ("device", "layout"):
        return getattr(torch.ops.prim, fact).default  # type: ignore[attr-defined]
    packet = getattr(torch.ops.aten, fact)  # type: ignore[attr-defined]
    with_format = argument is not None and fact == "is_contiguous"
    return packet.memory_format if with_format else packet.default


def ask(tensor, fact, argument=None):
    """The class's answer, or None."""
    operator, cls = _operator(fact, argument), type(tensor)
    arguments = (tensor,) if argument is None else (tensor, argument)
    answer = tensor.__torch_dispatch__(operator, (cls,), arguments, {})
    if answer is NotImplemented:
        raise TypeError(
            f"Multiple dispatch failed for 'torch.ops.{operator.overloadpacket}'; all __torch_dispatch__ "
            f"handlers returned NotImplemented:\n\n  - tensor subclass {cls!r}\n\n"
            "For more information, try re-running with TORCH_LOGS=not_implemented"
        )
    return answer
