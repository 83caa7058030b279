"""What `./dev` finds out: cores and memory, groups of packages, how long units take."""

import json
import os
import re
import shutil
import subprocess
import sys

import pytest
from dev_project import ROOT, module

# --- what the machine has -----------------------------------------------------------------------------------


def control_groups(tmp_path, version, **files):
    proc, groups = tmp_path / "proc", tmp_path / "cgroup"
    (proc / "self").mkdir(parents=True)
    (proc / "meminfo").write_text("MemTotal: 64000000 kB\nMemAvailable: 32000000 kB\n")
    lines = {2: "0::/box/inner\n", 1: "4:memory:/box/inner\n1:cpu,cpuacct:/box/inner\n0::/\n"}
    (proc / "self" / "cgroup").write_text(lines[version])
    for name, text in files.items():
        path = groups / name.replace("__", "/").replace("_dot_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return proc, groups


def test_cores_and_memory_of_control_groups(tmp_path, monkeypatch):
    machine = module("machine")
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(16)), raising=False)
    plain = control_groups(tmp_path / "plain", 2)
    assert machine.usable_cores(*plain) == 16 and machine.usable_memory(*plain) == 32_000_000 * 1024
    # The outer group's limit counts too; files that the kernel can drop do not.
    second = control_groups(
        tmp_path / "second",
        2,
        box__cpu_dot_max="250000 100000\n",
        box__inner__cpu_dot_max="max 100000\n",
        box__memory_dot_max="4000000000\n",
        box__memory_dot_current="3000000000\n",
        box__memory_dot_stat="anon 5\ninactive_file 500000000\n",
        box__inner__memory_dot_max="max\n",
    )
    assert machine.usable_cores(*second) == 3 and machine.usable_memory(*second) == 1_500_000_000
    first = control_groups(
        tmp_path / "first",
        1,
        **{
            "cpu__box__inner__cpu_dot_cfs_quota_us": "150000",
            "cpu__box__inner__cpu_dot_cfs_period_us": "100000",
            "memory__box__memory_dot_limit_in_bytes": "2000000000",
            "memory__box__memory_dot_usage_in_bytes": "100000000",
            "memory__box__inner__memory_dot_limit_in_bytes": "9223372036854771712",
        },
    )
    assert machine.usable_memory(*first) == 1_900_000_000
    (tmp_path / "first/cgroup/cpu").rename(tmp_path / "first/cgroup/cpu,cpuacct")
    assert machine.usable_cores(*first) == 2


def test_jobs_follow_memory(monkeypatch):
    machine = module("machine")
    monkeypatch.delenv("CMAKE_BUILD_PARALLEL_LEVEL", raising=False)
    monkeypatch.setattr(machine, "usable_cores", lambda: 8)
    for memory, expected in ((None, 8), (64e9, 8), (4e9, 3), (1e8, 1)):
        monkeypatch.setattr(machine, "usable_memory", lambda memory=memory: memory)
        assert machine.jobs() == expected
    monkeypatch.setenv("CMAKE_BUILD_PARALLEL_LEVEL", "5")
    assert machine.jobs() == 5
    monkeypatch.setenv("CMAKE_BUILD_PARALLEL_LEVEL", "many")
    with pytest.raises(module("problems").Failure, match="must be a number of jobs"):
        machine.jobs()


def test_groups_of_packages_are_read_as_toml_means_them():
    text = (ROOT / "pyproject.toml").read_text()
    read = module("environment").groups(text)
    assert "ninja" in read["build"] and read["demo"] == ["matplotlib"]
    if sys.version_info >= (3, 11):
        import tomllib

        assert read == tomllib.loads(text)["dependency-groups"]


# --- times --------------------------------------------------------------------------------------------------


def units(count):
    return {f"src/ops/f{i}.cpp rushlight": 5.0 + i for i in range(count)}


def test_a_unit_that_became_slower_is_named_whatever_the_machine():
    slower = module("times").slower
    costs = units(40)
    now = {unit: took * 3 for unit, took in costs.items()}
    assert slower(now, costs) == []
    name = "src/ops/f7.cpp rushlight"
    now[name] *= 2.1
    (line,) = slower(now, costs)
    assert line == f"{name} took 75.6 s to compile, 2.1 times its share (36.0 s)"
    # A few units say nothing of the machine's pace; new ones have no share; short ones are noise.
    assert slower({unit: took * 9 for unit, took in units(5).items()}, costs) == []
    assert slower({**now, "src/new.cpp rushlight": 500.0}, costs) == [line]
    assert slower({unit: took / 100 for unit, took in now.items()}, costs) == []


