"""The virtual environment .venv: made, mended, and filled with the groups of packages of pyproject.toml.

A stamp in .venv records a step when it has succeeded, and only then: what was interrupted is done again.
"""

import hashlib
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

from . import machine
from .paths import PYTHON, ROOT, VENV
from .problems import DISK, NETWORK, Failure, common, disk_full
from .process import Log, watch
from .progress import Progress

OPTIONAL = {
    "oracle": "PyTorch",
    "packages": "the packages of tests/packages",
    "clusters": "Ray and Dask",
    "docs": "MkDocs",
}
# Bytes that a group's packages take.
PACKAGES_DISK = {"build": 2.5e9, "oracle": 1.5e9, "packages": 1.5e9, "clusters": 0.8e9}
DAY = 24 * 3600
LOCK = ROOT / "requirements" / "build-linux-x86_64.txt"  # by tools/pin.py
NETWORK_HELP = "check the network and the mirrors of apt and pip, then run this again"


# --- .venv --------------------------------------------------------------------------------------------------


def base_interpreter():
    """The interpreter that makes .venv: this one, or the one below it where .venv is active."""
    return getattr(sys, "_base_executable", None) or sys.executable


def whole():
    """Whether .venv was made to its end. Before there was the stamp `made`, Gloo's was the last one."""
    return (VENV / "made").exists() or (VENV / "installed-libgloo-dev").exists()


def damage():
    """Why .venv cannot be used, in words; None if it can."""
    if not VENV.is_dir():
        return "it is not there"
    if not whole():
        return "its making was interrupted"
    if not os.access(PYTHON, os.X_OK):
        return f"its interpreter {os.path.realpath(PYTHON)} is gone"
    try:
        version = re.search(r"^version = (\d+\.\d+)", (VENV / "pyvenv.cfg").read_text(), re.M)[1]
        script = (VENV / "bin" / "pip").read_text(encoding="utf-8", errors="surrogateescape")
    except (OSError, TypeError):
        return "files of it are missing"
    named = re.search(r"python(\d+\.\d+)$", os.path.realpath(PYTHON))
    if named and named[1] != version:
        return f"it was made for Python {version}, its interpreter is {named[1]} now"
    # Programs in it begin with the interpreter's path; a long one, or one with spaces, stands in quotes.
    first = re.search(r"^(?:#!(/.*python[\d.t]*)|'''exec' \"?(.*?python[\d.t]*)\"? )", script, re.M)
    made_for = Path(first[1] or first[2]).parent if first else VENV / "bin"
    if os.path.realpath(made_for) != os.path.realpath(VENV / "bin"):
        return f"it was made for {made_for.parent}"
    return None


def make():
    """Make .venv, unless it is there and whole."""
    wrong = damage()
    if wrong is None:
        return
    if VENV.is_symlink():
        raise Failure(f".venv is a link, and unusable: {wrong}; remove the link and run this again")
    begun = {"bin", "include", "lib", "lib64", "pyvenv.cfg"}
    if (
        VENV.is_dir()
        and not (VENV / "pyvenv.cfg").exists()
        and {path.name for path in VENV.iterdir()} - begun
    ):
        raise Failure(f"{VENV} is no virtual environment: move it away and run this again")
    machine.check_writable(VENV)
    if VENV.exists():
        print(f"dev: making .venv anew: {wrong}", flush=True)
        for stamp in [VENV / "made", *VENV.glob("installed-*"), *VENV.glob("group-*")]:
            stamp.unlink(missing_ok=True)  # before anything else goes
    lines, progress = [], Progress("making .venv")
    try:
        status = watch([base_interpreter(), "-m", "venv", "--clear", VENV], lines.append, progress.tick)
    finally:
        progress.clear()
    if status:
        text = "\n".join(lines)
        if line := common(text, VENV):
            raise Failure(line)
        if "ensurepip" in text or "No module named" in text:
            raise Failure(
                "this Python has no venv module: install it (Debian and Ubuntu: apt install python3-venv), "
                "then run this again"
            )
        raise Failure(f"python3 -m venv failed: {lines[-1] if lines else 'it said nothing'}")
    (VENV / "made").touch()


