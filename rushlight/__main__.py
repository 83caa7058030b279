"""`python -m rushlight`: run PyTorch programs on Rushlight, the demo, and the alias for an environment."""

import os
import sys

USAGE = """\
usage: python -m rushlight SCRIPT [argument ...]       run a program in which `import torch` means Rushlight
       python -m rushlight -m MODULE [argument ...]    the same for a module
       python -m rushlight -c TEXT [argument ...]      the same for a text, and `-` for the standard input;
                                                       -i before them reads on when the program has ended
       python -m rushlight demo [--help] [option ...]  train a network on handwritten digits
       python -m rushlight alias on|off|status         make `import torch` mean Rushlight in this environment
       python -m rushlight export-lm FOLDER -o FILE.rl [option ...]
                                                       write a language model to one file (docs/generation.md)
       python -m rushlight quantize MODEL.rl --method METHOD -o SMALL.rl [option ...]
                                                       make a model of one file smaller (docs/quantization.md)
       python -m rushlight --version

Child processes of SCRIPT and MODULE see the same `torch`. A script that is itself called demo, alias,
export-lm or quantize is run as ./demo, and so on.
"""


def fail(message, status=1):
    print(f"rushlight: {message}", file=sys.stderr)
    sys.exit(status)


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


def export_language_model(arguments):
    import argparse

    parser = argparse.ArgumentParser("python -m rushlight export-lm", description=_export_help)
    parser.add_argument("folder", help="what transformers' save_pretrained wrote, or a download of it")
    parser.add_argument("-o", "--output", required=True, metavar="FILE.rl")
    parser.add_argument("--max-length", type=int, help="tokens of prompt and result together")
    parser.add_argument("--dtype", choices=["float32", "bfloat16", "float16"], default="float32")
    given = parser.parse_args(arguments)
    import rushlight as torch
    from rushlight.export import UnsupportedError, save_language_model

    dtype = getattr(torch, given.dtype)
    try:
        save_language_model(given.folder, given.output, max_length=given.max_length, dtype=dtype)
    except (UnsupportedError, RuntimeError, OSError, ValueError) as error:
        fail(f"export-lm: {error}")
    print(f"{given.output}: {os.path.getsize(given.output) / 1e6:.1f} MB")


_export_help = (
    "Write a GPT-2, Llama, Qwen2 or Mistral model to one file that rushlight-run and C++ generate text with."
)


_run_alias_help = (
    "Make `import torch` mean Rushlight for every program of this virtual environment, by a .pth file in its "
    "site-packages."
)


def main(arguments):
    if not arguments or arguments[0] in ("-h", "--help"):
        print(USAGE, end="")
        return 0 if arguments else 2
    command, rest = arguments[0], arguments[1:]
    if command in ("-V", "--version"):
        print(_version())
    elif command == "demo":
        from rushlight.demo import main as demo

        return demo(rest)
    elif command == "alias":
        run_alias(rest)
    elif command == "export-lm":
        export_language_model(rest)
    elif command == "quantize":
        from rushlight._command import quantize

        quantize.main(rest)
    else:
        run_program(arguments)
    return 0


def run_program(arguments):
    """Run what Python's own command line would run of these arguments."""
    kind, what, rest, interactive = _parse(arguments)
    from rushlight._command import alias, program

    alias.install_for_children()
    try:
        program.run(kind, what, rest, interactive)
    except program.Refused as error:
        fail(error, error.status)


def _parse(arguments):
    """(kind of program, what to run, its arguments, whether to read on), by single letters as Python's."""
    rest, interactive = list(arguments), False
    while rest and rest[0].startswith("-") and rest[0] != "-":
        option = rest.pop(0)
        letters = option[1:]
        while letters:
            letter, letters = letters[0], letters[1:]
            if letter == "i":
                interactive = True
            elif letter in _PROGRAMS and (letters or rest):
                return _PROGRAMS[letter], letters or rest.pop(0), rest, interactive
            elif letter in _PROGRAMS:
                fail("-m needs a module's name" if letter == "m" else "-c needs a program's text", 2)
            else:
                hint = f": Python's own come first: python {option} -m rushlight ..."
                fail(f"unknown option {option!r}" + (hint if letter in _PYTHONS else ""), 2)
    if rest and rest[0] != "-":
        return "file", rest[0], rest[1:], interactive
    return "input", None, rest[1:], interactive


_PROGRAMS = {"c": "text", "m": "module"}
_PYTHONS = "bBdEIOPqsSuvWxX"


def _version():
    from rushlight.version import __version__, release

    python = sys.version.partition(" ")[0]
    return f"rushlight {release} (API of PyTorch {__version__.partition('+')[0]}, Python {python})"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
