"""Rows of views and of what copies or rewrites a part: name -> list of (args, kwargs)."""

import numpy as np
from rows import fixed_rows
from samples_reduction import S, V, X, real, whole

M, C = real(3, 4), real(2, 3) + 1j * real(2, 3)
PAIRS = real(3, 2)
SQUARE = real(4, 4)

_SAME_AS_VIEW = {
    "diagonal": [((SQUARE,), {}), ((X, 1, 0, 2), {}), ((M, -1), {})],
    "expand": [((real(3, 1), (3, 4)), {}), ((S, (2, 2)), {})],
    "narrow": [((M, 0, 1, 2), {}), ((M, -1, 0, 0), {})],
    "permute": [((X, (2, 0, 1)), {}), ((X, (-1, 0, 1)), {})],
    "select": [((M, 0, 1), {}), ((M, -1, -1), {})],
    "squeeze": [((real(3, 1, 4, 1),), {}), ((real(3, 1, 4), 1), {}), ((real(1, 3, 1), (0, 2)), {})],
    "t": [((M,), {}), ((V,), {})],
    "transpose": [((X, 0, 2), {}), ((X, -1, 1), {})],
    "unfold": [((V, 0, 3, 2), {}), ((M, 1, 2, 1), {})],
    "unsqueeze": [((M, 0), {}), ((M, -1), {}), ((S, 0), {})],
    "split": [((M, 2), {}), ((M, 3, 1), {})],
    "split_with_sizes": [((M, (1, 2)), {}), ((M, (4, 0), 1), {})],
    "unbind": [((M,), {}), ((X, 1), {})],
}
_VIEW = [((M, (4, 3)), {}), ((M, (2, -1)), {})]
_METHODS = {"expand", "unfold"}
COPIES = {f"{name}_copy": calls for name, calls in [*_SAME_AS_VIEW.items(), ("view", _VIEW)]}
VIEWS = {("Tensor." if n in _METHODS else "") + n: c for n, c in _SAME_AS_VIEW.items() if n != "permute"}

MORE = {
    "adjoint": [((M,), {}), ((C,), {})],
    "alias_copy": [((M,), {})],
    "atleast_1d": [((S,), {})],
    "broadcast_to": [((V, (2, 7)), {})],
    "chunk": [((V, 3), {}), ((M, 2, 1), {})],
    "clone": [((M,), {})],
    "_lazy_clone": [((M,), {})],
    "conj": [((C,), {}), ((M,), {})],
    "conj_physical": [((C,), {}), ((M,), {})],
    "diag": [((V,), {}), ((M,), {}), ((V, -1), {})],
    "diag_embed": [((M,), {}), ((M, 1), {}), ((M, 0, 0, 2), {})],
    "diagflat": [((M,), {}), ((V, 1), {})],
    "diagonal_scatter": [((SQUARE, real(4)), {}), ((SQUARE, real(3), 1), {})],
    "select_scatter": [((M, real(4), 0, 1), {})],
    "slice_scatter": [((M, real(3, 2), 1, 1, 3), {})],
    "dsplit": [((real(2, 2, 4), 2), {}), ((real(2, 2, 4), [1, 3]), {})],
    "hsplit": [((M, 2), {}), ((V, [2, 5]), {})],
    "vsplit": [((SQUARE, 2), {}), ((M, [1]), {})],
    "Tensor.expand_as": [((real(3, 1), M), {})],
    "Tensor.reshape_as": [((M.T, real(2, 6)), {})],
    "Tensor.type_as": [((M, whole(2)), {})],
    "Tensor.sum_to_size": [((M, (1, 4)), {}), ((M, (4,)), {})],
    "fill": [((M, 2.5), {})],
    "flatten": [((X,), {}), ((X, 1), {}), ((S,), {})],
    "fliplr": [((M,), {})],
    "flipud": [((M,), {})],
    "imag": [((C,), {})],
    "masked_fill": [((M, M > 0, 1.5), {}), ((M, M > 0, S), {})],
    "moveaxis": [((X, 0, 2), {})],
    "movedim": [((X, 0, 2), {}), ((X, (0, 1), (2, 0)), {})],
    "put": [((M, whole(3, low=0, high=11), real(3)), {})],
    "real": [((C,), {}), ((M,), {})],
    "ravel": [((M.T,), {})],
    "reshape": [((M.T, (2, 6)), {}), ((M, (-1,)), {})],
    "resolve_conj": [((C,), {})],
    "_conj": [((C,), {})],
    "resolve_neg": [((M,), {})],
    "_neg_view": [((M,), {})],
    "slice_copy": [((M, 1, 1, 3), {}), ((M,), {"end": 2, "step": 2})],
    "rot90": [((M,), {}), ((X, 3, [0, 2]), {})],
    "swapaxes": [((X, 0, 1), {})],
    "swapdims": [((X, 0, 1), {})],
    "tensor_split": [((V, 3), {}), ((V, (2, 4)), {}), ((M, np.array(2)), {})],
    "tril": [((M,), {}), ((X, 1), {}), ((M, -1), {})],
    "triu": [((M,), {}), ((X, 1), {}), ((M, -1), {})],
    "unflatten": [((M, 1, (2, -1)), {})],
    "unsafe_chunk": [((V, 3), {})],
    "unsafe_split": [((V, 3), {})],
    "unsafe_split_with_sizes": [((V, (3, 4)), {})],
    "view_as_real": [((C,), {})],
    "nn.functional.fold": [((real(2, 12, 4), (3, 3), 2), {})],
    "constant_pad_nd": [((M, (1, 2)), {}), ((M, (1, -1, 0, 2), 1.5), {})],
    "vander": [((V,), {}), ((V, 3, True), {})],
}
_STRIDED = [((M, (2, 3), (4, 1)), {}), ((M, (3,), (5,), 1), {})]
MEMORY = {
    "as_strided": _STRIDED,
    "as_strided_copy": _STRIDED,
    "as_strided_scatter": [((M, real(2, 2), (2, 2), (4, 1)), {})],
    "ops.aten._as_strided_gather": [((M, (3, 4), (4, 1), (2, 3), (4, 1), 0), {})],
}
VIEWABLE = {
    "Tensor.view": _VIEW,
    "Tensor.view_as": [((M, real(2, 6)), {})],
    "view_as_complex": [((PAIRS,), {})],
}
OF_MEMORY = {
    "layout": "the strides are arguments",
    "vmap": "the offset counts in the memory that all examples share",
    "gradients": "PyTorch's gradient of as_strided_scatter is that of the part that was written over",
}

ROWS = [
    *fixed_rows({**VIEWS, **COPIES, **MORE}),
    *fixed_rows(MEMORY, refused=OF_MEMORY),
    *fixed_rows({"detach_copy": [((M,), {})]}, refused={"gradcheck": "what is detached has no gradient"}),
    *fixed_rows(VIEWABLE, refused={"layout": "needs a viewable layout"}),
]
