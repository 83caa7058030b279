"""What the tests of all folders ask for by name."""

import pytest


@pytest.fixture
def torch():
    """PyTorch, the oracle; tests that compare with it are skipped where it is not."""
    return pytest.importorskip("torch")
