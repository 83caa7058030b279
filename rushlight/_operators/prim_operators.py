"""`torch.ops.prims`: the few that packages name in patterns."""

import rushlight as torch

_library = torch.library.Library("prims", "FRAGMENT")
_library.define("convert_element_type(Tensor a, ScalarType dtype) -> Tensor")
_library.impl(
    "convert_element_type", lambda a, dtype: a.to(dtype=dtype, copy=True), "CompositeExplicitAutograd"
)
