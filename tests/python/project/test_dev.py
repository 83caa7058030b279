"""`./dev` on a small project in the place of ours: its command line, what one sees, options, places."""

import ast
import io
import os
import pty
import re
import resource
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from dev_project import ROOT, module

# --- the command line ---------------------------------------------------------------------------------------


def bare(*words, **variables):
    """Run the real `./dev` where there is nothing: no PATH, no home."""
    ran = subprocess.run(
        [sys.executable, ROOT / "dev", *words],
        capture_output=True,
        text=True,
        env={"PATH": "/nowhere", **variables},
    )
    return ran


def test_without_arguments_the_commands_are_listed():
    ran = bare()
    assert ran.returncode == 0 and ran.stderr == ""
    names = re.findall(r"^\./dev ([a-z]+)", ran.stdout, re.M)
    assert names[:3] == ["demo", "test", "build"] and set(names) == set(module("commands").COMMANDS)
    assert ran.stdout == bare("help").stdout == bare("--help").stdout


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("biuld", "did you mean `./dev build`?"),
        ("tests", "did you mean `./dev test`?"),
        ("qqqq", "`./dev` lists them"),
        ("--nonsense", "unknown option --nonsense"),
        ("-jx", "-j needs a number"),
    ],
)
def test_what_is_no_command_is_said_in_one_line(typed, said):
    ran = bare(typed)
    assert ran.returncode == 1 and ran.stdout == ""
    assert said in ran.stderr and ran.stderr.count("\n") == 1


def test_help_of_a_command_starts_nothing():
    ran = bare("test", "tests/python", "--help")
    assert ran.returncode == 0 and ran.stdout.startswith("./dev test [pytest options]\n"), ran.stderr
    for name, (usage, summary, _) in module("commands").COMMANDS.items():
        assert module("main").help_of(name).startswith(f"./dev {usage}\n{summary}\n")
    assert "--epochs N" in bare("demo", "--help").stdout


def test_the_entry_is_read_by_old_interpreters_and_names_a_newer_one(tmp_path):
    text = (ROOT / "dev").read_text()
    ast.parse(text, feature_version=(3, 4))
    old = "import sys; sys.version_info = (3, 9, 1); sys.version = '3.9.1 (x)'; sys.argv = ['dev', 'build']\n"
    program = (
        old + f"exec(compile(open({str(ROOT / 'dev')!r}).read(), 'dev', 'exec'), {{'__name__': '__main__'}})"
    )
    (tmp_path / "python3.12").write_text("#!/bin/sh\n")
    (tmp_path / "python3.12").chmod(0o755)
    for path, hint in ((str(tmp_path), "run `python3.12 dev`"), ("/nowhere", "install a newer one")):
        ran = subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, env={"PATH": path}
        )
        assert ran.returncode == 1
        assert ran.stderr == f"dev: Python 3.10 or newer is needed, this is 3.9.1: {hint}\n"


# --- what one sees ------------------------------------------------------------------------------------------


