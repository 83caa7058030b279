"""`torch.ops.prims` and `torch.ops.prim`: the few that packages name."""

import rushlight as torch

_library = torch.library.Library("prims", "FRAGMENT")
_library.define("convert_element_type(Tensor a, ScalarType dtype) -> Tensor")
_library.impl(
    "convert_element_type", lambda a, dtype: a.to(dtype=dtype, copy=True), "CompositeExplicitAutograd"
)


class _OwnLibrary(torch.library.Library):
    _reserved = ()


_prim = _OwnLibrary("prim", "FRAGMENT")
_prim.define("device(Tensor a) -> Device")
_prim.impl("device", lambda a: a.device, "CompositeImplicitAutograd")
_prim.define("layout(Tensor a) -> Layout")
_prim.impl("layout", lambda a: a.layout, "CompositeImplicitAutograd")
