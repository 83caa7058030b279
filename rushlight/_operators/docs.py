"""What ``help`` says of operators beyond their records: arguments, shapes, formulas, errors, examples.

`notes.txt` says what records do not, `examples.txt` is printed (tools/print_operators.py). Both are read when
documentation is asked for, never at import.
"""

import functools
import os

_FOLDER = os.path.dirname(os.path.abspath(__file__))
_SECTIONS = ("shape", "formula", "raises")
_ELEMENTWISE = frozenset(("pointwise", "random", "copy"))


@functools.cache
def _notes():
    """{operator: {argument or section: text}}, operators of `torch.nn.functional` as `nn.name`."""
    found, names = {}, []
    for line in _lines("notes.txt"):
        if not line.startswith(" "):
            names = line.split()
        else:
            key, _, text = line.strip().partition(": ")
            for name in names:
                found.setdefault(name, {})[key] = text
    return found


@functools.cache
def examples():
    """{operator: (statements, text of the result)}."""
    found, lines = {}, []
    for line in _lines("examples.txt"):
        if line.startswith("  "):
            lines.append(line[2:])
        else:
            name, _, program = line.partition(": ")
            lines = []
            found[name] = program.split("; "), lines
    return {name: (statements, "\n".join(result)) for name, (statements, result) in found.items()}


def _lines(name):
    with open(os.path.join(_FOLDER, name), encoding="utf-8") as file:
        lines = [line.rstrip("\n") for line in file]
    return [line for line in lines if line and not line.startswith("#")]


def key_of(record):
    return f"{record['space']}.{record['name']}" if record["space"] else record["name"]


def arguments(overloads, signatures, bound):
    """Lines `name (type, default): text`, each argument of any form once; ``bound`` leaves out the first."""
    notes, lines = _notes().get(key_of(overloads[0]), {}), {}
    common = _notes()["*"]
    for signature in signatures:
        parameters = list(signature.parameters.values())[bound:]
        for p in parameters:
            if p.name not in lines and not p.name.startswith("_"):
                kind = p.annotation.text if p.annotation is not p.empty else "object"
                default = "" if p.default is p.empty else f", default {p.default!r}"
                star = "*" if p.kind is p.VAR_POSITIONAL else ""
                text = notes.get(p.name, common.get(p.name, ""))
                lines[p.name] = f"{star}{p.name} ({kind}{default})" + (f": {text}" if text else "")
    return list(lines.values())


def sections(overloads):
    """{"Shape": text, ...} of what is known."""
    record = overloads[0]
    notes = {**_general(overloads), **_notes().get(key_of(record), {})}
    return {section.capitalize(): notes[section] for section in _SECTIONS if section in notes}


def _general(overloads):
    """What follows from an operator's family."""
    record, names = overloads[0], {p["name"] for o in overloads for p in o["parameters"]}
    found, raises = {}, []
    if record["family"] in _ELEMENTWISE and not record["space"]:
        several = max(o["operands"] for o in overloads) > 1
        found["shape"] = "what the operands broadcast to." if several else "that of the input."
        raises += ["RuntimeError where shapes do not broadcast."] * several
    elif record["family"] == "reduction":
        found["shape"] = "the input's without the reduced dimensions; these have size 1 with `keepdim`."
    elif record["family"] == "scan":
        found["shape"] = "that of the input."
    elif record["family"] == "factory":
        found["shape"] = "`size`." if "size" in names else "that of the input."
    if names & {"dim", "dims", "dim0", "axis"}:
        raises.append("IndexError where the input has no such dimension.")
    if "out" in names:
        raises.append("RuntimeError where the result cannot be cast to the dtype of `out`.")
    if raises:
        found["raises"] = " ".join(raises)
    return found


def example(overloads):
    """The example as a session, or nothing."""
    statements, result = examples().get(key_of(overloads[0]), ((), ""))
    lines = [f">>> {statement}" for statement in statements]
    return lines + [line or "<BLANKLINE>" for line in result.splitlines()] if result != "None" else lines
