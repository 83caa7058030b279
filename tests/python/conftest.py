"""What the tests of all folders ask for by name."""

import os

import pytest

from rushlight._command import alias

# Tests try graphs themselves: what an earlier run found, or a user's own programs, must not decide for them.
os.environ["TORCHINDUCTOR_FORCE_DISABLE_CACHES"] = "1"


assert alias.is_installed() or "RUSHLIGHT_ALIAS_PASS" not in os.environ, "tests/alias is not on the path"
if alias.is_installed():  # the second pass of `./dev test`: PyTorch is not there to compare with
    _import_or_skip = pytest.importorskip

    def importorskip(name, *args, **kwargs):
        if name.partition(".")[0] == alias.ALIAS:
            pytest.skip("`torch` is Rushlight in this run", allow_module_level=True)
        return _import_or_skip(name, *args, **kwargs)

    pytest.importorskip = importorskip


@pytest.fixture
def torch():
    """PyTorch, the oracle; tests that compare with it are skipped where it is not."""
    return pytest.importorskip("torch")