def processor_time():
    """Seconds that this process's children took so far."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def test_a_build_prints_little_and_a_second_one_nothing(project):
    first = project.builds()
    beside = re.sub(r"(?m)^dev: \w+  .*\n", "", first)  # a slow machine takes long enough for more lines
    assert re.fullmatch(r"dev: configuring\ndev: building\ndev: built in \d:\d\d, 4 steps\n", beside)
    made = (project.root / "build/dev/build.ninja").stat().st_mtime_ns
    before = project.objects()
    begun = processor_time()
    assert project.builds() == ""
    assert processor_time() - begun < 1  # a sixth of a second is usual
    assert project.objects() == before
    assert (project.root / "build/dev/build.ninja").stat().st_mtime_ns == made


def test_a_second_build_starts_no_slow_program(project):
    project.builds()
    log = project.root / "started"
    site = next((project.root / ".venv").glob("lib/python*/site-packages"))
    # Not sitecustomize, which Debian's Python has of its own.
    (site / "started.pth").write_text(f"import sys; print(sys.argv, file=open({str(log)!r}, 'a'))\n")
    subprocess.run([project.root / ".venv/bin/python", "-c", ""], check=True)
    log.unlink()
    assert project.builds() == ""
    assert not log.exists()


def test_on_a_terminal_there_is_one_line_that_changes(project):
    reader, writer = pty.openpty()
    child = subprocess.Popen(
        project.command("build"), stdout=writer, stderr=writer, env={**os.environ, "TERM": "xterm"}
    )
    os.close(writer)
    seen = b""
    while True:
        try:
            chunk = os.read(reader, 65536)
        except OSError:
            break
        if not chunk:
            break
        seen += chunk
    os.close(reader)
    assert child.wait(60) == 0
    lines = seen.decode().replace("\r\n", "\n").split("\n")
    assert len(lines) == 2 and lines[1] == ""
    states = [state.rstrip() for state in lines[0].split("\r") if state.strip()]
    assert states[0].startswith("configuring  0:0")
    assert any(
        re.fullmatch(r"building  +\d+ %  0:\d\d, about 0:\d\d left  src/[abcd]\.cpp", s) for s in states
    ), states
    assert re.fullmatch(r"dev: built in 0:\d\d, 4 steps", states[-1])


def test_warnings_are_counted_and_kept_until_the_unit_is_compiled_again(project):
    project.source("b", "int b() { int unused; return 1; }\n")
    printed = project.builds()
    assert "unused" not in printed and "1 with warnings: " in printed
    kept = project.root / "build/dev/warnings.txt"
    assert "==== src/b.cpp small\n" in kept.read_text() and "unused" in kept.read_text()
    project.source("a", "int a() { return 2; }\n")
    assert "with warnings" not in project.builds()
    assert "unused" in kept.read_text()
    project.source("b", "int b() { return 2; }\n")
    project.builds()
    assert not kept.exists()


def test_a_failed_unit_is_shown_whole_and_once(project):
    project.source("b", "int b() { int unused; return 1; }\n")
    project.source("c", "int c() {\n  return no_such_name;\n}\n")
    ran = project.run("build")
    assert ran.returncode == 1
    assert ran.stdout.count("no_such_name;") == 1 and "dev: src/c.cpp failed:" in ran.stdout
    assert "unused" not in ran.stdout
    assert ran.stderr == "dev: src/c.cpp did not build (`./dev -v build` shows the whole command)\n"
    loud = project.run("-v", "build")
    assert loud.stdout.count("no_such_name;") == 1 and "-o CMakeFiles/small.dir/src/c.cpp.o" in loud.stdout
    project.source("c", "int c() { return 1; }\n")
    assert "1 steps" in project.builds()


def test_verbose_shows_warnings(project):
    project.source("b", "int b() { int unused; return 1; }\n")
    ran = project.run("build", "-v")
    assert "unused variable" in ran.stdout and re.search(r"^\[\d/\d\] Building CXX object", ran.stdout, re.M)


def test_new_files_are_found_without_configuring(project):
    project.builds()
    project.source("e", "int e() { return 1; }\n")
    project.builds()
    assert "e.cpp.o" in project.objects()


class FakeClock:
    def __init__(self):
        self.time = 0.0

    def __call__(self):
        return self.time


def test_without_a_terminal_a_line_comes_now_and_then():
    clock, out = FakeClock(), io.StringIO()
    progress = module("progress").Progress("building", out, clock)
    for second in range(1000):
        clock.time = float(second)
        progress.update(second / 1000, 1000.0 - second, "x.cpp")
    lines = out.getvalue().splitlines()
    assert 10 <= len(lines) <= 1000 / 30 + 2
    assert "dev: building    9 %  1:30, about 15:10 left  x.cpp" in lines


def test_remaining_time_is_weighed_by_what_steps_took_before():
    Estimate = module("ninja").Estimate
    outputs = ["short", "long", "unknown"]
    estimate = Estimate(outputs, {"short": 1.0, "long": 9.0}, 2)
    assert estimate.remaining(0.0) == pytest.approx(estimate.total / 2)
    estimate.finish("short", 1.0)
    early = estimate.share()
    estimate.finish("long", 10.0)
    assert early < 0.1 and 0.5 < estimate.share() < 0.6  # the unknown one counts as a usual one
    # A machine that is half as fast as expected.
    assert estimate.remaining(10.0) == pytest.approx(9.0, rel=0.1)
    estimate.finish("unknown", 20.0)
    estimate.finish("never announced", 20.0)
    assert estimate.share() == 1.0 and estimate.remaining(20.0) == 0.0


def test_remaining_time_forgets_what_came_from_a_cache():
    units = [f"unit {i}" for i in range(100)]
    estimate = module("ninja").Estimate(units, {unit: 10.0 for unit in units}, 2)
    for unit in units[:80]:
        estimate.finish(unit, 2.0)
    for second, unit in enumerate(units[80:90]):
        estimate.finish(unit, 2.0 + 5.0 * (second + 1))
    assert estimate.remaining(52.0) == pytest.approx(50.0, rel=0.15)


def test_ninjas_output_is_read():
    ninja = module("ninja")
    reader = ninja.Reader()
    mark = ninja.MARK
    for line in [
        "ninja: Entering directory `x'",
        f"{mark}1 3 Building CXX object CMakeFiles/rushlight_avx2.dir/src/cpu/isa/cast.cpp.o",
        "cast.cpp:1: warning: w",
        f"{mark}2 3 Building CXX object tests/cpp/CMakeFiles/emulated.dir/__/__/src/cuda/sort.cu.o",
        "FAILED: [code=1] tests/cpp/x.o",
        "c++ -c x",
        "sort.cu:2: error: e",
        "FAILED: is what a program printed",
        f"{mark}3 3 Linking CXX shared library /a b/librushlight.so",
        "ninja: build stopped: subcommand failed.",
    ]:
        reader.take(line)
    assert (reader.finished, reader.total) == (3, 3)
    assert [ninja.unit_of(step.output) for step in reader.steps] == [
        "src/cpu/isa/cast.cpp avx2",
        "src/cuda/sort.cu emulated",
        None,
    ]
    (failed,) = reader.failures()
    assert (
        failed.command == "c++ -c x"
        and failed.text().startswith("sort.cu:2")
        and "FAILED: is" in failed.text()
    )
    (warned,) = reader.talkative()
    assert ninja.shown(warned.output) == "src/cpu/isa/cast.cpp (avx2)"
    assert reader.steps[2].output == "/a b/librushlight.so"
    assert ninja.output_of('Linking CXX shared library "/a b/librushlight.so"') == "/a b/librushlight.so"
    assert reader.messages == ["ninja: build stopped: subcommand failed."]


# --- options and places -------------------------------------------------------------------------------------


def test_options_stay_in_force_and_a_changed_one_configures_again(project):
    assert "configuring" in project.builds("-DLEVEL=1")
    assert project.builds() == "" and project.builds("-DLEVEL:STRING=1") == ""
    assert "configuring" in project.builds("-DLEVEL=2")
    assert "configuring" in project.builds("--fresh")
    assert "\nLEVEL:" not in (project.root / "build/dev/CMakeCache.txt").read_text()


def test_another_compiler_is_taken_up(project):
    project.builds()
    path = project.fake("other++", 'exec c++ "$@"')
    assert "4 steps" in project.builds(CXX="other++", PATH=path)
    assert "fakes/other++" in (project.root / "build/dev/CMakeCache.txt").read_text()


def test_a_moved_checkout_builds_again(project, tmp_path):
    project.builds()
    project.root.rename(tmp_path / "elsewhere")
    project.root = tmp_path / "elsewhere"
    shutil.rmtree(project.root / ".venv")
    project.make_venv()
    assert "4 steps" in project.builds()
    assert project.builds() == ""


def test_a_build_apart_leaves_the_package_as_it_is(project):
    """As `./dev portable` and others build: beside links to the package's sources."""
    package = project.root / "rushlight"
    for name in ("nn.py", "_C.so"):
        (package / name).touch()
    (package / "lib").mkdir()
    code = "import sys; sys.path.insert(0, 'tools'); from dev.commands import BUILD, build_apart;"
    code += "print(build_apart(BUILD / 'apart', '-DLEVEL=3'))"
    for steps in (["4 steps"], []):
        ran = subprocess.run([sys.executable, "-c", code], cwd=project.root, capture_output=True, text=True)
        *printed, path = ran.stdout.splitlines()
        assert path == str(project.root / "build/apart/python"), ran.stderr
        assert [line.rsplit(", ")[1] for line in printed if "built in" in line] == steps
        (link,) = Path(path, "rushlight").iterdir()
        assert link.name == "nn.py" and link.resolve() == package / "nn.py"
    assert "LEVEL:UNINITIALIZED=3" in (project.root / "build/apart/CMakeCache.txt").read_text()
    assert not (project.root / "build/dev").exists()


def test_two_builds_in_one_folder_take_turns(project):
    project.fake("slow++", 'sleep 0.5; exec c++ "$@"')
    variables = {**os.environ, "CXX": str(project.root / "fakes/slow++"), "CCACHE_DISABLE": "1"}
    both = [
        subprocess.Popen(project.command("build"), stdout=subprocess.PIPE, text=True, env=variables)
        for _ in range(2)
    ]
    printed = [child.communicate(timeout=100)[0] for child in both]
    assert [child.returncode for child in both] == [0, 0]
    waited = [text for text in printed if "waiting for another build" in text]
    assert len(waited) == 1 and "steps" not in waited[0]
