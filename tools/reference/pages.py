"""docs/operators/<family>.md: every operator with the calls it takes, its documentation and its gradient."""

import rushlight
from rushlight import _C, _signatures

from .overview import rule

TITLES = {
    "pointwise": "Pointwise operators",
    "reduction": "Reductions and scans",
    "view": "Views",
    "index": "Indexing, scattering, sorting",
    "matmul": "Matrix products",
    "factory": "Making tensors",
    "random": "Random numbers",
    "composite": "Compositions",
    "kernel": "Other kernels",
    "nn": "torch.nn.functional",
    "linalg": "torch.linalg",
    "special": "torch.special",
    "fft": "torch.fft",
}
HEAD = """# {title}

Printed from the operator table by `python tools/print_operators.py`; do not edit. All operators in one table:
[operators.md](../operators.md).
"""
PUBLIC = {"": "torch.", "nn": "torch.nn.functional."}


def pages(records):
    families = {}
    for record in records:
        families.setdefault(record["space"] or record["family"], []).append(record)
    files = {"index": "indexing"}  # "index" is what servers call the page of a folder
    return {f"docs/operators/{files.get(f, f)}.md": page(f, found) for f, found in families.items()}


def page(family, records):
    lines = [HEAD.format(title=TITLES.get(family, family))]
    operators = {}
    for record in records:
        operators.setdefault(record["name"], []).append(record)
    public = {name: found for name, found in operators.items() if any(is_public(r) for r in found)}
    for name in sorted(public):
        lines += entry(name, public[name])
    internal = [r for found in operators.values() for r in found if not is_public(r)]
    if internal:
        lines += ["## For C++ only", "", "| schema | what it does | gradient |", "|---|---|---|"]
        lines += [f"| `{schema(r)}` | {cell(r['doc'])} | {cell(rule(r))} |" for r in sorted_records(internal)]
        lines.append("")
    return "\n".join(lines)


def is_public(record):
    return record["function"] or record["method"]


def sorted_records(records):
    return sorted(records, key=lambda r: (r["name"], r["overload"]))


def schema(record):
    return cell(record["schema"])


def cell(text):
    return text.replace("|", "\\|")


def entry(name, records):
    """One operator: its calls, what it does, and its rule once or by overload."""
    lines = [f"## {name}", "", "```python", *calls(name, records), "```", ""]
    lines += dict.fromkeys(r["doc"] for r in records if r["doc"])
    lines += ["", *(f"- {note}" for note in _signatures.notes(records))]
    rules = {r["overload"]: rule(r) for r in records}
    if len(set(rules.values())) == 1:
        lines.append(f"- gradient: {rule(records[0])}")
    else:
        lines += [f"- gradient of `{name}.{overload}`: {text}" for overload, text in rules.items()]
    return [*lines, ""]


def calls(name, records):
    """The calls of the function, the method and their in-place forms, without annotations."""
    space = records[0]["space"]
    prefix = PUBLIC.get(space, f"torch.{space}.")
    schemas = {r["schema"] for r in records}
    found = []
    functions = vars(getattr(_C, f"_{space}" if space else "_VariableFunctions"))
    for public, owner in ((prefix, functions), ("Tensor.", {} if space else vars(rushlight._C.TensorBase))):
        for form in (name, name + "_"):
            function = owner.get(form)
            if hasattr(function, "_overloads"):
                found += [public + form + text for text in _signatures.forms(function, schemas)]
    return found
