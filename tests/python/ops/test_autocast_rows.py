"""Over every operator row: results under autocasting have the dtypes that they have in PyTorch."""

import pytest
from engine import arguments, flatten, oracle, resolve
from loader import each, samples

import rushlight

DIFFERENT = {"_transformer_encoder_layer_fwd": "layers do not call it under autocasting"}
# With operands in half precision alone.
DIFFERENT_HALVES = {
    "histogram": "PyTorch refuses halves, unless the edges are given",
    "nn.functional.local_response_norm": "pools in two dimensions, in the operand's type",
}


def dtypes(module, row, sample, operands, dtype):
    """Of the results, or why there are none."""
    try:
        function = resolve(module, row.name)
        args, kwargs = arguments(module, sample, operands)
        with module.autocast("cpu", dtype=getattr(module, dtype)):
            found = function(*args, **kwargs)
    except Exception as error:  # noqa: BLE001 - any refusal of PyTorch's ends the comparison
        return error
    return [str(x.dtype) if isinstance(x, module.Tensor) else type(x).__name__ for x in flatten(found)]


@each("vmap")
def test_results_are_cast_as_in_pytorch(row):
    torch, compared = oracle(), 0
    if torch is None:
        pytest.skip("needs PyTorch to compare with")
    if row.name in DIFFERENT:
        pytest.skip(DIFFERENT[row.name])
    for operands, dtype in (("float32", "bfloat16"), ("float32", "float16"), ("bfloat16", "bfloat16")):
        if operands == "bfloat16" and row.name in DIFFERENT_HALVES:
            continue
        for sample in samples(row)[:3]:
            expected = dtypes(torch, row, sample, operands, dtype)
            if isinstance(expected, Exception):
                continue
            assert dtypes(rushlight, row, sample, operands, dtype) == expected
            compared += 1
    if not compared:
        pytest.skip("PyTorch refuses the samples")
