"""The site's page about names that are no operators: what `help` says of those that programs use most."""

import inspect
from pathlib import Path

import rushlight

HEAD = """# Names that programs use most

What `help` says of the names that programs use most and of some modules whole, in alphabetical order;
operators have [pages of their own](operators.md). Printed when the site is built.
"""


# Modules of which every public name is described.
WHOLE = ("nn", "nn.utils.rnn", "func", "optim", "optim.lr_scheduler", "utils.data")


def names():
    """The names below `torch`: the most used ones, most used first, then those of whole modules."""
    lines = Path(__file__).with_name("names.txt").read_text(encoding="utf-8").splitlines()
    counted = [line for line in lines if not line.startswith("#")]
    others = [name for module in WHOLE for name in _public(module) if callable(named(name))]
    return list(dict.fromkeys([*counted, *others]))


def _public(module):
    names = getattr(named(module), "__all__", None) or dir(named(module))
    return [f"{module}.{name}" for name in names if not name.startswith("_")]


def named(name):
    found = rushlight
    for part in name.split("."):
        found = getattr(found, part)
    return found


def page(records):
    lines = [HEAD]
    for name in sorted(names(), key=str.lower):
        value = named(name)
        if not hasattr(value, "_overloads"):
            text = call(name, value) + (inspect.getdoc(value) or "")
            lines += [f"## torch.{name}", "", "```text", text, "```", ""]
    return "\n".join(lines)


def call(name, value):
    """The name with what it takes."""
    try:
        return f"{name.rpartition('.')[2]}{inspect.signature(value)}\n\n"
    except (TypeError, ValueError):
        return ""
