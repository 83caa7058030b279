"""The page coverage.md: for each operator and each rule, whether it is written, derived or refused."""

import collections
import importlib.util
import re

COLUMNS = ("derivative", "double derivative", "jvp", "vmap", "meta shape", "trace")
HEAD = """# Coverage

Printed from the operator table when the site is built.

Each operator has an answer for each rule. **rule**: written for it. *derived*: follows from its family, from
the operators it is written in, or from its derivative. Anything else is a refusal, with its reason. An
operator whose result is an integer or a bool has no derivative, and neither have its tangents.

- derivative: reverse mode. Derivatives are written with public operators, so the double derivative follows.
- jvp: forward mode; by its kind (linear, product, elementwise), else by the double-vjp identity.
- vmap: a batching rule; `loop` runs the examples one by one, which is always right and seldom fast.
- meta shape: shape, dtype and strides without data, from the operator's own checks.
- trace: how a recorded program shows the operator.
"""
RULE, DERIVED, REFUSED = "rule", "derived", "refused"
# Among the results; of what has none, and reads values, `make_fx` makes no graph.
TENSORS = re.compile(r"-> .*Tensor")


def matrix(records):
    """schema -> {column: (state, text)}"""
    tracer = importlib.util.find_spec("rushlight.fx") is not None
    return {r["schema"]: dict(zip(COLUMNS, cells(r, tracer))) for r in records}


def cells(record, tracer):
    composite = record["family"] == "composite"
    yield derivative(record, composite)
    first, text = derivative(record, composite)
    yield (first, text) if first == REFUSED else (DERIVED, "derived")
    yield tangent(record)
    yield batching(record)
    refusal = record.get("meta_refusal")
    yield (REFUSED, refusal) if refusal else (DERIVED, "composite" if composite else "its own checks")
    if not tracer:
        yield REFUSED, "no tracer in this version"
    elif refusal and not TENSORS.search(record["schema"]):
        yield REFUSED, "its result is a value, and a graph can't depend on values"
    else:
        yield (DERIVED, "by what it calls") if composite else (RULE, "itself")


def derivative(record, composite):
    if record["refusal"]:
        return REFUSED, record["refusal"]
    return (DERIVED, "composite") if composite else (RULE, "rule")


def tangent(record):
    kind = record["traits"].tangent
    if record["refusal"] or kind == "none":
        return REFUSED, record["refusal"] or "its result carries no tangent"
    return DERIVED, kind


def batching(record):
    kind = record["traits"].batching
    return (DERIVED if kind in ("composite", "loop") else RULE), kind


def show(state, text):
    text = (text or "").replace("|", "\\|")
    return f"**{text}**" if state == RULE else f"*{text}*" if state == DERIVED else text


def page(records):
    table = matrix(records)
    counts = {column: collections.Counter(row[column][0] for row in table.values()) for column in COLUMNS}
    lines = [HEAD, "| | " + " | ".join(COLUMNS) + " |", "|---" * (len(COLUMNS) + 1) + "|"]
    for state in (RULE, DERIVED, REFUSED):
        lines.append(f"| {state} | " + " | ".join(str(counts[c][state]) for c in COLUMNS) + " |")
    lines += ["", "| operator | " + " | ".join(COLUMNS) + " |", "|---" * (len(COLUMNS) + 1) + "|"]
    for schema in sorted(table, key=lambda text: text.split("(")[0]):
        row = " | ".join(show(*table[schema][column]) for column in COLUMNS)
        lines.append(f"| `{schema.split('(')[0]}` | {row} |")
    return "\n".join(lines) + "\n"
