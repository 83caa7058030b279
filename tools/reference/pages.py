"""The site's pages about operators: tables, and each family's operators with calls, notes and an example."""

import functools
import re
from pathlib import Path
from types import MethodDescriptorType

import rushlight
from rushlight import _C
from rushlight._operators import docs, signatures

from . import coverage, devices, examples, names, overview
from .overview import rule

ACCURACY = Path(__file__).resolve().parents[2] / "docs/accuracy.md"

TITLES = {
    "pointwise": "Pointwise operators",
    "reduction": "Reductions",
    "scan": "Running sums and sorting",
    "view": "Views",
    "copy": "Copies and conversions",
    "join": "Joining tensors",
    "index": "Indexing and scattering",
    "matmul": "Matrix products",
    "factory": "Making tensors",
    "random": "Random numbers",
    "composite": "Compositions",
    "window": "Convolution, pooling, padding",
    "normalization": "Normalization and softmax",
    "loss": "Losses",
    "embedding": "Embeddings",
    "attention": "Attention",
    "recurrent": "Recurrent layers",
    "linear algebra": "Factorizations and solvers",
    "transform": "Fourier transforms",
    "gradient": "Gradients",
    "multi-tensor": "Lists of tensors",
    "sparse": "Sparse tensors",
    "value": "Numbers and truth values",
    "other": "Others",
    "nn": "torch.nn.functional",
    "linalg": "torch.linalg",
    "special": "torch.special",
    "fft": "torch.fft",
}
HEAD = """# {title}

Printed from the operator table when the site is built. All operators in one table:
[Operators](../operators.md).
"""
PUBLIC = {"": "torch.", "nn": "torch.nn.functional."}


def pages(records):
    """The text of every page that is printed from the operator table, by its path below docs/."""
    tables = {
        "operators.md": overview,
        "names.md": names,
        "coverage.md": coverage,
        "cuda_operators.md": devices,
    }
    return {**{path: table.page(records) for path, table in tables.items()}, **family_pages(records)}


def family_pages(records):
    families = {}
    for record in records:
        families.setdefault(record["space"] or record["family"], []).append(record)
    # "index" is what servers call the page of a folder.
    files = {"index": "indexing", "linear algebra": "factorizations"}
    return {f"operators/{files.get(f, f)}.md": page(f, found) for f, found in families.items()}


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
    program = examples.programs().get(examples.key(name, records[0]["space"]))
    lines += ["", *further(name, records)]
    lines += ["", *(f"- {note}" for note in notes(name, records, program))]
    rules = {r["overload"]: rule(r) for r in records}
    if len(set(rules.values())) == 1:
        lines.append(f"- gradient: {rule(records[0])}")
    else:
        lines += [f"- gradient of `{name}.{overload}`: {text}" for overload, text in rules.items()]
    if program:
        lines += ["", "```python", *program.split("; "), "```", "```text", examples.result(program), "```"]
    return [*lines, ""]


def further(name, records):
    """Arguments, shapes, formula and errors, as `help` shows them."""
    space = records[0]["space"]
    spaces = vars(getattr(_C, f"_{space}" if space else "_VariableFunctions")), vars(_C.TensorBase)
    found = (owner.get(form) for owner in spaces[: 1 if space else 2] for form in (name, name + "_"))
    function = next((f for f in found if hasattr(f, "_overloads")), None)
    if function is None:
        return []
    overloads, bound = function._overloads, function.__class__ is MethodDescriptorType
    arguments = docs.arguments(overloads, signatures.overload_signatures(function), bound)
    parts = [f"**{title}:** {text}" for title, text in docs.sections(overloads).items()]
    lines = ["**Arguments:**", "", *(f"- {line}" for line in arguments)] if arguments else []
    return lines + [line for part in parts for line in ("", part)]


def notes(name, records, program):
    """What is known of an operator besides its gradient."""
    found = list(signatures.notes(records))
    if program and not any("Computed for" in note for note in found):
        dtypes = examples.dtypes(program)
        found += [f"dtypes in which the example runs: {', '.join(dtypes)}"] if dtypes else []
    composite = all(r["family"] == "composite" for r in records)
    if composite:
        found.append("devices: those of the operators that it calls")
    else:
        own = any(r["traits"].devices for r in records)
        found.append(
            "devices: CPU and CUDA" if own else "devices: CPU; tensors on CUDA are copied there and back"
        )
    error = errors().get(examples.key(name, records[0]["space"]))
    if error:
        found.append(f"largest error: {error[0]} units in the last place in float32, {error[1]} in float64")
    return found


@functools.cache
def errors():
    """{operator: its largest errors in float32 and float64} of docs/accuracy.md."""
    text = ACCURACY.read_text(encoding="utf-8")
    return {m[1]: (m[2], m[3]) for m in re.finditer(r"^\| ([\w.]+) \| (\S+) \| \S+ \| (\S+) \|", text, re.M)}


def calls(name, records):
    """The calls of the function, the method and their in-place forms, without annotations."""
    space = records[0]["space"]
    prefix = PUBLIC.get(space, f"torch.{space}.")
    schemas = {r["schema"] for r in records}
    found = []
    if not space and not hasattr(rushlight, name) and name in vars(_C._VariableFunctions):
        prefix = "torch._C._VariableFunctions."
    functions = vars(getattr(_C, f"_{space}" if space else "_VariableFunctions"))
    for public, owner in ((prefix, functions), ("Tensor.", {} if space else vars(rushlight._C.TensorBase))):
        for form in (name, name + "_"):
            function = owner.get(form)
            if hasattr(function, "_overloads"):
                found += [public + form + text for text in signatures.forms(function, schemas)]
    return found
