"""What the tests of all folders ask for by name."""

import os

import pytest

# Tests try graphs themselves: what an earlier run found, or a user's own programs, must not decide for them.
os.environ["TORCHINDUCTOR_FORCE_DISABLE_CACHES"] = "1"


@pytest.fixture
def torch():
    """PyTorch, the oracle; tests that compare with it are skipped where it is not."""
    return pytest.importorskip("torch")
