"""Runs a program as the interpreter would: its arguments, its path, its `__main__`, and tracebacks of its own
frames alone.
"""

import os
import sys
import types


class Refused(Exception):
    """There is no such program; the text says why. `status` is Python's exit status in such a case."""

    def __init__(self, text, status=1):
        super().__init__(text)
        self.status = status


def run(kind, what, arguments, interactive=False):
    """Run a file ("file"), a module ("module"), a text ("text") or the standard input ("input").

    With ``interactive``, read Python from the standard input once the program has ended."""
    main = _fresh_main()
    program = {"file": _file, "module": _module, "text": _text, "input": _input}[kind]
    try:
        program(main, what, arguments)
    except Refused:
        raise
    except BaseException as error:
        error.__traceback__ = _programs(error.__traceback__)
        if not interactive:
            _hide_launcher()
            raise
        _show(error)
    if interactive:
        _read_on(main)


def _fresh_main():
    main = types.ModuleType("__main__")
    vars(main).update(__builtins__=sys.modules["builtins"], __annotations__={})
    sys.modules["__main__"] = main
    return main


def _file(main, path, arguments):
    from importlib.machinery import SourceFileLoader

    sys.argv[:] = [path, *arguments]
    if os.path.isdir(path) or path.endswith((".zip", ".pyz")):
        _set_first_path(os.path.abspath(path))
        return _run_as_main("__main__", False)
    file = os.path.abspath(path)
    try:
        with open(path, "rb") as opened:
            source = opened.read()
    except OSError as error:
        raise Refused(f"can't open {path!r}: {error.strerror}", 2) from None
    code = compile(source, file, "exec", dont_inherit=True)
    main.__file__, main.__cached__, main.__loader__ = file, None, SourceFileLoader("__main__", file)
    _set_first_path(os.path.dirname(file))
    exec(code, vars(main))


def _module(main, name, arguments):
    import importlib.util

    try:
        found = importlib.util.find_spec(name)
    except ModuleNotFoundError:
        found = None
    if found is None:
        raise Refused(f"no module named {name!r}")
    sys.argv[:] = [name, *arguments]
    _run_as_main(name, True)


def _run_as_main(name, sets_argument):
    import runpy

    runpy._run_module_as_main(name, sets_argument)  # type: ignore[attr-defined]


def _text(main, text, arguments):
    sys.argv[:] = ["-c", *arguments]
    _set_first_path("")
    exec(compile(text, "<string>", "exec", dont_inherit=True), vars(main))


def _input(main, _, arguments):
    sys.argv[:] = ["-", *arguments]
    _set_first_path("")
    if sys.stdin.isatty():
        return _read_on(main)
    main.__file__, main.__cached__ = "<stdin>", None
    exec(compile(sys.stdin.buffer.read(), "<stdin>", "exec", dont_inherit=True), vars(main))


def _set_first_path(folder):
    """Where `python -m` has put the working folder; with -P and -I it has not."""
    if not getattr(sys.flags, "safe_path", False) and not sys.flags.isolated:
        sys.path[0] = folder


# --- errors


def _hide_launcher():
    """Let the traceback that Python prints at the end begin in the program."""
    hook = sys.excepthook

    def show(kind, value, traceback):
        traceback = _programs(traceback)
        if value is not None:
            value.__traceback__ = traceback
        hook(kind, value, traceback)

    sys.excepthook = show


def _programs(traceback):
    """The traceback below the frames that start the program."""
    while traceback is not None and _starts_programs(traceback.tb_frame.f_code.co_filename):
        traceback = traceback.tb_next
    return traceback


def _starts_programs(file):
    return file in _STARTERS


_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_STARTERS = (
    __file__,
    os.path.join(_PACKAGE, "__main__.py"),
    "<frozen runpy>",
    os.path.join(os.path.dirname(os.__file__), "runpy.py"),
)


def _show(error):
    """As Python with -i does, before it reads on."""
    sys.last_type, sys.last_value, sys.last_traceback = type(error), error, error.__traceback__
    sys.excepthook(type(error), error, error.__traceback__)


def _read_on(main):
    import code

    hook = getattr(sys, "__interactivehook__", None)
    if hook is not None and sys.stdin.isatty():
        hook()  # line editing and completion
    try:
        code.interact(banner="", local=vars(main), exitmsg="")
    except SystemExit as error:
        raise error.with_traceback(None) from None
