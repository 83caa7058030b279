"""The page operators.md: one line for every record."""

HEAD = """# Operators

Printed from the operator table when the site is built.
The rule column says how gradients arise: `derivative` (a rule beside the operator), `composite` (from the
operators it is written in), or why there is none. Forms: `f` function, `m` method, `_` in-place,
`out` the keyword. The pages of the families tell what the operators do.
"""


def rule(record):
    if record["refusal"]:
        return f"none: {record['refusal']}"
    return "composite" if record["family"] == "composite" else "derivative"


def forms(record):
    flags = {"f": "function", "m": "method", "_": "inplace", "out": "out"}
    return " ".join(mark for mark, key in flags.items() if record[key]) or "C++"


def page(records):
    spaces = {}
    for record in records:
        spaces.setdefault(record["space"] or "torch", []).append(record)
    lines = [HEAD]
    for space in sorted(spaces):
        lines += [f"## {space}", "", "| schema | family | forms | rule |", "|---|---|---|---|"]
        for record in sorted(spaces[space], key=lambda r: (r["name"], r["overload"])):
            schema = record["schema"].replace("|", "\\|")
            lines.append(f"| `{schema}` | {record['family']} | {forms(record)} | {rule(record)} |")
        lines.append("")
    return "\n".join(lines)