def test_costs_are_saved_as_shares_and_read_back(project, tmp_path):
    times = module("times")
    project.builds()
    folder = project.root / "build/dev"
    count, total = times.save(folder, tmp_path / "costs.txt")
    text = (tmp_path / "costs.txt").read_text()
    assert count == 4 and "src/a.cpp small" in text
    assert sum(float(line.split()[0]) for line in text.splitlines()[2:]) == pytest.approx(100, abs=0.1)
    assert sum(times.recorded(tmp_path / "costs.txt").values()) == pytest.approx(total, abs=1.0)
    (folder / "compiled.json").write_text("{}")
    with pytest.raises(module("problems").Failure, match="4 units in .* CCACHE_DISABLE=1"):
        times.save(folder, tmp_path / "costs.txt")


def test_units_from_ccache_have_no_time(project):
    if not shutil.which("ccache"):
        pytest.skip("needs ccache")
    text = (project.root / "CMakeLists.txt").read_text()
    launcher = "find_program(CCACHE ccache)\nset(CMAKE_CXX_COMPILER_LAUNCHER ${CCACHE})\nfile(GLOB"
    (project.root / "CMakeLists.txt").write_text(text.replace("file(GLOB", launcher, 1))
    variables = {"CCACHE_DISABLE": None, "CCACHE_DIR": str(project.root / "cache")}
    kept = project.root / "build/dev/compiled.json"
    project.builds(**variables)
    assert len(json.loads(kept.read_text())) == 4
    shutil.rmtree(project.root / "build")
    project.source("a", "int a() { return 7; }\n")
    project.builds(**variables)
    assert list(json.loads(kept.read_text())) == ["src/a.cpp small"]


def test_the_compilers_cache_tells_headers_apart_by_their_comments(tmp_path):
    """A precompiled header that holds another comment than the header of today fails on `#pragma once`."""
    tools = [shutil.which(name) for name in ("ccache", "cmake", "ninja", "g++")]
    if not all(tools):
        pytest.skip("needs ccache, cmake, ninja and g++")
    (tmp_path / "cmake/precompiled").mkdir(parents=True)
    (tmp_path / "cmake/precompiled/all.h").write_text('#pragma once\n#include "one.h"\n')
    (tmp_path / "a.cpp").write_text('#include "one.h"\nint a() { return One().x; }\n')
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.25)\nproject(small CXX)\n"
        f"include({ROOT}/cmake/Toolchain.cmake)\ninclude({ROOT}/cmake/PrecompiledHeaders.cmake)\n"
        "add_library(small OBJECT a.cpp)\nprecompile(small all)\n"
    )
    environment = {name: value for name, value in os.environ.items() if not name.startswith("CCACHE_")}
    environment["CCACHE_DIR"] = str(tmp_path / "cache")
    configure = ["cmake", "-G", "Ninja", "-S", tmp_path, "-B", tmp_path / "build"]
    for comment in ("short", "another, longer"):
        (tmp_path / "one.h").write_text(f"#pragma once\n// {comment}\nstruct One {{ int x = 1; }};\n")
        for command in (configure, ["ninja", "-C", tmp_path / "build"]):
            made = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)
            assert made.returncode == 0, made.stdout + made.stderr
        shutil.rmtree(tmp_path / "build")
    counted = subprocess.run(["ccache", "-s"], env=environment, capture_output=True, text=True, check=True)
    assert re.search(r"Misses: +4 /", counted.stdout), counted.stdout  # it was asked each time


def test_an_edit_is_measured_and_taken_back(project, monkeypatch):
    times = module("times")
    monkeypatch.setattr(times, "ROOT", project.root)
    monkeypatch.setattr(times, "EDITS", {"kernel": ("src/a.cpp", "tests/x.py", "word", 0.0)})
    project.builds()
    file, ran = project.root / "src/a.cpp", []
    before = file.read_bytes(), file.stat().st_mtime_ns

    def build():
        return int(re.search(r"(\d+) steps|$", project.builds())[1] or 0)

    head, line = times.edit_to_test(["kernel"], build, lambda *words: ran.append((*words, file.read_bytes())))
    assert ran == [("tests/x.py", "word", before[0] + b"// edited to measure a build\n")]
    assert head.split() == ["edit", "units", "build", "test", "total", "target"]
    assert re.fullmatch(r"kernel: src/a.cpp +1 +[\d.]+s +[\d.]+s +[\d.]+s +0s  over", line)
    assert (file.read_bytes(), file.stat().st_mtime_ns) == before
    assert project.builds() == ""


def test_edited_files_and_their_tests_exist():
    for file, tests, words, _ in module("times").EDITS.values():
        assert (ROOT / file).exists()
        assert re.search(rf"^def test_\w*{words}", (ROOT / tests).read_text(), re.M), tests
