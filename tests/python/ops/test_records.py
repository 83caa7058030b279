"""Every record of the operator table is complete, and what is printed from it is up to date."""

import collections
import importlib.util
from pathlib import Path

import pytest

import rushlight

ROOT = Path(__file__).resolve().parents[3]
RECORDS = rushlight._C._operator_records()


def test_each_record_has_a_rule_or_a_reason():
    without = [
        r["schema"]
        for r in RECORDS
        if r["family"] != "composite" and not r["differentiable"] and not r["refusal"]
    ]
    assert not without


def test_coverage_matrix(capsys):
    """Operators by family and by where their gradient comes from; printed with ``pytest -s``."""
    matrix = collections.Counter()
    for r in RECORDS:
        source = "refused" if r["refusal"] else "composite" if r["family"] == "composite" else "derivative"
        matrix[r["family"], source] += 1
    with capsys.disabled():
        print()
        for (family, source), count in sorted(matrix.items()):
            print(f"  {family:10} {source:10} {count:4}")
    # A composition has no derivative of its own.
    assert not [r["schema"] for r in RECORDS if r["family"] == "composite" and r["differentiable"]]
    assert len(RECORDS) > 1000 and {source for _, source in matrix} == {"composite", "derivative", "refused"}


@pytest.mark.parametrize(
    "record", [r for r in RECORDS if r["function"] or r["method"]], ids=lambda r: r["schema"].split("(")[0]
)
def test_python_finds_each_public_operator(record):
    spaces = {
        "": rushlight,
        "nn": rushlight._C._nn,
        "linalg": rushlight._C._linalg,
        "special": rushlight._C._special,
        "fft": rushlight._C._fft,
    }
    if record["name"] == "unique_dim":  # public as `unique`
        spaces[""] = rushlight._C._VariableFunctions
    if record["function"]:
        assert callable(getattr(spaces[record["space"]], record["name"]))
    if record["method"]:
        assert hasattr(rushlight.Tensor, record["name"])
        if record["inplace"]:
            assert hasattr(rushlight.Tensor, record["name"] + "_")


def test_each_record_is_documented():
    without = [r["schema"] for r in RECORDS if not r["doc"].strip()]
    assert not without, "give these records a .doc(...)"


def printer():
    spec = importlib.util.spec_from_file_location("print_operators", ROOT / "tools" / "print_operators.py")
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    return tool


def test_printed_files_are_up_to_date():
    tool = printer()
    assert tool.outdated(tool.printed()) == ([], []), "run `python tools/print_operators.py`"
