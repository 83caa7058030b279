"""Printed from the built module by `python tools/print_operators.py`; do not edit."""

from typing import NamedTuple

from rushlight._tensor import Tensor

class frexp(NamedTuple):
    mantissa: Tensor
    exponent: Tensor

class frexp_out(NamedTuple):
    mantissa: Tensor
    exponent: Tensor

class aminmax(NamedTuple):
    min: Tensor
    max: Tensor

class aminmax_out(NamedTuple):
    min: Tensor
    max: Tensor

class max(NamedTuple):
    values: Tensor
    indices: Tensor

class max_out(NamedTuple):
    values: Tensor
    indices: Tensor

class min(NamedTuple):
    values: Tensor
    indices: Tensor

class min_out(NamedTuple):
    values: Tensor
    indices: Tensor

class cummax(NamedTuple):
    values: Tensor
    indices: Tensor

class cummax_out(NamedTuple):
    values: Tensor
    indices: Tensor

class cummin(NamedTuple):
    values: Tensor
    indices: Tensor

class cummin_out(NamedTuple):
    values: Tensor
    indices: Tensor

class sort(NamedTuple):
    values: Tensor
    indices: Tensor

class sort_out(NamedTuple):
    values: Tensor
    indices: Tensor

class topk(NamedTuple):
    values: Tensor
    indices: Tensor

class topk_out(NamedTuple):
    values: Tensor
    indices: Tensor

class kthvalue(NamedTuple):
    values: Tensor
    indices: Tensor

class kthvalue_out(NamedTuple):
    values: Tensor
    indices: Tensor

class median(NamedTuple):
    values: Tensor
    indices: Tensor

class median_out(NamedTuple):
    values: Tensor
    indices: Tensor

class nanmedian(NamedTuple):
    values: Tensor
    indices: Tensor

class nanmedian_out(NamedTuple):
    values: Tensor
    indices: Tensor

class mode(NamedTuple):
    values: Tensor
    indices: Tensor

class mode_out(NamedTuple):
    values: Tensor
    indices: Tensor

class histogram(NamedTuple):
    hist: Tensor
    bin_edges: Tensor

class histogram_out(NamedTuple):
    hist: Tensor
    bin_edges: Tensor

class fractional_max_pool2d(NamedTuple):
    output: Tensor
    indices: Tensor

class fractional_max_pool3d(NamedTuple):
    output: Tensor
    indices: Tensor

class _scaled_dot_product_flash_attention_for_cpu(NamedTuple):
    output: Tensor
    logsumexp: Tensor

class _scaled_dot_product_flash_attention_for_cpu_backward(NamedTuple):
    grad_query: Tensor
    grad_key: Tensor
    grad_value: Tensor

class linalg_lu_factor_ex(NamedTuple):
    LU: Tensor
    pivots: Tensor
    info: Tensor

class linalg_lu_factor_ex_out(NamedTuple):
    LU: Tensor
    pivots: Tensor
    info: Tensor

class linalg_lu_factor(NamedTuple):
    LU: Tensor
    pivots: Tensor

class linalg_lu_factor_out(NamedTuple):
    LU: Tensor
    pivots: Tensor

class _lu_with_info(NamedTuple):
    LU: Tensor
    pivots: Tensor
    info: Tensor

class lu_unpack(NamedTuple):
    P: Tensor
    L: Tensor
    U: Tensor

class lu_unpack_out(NamedTuple):
    P: Tensor
    L: Tensor
    U: Tensor

class linalg_lu(NamedTuple):
    P: Tensor
    L: Tensor
    U: Tensor

class linalg_lu_out(NamedTuple):
    P: Tensor
    L: Tensor
    U: Tensor

class _linalg_solve_ex(NamedTuple):
    result: Tensor
    LU: Tensor
    pivots: Tensor
    info: Tensor

class linalg_solve_ex(NamedTuple):
    result: Tensor
    info: Tensor

class linalg_solve_ex_out(NamedTuple):
    result: Tensor
    info: Tensor

class linalg_inv_ex(NamedTuple):
    inverse: Tensor
    info: Tensor

class linalg_inv_ex_out(NamedTuple):
    inverse: Tensor
    info: Tensor

class _linalg_det(NamedTuple):
    result: Tensor
    LU: Tensor
    pivots: Tensor

