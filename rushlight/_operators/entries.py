"""The forms of operator records: what each is called in `torch.ops`, and its schema there."""

import functools

from rushlight import _C
from rushlight._operators.overloads import forms_of, result_names, takes_plain_numbers, with_number

_FUNCTIONAL, _INPLACE, _OUT = range(3)

# Parts of `torch` that have a module of their own; other spaces are namespaces of `torch.ops`.
_OF_ATEN = ("", "nn", "aten", "linalg", "special", "fft")


def _namespace(record):
    return "aten" if record["space"] in _OF_ATEN else record["space"]


def _aten_name(record):
    """The name in its namespace."""
    space = record["space"]
    if space in ("linalg", "special", "fft"):
        return f"{space}_{record['name']}"
    return record["name"]


class _Entry:
    """One form of one record under its name in ``torch.ops``."""

    second_name = ""  # of what another entry has this overload's name for

    def __init__(self, namespace, name, overload, index, form, schema):
        self.namespace, self.name, self.overload = namespace, name, overload
        self.index, self.form, self.schema = index, form, schema


def _schema_text(record, namespace, name, overload, form):
    signature = record["schema"][record["schema"].index("(") :]
    full = f"{namespace}::{name}" + (f".{overload}" if overload else "")
    if "(a -> *)" in signature:
        signature = signature.replace("-> Tensor[]", "-> Tensor(a)[]")
    if form == _INPLACE:
        signature = signature.replace("(Tensor self", "(Tensor(a!) self", 1)
        signature = signature.rsplit("->", 1)[0] + "-> Tensor(a!)"
    elif form == _OUT:
        signature = _with_given_results(record, signature)
    return full + signature


# What the results that are given decide.
_OPTIONS = ", ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None"


def _result_names(signature):
    """The names of what a signature returns, empty where they have none."""
    returns = signature.rsplit("->", 1)[1].strip().strip("()").split(",")
    return [result.strip().partition(" ")[2] for result in returns]


def _with_given_results(record, signature):
    results = _result_names(signature)
    names = result_names(record, results)
    inside = signature.rsplit("->", 1)[0].rstrip()[:-1].replace(_OPTIONS, "")
    inside = inside.removesuffix(", *")
    letters = "abcdefgh"[inside.count("!)") :]
    out = ", ".join(f"Tensor({letter}!) {name}" for letter, name in zip(letters, names, strict=False))
    star = "" if ", *," in inside or "(*," in inside else "*, "
    returns = ", ".join(f"Tensor({letter}!) {name}".rstrip() for letter, name in zip(letters, results))
    returns = f"({returns})" if len(results) > 1 else f"Tensor({letters[0]}!)"
    return f"{inside}{'' if inside.endswith('(') else ', '}{star}{out}) -> {returns}"


def _entries_of(index, record):
    """The forms that a built-in record stands for."""
    name = _aten_name(record)
    own, inplace, out = forms_of(record)
    forms = [(name, own, _FUNCTIONAL)]
    if record["inplace"]:
        forms.append((f"{name}_", inplace, _INPLACE))
    if record["out"]:
        forms.append((name, out, _OUT))
    for name, overload, form in forms:
        yield _Entry(_namespace(record), name, overload, index, form, record)
    if "overloads" not in record and (number := with_number(record)):
        for entry in _entries_of(index, number):
            if entry.form == _OUT and takes_plain_numbers(record["traits"]):
                continue
            entry.second_name = record["overload"]
            yield entry


@functools.cache
def _built_in():
    """namespace -> name -> overload -> entry, over the built-in table."""
    table = {}
    records = list(enumerate(_C._operator_records()))
    # Operators proper come before torch.nn.functional's Python signatures of the same name.
    for index, record in sorted(records, key=lambda item: item[1]["space"] == "nn"):
        if record["traits"].spelling != "operator":
            continue
        for entry in _entries_of(index, record):
            names = table.setdefault(entry.namespace, {})
            names.setdefault(entry.name, {}).setdefault(entry.overload, entry)
    return table
