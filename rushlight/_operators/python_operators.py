"""Operators of `aten` that packages register rules for and that are plain Python here."""

import rushlight as torch

_library = torch.library.Library("aten", "FRAGMENT")


def _pin_memory(self, device=None):
    return self.pin_memory() if device is None else self.pin_memory(device)


def _sparse_addmm(self, mat1, mat2, *, beta=1, alpha=1):
    return torch.addmm(self, mat1, mat2, beta=beta, alpha=alpha)


_library.define("_pin_memory(Tensor self, Device? device=None) -> Tensor")
_library.impl("_pin_memory", _pin_memory, "CompositeImplicitAutograd")
_library.define(
    "_sparse_addmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) -> Tensor"
)
_library.impl("_sparse_addmm", _sparse_addmm, "CompositeImplicitAutograd")


def _convolution(
    input, weight, bias, stride, padding, dilation, transposed, output_padding, groups, *settings
):  # the settings choose algorithms of a library that is not here
    return torch.convolution(
        input, weight, bias, stride, padding, dilation, transposed, output_padding, groups
    )


_library.define(
    "_convolution(Tensor input, Tensor weight, Tensor? bias, SymInt[] stride, SymInt[] padding, "
    "SymInt[] dilation, bool transposed, SymInt[] output_padding, SymInt groups, bool benchmark, "
    "bool deterministic, bool cudnn_enabled, bool allow_tf32) -> Tensor"
)
_library.impl("_convolution", _convolution, "CompositeImplicitAutograd")
