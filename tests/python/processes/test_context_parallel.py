"""Attention over sequences that processes share: results and gradients are those of one process."""

from datetime import timedelta

import pytest

import rushlight as torch
from rushlight import distributed as dist
from rushlight import multiprocessing as mp
from rushlight.distributed.device_mesh import init_device_mesh
from rushlight.distributed.tensor import experimental
from rushlight.distributed.tensor.experimental import _attention as parallel
from rushlight.nn import functional as F

RANKS, LENGTH = 3, 24


def _inputs(dtype=torch.float32, kv_heads=2):
    torch.manual_seed(0)
    shapes = [(2, 4, LENGTH, 8), (2, kv_heads, LENGTH, 8), (2, kv_heads, LENGTH, 8), (2, 4, LENGTH, 8)]
    return [torch.randn(shape, dtype=dtype) for shape in shapes]


def _with_gradients(q, k, v, weight, **options):
    leaves = [part.detach().requires_grad_() for part in (q, k, v)]
    out = F.scaled_dot_product_attention(*leaves, **options)
    (out * weight).sum().backward()
    return [out.detach(), *(leaf.grad for leaf in leaves)]


def _compare(mesh, dtype, tolerance, **options):
    q, k, v, weight = _inputs(dtype, 2 if options.get("enable_gqa") else 4)
    wanted = _with_gradients(q, k, v, weight, **options)
    buffers = [q, k, v, weight]
    share = {"buffers": buffers, "buffer_seq_dims": [2] * 4, "no_restore_buffers": {weight}}
    with experimental.context_parallel(mesh, **share):
        assert q.shape == (2, 4, LENGTH // RANKS, 8)
        parts = _with_gradients(q, k, v, weight, **options)
        found = parallel.context_parallel_unshard(mesh, parts, [2] * 4)
    assert q.shape == wanted[0].shape and weight.shape[2] == LENGTH // RANKS
    for one, other in zip(found, wanted):
        torch.testing.assert_close(one, other, atol=tolerance, rtol=tolerance)


def _refuses(mesh):
    q, k, v, _ = _inputs(kv_heads=4)
    odd = torch.zeros(LENGTH + 1)
    with pytest.raises(ValueError, match="25 positions cannot be shared evenly by 3 processes, pad them to"):
        with experimental.context_parallel(mesh, buffers=[odd], buffer_seq_dims=[0]):
            pass
    with pytest.raises(ValueError, match="same number of elements"):
        with experimental.context_parallel(mesh, buffers=[q]):
            pass
    with pytest.raises(ValueError, match="must be a subset"):
        with experimental.context_parallel(mesh, buffers=[q], buffer_seq_dims=[2], no_restore_buffers={k}):
            pass
    with experimental.context_parallel(mesh):
        with pytest.raises(NotImplementedError, match="with dropout"):
            F.scaled_dot_product_attention(q, k, v, dropout_p=0.1)
        with pytest.raises(NotImplementedError, match="with attn_mask"):
            F.scaled_dot_product_attention(q, k, v, attn_mask=torch.ones(LENGTH, LENGTH).bool())
        with pytest.raises(ValueError, match="as many queries as keys"):
            F.scaled_dot_product_attention(q[:, :, :4], k, v, is_causal=True)
    # Outside, it is the usual one.
    assert F.scaled_dot_product_attention(q, k, v, dropout_p=0.1).shape == q.shape


def _rank(rank, store):
    dist.init_process_group(
        "gloo", init_method=f"file://{store}", rank=rank, world_size=RANKS, timeout=timedelta(seconds=60)
    )
    mesh = init_device_mesh("cpu", (RANKS,))
    for method in ("allgather", "alltoall"):
        parallel.set_rotate_method(method)
        for balanced in (True, False):
            parallel._cp_options.enable_load_balance = balanced
            for causal in (True, False):
                _compare(mesh, torch.float32, 1e-5, is_causal=causal)
    parallel._cp_options.enable_load_balance = True
    _compare(mesh, torch.float64, 1e-12, is_causal=True, scale=0.5)
    _compare(mesh, torch.bfloat16, 5e-2, is_causal=True)
    _compare(mesh, torch.float32, 1e-5, is_causal=True, enable_gqa=True)
    _refuses(mesh)
    dist.destroy_process_group()


def test_results_and_gradients(tmp_path):
    mp.spawn(_rank, args=(str(tmp_path / "store"),), nprocs=RANKS)


def test_unknown_method():
    with pytest.raises(NotImplementedError, match="'ring' is none of allgather, alltoall"):
        parallel.set_rotate_method("ring")
