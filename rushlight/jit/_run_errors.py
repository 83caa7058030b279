"""Errors inside of scripts, as PyTorch's interpreter tells them: where in which scripts, and what failed.

What a script raises by itself becomes `torch.jit.Error`, what fails in an operator or in Python a
RuntimeError. The first error stays as the cause."""

import dis
import re
import types

from rushlight import jit
from rushlight._errors.advice import add_notes

__all__ = ["UNIT", "told"]

UNIT = "__unit__"  # the global of compiled scripts that tells a script's frames from Python's
_RAISE = dis.opmap["RAISE_VARARGS"]
_HEAD = (
    "The following operation failed in the TorchScript interpreter.\n"
    "Traceback of TorchScript{} (most recent call last):\n"
)


def _head(unit):
    """What stands above the places in scripts of which this one is the outermost."""
    return _HEAD.format(", serialized code" if getattr(unit, "is_serialized", False) else "")


def told(error, boundary):
    """The error to raise where a call of a script ends; ``boundary`` is the code that Python enters by."""
    if isinstance(error, Warning) or (own := _script_frames(error.__traceback__, boundary)) is None:
        return error
    places, raised, unit = own
    raised = raised or "_raised_in_script" in error.__dict__
    raised = raised or isinstance(error, AssertionError)  # which functions that scripts call raise for them
    known = getattr(error, "_in_scripts", None)  # of a script that this one called
    if known is not None:
        text, inner = known
        error.args = (_head(unit) + "".join((*places, *inner)) + text,)
        error.__dict__["_in_scripts"] = text, (*places, *inner)
        return error
    add_notes(error)  # which read numbers of the text, before places stand before it
    named = raised or isinstance(error, KeyError) or not error.args
    text = _raised_text(error, raised) if named else _in_its_words(str(error))
    text = text if raised and type(error) is not AssertionError else f"RuntimeError: {text}"
    plain = type(error).__str__ is BaseException.__str__ and len(error.args) == 1
    if not raised and isinstance(error, RuntimeError) and plain:
        made = error
    else:
        made = (jit.Error if raised else RuntimeError)()
        made.__cause__ = error
        made.__dict__.update({k: v for k, v in error.__dict__.items() if k in ("__notes__", "_advised")})
    made.args = (_head(unit) + "".join(places) + text,)
    made.__dict__["_in_scripts"] = text, places
    return made


# What Python says otherwise than TorchScript's operators.
_WORDS = (
    (re.compile(r"^(.*) is not in list$"), r"'\1' is not in list"),
    (re.compile(r"^iteration over a 0-d tensor"), "len() of a 0-d tensor"),
    (
        re.compile(r"^('<' not supported between instances of .*)$"),
        r"Only values of same type can be compared: \1",
    ),
)


def _in_its_words(text):
    return next((rule.sub(words, text) for rule, words in _WORDS if rule.search(text)), text)


def _script_frames(trace, boundary):
    """The places in scripts up to the next entry, whether the last of them raised, and the unit of the first;
    None without any."""
    places, raised, entered, outermost = [], False, False, None
    while trace is not None:
        frame, at = trace.tb_frame, trace.tb_lasti
        if frame.f_code is boundary:
            if entered:
                raised = False
                break
            entered = True
        unit = frame.f_globals.get(UNIT)
        if unit is not None:
            outermost = outermost or unit
            shown = unit.source.shown(_place(frame.f_code, at, trace.tb_lineno))
            places.append(shown.replace("\n", f", in {unit.tree.name}\n", 1))
        raised = unit is not None and frame.f_code.co_code[at] == _RAISE
        trace = trace.tb_next
    return (tuple(places), raised, outermost) if places else None


def _place(code, at, line):
    """A node's place, of the instruction at an offset."""
    for i, (first, last, column, end) in enumerate(code.co_positions()):
        if i == at // 2 and first is not None and column is not None:
            return types.SimpleNamespace(lineno=first, end_lineno=last, col_offset=column, end_col_offset=end)
    return types.SimpleNamespace(lineno=line, end_lineno=line, col_offset=0, end_col_offset=None)


def _raised_text(error, raised):
    kind = type(error)
    given = ", ".join(map(str, error.args))
    if not raised or kind is AssertionError:
        return f"{kind.__name__}: {given}"
    return f"{kind.__module__}.{kind.__name__}: {f'({given})' if len(error.args) > 1 else given}"
