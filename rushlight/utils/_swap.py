"""`swap_tensors`: two tensors change contents and keep their identities."""

import copyreg
import weakref

from rushlight import _C
from rushlight.autograd.graph import get_gradient_edge


def swap_tensors(t1, t2):
    """Give each tensor the content, class and attributes of the other.

    Refused where somebody else holds one of them: who looks at the old content would see the new one.
    """
    for name, tensor in (("t1", t1), ("t2", t2)):
        if weakref.getweakrefs(tensor):
            raise RuntimeError(f"Cannot swap {name} because it has weakref associated with it")
    slots = set(copyreg._slotnames(type(t1)))
    if slots != set(copyreg._slotnames(type(t2))):
        raise RuntimeError("Cannot swap t1 and t2 if they have different slots")
    _check_use_count(t1, "t1")
    _check_use_count(t2, "t2")
    t1.__class__, t2.__class__ = t2.__class__, t1.__class__
    t1.__dict__, t2.__dict__ = t2.__dict__, t1.__dict__
    for slot in slots:
        _swap_slot(t1, t2, slot)
    _C._swap_tensor_impl(t1, t2)


def _swap_slot(t1, t2, slot):
    values = [(t, getattr(t, slot)) for t in (t1, t2) if hasattr(t, slot)]
    for tensor, _ in values:
        delattr(tensor, slot)
    for tensor, value in values:
        setattr(t2 if tensor is t1 else t1, slot, value)


def _check_use_count(tensor, name):
    count = _C._tensor_use_count(tensor)
    if count == 1:
        return
    if count == 2 and tensor.is_leaf and tensor.requires_grad:
        node = get_gradient_edge(tensor).node
        if _C._tensor_use_count(tensor) == 2:  # the second one is the node of an earlier graph
            node.register_prehook(_refuse_backward)
            return
    raise RuntimeError(
        f"Expected use_count of {name} to be 1 or 2 with an AccumulateGrad node but got {count} make sure "
        "you are not holding references to the tensor in other places."
    )


def _refuse_backward(grad_outputs):
    raise RuntimeError(
        "Trying to execute AccumulateGrad node that was poisoned by swap_tensors this can happen when you "
        "try to run backward on a tensor that was swapped. For a module m with "
        "`torch.__future__.set_swap_module_params_on_conversion(True)` you should not change the device or "
        "dtype of the module (e.g. `m.cpu()` or `m.half()`) between running forward and backward. To "
        "resolve this, please only change the device/dtype before running forward (or after both forward "
        "and backward)."
    )
