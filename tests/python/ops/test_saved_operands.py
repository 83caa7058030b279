"""What a backward pass does not need is not saved: operands and results may be written to after the call
wherever PyTorch allows it."""

import warnings

import engine
import pytest
from loader import each, main_dtype, samples

import rushlight

oracle = pytest.importorskip("torch", reason="PyTorch says which operands may be written to")

CHANGED = "modified by an inplace operation"
COPIES = "PyTorch computes with a copy"
FUSED = "one operator here; PyTorch composes it, and saves what it computes on the way"
KEPT = {
    **dict.fromkeys(("einsum", "kron", "ldexp", "linalg.matmul", "norm_except_dim"), COPIES),
    **dict.fromkeys(("gru", "gru_cell", "lstm", "lstm_cell", "nn.functional.rms_norm"), FUSED),
    "nn.functional.scaled_dot_product_attention": FUSED,
    "polar": "the reverse: composed here",
    "nn.functional.hardtanh_": "the result tells where the slope is, and PyTorch keeps a copy",
}


def _raises(module, row, sample, dtype, trained, written):
    """Whether the backward pass for one operand misses another one, or a result, that was written to; None
    where that cannot be tried."""
    try:
        leaves, call = engine.variables(module, row, sample, dtype)
    except AttributeError:  # PyTorch has no such operator
        return None
    if trained >= len(leaves):
        return None
    for i, leaf in enumerate(leaves):
        leaf.requires_grad_(i == trained)
    operands = [leaf * 1 if i == trained else leaf for i, leaf in enumerate(leaves)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            results = engine.tensors_in(call(operands))
        except (RuntimeError, NotImplementedError, ValueError, TypeError, IndexError):
            return None
    roots = [t for t in results if t.requires_grad]
    places = [*operands, *results]
    if not roots or written >= len(places):
        return None
    cotangents = [module.ones_like(t) for t in roots]
    try:
        with module.no_grad():
            places[written].zero_()
    except (RuntimeError, NotImplementedError):
        return None
    try:
        module.autograd.grad(roots, leaves[trained], cotangents, allow_unused=True)
    except (RuntimeError, NotImplementedError) as error:
        return True if CHANGED in str(error) else None
    return False


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("shape", [(5, 4), (2, 5, 4)])
def test_frozen_layers_keep_no_activation(shape, bias):
    """As in a model of which adapters alone are trained."""
    layer, kept = rushlight.nn.Linear(4, 3, bias=bias).requires_grad_(False), []
    x = rushlight.randn(shape, requires_grad=True) * 1
    with rushlight.autograd.graph.saved_tensors_hooks(lambda t: kept.append(t.data_ptr()) or t, lambda t: t):
        y = layer(x)
    assert y.requires_grad and x.data_ptr() not in kept
    layer.weight.requires_grad_(True)
    with rushlight.autograd.graph.saved_tensors_hooks(lambda t: kept.append(t.data_ptr()) or t, lambda t: t):
        layer(x)
    assert x.data_ptr() in kept


@each("gradients")
def test_nothing_is_saved_in_vain(row):
    dtype, compared = main_dtype(row), 0
    if row.name in KEPT:
        pytest.skip(KEPT[row.name])
    for sample in samples(row, dtype)[:3]:
        for trained in range(4):
            for written in range(8):
                theirs = _raises(oracle, row, sample, dtype, trained, written)
                if theirs is None:
                    continue
                ours = _raises(rushlight, row, sample, dtype, trained, written)
                compared += 1
                what = f"gradient of operand {trained}, written to place {written}"
                assert theirs or not ours, f"{what}: PyTorch does not miss it"
    if not compared:
        pytest.skip("nothing can be written to")
