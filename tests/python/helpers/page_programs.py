"""Runs programs of documents, and compares what they say with what a page promises."""

import contextlib
import doctest
import io
import traceback
import warnings


def said_by(code, program):
    """What a program prints, warns of, and fails with; `program` is the module that it runs in."""
    said = io.StringIO()
    with contextlib.redirect_stdout(said), warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        try:
            exec(compile(code, "program.py", "exec"), program.__dict__)
        except Exception as error:
            said.write("".join(traceback.format_exception_only(error)))
    return "".join(f"{w.category.__name__}: {w.message}\n" for w in warned) + said.getvalue()


def assert_says(wanted, got, program=""):
    """Texts are equal, but for what the page leaves out by `...`."""
    assert doctest.OutputChecker().check_output(wanted, got, doctest.ELLIPSIS), f"{program}\n{got}"
