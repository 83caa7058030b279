"""What pyproject.toml must keep equal in two places."""

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def test_developers_build_with_the_wheels_packages():
    if sys.version_info < (3, 11):
        pytest.skip("tomllib came with Python 3.11")
    import tomllib

    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    added = {"cmake>=3.25", "ninja"}  # scikit-build-core asks for these itself
    assert set(project["dependency-groups"]["build"]) - added == set(project["build-system"]["requires"])
    assert project["dependency-groups"]["demo"] == project["project"]["optional-dependencies"]["demo"]
    # Else a package that asks for another PyTorch would replace the oracle.
    assert set(project["dependency-groups"]["oracle"]) <= set(project["dependency-groups"]["packages"])
