"""What several tests of this folder start from."""

import shutil
import sys
from pathlib import Path

import pytest
from dev_project import Project


@pytest.fixture
def project(tmp_path):
    """A small project that `./dev` builds, in a folder whose name is not plain."""
    pytest.importorskip("cmake")
    if not shutil.which("c++") or not (Path(sys.prefix) / "bin" / "ninja").exists():
        pytest.skip("needs a C++ compiler and an environment with ninja")
    return Project(tmp_path / "wide 木 folder")
