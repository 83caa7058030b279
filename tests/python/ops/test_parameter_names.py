"""Schemas name parameters as PyTorch's do: programs, graphs and archives give arguments by these names."""

import pytest

import rushlight
from rushlight._command.names import is_aliased
from rushlight._ops import OpOverloadPacket

# Parameters that PyTorch's operator of the same name lacks.
MORE = {"generator", "inplace", "return_indices", "by_rows", "by_product", "center", "pad_mode"}
# Derivatives that are computed from other values than PyTorch's of the same name.
OTHERS = {
    "elu_backward",
    "nll_loss_backward",
    "_thnn_fused_gru_cell_backward",
    "_thnn_fused_lstm_cell_backward",
}


def overloads():
    """Those of both libraries, but for out=, of which several results are one list here."""
    torch = pytest.importorskip("torch")
    spaces = {"": "", "nn": "", "linalg": "linalg_", "fft": "fft_", "special": "special_"}
    records = (r for r in rushlight._C._operator_records() if r["space"] in spaces)
    for name in dict.fromkeys(spaces[r["space"]] + r["name"] for r in records):
        ours, theirs = (getattr(library.ops.aten, name, None) for library in (rushlight, torch))
        if theirs is None or not isinstance(ours, OpOverloadPacket) or name in OTHERS:
            continue
        for overload in set(ours.overloads()) & set(theirs.overloads()):
            if not overload.endswith("out"):
                yield f"{name}.{overload}", getattr(ours, overload), getattr(theirs, overload)


@pytest.mark.skipif(is_aliased(), reason="compares with PyTorch")
def test_parameters_are_named_as_pytorchs():
    different, count = [], 0
    for name, ours, theirs in overloads():
        known = [a.name for a in theirs._schema.arguments]
        names = [a.name for a in ours._schema.arguments]
        names = [n for n in names if n in known or n not in MORE]
        different += [(name, names, known)] if names != [n for n in known if n in names] else []
        count += 1
    assert different == [] and count > 1000


def test_arguments_are_taken_by_pytorchs_names():
    x = rushlight.rand(1, 4, 4)
    mean = rushlight.ops.aten.avg_pool2d(self=x, kernel_size=[2, 2])
    for name in ("input", "x"):
        assert rushlight.equal(rushlight._C._nn.avg_pool2d(kernel_size=2, **{name: x}), mean)
    square = rushlight.eye(3) * 4
    for name in ("input", "A"):
        assert rushlight.linalg.cholesky(**{name: square}).diagonal().tolist() == [2, 2, 2]
    for name in ("b", "B"):
        solution = rushlight.linalg.lstsq(square, **{name: rushlight.ones(3, 1)}).solution
        assert solution.flatten().tolist() == [0.25] * 3
