"""All rows of all families, what the operators' records say about them, and why a property does not apply.

Test files of a property ask for `each("property")`; whatever a row does not do is refused here with a reason,
which comes from the row itself or from the operator's record.
"""

import collections
import importlib
import os
from pathlib import Path

import engine
import pytest

import rushlight as rl
from rushlight._operators.entries import _aten_name, _namespace

HERE = Path(__file__).parent
PREFIXES = {"": "", "nn": "nn.functional.", "linalg": "linalg.", "special": "special.", "fft": "fft."}
ALL_RECORDS = rl._C._operator_records()


def public_name(record):
    return PREFIXES.get(record["space"], f"ops.{record['space']}.") + record["name"]


RECORDS = {}  # public name -> the records of its overloads
for _record in ALL_RECORDS:
    if _record["function"] or _record["method"]:
        RECORDS.setdefault(public_name(_record), []).append(_record)
_ALL = {}  # the same with those that Python does not show, and by their names in `torch.ops.aten`
for _record in ALL_RECORDS:
    for _name in {public_name(_record), f"ops.{_namespace(_record)}.{_aten_name(_record)}"}:
        _ALL.setdefault(_name, []).append(_record)


def records_of(row):
    """The records of a row's operator; none for what is composed in Python."""
    name = row.name.removeprefix("Tensor.").replace("_C._nn.", "nn.functional.")
    return _ALL.get(name, [])


def load_rows():
    """Of one family where RUSHLIGHT_TEST_FAMILY names it."""
    wanted = os.environ.get("RUSHLIGHT_TEST_FAMILY", "*")
    names = sorted(path.stem for path in HERE.glob(f"samples_{wanted}.py"))
    rows = []
    for name in names:
        for row in importlib.import_module(name).ROWS:
            row.family = name.removeprefix("samples_")
            rows.append(row)
    counts = collections.Counter()
    for row in rows:
        counts[row.name] += 1
        row.id = row.name if counts[row.name] == 1 else f"{row.name}-{counts[row.name]}"
    return rows


ROWS = load_rows()


def main_dtype(row):
    """The dtype in which a row is run once."""
    return "float64" if "float64" in row.dtypes else row.dtypes[0]


def samples(row, dtype=None):
    dtype = dtype or main_dtype(row)
    return list(row.samples(engine.maker(row, dtype)))


# --- why a property does not apply: the row's own reason, or what the records say ----------------------


def _every(row, fact):
    records = records_of(row)
    return bool(records) and all(record[fact] for record in records)


def _no_method(row):
    if not row.name.isidentifier() or not any(r["method"] for r in records_of(row)):
        return "no method"
    first = [r["schema"].partition("(")[2].startswith("Tensor self") for r in records_of(row)]
    return None if all(first) else "the tensor is not the first argument"


def _no_inplace(row):
    return None if row.name.isidentifier() and _every(row, "inplace") else "no in-place form"


def _no_out(row):
    if not _every(row, "out"):
        return "no out="
    lists = any("-> Tensor[]" in record["schema"] for record in records_of(row))
    return "the result is a list" if lists else None


def _no_gradient(row):
    reasons = [r["refusal"] for r in records_of(row)]
    if reasons and all(reasons):
        return reasons[0]
    dtype = main_dtype(row)
    return None if dtype.startswith(("float", "complex")) else "integer operands"


def _needs_values(row):
    reasons = [r["meta_refusal"] for r in records_of(row) if r["meta_refusal"]]
    return reasons[0] if reasons and len(reasons) == len(records_of(row)) else None


def may_need_values(row):
    """Whether some overload's result can't be described without values; a composition may look at any."""
    records = records_of(row)
    return not records or any(r["meta_refusal"] or r["family"] == "composite" for r in records)


_DERIVED = {
    "method": _no_method,
    "inplace": _no_inplace,
    "out": _no_out,
    "gradcheck": _no_gradient,
    "gradgradcheck": _no_gradient,
    "gradients": _no_gradient,
    "forward": _no_gradient,
    "reference": lambda row: None if row.reference is not None else "no NumPy function",
}
# What stands in for another: a row without a derivative has no second one.
_IMPLIED = {"gradgradcheck": ("gradcheck",), "forward": ("gradcheck",), "trace": (), "meta": ()}


def _not_on_a_device(row, rule):
    """Where the operands lie on a device, with the oracle on the CPU."""
    if row.family == "sparse":
        return "sparse tensors live on the CPU"
    if rule == "values" and any(record["traits"].random for record in records_of(row)):
        return "a device draws its own numbers"
    return row.refused.get("device") or (rule == "values" and row.refused.get("device_values")) or None


def refusal(row, rule):
    """Why a property does not apply to a row, or None."""
    if engine.DEVICE and (reason := _not_on_a_device(row, rule)):
        return reason
    for name in (rule, *_IMPLIED.get(rule, ())):
        if name in row.refused:
            return row.refused[name]
    derived = _DERIVED.get(rule)
    return derived(row) if derived else None


def each(rule=None):
    """Parametrizes a test by the rows to which a property applies; by all of them without one."""
    return pytest.mark.parametrize(
        "row", [row for row in ROWS if refusal(row, rule) is None], ids=lambda row: row.id
    )
