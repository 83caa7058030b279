"""Builds what is published: ``./dev wheel [--all | PYTHON ...]`` runs this (docs/releasing.md).

The source distribution comes first and every wheel is built from it, so that what is published can be built
from what is published. A wheel is repaired by auditwheel, which copies in libraries of the system and names
the oldest system that it runs on; it gets its bill of materials (tools/sbom.py) and is packed tightly, its
files in order and at the time SOURCE_DATE_EPOCH, or the last commit's; then it is checked
(tools/check_wheel.py).
"""

import argparse
import base64
import functools
import hashlib
import os
import re
import shutil
import struct
import subprocess
import sys
import tarfile
import time
import zipfile
import zlib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tools"))
import sbom  # noqa: E402

WORK = ROOT / "build" / "wheel"
CHECK = ROOT / "tools" / "check_wheel.py"
SUPPORTED = range(10, 15)  # minor versions of Python 3


def run(*command, **variables):
    print("wheel:", *command, flush=True)
    subprocess.run([str(word) for word in command], check=True, env={**os.environ, **variables})


def only(folder, pattern):
    (found,) = folder.glob(pattern)
    return found


def make_sdist(dist):
    """The source distribution, and a folder with what it holds."""
    shutil.rmtree(WORK, ignore_errors=True)
    made = WORK / "sdist"
    # Of the build's packages the list of hashes leaves out what nothing is linked with (MKL's OpenMP).
    options = ["--no-isolation", "--skip-dependency-check"]
    run(sys.executable, "-m", "build", "--sdist", *options, "--outdir", made, ROOT)
    archive = shutil.copy2(only(made, "*.tar.gz"), dist)
    with tarfile.open(archive) as tar:
        tar.extractall(made, **({"filter": "data"} if hasattr(tarfile, "data_filter") else {}))
    return archive, only(made, "*/pyproject.toml").parent


def install_backend():
    """The build backend, which is Python alone, for all interpreters: scikit-build-core empties a build
    folder that was another installation's, and with it what the interpreters have in common."""
    backend = WORK / "backend"
    needs = ["scikit-build-core>=1.0", "exceptiongroup", "tomli", "typing-extensions"]  # Python 3.10's too
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
    run(*pip, "install", "--quiet", "--target", backend, *needs)
    return backend


def ask(interpreter, question):
    answer = subprocess.run([interpreter, "-c", question], capture_output=True, text=True)
    return answer.stdout.strip() if answer.returncode == 0 else ""


TAG = """
import importlib.util, os, sys, sysconfig
assert os.path.exists(sysconfig.get_path("include") + "/Python.h") and importlib.util.find_spec("venv")
free_threaded = "t" if sysconfig.get_config_var("Py_GIL_DISABLED") else ""
print(f"{sys.version_info[0]}{sys.version_info[1]}{free_threaded}")
"""


def every_interpreter():
    """One for each supported version that this machine has with headers and venv: on the path, of pyenv, and
    where the images of manylinux keep them."""
    folders = [Path(folder) for folder in os.get_exec_path()]
    folders += sorted(Path.home().glob(".pyenv/versions/*/bin")) + sorted(Path("/opt/python").glob("*/bin"))
    names = [f"python3.{minor}{kind}" for minor in SUPPORTED for kind in ("", "t")]
    paths = [folder / name for folder in folders for name in names if (folder / name).exists()]
    found = {}
    for path in paths:
        if (tag := ask(path, TAG)) and tag.rstrip("t")[1:] in map(str, SUPPORTED):
            found.setdefault(tag, path)
    return [found[tag] for tag in sorted(found)]


def make_wheel(source, interpreter, backend, defines):
    """A wheel for one interpreter. Its environment holds pip alone: the libraries to link, some gigabytes,
    are those of the environment that runs this file, and the first interpreter's build compiles the core."""
    tag = ask(interpreter, TAG)
    if not tag:
        sys.exit(f"wheel: {interpreter} cannot be built for: it needs its headers and the module venv")
    folder = WORK / f"cp{tag}"
    run(interpreter, "-m", "venv", folder / "venv")
    python = folder / "venv" / "bin" / "python"
    settings = {f"cmake.define.{name}": value for name, value in defines.items()}
    settings["build-dir"] = source / "build" / "dev"  # as ./dev has it: ccache finds what that compiled
    options = [f"--config-settings={name}={value}" for name, value in settings.items()]  # -C is pip 23.1's
    pip = [python, "-m", "pip", "--disable-pip-version-check", "wheel", "--no-deps", "--no-build-isolation"]
    # By the names that CMake looks for: else the backend takes those that its interpreter was compiled with,
    # of which the cache knows nothing.
    compilers = {"CC": os.environ.get("CC", "cc"), "CXX": os.environ.get("CXX", "c++")}
    run(*pip, "-w", folder / "raw", *options, source, PYTHONPATH=str(backend), **compilers)
    return only(folder / "raw", "*.whl")


def bundled(names):
    """The libraries among a wheel's files that the build put into it."""
    return sorted({Path(name).name for name in names if re.match(r"rushlight/lib/[^/]+\.so(\.\d+)*$", name)})