# --- packages from PyPI -------------------------------------------------------------------------------------


def groups(text):
    """The dependency groups of pyproject.toml: lists of strings, one a line or several. Python 3.10 has no
    TOML reader, and pip before 25.1 knows no groups."""
    table = re.search(r"^\[dependency-groups\]\n(.*?)(?=^\[|\Z)", text, re.M | re.S)[1]
    found = {}
    for name, body in re.findall(r"^([\w-]+) = \[(.*?)\]\s*(?:#[^\n]*)?$", table, re.M | re.S):
        body = re.sub(r'("[^"\n]*")|#[^\n]*', lambda match: match[1] or "", body)
        found[name] = re.findall(r'"([^"\n]*)"', body)
    return found


def requirements(group):
    return groups((ROOT / "pyproject.toml").read_text(encoding="utf-8"))[group]


def asked_for(group):
    """What pip is asked to install for a group: for the build, files with these hashes and no others, where
    their list is for this machine. (Python 3.10 needs more than the list has.)"""
    known = platform.machine() == "x86_64" and sys.platform == "linux" and sys.version_info >= (3, 11)
    if group == "build" and known and platform.libc_ver()[0] == "glibc":
        return ["--require-hashes", "--no-deps", "-r", LOCK]
    return requirements(group)


def digest(group):
    """Of all that decides what is installed: where files are pinned, of their list, too."""
    wanted = json.dumps(requirements(group))
    if LOCK in asked_for(group):
        wanted += LOCK.read_text(encoding="utf-8")
    return hashlib.sha256(wanted.encode()).hexdigest()


def install(*names):
    """Install dependency groups into .venv, unless that was done for the same requirements."""
    make()
    for name in names:
        stamp = VENV / f"group-{name}"
        wanted = digest(name)
        if stamp.exists() and stamp.read_text() == wanted:
            continue
        machine.check_writable(VENV)
        try:
            install_group(name)
        except Failure as failure:
            if name not in OPTIONAL:
                raise
            print(f"dev: {OPTIONAL[name]} could not be installed, what needs it is skipped: {failure}")
            continue
        stamp.write_text(wanted)


def install_group(name):
    begun = VENV / f"group-{name}.begun"
    if begun.exists():
        remove_halves()
    elif not (VENV / f"group-{name}").exists():
        machine.check_disk(PACKAGES_DISK.get(name, 0.5e9), f"the group {name!r} of packages", VENV)
    begun.touch()
    progress = Progress(f"installing packages ({name})")

    def take(line):
        log.add(line)
        if match := re.match(r"\s*(?:Collecting|Downloading|Using cached) (?:\S*/)?(.*)", line):
            progress.update(detail=match[1])
        elif line.startswith("Installing collected packages"):
            progress.update(detail="unpacking")

    # For packages that ask for PyTorch the alias stands in, so that pip neither fetches nor replaces it.
    alias = ROOT / "rushlight" / "_command" / "torch_path"
    variables = {"PYTHONPATH": alias} if name == "packages" else {}
    options = ["--disable-pip-version-check", "--no-input", "--progress-bar", "off"]
    try:
        with Log(VENV / f"pip-{name}.log") as log:
            command = [PYTHON, "-m", "pip", "install", *options, *asked_for(name)]
            status = watch(command, take, progress.tick, **variables)
    finally:
        progress.clear()
    if status:
        raise Failure(pip_failure(log.text(), status, log.path))
    begun.unlink()


