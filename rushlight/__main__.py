"""`python -m rushlight`: run PyTorch programs on Rushlight, the demo, and the alias for an environment."""

import os
import sys

USAGE = """\
usage: python -m rushlight SCRIPT [argument ...]       run a program in which `import torch` means Rushlight
       python -m rushlight -m MODULE [argument ...]    the same for a module
       python -m rushlight demo [--help] [option ...]  train a network on handwritten digits
       python -m rushlight alias on|off|status         make `import torch` mean Rushlight in this environment
       python -m rushlight --version

Child processes of SCRIPT and MODULE see the same `torch`. A script that is itself called demo or alias
is run as ./demo or ./alias.
"""


def fail(message):
    sys.exit(f"rushlight: {message}")


def run_script(path, arguments):
    """Run a file as the interpreter would: its folder first on sys.path, its own sys.argv, as `__main__`."""
    import types
    from importlib.machinery import SourceFileLoader

    if os.path.isdir(path) or path.endswith((".zip", ".pyz")):
        import runpy

        sys.argv = [path, *arguments]
        return runpy.run_path(path, run_name="__main__")
    file = os.path.abspath(path)
    loader = SourceFileLoader("__main__", file)
    try:
        code = loader.source_to_code(_read(path), file)
    except OSError as error:
        fail(f"can't open {path!r}: {error.strerror}")
    main_module = types.ModuleType("__main__")
    main_module.__file__, main_module.__cached__ = file, None
    main_module.__loader__ = loader
    main_module.__builtins__ = __builtins__
    sys.argv = [path, *arguments]
    sys.path[0] = os.path.dirname(file)
    sys.modules["__main__"] = main_module
    exec(code, main_module.__dict__)


def _read(path):
    with open(path, "rb") as file:
        return file.read()


def run_module(name, arguments):
    import importlib.util
    import runpy

    try:
        found = importlib.util.find_spec(name)
    except ModuleNotFoundError:
        found = None
    if found is None:
        fail(f"no module named {name!r}")
    sys.argv = [name, *arguments]
    runpy.run_module(name, run_name="__main__", alter_sys=True)


def run_alias(arguments):
    import argparse

    from rushlight._command import alias

    parser = argparse.ArgumentParser("python -m rushlight alias", description=_run_alias_help)
    parser.add_argument("action", choices=["on", "off", "status"])
    action = parser.parse_args(arguments).action
    try:
        if action == "on":
            print(f"on: `import torch` now gives Rushlight in {sys.prefix} ({alias.turn_on()})")
        elif action == "off":
            removed = alias.turn_off()
            print(f"off: removed {removed}" if removed else "off: it was not on")
        else:
            print(alias.status())
    except (alias.AliasError, OSError) as error:
        fail(f"alias {action}: {error}")


_run_alias_help = (
    "Make `import torch` mean Rushlight for every program of this virtual environment, by a .pth file in its "
    "site-packages."
)


def main(arguments):
    if not arguments or arguments[0] in ("-h", "--help"):
        print(USAGE, end="")
        return 0 if arguments else 2
    command, rest = arguments[0], arguments[1:]
    if command == "--version":
        import rushlight

        print(f"rushlight, following PyTorch {rushlight.__version__}")
    elif command == "demo":
        from rushlight.demo import main as demo

        return demo(rest)
    elif command == "alias":
        run_alias(rest)
    elif command == "-m" and rest:
        _turn_alias_on()
        run_module(rest[0], rest[1:])
    elif command.startswith("-"):
        fail(f"unknown option {command!r}" if command != "-m" else "-m needs a module's name")
    else:
        _turn_alias_on()
        run_script(command, rest)
    return 0


def _turn_alias_on():
    from rushlight._command import alias

    alias.install_for_children()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
