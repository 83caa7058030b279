"""PyTorch as the tests of quantization compare with it."""

import pytest

import rushlight


@pytest.fixture
def torch():
    """PyTorch with the engine whose numbers are ours."""
    found = pytest.importorskip("torch", reason="PyTorch is the oracle")
    if found is rushlight:
        pytest.skip("`import torch` is this library")
    before, found.backends.quantized.engine = found.backends.quantized.engine, "x86"
    yield found
    found.backends.quantized.engine = before