class _linalg_slogdet(NamedTuple):
    sign: Tensor
    logabsdet: Tensor
    LU: Tensor
    pivots: Tensor

class linalg_slogdet(NamedTuple):
    sign: Tensor
    logabsdet: Tensor

class linalg_slogdet_out(NamedTuple):
    sign: Tensor
    logabsdet: Tensor

class slogdet(NamedTuple):
    sign: Tensor
    logabsdet: Tensor

class slogdet_out(NamedTuple):
    sign: Tensor
    logabsdet: Tensor

class triangular_solve(NamedTuple):
    solution: Tensor
    cloned_coefficient: Tensor

class triangular_solve_out(NamedTuple):
    solution: Tensor
    cloned_coefficient: Tensor

class linalg_cholesky_ex(NamedTuple):
    L: Tensor
    info: Tensor

class linalg_cholesky_ex_out(NamedTuple):
    L: Tensor
    info: Tensor

class linalg_ldl_factor_ex(NamedTuple):
    LD: Tensor
    pivots: Tensor
    info: Tensor

class linalg_ldl_factor_ex_out(NamedTuple):
    LD: Tensor
    pivots: Tensor
    info: Tensor

class linalg_ldl_factor(NamedTuple):
    LD: Tensor
    pivots: Tensor

class linalg_ldl_factor_out(NamedTuple):
    LD: Tensor
    pivots: Tensor

class geqrf(NamedTuple):
    a: Tensor
    tau: Tensor

class geqrf_out(NamedTuple):
    a: Tensor
    tau: Tensor

class linalg_qr(NamedTuple):
    Q: Tensor
    R: Tensor

class linalg_qr_out(NamedTuple):
    Q: Tensor
    R: Tensor

class qr(NamedTuple):
    Q: Tensor
    R: Tensor

class qr_out(NamedTuple):
    Q: Tensor
    R: Tensor

class _linalg_eigh(NamedTuple):
    eigenvalues: Tensor
    eigenvectors: Tensor

class linalg_eigh(NamedTuple):
    eigenvalues: Tensor
    eigenvectors: Tensor

class linalg_eigh_out(NamedTuple):
    eigenvalues: Tensor
    eigenvectors: Tensor

class linalg_eig(NamedTuple):
    eigenvalues: Tensor
    eigenvectors: Tensor

class linalg_eig_out(NamedTuple):
    eigenvalues: Tensor
    eigenvectors: Tensor

class _linalg_svd(NamedTuple):
    U: Tensor
    S: Tensor
    Vh: Tensor

class linalg_svd(NamedTuple):
    U: Tensor
    S: Tensor
    Vh: Tensor

class linalg_svd_out(NamedTuple):
    U: Tensor
    S: Tensor
    Vh: Tensor

class svd(NamedTuple):
    U: Tensor
    S: Tensor
    V: Tensor

class svd_out(NamedTuple):
    U: Tensor
    S: Tensor
    V: Tensor

class linalg_lstsq(NamedTuple):
    solution: Tensor
    residuals: Tensor
    rank: Tensor
    singular_values: Tensor

class linalg_lstsq_out(NamedTuple):
    solution: Tensor
    residuals: Tensor
    rank: Tensor
    singular_values: Tensor

class fake_quantize_per_tensor_affine_cachemask(NamedTuple):
    output: Tensor
    mask: Tensor

class _fake_quantize_per_tensor_affine_cachemask_tensor_qparams(NamedTuple):
    output: Tensor
    mask: Tensor

class fake_quantize_per_channel_affine_cachemask(NamedTuple):
    output: Tensor
    mask: Tensor

class _fused_moving_avg_obs_fq_helper(NamedTuple):
    output: Tensor
    mask: Tensor

class _fused_moving_avg_obs_fq_helper_functional(NamedTuple):
    output: Tensor
    mask: Tensor
    running_min_out: Tensor
    running_max_out: Tensor
    scale_out: Tensor
    zero_point_out: Tensor

class _scaled_dot_product_efficient_attention(NamedTuple):
    output: Tensor
    log_sumexp: Tensor
    philox_seed: Tensor
    philox_offset: Tensor

class histogramdd(NamedTuple):
    hist: Tensor
    bin_edges: tuple[Tensor, ...]
