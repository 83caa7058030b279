"""The printed stubs serve a type checker, and `inspect` and `help` know every operator."""

import importlib.util
import inspect
import os
import pydoc
import re
import subprocess
import sys
from pathlib import Path

import pytest

import rushlight
from rushlight import _C
from rushlight._operators import signatures

ROOT = Path(__file__).resolve().parents[3]
WRONG = Path(__file__).with_name("wrong_types.py")
PROGRAM = Path(__file__).with_name("typed") / "program.py"
SPACES = ("_VariableFunctions", "_nn", "_linalg", "_special", "_fft")
OPERATORS = [
    pytest.param(f, id=f"{space}.{name}")
    for space, owner in [*((s, getattr(_C, s)) for s in SPACES), ("Tensor", _C.TensorBase)]
    for name, f in vars(owner).items()
    if hasattr(f, "_overloads")
]


def run(*command):
    variables = {**os.environ, "PYTHONPATH": str(ROOT), "MYPYPATH": str(ROOT)}
    return subprocess.run(command, env=variables, capture_output=True, text=True, timeout=280)


def test_a_typed_program_passes_mypy(tmp_path):
    if importlib.util.find_spec("mypy") is None:
        pytest.skip("mypy is not installed")
    (tmp_path / "mypy.ini").write_text("[mypy]\nwarn_unused_ignores = True\nfollow_imports = silent\n")
    options = ["--config-file", str(tmp_path / "mypy.ini"), "--cache-dir", str(tmp_path / "cache")]
    checked = run(sys.executable, "-m", "mypy", *options, str(PROGRAM))
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_mypy_flags_wrong_arguments(tmp_path):
    if importlib.util.find_spec("mypy") is None:
        pytest.skip("mypy is not installed")
    (tmp_path / "mypy.ini").write_text("[mypy]\nfollow_imports = silent\n")
    options = ["--config-file", str(tmp_path / "mypy.ini"), "--cache-dir", str(tmp_path / "cache")]
    checked = run(sys.executable, "-m", "mypy", *options, str(WRONG))
    lines = WRONG.read_text().splitlines()
    wrong = {i for i, line in enumerate(lines, 1) if line.endswith("# wrong")}
    found = {int(n) for n in re.findall(r"wrong_types\.py:(\d+): error", checked.stdout)}
    assert found == wrong, checked.stdout + checked.stderr


def test_the_typed_program_runs():
    ran = run(sys.executable, str(PROGRAM))
    assert ran.returncode == 0, ran.stderr


def test_stubs_know_every_public_name():
    text = (ROOT / "rushlight/__init__.pyi").read_text()
    stubbed = {line.rsplit(" as ", 1)[1] for line in text.splitlines() if " as " in line}
    public = {name for name in dir(rushlight) if not name.startswith("_")} - {"demo"}  # a program
    assert public - stubbed <= {"newaxis", "legacy_contiguous_format"}


@pytest.mark.parametrize("function", OPERATORS)
def test_each_operator_has_a_signature_and_a_text(function):
    signature = inspect.signature(function)
    assert function._overloads and signature.parameters
    text = function.__doc__
    assert text.startswith(f"{function.__name__}(")
    assert len(re.findall(r"^  \d+\. ", text, re.M)) == len(function._overloads)
    told = text[: text.index("Schemas:")]
    assert all(f"    {name} (" in told or f"    *{name} (" in told for name in shown_arguments(function))


def shown_arguments(function):
    """The arguments of all forms that programs are shown, but those that begin with an underscore."""
    bound = inspect.ismethoddescriptor(function)
    names = [list(s.parameters)[bound:] for s in signatures.overload_signatures(function)]
    return {name for row in names for name in row if not name.startswith("_")}


def test_signatures():
    assert str(inspect.signature(rushlight.add)) == (
        "(input: Tensor | Number, other: Tensor | Number, *, alpha: Number = 1, "
        "out: rushlight.Tensor | None = "
        "None) -> rushlight.Tensor"
    )
    gelu = inspect.signature(rushlight.nn.functional.gelu)
    assert gelu.parameters["input"].annotation is gelu.return_annotation is rushlight.Tensor
    assert gelu.parameters["approximate"].annotation is str
    assert inspect.signature(rushlight.bincount).parameters["weights"].annotation == rushlight.Tensor | None
    assert list(inspect.signature(rushlight.Tensor.add).parameters) == ["self", "other", "alpha"]
    assert list(inspect.signature(rushlight.ones(1).add).parameters) == ["other", "alpha"]
    merged = inspect.signature(rushlight.sum)
    merged.bind(1)
    merged.bind(1, dim=0, keepdim=True)
    merged.bind(1, 0, True, dtype=None)
    assert inspect.signature(rushlight.nn.functional.conv2d).parameters["stride"].default == 1


def test_signatures_admit_what_overloads_admit():
    for parameter in OPERATORS:
        (function,) = parameter.values
        merged = inspect.signature(function)
        for overload in function._overloads:
            if "_first(" in overload["schema"]:  # forms of older programs are shown to nobody
                continue
            positional = [p for p in overload["parameters"] if not p["keyword_only"] and "default" not in p]
            named = {p["name"] for p in overload["parameters"] if p["keyword_only"]}
            bound = merged.bind(*positional, **dict.fromkeys(named))
            assert named <= bound.arguments.keys() | bound.kwargs.keys()


def test_help_and_kind():
    assert inspect.isbuiltin(rushlight.add) and inspect.ismethoddescriptor(rushlight.Tensor.add)
    text = pydoc.plain(pydoc.render_doc(rushlight.topk))
    assert "topk(input: rushlight.Tensor, k: int, dim: int = -1" in text and "return_types.topk" in text
    assert "Integers and bool are computed in the default floating dtype." in rushlight.exp.__doc__
    assert rushlight.topk._overloads[0]["doc"] in text
    assert "  1. sum(Tensor self, *, ScalarType? dtype=None) -> Tensor" in rushlight.sum.__doc__


def test_signatures_cost_nothing_at_import():
    ran = run(sys.executable, "-c", "import sys, rushlight; print('inspect' in sys.modules)")
    assert ran.stdout.strip() == "False", ran.stderr


def test_shapes_are_checked_at_run_time_by_jaxtyping():
    pytest.importorskip("jaxtyping")
    pytest.importorskip("beartype")
    blocks = re.findall(r"^```python\n(.*?)^```$", (ROOT / "docs/types.md").read_text(), re.M | re.S)
    program: dict = {"__name__": "shapes"}
    exec(blocks[0], program)
    assert program["y"].shape == (4, 2)
    definitions, _, mistake = blocks[1].rstrip().rpartition("\n")
    exec(definitions, program)
    right = program["project"](rushlight.ones(2, 3), rushlight.ones(3, 5))
    assert right.shape == (2, 5)
    with pytest.raises(Exception, match="parameter 'w'"):
        exec(mistake, program)
    with pytest.raises(Exception, match="parameter 'x'"):
        program["project"](rushlight.ones(2, 3, dtype=rushlight.int64), rushlight.ones(3, 5))
