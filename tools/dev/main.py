"""The command line of `./dev`. Every failure that is foreseen ends in one line."""

import difflib
import errno
import os
import signal
import sys

from . import build
from .commands import COMMANDS
from .paths import ROOT
from .problems import Failure, disk_full, read_only

HEAD = """\
Rushlight's development commands. Each one sets up what it needs in .venv first.

"""
FOOT = """
./dev -j N COMMAND    that many compilers at once, where memory or cores are to be spared
./dev -v COMMAND      with all that compilers and CMake print
./dev COMMAND --help  more about one
"""


def listing():
    lines = []
    for usage, summary, _ in COMMANDS.values():
        text = f"./dev {usage}"
        lines.append(f"{text:34} {summary}" if len(text) <= 34 else f"{text}    {summary}")
    return HEAD + "\n".join(lines) + "\n" + FOOT


def help_of(name):
    usage, summary, function = COMMANDS[name]
    more = " ".join((function.__doc__ or "").split())
    text = f"./dev {usage}\n{summary}\n" + (f"\n{more}\n" if more else "")
    if name == "demo":
        text += "\nOptions of the demo:\n" + demo_options()
    return text


def demo_options():
    """The demo's own help, which needs no built library."""
    import importlib.util

    spec = importlib.util.spec_from_file_location("demo", ROOT / "rushlight" / "demo" / "__init__.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.make_parser().format_help().partition("options:\n")[2]


def parse(arguments):
    """Take ./dev's own options, which stand before the command; the rest."""
    while arguments and arguments[0].startswith("-"):
        option, *rest = arguments
        if option in ("-h", "--help"):
            return ["help"]
        if option in ("-v", "--verbose"):
            build.verbose = True
        elif option.startswith("-j"):
            number = option[2:] or (rest.pop(0) if rest else "")
            if not number.isdigit() or int(number) < 1:
                raise Failure("-j needs a number of jobs, for instance `./dev -j 1 build`")
            os.environ["CMAKE_BUILD_PARALLEL_LEVEL"] = number
        else:
            raise Failure(f"unknown option {option}; options of a command stand behind it")
        arguments = rest
    return arguments


def run(arguments):
    arguments = parse(arguments)
    if not arguments or arguments[0] == "help" and len(arguments) == 1:
        print(listing(), end="")
        return 0
    name, *rest = arguments
    if name == "help":
        name, rest = rest[0], ["--help"]
    if name not in COMMANDS:
        near = difflib.get_close_matches(name, COMMANDS, 1, 0.5)
        hint = f"did you mean `./dev {near[0]}`?" if near else "`./dev` lists them"
        raise Failure(f"there is no command {name!r}; {hint}")
    if any(word in ("-h", "--help") for word in rest):
        print(help_of(name), end="")
        return 0
    if name == "build" and rest[:1] in (["-v"], ["--verbose"]):
        build.verbose, rest = True, rest[1:]
    try:
        COMMANDS[name][2](*rest)
    except TypeError as error:
        if rest and "positional argument" in str(error) and error.__traceback__.tb_next is None:
            raise Failure(f"{name} takes no arguments: ./dev {COMMANDS[name][0]}")
        raise
    return 0


def interrupted(signal_number, frame):
    raise KeyboardInterrupt(signal_number)


def main(arguments):
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors="replace")  # paths may hold what the terminal cannot show
    for signal_number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(signal_number, interrupted)
    try:
        return run(arguments)
    except Failure as failure:
        message = str(failure)
    except KeyboardInterrupt as interrupt:
        print("dev: interrupted; the next run goes on from here", file=sys.stderr)
        return 128 + (interrupt.args[0] if interrupt.args else signal.SIGINT)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 128 + signal.SIGPIPE
    except OSError as error:
        message = foreseen(error)
        if message is None:
            raise
    print(f"dev: {message}", file=sys.stderr)
    return 1


def foreseen(error):
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return disk_full()
    if error.errno == errno.EROFS:
        return read_only(error.filename or ROOT)
    if error.errno in (errno.EACCES, errno.EPERM):
        return f"no permission for {error.filename or ROOT}: run this as its owner, or in a copy of your own"
    if error.errno in (errno.ENOMEM, errno.EAGAIN):
        return f"{error.strerror}: end other programs, or allow this one more (ulimit), then run this again"
    return None
