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
    return tool("check_wheel")


def tool(name):
    spec = importlib.util.spec_from_file_location(name, ROOT / "tools" / f"{name}.py")
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


def test_auditwheel_looks_for_nothing_that_the_wheel_holds():
    there = ["libdnnl.so.3", "libimf.so", "libintlc.so.5", "librushlight.so", "libtbb.so.12"]
    assert tool("wheels").bundled(a_wheels_files()) == there


def test_a_wheel():
    """RUSHLIGHT_TEST_WHEEL names one, for this interpreter: it is installed alone and trains."""
    wheel = os.environ.get("RUSHLIGHT_TEST_WHEEL")
    if not wheel:
        pytest.skip("RUSHLIGHT_TEST_WHEEL names no wheel")
    subprocess.run([sys.executable, ROOT / "tools" / "check_wheel.py", wheel], check=True, timeout=280)


def steps_of(workflow):
    """The shell programs of a workflow's steps: what follows `run:`, on its line or indented below it."""
    lines = workflow.read_text().splitlines()
    steps = []
    for number, line in enumerate(lines):
        found = re.match(r"( *)-? *run: *(.*)", line)
        if not found:
            continue
        indent, text = len(found[1]), found[2]
        if text == "|":
            below = lines[number + 1 :]
            end = next(
                (i for i, l in enumerate(below) if l.strip() and len(l) - len(l.lstrip()) <= indent), None
            )
            text = "\n".join(below[:end])
        steps.append(text)
    return steps


WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.name)
def test_workflows_are_read_as_they_are_meant(workflow):
    yaml = pytest.importorskip("yaml", reason="comes with MkDocs")
    content = yaml.safe_load(workflow.read_text())
    read = []
    for job in content["jobs"].values():
        assert job["runs-on"] and job["timeout-minutes"] <= 120
        for step in job["steps"]:
            assert len({"run", "uses"} & step.keys()) == 1, step
            read += [step["run"]] if "run" in step else []
            assert re.fullmatch(r"actions/[\w-]+@v\d+", step.get("uses", "actions/x@v1"))
    squeezed = [" ".join(step.split()) for step in steps_of(workflow)]
    # A comment behind a command belongs to YAML, not to the shell.
    assert [" ".join(step.split()) for step in read] == [
        step.split("  #")[0].split(" # ")[0] for step in squeezed
    ]


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.name)
def test_steps_of_workflows_are_programs_that_this_tree_can_run(workflow):
    steps = steps_of(workflow)
    assert steps
    for step in steps:
        step = re.sub(r"\$\{\{.*?\}\}", "x", step)
        assert subprocess.run(["bash", "-n", "-c", step], capture_output=True, text=True).stderr == "", step
        for command in re.findall(r"\./dev (.*)", step.replace("\\\n", " ")):
            name, *arguments = command.split()
            ran = subprocess.run([sys.executable, ROOT / "dev", "help"], capture_output=True, text=True)
            assert re.search(rf"^\./dev {name}\b", ran.stdout, re.M), command
            assert name == "wheel" or not arguments, command


def test_workflows_and_the_project_name_the_same_interpreters():
    text = (ROOT / ".github/workflows/wheels.yml").read_text()
    built = {f"3.{minor}" for minor in re.findall(r"/opt/python/cp3(\d+)-cp3\d+/bin/python\b", text)}
    tested = set(re.findall(r'"(3\.\d+)"', (ROOT / ".github/workflows/ci.yml").read_text()))
    assert tested <= built and min(built, key=lambda v: int(v[2:])) == "3.10"
    assert 'requires-python = ">=3.10"' in (ROOT / "pyproject.toml").read_text()


def test_hosted_ci_runs_what_every_machine_runs():
    """Beside tools to compile with there is one step, which `.ci/run` is."""
    steps = steps_of(ROOT / ".github/workflows/ci.yml")
    assert [step for step in steps if "apt-get" not in step] == [".ci/run"]
    assert os.access(ROOT / ".ci/run", os.X_OK)


def test_workflows_run_commands_that_exist():
    source = (ROOT / "tools/dev/commands.py").read_text()
    commands = set(re.findall(r"^@command\(\s*\"(\w+)", source, re.M))
    used = set()
    for program in (*WORKFLOWS, ROOT / ".ci/run", ROOT / ".pre-commit-config.yaml"):
        used |= set(re.findall(r"\./dev (\w+)", program.read_text()))
    assert {"lint", "test", "small", "portable", "wheel"} <= used <= commands
    for page in ("README.md", "CONTRIBUTING.md", "docs/releasing.md"):
        assert set(re.findall(r"\./dev (\w+)", (ROOT / page).read_text())) <= commands, page


def test_the_changelog_knows_the_version():
    version = re.search(r'^version = "(.*)"$', (ROOT / "pyproject.toml").read_text(), re.M)[1]
    text = (ROOT / "CHANGELOG.md").read_text()
    assert re.fullmatch(r"\d+\.\d+\.\d+", version) and version in text and "## [Unreleased]" in text
