"""A wheel for another processor, from a build that is there: `./dev cross`.

Build backends ask the interpreter that runs them what to build for; here the answer is another one.
"""

import base64
import hashlib
import importlib.util
import shutil
import subprocess
import zipfile

from .cross import MEGABYTES, VERSION, variables
from .paths import PYTHON, ROOT
from .problems import Failure, common
from .process import Log, run, watch

PLATFORM = "manylinux_2_36_aarch64"  # Debian 12's C library and compiler
# Written by the build backend: METADATA, entry points, the licence.
METADATA = """
import sys
from scikit_build_core.build import prepare_metadata_for_build_wheel
print(prepare_metadata_for_build_wheel(sys.argv[1]))
"""


def make(system, build, built, dist):
    """A wheel of the sources, without what a build writes there (`built`), and of a build's own files."""
    stage = system.folder / "stage"
    shutil.rmtree(stage, ignore_errors=True)
    stage.mkdir()
    words = [PYTHON, "-m", "cmake", "--install", build, "--prefix", stage / "all", "--strip"]
    with Log(system.folder / "install.log") as log:
        if watch(words, log.add, lambda: None):
            raise Failure(common(log.text()) or f"the build's files could not be copied ({log.path})")
    package = stage / "wheel" / "rushlight"
    skipped = shutil.ignore_patterns("__pycache__", "*.so", *built)
    shutil.copytree(ROOT / "rushlight", package, ignore=skipped)
    shutil.copytree(stage / "all" / "rushlight", package, dirs_exist_ok=True)
    words = [PYTHON, "-c", METADATA, stage / "wheel"]
    ran = subprocess.run(list(map(str, words)), capture_output=True, text=True, cwd=ROOT)
    if ran.returncode:
        raise Failure(f"the wheel's metadata: {ran.stderr.strip().splitlines()[-1]}")
    (info,) = (stage / "wheel").glob("*.dist-info")
    python = "cp" + VERSION.replace(".", "")
    tag = f"{python}-{python}-{PLATFORM}"
    text = f"Wheel-Version: 1.0\nGenerator: ./dev cross\nRoot-Is-Purelib: false\nTag: {tag}\n"
    (info / "WHEEL").write_text(text)
    name = f"{info.stem}-{tag}.whl"
    _archive(stage / "wheel", info, stage / name)
    dist.mkdir(parents=True, exist_ok=True)
    return _tool("wheels").pack(stage / name, dist)


def _archive(folder, info, path):
    record = info / "RECORD"
    files = sorted(file for file in folder.rglob("*") if file.is_file() and file != record)
    lines = []
    for file in files:
        data = file.read_bytes()
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        lines.append(f"{file.relative_to(folder)},sha256={digest},{len(data)}\n")
    record.write_text("".join([*lines, f"{record.relative_to(folder)},,\n"]))
    with zipfile.ZipFile(path, "w") as archive:
        for file in [*files, record]:
            archive.write(file, file.relative_to(folder))


def check(system, wheel):
    """Its contents, its size and, under the emulator, a training, as tools/check_wheel.py has them; but it is
    unpacked and not installed."""
    checks = _tool("check_wheel")
    place = system.folder / "unpacked-wheel"
    shutil.rmtree(place, ignore_errors=True)
    with zipfile.ZipFile(wheel) as archive:
        wrong = checks.contents(archive.namelist())
        parts = checks.sizes(archive.infolist())
        archive.extractall(place)
    for part, (packed, unpacked) in parts.items():
        print(f"{packed / 1e6:8.2f} MB of {unpacked / 1e6:6.2f}  {part}")
    size = wheel.stat().st_size / 1e6
    if size > MEGABYTES:
        wrong.append(f"{size:.1f} MB are more than {MEGABYTES}")
    if wrong:
        raise Failure("; ".join(f"{wheel.name}: {text}" for text in wrong))
    program = checks.TRAINS.replace('"site-packages"', repr(place.name))
    alone = {**variables(system, place), "PYTHONPATH": place}
    run(system.python, "-c", program, system.folder / "model.pt", cwd=place, **alone)
    print(f"{wheel}: {size:.1f} MB, checked")


def _tool(name):
    spec = importlib.util.spec_from_file_location(name, ROOT / "tools" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
