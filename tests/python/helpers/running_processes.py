"""Which processes run on this machine."""

import contextlib
import os


def processes_with(text):
    """The ids of the other processes whose command line has a text."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError), open(f"/proc/{pid}/cmdline") as file:
            if text in file.read() and int(pid) != os.getpid():
                found.append(int(pid))
    return found
