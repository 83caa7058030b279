"""Runs programs: in the foreground, or watched, so that only the progress line is seen."""

import os
import select
import signal
import subprocess
import time

from .paths import VENV
from .problems import Failure


def environment(**variables):
    """This process's variables and some more, with .venv's programs first on the path."""
    merged = {**os.environ, **{key: str(value) for key, value in variables.items()}}
    merged["PATH"] = f"{VENV / 'bin'}{os.pathsep}{merged.get('PATH', os.defpath)}"
    return merged


def run(*command, cwd=None, **variables):
    """Run a command whose output is for the user; a failure ends this program with its exit status."""
    words = [str(word) for word in command]
    try:
        status = subprocess.run(words, env=environment(**variables), cwd=cwd).returncode
    except FileNotFoundError:
        raise Failure(f"{words[0]} is not there; remove .venv if it was changed by hand, and run this again")
    if status:
        raise SystemExit(status if status > 0 else 128 - status)


def watch(command, on_line, on_tick, cwd=None, **variables):
    """Run a command and hand on each line that it prints; about every second `on_tick` is called. The answer
    is the exit status. When this program is interrupted, the command is told and waited for."""
    child = subprocess.Popen(
        [str(word) for word in command],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=environment(**variables),
        cwd=cwd,
        # A group of its own, so that all of it can be told to stop; a new session would lose its niceness.
        preexec_fn=os.setpgrp,
    )
    try:
        pending, ticked = b"", time.monotonic()
        while True:
            ready = select.select([child.stdout], [], [], 1.0)[0]
            if ready:
                chunk = os.read(child.stdout.fileno(), 1 << 16)
                if not chunk:
                    break
                *lines, pending = (pending + chunk).split(b"\n")
                for line in lines:
                    on_line(line.decode(errors="replace"))
            if time.monotonic() - ticked >= 1.0:
                on_tick()
                ticked = time.monotonic()
        if pending:
            on_line(pending.decode(errors="replace"))
        return child.wait()
    except BaseException:
        _stop(child)
        raise


def _stop(child):
    """End a command and what it started, in the way that lets them remove what they have half written."""
    for signal_number, seconds in ((signal.SIGINT, 10), (signal.SIGTERM, 3), (signal.SIGKILL, 3)):
        try:
            os.killpg(child.pid, signal_number)
            child.communicate(timeout=seconds)
            return
        except (subprocess.TimeoutExpired, ProcessLookupError):
            continue


class Log:
    """A command's whole output in a file, its last lines at hand."""

    def __init__(self, path):
        self.path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        self.file = path.open("w", encoding="utf-8")
        self.lines = []

    def add(self, line):
        self.lines.append(line)
        self.file.write(line + "\n")

    def text(self):
        return "\n".join(self.lines)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.file.close()
