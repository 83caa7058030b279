"""What is published: equal lists stay equal, wheels hold what they should, workflows run our commands."""

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]


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


def check_wheel():
    spec = importlib.util.spec_from_file_location("check_wheel", ROOT / "tools" / "check_wheel.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def a_wheels_files():
    licences = ["tbb", "onednn-cpu-tbb", "intel-cmplr-lib-rt", "mkl-static", "libgloo0"]
    return [
        *check_wheel().NEEDED,
        "rushlight/_C.cpython-311-x86_64-linux-gnu.so",
        *(f"rushlight/lib/{name}" for name in ("libtbb.so.12", "libdnnl.so.3", "libimf.so", "libintlc.so.5")),
        "rushlight.libs/libgloo-12ab34cd.so.0.5.0",
        *(f"rushlight/lib/licenses/{name}.txt" for name in licences),
        "rushlight-0.1.0.dist-info/licenses/LICENSE",
    ]


def test_a_whole_wheel_passes():
    assert check_wheel().contents(a_wheels_files()) == []


@pytest.mark.parametrize(
    ("without", "added", "complaint"),
    [
        ("rushlight/py.typed", None, "rushlight/py.typed is missing"),
        ("rushlight/_C.cpython-311-x86_64-linux-gnu.so", None, "the extension module is missing"),
        ("rushlight/lib/licenses/tbb.txt", None, "libtbb.so.12 comes without the licence of tbb"),
        ("rushlight/lib/licenses/libgloo0.txt", None, "without the licence of libgloo"),
        (None, "rushlight.libs/libstrange-1.so.2", "nobody says under which licence"),
        (None, "tests/test_x.py", "tests would be installed beside the package"),
    ],
)
def test_what_a_wheel_lacks_is_named(without, added, complaint):
    files = [name for name in a_wheels_files() if name != without] + ([added] if added else [])
    (wrong,) = check_wheel().contents(files)
    assert complaint in wrong


def test_a_wheel():
    """RUSHLIGHT_TEST_WHEEL names one, for this interpreter: it is installed alone and trains."""
    wheel = os.environ.get("RUSHLIGHT_TEST_WHEEL")
    if not wheel:
        pytest.skip("RUSHLIGHT_TEST_WHEEL names no wheel")
    subprocess.run([sys.executable, ROOT / "tools" / "check_wheel.py", wheel], check=True, timeout=280)


def test_workflows_run_commands_that_exist():
    commands = set(re.findall(r"^def command_(\w+)", (ROOT / "dev").read_text(), re.M))
    used = set()
    for workflow in (ROOT / ".github" / "workflows").glob("*.yml"):
        used |= set(re.findall(r"\./dev (\w+)", workflow.read_text()))
    assert {"lint", "test", "demo", "wheel"} <= used <= commands
    for page in ("README.md", "CONTRIBUTING.md", "docs/releasing.md"):
        assert set(re.findall(r"\./dev (\w+)", (ROOT / page).read_text())) <= commands, page


def test_the_changelog_knows_the_version():
    version = re.search(r'^version = "(.*)"$', (ROOT / "pyproject.toml").read_text(), re.M)[1]
    text = (ROOT / "CHANGELOG.md").read_text()
    assert re.fullmatch(r"\d+\.\d+\.\d+", version) and version in text and "## [Unreleased]" in text
