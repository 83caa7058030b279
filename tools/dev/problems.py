"""Failures whose cause is known, said in one line that ends in what to do."""

import re
import shutil
import tempfile

from .paths import ROOT


class Failure(Exception):
    """A problem whose message is all that the user needs to see."""


MEMORY = re.compile(
    r"Killed signal terminated program|\bKilled$|\[code=137\]|out of memory|virtual memory exhausted"
    r"|Cannot allocate memory|std::bad_alloc|memory exhausted|MemoryError",
    re.M,
)
DISK = re.compile(r"No space left on device|Disk quota exceeded")
READ_ONLY = re.compile(r"Read-only file system|Permission denied")
NETWORK = re.compile(
    r"name resolution|Name or service not known|Network is unreachable|No route to host|Connection refused"
    r"|Failed to establish a new connection|[Tt]imed out|ConnectionResetError|Connection aborted"
    r"|ProxyError|SSLError"
)
NO_PROGRAM = re.compile(r"\[code=127\]|: not found$", re.M)


def gigabytes(count):
    return f"{count / 1e9:.1f} GB"


def free(folder):
    """Free bytes of the disk that holds a folder, which need not exist yet."""
    while not folder.exists():
        folder = folder.parent
    return shutil.disk_usage(folder).free


def disk_full():
    temporary = tempfile.gettempdir()
    return (
        f"the disk is full: {gigabytes(free(ROOT))} are free in {ROOT}, "
        f"{gigabytes(shutil.disk_usage(temporary).free)} in {temporary} (TMPDIR names another folder); "
        "make room and run this again, it goes on where it stopped"
    )


def read_only(folder):
    return f"cannot write in {folder}: make it writable, or copy the sources to a folder of your own"


def said(text):
    """What programs print, without the lines of source that compilers quote."""
    return "\n".join(line for line in text.splitlines() if not re.match(r"\s*\d*\s*\|", line))


def common(text, folder=ROOT):
    """The one line for a cause that any program can meet, or None."""
    text = said(text)
    if DISK.search(text):
        return disk_full()
    if READ_ONLY.search(text):
        return read_only(folder)
    return None
