"""`./dev portability`: which sources it compiles, and what its table says."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
SRC = ROOT / "src"


@pytest.fixture
def portability(monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(ROOT / "tools")
    from dev import portability

    monkeypatch.setattr(portability, "BUILD", tmp_path)
    return portability


def _compiler(tmp_path):
    """A compiler that refuses the files of src/core/host, and warns of one other."""
    program = tmp_path / "c++"
    program.write_text(
        f"#!{sys.executable}\nimport sys\n"
        "last = sys.argv[-1]\n"
        "if '/host/' in last: sys.exit('x.h:1:2: fatal error: no such header\\nmore')\n"
        "if last.endswith('dims.cpp'): sys.stderr.write('y.cpp:3: warning: unused\\n')\n"
    )
    program.chmod(0o755)
    return program


def test_each_source_is_compiled_for_its_system(portability):
    folders = ("core", "cpu", "frontend")
    target = portability.Target(["c++"], ("windows",), portability.X86)
    units = list(portability.units(target, folders))
    paths = {path for path, _, _ in units}
    for folder in ("core", "core/host", "core/host/windows", "cpu", "cpu/isa", "frontend/nn"):
        there = set((SRC / folder).glob("*.cpp"))
        assert there and there <= paths, folder
    assert not any(part in path.parts for path in paths for part in ("posix", "linux", "macos"))
    isa = [options for path, options, _ in units if path == SRC / "cpu" / "isa" / "arithmetic.cpp"]
    assert [[word for word in options if "RL_ISA" in word] for options in isa] == [
        [f"-DRL_ISA={name}"] for name in ("baseline", "avx2", "avx512")
    ]
    assert {path.parts[-2] for path in paths if "host" in path.parts} == {"host", "windows"}


def test_the_table_counts_what_a_compiler_says(portability, tmp_path, monkeypatch):
    compiler = _compiler(tmp_path)
    target = portability.Target([str(compiler)], ("posix", "macos"), portability.ARM)
    monkeypatch.setitem(portability.TARGETS, "macos", lambda folder: target)
    problems, count = portability.check("macos", ["core"])
    of_host = [path for part in ("", "posix", "macos") for path in (SRC / "core/host" / part).glob("*.cpp")]
    assert count == len(list((SRC / "core").glob("*.cpp"))) + len(of_host)
    lines = portability.table({"macos": (problems, count)})
    assert lines[2] == f"| macos | {count} | {count - len(of_host)} | 1 |"
    assert lines[-2:] == [f"macos: {len(of_host)} times: no such header", "macos: 1 times: unused"]
    text = (tmp_path / "portability" / "macos" / "problems.txt").read_text()
    assert "== src/core/host/posix/file.cpp\nx.h:1:2: fatal error: no such header\nmore" in text


def test_the_newest_clang_is_taken_and_old_ones_are_refused(portability, tmp_path, monkeypatch):
    def install(name, version):
        program = tmp_path / name
        program.write_text(f"#!{sys.executable}\nprint({version!r})\n")
        program.chmod(0o755)

    monkeypatch.setenv("PATH", str(tmp_path))
    install("clang++", "14.0.6")
    with pytest.raises(portability.Failure, match="version 16 or newer"):
        portability.clang()
    install("clang++-17", "17.0.1")
    install("clang++-19", "19.1.7")
    assert portability.clang() == "clang++-19"


def test_a_target_that_is_none(tmp_path):
    ran = subprocess.run(
        [sys.executable, ROOT / "dev", "portability", "vms"], capture_output=True, text=True, cwd=ROOT
    )
    assert ran.returncode == 1
    assert ran.stderr.startswith("dev: portability: 'vms' is none of clang, macos, windows, core, device,")
