"""`TransformerEncoder` answers zeros at padded positions where PyTorch's does, and says why it does not."""

import pytest

import rushlight as torch
from rushlight import nn
from rushlight._command.names import is_aliased

PADDED = [[0, 0, 0, 1], [0, 1, 1, 1], [1, 1, 1, 1]]
CALLS = {
    "evaluation": {},
    "training": {"training": True},
    "gradients": {"grad": True},
    "mask": {"mask": True},
    "gaps": {"flip": True},
    "switched off": {"fastpath": False},
    "not asked for": {"enable_nested_tensor": False},
    "norm_first": {"norm_first": True},
    "no batch_first": {"batch_first": False},
    "no bias": {"bias": False},
    "odd heads": {"nhead": 3, "d_model": 9},
    "another activation": {"activation": "silu"},
    "gelu and a norm": {"activation": "gelu", "norm": True},
}


def run(t, case):
    """The output, with the parameters filled by a rule, and what was warned about."""
    import warnings

    layer = {"nhead": 2, "d_model": 8, "dim_feedforward": 12, "dropout": 0.0, "batch_first": True}
    layer |= {k: case[k] for k in ("nhead", "d_model", "batch_first", "norm_first", "bias") if k in case}
    if "activation" in case:
        activation = case["activation"]
        layer["activation"] = activation if activation == "gelu" else getattr(t.nn.functional, activation)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        encoder = t.nn.TransformerEncoder(
            t.nn.TransformerEncoderLayer(**layer),
            2,
            t.nn.LayerNorm(layer["d_model"]) if case.get("norm") else None,
            enable_nested_tensor=case.get("enable_nested_tensor", True),
        ).train(case.get("training", False))
    with t.no_grad():
        for i, p in enumerate(encoder.parameters()):
            p.copy_(t.sin(t.arange(p.numel()) * 0.7 + i).view_as(p) * 0.3)
    padded = t.tensor(PADDED, dtype=t.bool)
    if case.get("flip"):
        padded = padded.flip(1)
    padded = padded[:2]
    source = t.cos(t.arange(2 * 4 * layer["d_model"]).float()).view(2, 4, -1)
    mask = t.zeros(4, 4, dtype=t.bool) if case.get("mask") else None
    if not layer["batch_first"]:
        source = source.transpose(0, 1)
    t.backends.mha.set_fastpath_enabled(case.get("fastpath", True))
    try:
        with t.set_grad_enabled(case.get("grad", False)):
            output = encoder(source, mask=mask, src_key_padding_mask=padded)
    finally:
        t.backends.mha.set_fastpath_enabled(True)
    return output.detach(), [str(w.message) for w in told if "nested" in str(w.message)]


@pytest.mark.parametrize("case", CALLS)
def test_padded_positions_are_as_pytorchs(case):
    pytorch = pytest.importorskip("torch")
    if is_aliased():
        pytest.skip("PyTorch is not there beside the alias")
    ours, told = run(torch, CALLS[case])
    theirs, told_there = run(pytorch, CALLS[case])
    assert told == told_there
    assert torch.allclose(ours, torch.from_numpy(theirs.numpy()), atol=1e-5)


def test_padding_becomes_zero_only_in_evaluation():
    output, told = run(torch, CALLS["evaluation"])
    assert told == [] and not output[0, 3].any() and not output[1, 1:].any() and output[1, 0].all()
    assert run(torch, CALLS["training"])[0].all()


def test_a_row_of_padding_alone_is_zero():
    encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 12, batch_first=True), 1).eval()
    with torch.no_grad():
        output = encoder(torch.ones(3, 4, 8), src_key_padding_mask=torch.tensor(PADDED, dtype=torch.bool))
    assert not output[2].any() and output.isfinite().all()


def test_the_warning_names_the_programs_line():
    with pytest.warns(UserWarning, match="enable_nested_tensor is True, but") as told:
        nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 12), 1)
    assert told[0].filename == __file__