def repair(wheel, dist, debian_root):
    """Let auditwheel finish the wheel; what it copies into it is found in debian_root or on the system."""
    folders = [debian_root / "usr/lib", *(debian_root / "usr/lib").glob("*-linux-gnu")] if debian_root else []
    paths = os.pathsep.join([*map(str, folders), *filter(None, [os.environ.get("LD_LIBRARY_PATH")])])
    variables = {"LD_LIBRARY_PATH": paths} if paths else {}
    out = wheel.parent.parent / "repaired"
    run(sys.executable, "-m", "auditwheel", "show", wheel, **variables)
    # libdnnl is loaded by name, so auditwheel does not find what it needs, which lies beside it.
    with zipfile.ZipFile(wheel) as archive:
        there = [f"--exclude={name}" for name in bundled(archive.namelist())]
    run(sys.executable, "-m", "auditwheel", "repair", "-z", "1", "-w", out, *there, wheel, **variables)
    return pack(only(out, "*.whl"), dist)


@functools.cache
def deflated(data):
    """What any unzip reads, 3% smaller than zlib's best. Wheels for several interpreters share libraries."""
    import deflate  # of the group `wheel`

    return deflate.deflate_compress(data, 12)


def epoch():
    """The time that files get: SOURCE_DATE_EPOCH, or the last commit's."""
    if given := os.environ.get("SOURCE_DATE_EPOCH"):
        return int(given)
    asked = subprocess.run(["git", "log", "-1", "--format=%ct"], cwd=ROOT, capture_output=True, text=True)
    return int(asked.stdout) if asked.returncode == 0 else 0


def record_of(files):
    """The list of a wheel's files, with their hashes: what its RECORD holds, but for RECORD itself."""
    lines = []
    for name, data in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        lines.append(f"{name},sha256={digest},{len(data)}\n")
    return "".join(lines)


def contents(archive):
    """A wheel's files in the order of their names, with its bill of materials; RECORD comes last."""
    files = {info.filename: archive.read(info) for info in archive.infolist() if not info.is_dir()}
    record = next((name for name in files if re.fullmatch(r"[^/]+\.dist-info/RECORD", name)), None)
    if record is None:  # not a wheel
        return dict(sorted(files.items()))
    del files[record]
    folder = record.removesuffix("RECORD")
    files[f"{folder}sboms/rushlight.cdx.json"] = sbom.text_of(archive).encode()
    files = dict(sorted(files.items()))
    return {**files, record: f"{record_of(files)}{record},,\n".encode()}


def pack(wheel, dist):
    """The same archive, with its bill of materials and its files packed as tightly as can be."""
    records, directory = [], []
    offset = 0
    date = time.gmtime(max(epoch(), 315532800))[:6]  # an archive knows no time before 1980
    with zipfile.ZipFile(wheel) as archive:
        modes = {info.filename: info.external_attr for info in archive.infolist()}
        for filename, data in contents(archive).items():
            packed, method = deflated(data), zipfile.ZIP_DEFLATED
            if len(packed) >= len(data):
                packed, method = data, zipfile.ZIP_STORED
            name = filename.encode()
            year, month, day, hour, minute, second = date
            clock = (hour << 11 | minute << 5 | second // 2, (year - 1980) << 9 | month << 5 | day)
            common = struct.pack(
                "<HHHHHIIIHH",
                20,
                0x800,
                method,
                *clock,
                zlib.crc32(data),
                len(packed),
                len(data),
                len(name),
                0,
            )
            local = b"PK\3\4" + common + name
            place = struct.pack("<HHHII", 0, 0, 0, modes.get(filename, 0o100644 << 16), offset)
            directory.append(b"PK\1\2" + struct.pack("<H", 3 << 8 | 20) + common + place + name)
            records += [local, packed]
            offset += len(local) + len(packed)
    entries = b"".join(directory)
    end = struct.pack("<HHHHIIH", 0, 0, len(directory), len(directory), len(entries), offset, 0)
    out = dist / wheel.name
    out.write_bytes(b"".join([*records, entries, b"PK\5\6", end]))
    return out


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("interpreters", nargs="*", metavar="PYTHON", help="for which (the one running this)")
    parser.add_argument("--all", action="store_true", help="for each that is found, 3.10 to 3.14")
    parser.add_argument("--dist", type=Path, default=ROOT / "dist", help="where the results go (dist/)")
    parser.add_argument("--define", action="append", default=[], metavar="NAME=VALUE", help="a CMake option")
    options = parser.parse_args(arguments)
    if options.all and options.interpreters:
        parser.error("--all and names of interpreters exclude each other")
    interpreters = every_interpreter() if options.all else options.interpreters or [sys.executable]
    interpreters = [shutil.which(name) or name for name in interpreters]
    print("wheel: for", *interpreters)
    options.dist.mkdir(parents=True, exist_ok=True)
    debian_root = os.environ.get("RUSHLIGHT_DEBIAN_ROOT")
    # The CUDA backend would be in the wheel wherever the building machine has a compiler for it.
    defines = {
        "RUSHLIGHT_WHEELS_PYTHON": sys.executable,
        "RUSHLIGHT_CUDA": "off",
        "RUSHLIGHT_SLIM_LIBRARIES": "on",
    }
    defines |= {"RUSHLIGHT_DEBIAN_ROOT": debian_root} if debian_root else {}
    defines |= dict(text.split("=", 1) for text in options.define)

    archive, source = make_sdist(options.dist)
    backend = install_backend()
    made = []
    for interpreter in interpreters:
        raw = make_wheel(source, interpreter, backend, defines)
        made.append(repair(raw, options.dist, Path(debian_root) if debian_root else None))
        run(raw.parent.parent / "venv" / "bin" / "python", CHECK, made[-1])
    for path in (Path(archive), *made):
        print(f"{path.stat().st_size / 1e6:6.1f} MB  {path}")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except subprocess.CalledProcessError as error:
        sys.exit(f"wheel: {' '.join(map(str, error.cmd))} failed with status {error.returncode}")