def pip_failure(text, status, log):
    """One line for what pip printed."""
    if line := common(text, VENV):
        return line
    if status == -9:
        return machine.out_of_memory(1).replace("the compiler", "pip")
    found = re.search(r"No matching distribution found for (.*)", text)
    package = found[1].strip() if found else "packages"
    if NETWORK.search(text) or "(from versions: none)" in text:
        return (
            f"pip cannot reach its index for {package}: check the network, or name a mirror in PIP_INDEX_URL "
            f"or a folder of wheels in PIP_FIND_LINKS, then run this again (all that pip printed: {log})"
        )
    errors = re.findall(r"^ERROR: (.*)", text, re.M)
    said = errors[0] if errors else (text.strip().splitlines() or ["it said nothing"])[-1]
    return f"pip failed: {said} (all that it printed: {log})"


# Run by .venv's Python: packages without a list of their files, or whose files are not all there.
_HALVES = """
import importlib.metadata, os
for d in importlib.metadata.distributions():
    path = str(getattr(d, "_path", ""))
    if path.endswith(".dist-info") and (not d.files or not all(os.path.exists(f.locate()) for f in d.files)):
        print(path)
"""


def remove_halves():
    """Forget packages whose installation was interrupted half way: pip takes them for installed."""
    printed = subprocess.run([PYTHON, "-I", "-c", _HALVES], capture_output=True, text=True).stdout
    for path in printed.splitlines():
        shutil.rmtree(path, ignore_errors=True)


# --- packages from Debian -----------------------------------------------------------------------------------

# What a build looks for: process groups, and the server with its TLS.
LIBRARIES = {"Gloo": "libgloo-dev", "Boost": "libboost-dev", "OpenSSL": "libssl-dev"}


def debian_packages(names, retry=False):
    """Libraries that are not installed: Debian's packages, unpacked in .venv, which needs no rights. The
    answer is the folder, or None where there is no apt: the build then leaves out what needs them."""
    root = VENV / "debian"
    for library, package in names.items():
        stamp, failed = VENV / f"installed-{package}", VENV / f"failed-{package}"
        if stamp.exists() or not (shutil.which("apt-get") and shutil.which("dpkg")):
            continue
        if failed.exists() and time.time() - failed.stat().st_mtime < DAY and not retry:
            continue
        machine.check_writable(VENV)
        progress = Progress(f"unpacking {library}")
        try:
            unpacked = unpack_debian(package, root, progress)
        finally:
            progress.clear()
            shutil.rmtree(VENV / "apt", ignore_errors=True)
        if unpacked:
            stamp.touch()
            failed.unlink(missing_ok=True)
        else:
            failed.touch()
            print(
                f"dev: {library} could not be fetched by apt-get, what needs it is left out; "
                "`./dev build --fresh` tries again, as does any build after a day",
                flush=True,
            )
    return root if root.exists() else None


def unpack_debian(package, root, progress):
    """Download a package and what it needs and this machine lacks; whether that worked."""
    work = VENV / "apt"
    shutil.rmtree(work, ignore_errors=True)
    (work / "lists" / "partial").mkdir(parents=True)
    own_cache = ["-o", f"Dir::Cache={work}", "-o", "Acquire::http::Timeout=20", "-o", "Acquire::Retries=1"]
    own_lists = [*own_cache, "-o", f"Dir::State::lists={work / 'lists'}"]

    def apt(*command):
        lines = []
        status = watch(command, lines.append, progress.tick, work)
        if status and DISK.search("\n".join(lines)):
            raise Failure(disk_full())
        return status, lines

    for lists in (own_cache, own_lists):  # the machine's lists of packages may be missing: fetched then
        if lists is own_lists:
            apt("apt-get", *lists, "update")
        what = ["install", "--print-uris", "--yes", "-qq", "--no-install-recommends", package]
        status, printed = apt("apt-get", *lists, *what)
        needed = [line.split()[1].split("_")[0] for line in printed if re.match(r"'\S+' \S+_\S+\.deb ", line)]
        if status == 0 and not needed:
            return True  # it is installed
        if needed and apt("apt-get", *lists, "download", *needed)[0] == 0:
            break
    else:
        return False
    archives = list(work.glob("*.deb"))
    return bool(archives) and all(apt("dpkg", "-x", archive, root)[0] == 0 for archive in archives)
