"""Printed from the built module by `python tools/print_operators.py`; do not edit."""

from typing import NamedTuple

from rushlight._tensor import Tensor

class frexp(NamedTuple):
    mantissa: Tensor
    exponent: Tensor

class aminmax(NamedTuple):
    min: Tensor
    max: Tensor

class max(NamedTuple):
    values: Tensor
    indices: Tensor

class min(NamedTuple):
    values: Tensor
    indices: Tensor

class cummax(NamedTuple):
    values: Tensor
    indices: Tensor

class cummin(NamedTuple):
    values: Tensor
    indices: Tensor

class sort(NamedTuple):
    values: Tensor
    indices: Tensor

class topk(NamedTuple):
    values: Tensor
    indices: Tensor

class kthvalue(NamedTuple):
    values: Tensor
    indices: Tensor

class median(NamedTuple):
    values: Tensor
    indices: Tensor

class nanmedian(NamedTuple):
    values: Tensor
    indices: Tensor

class mode(NamedTuple):
    values: Tensor
    indices: Tensor

class slogdet(NamedTuple):
    sign: Tensor
    logabsdet: Tensor

class qr(NamedTuple):
    Q: Tensor
    R: Tensor

class eigh(NamedTuple):
    eigenvalues: Tensor
    eigenvectors: Tensor

class svd(NamedTuple):
    U: Tensor
    S: Tensor
    Vh: Tensor
