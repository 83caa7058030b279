"""Notes on errors: the call that failed, and what to do about it.

An error's text stays PyTorch's, since programs match on it. What a reader wants besides goes into notes,
which tracebacks print below the text: `in linear(input: float32[4, 8], ...)`, `fix: ...`, `in module
encoder.2 (Linear)`. The ways out are in `advice.txt`; `docs/errors.md` shows each with a program that fails.
"""

import os

__capture__ = "skip"  # Note [Capture marks]

_read: list[tuple[str, str, str]] = []


def read_advice():
    """[(words of the text, words of the call or the text, the way out)] as `advice.txt` has them."""
    if not _read:
        with open(os.path.join(os.path.dirname(__file__), "advice.txt"), encoding="utf-8") as file:
            lines = [line.rstrip() for line in file if line.strip() and not line.startswith("#")]
        for head, fix in zip(lines[::2], lines[1::2], strict=True):
            words, _, where = head.partition(" @ ")
            _read.append((words, where, fix.strip()))
    return _read


def fix_for(text, call=""):
    """What to do about an error with that text that left that call; None where nothing is known."""
    for words, where, fix in read_advice():
        if words in text and where in (call or text):
            return fix.format(*_numbers(text), *["..."] * 10)
    return None


def _numbers(text):
    """The whole numbers in a text, those of names left out. `re` has a cache, which captures would notice."""
    found, at = [], 0
    while at < len(text):
        end = at + (text[at] == "-")
        while end < len(text) and text[end] in "0123456789":
            end += 1
        before = text[at - 1] if at else " "
        if end > at + (text[at] == "-") and (before == "x" or not (before.isalpha() or before == "_")):
            found.append(text[at:end])
            at = end
        else:
            at += 1
    return found


def add_notes(error, call=""):
    """Add to the error's notes, once, the call that failed and the way out."""
    if "_advised" in error.__dict__:
        return
    error._advised = True
    fix = fix_for(str(error), call)
    if call:
        attach(error, call)
    if fix:
        attach(error, f"fix: {fix}")


def attach(error, note, instead=None):
    """Add a note to an error, or put it in another's place. With RUSHLIGHT_ERRORS=full it becomes a line of
    the text: many logs print `str(error)` alone."""
    if os.environ.get("RUSHLIGHT_ERRORS") == "full" and _text_is_plain(error):
        lines = error.args[0].split("\n")
        if instead in lines:
            lines.remove(instead)
        error.args = ("\n".join([*lines, note]),)
        return
    notes = error.__dict__.setdefault("__notes__", [])
    if instead in notes:
        notes.remove(instead)
    notes.append(note)


def _text_is_plain(error):
    plain = type(error).__str__ is BaseException.__str__
    return plain and len(error.args) == 1 and isinstance(error.args[0], str)


def advised(error):
    """The error itself, with what to do about it."""
    add_notes(error)
    return error
