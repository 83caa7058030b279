"""`./dev` where something is missing, broken, full or interrupted: one line, and the next run goes on.

Without network. Some need root, to mount or to be somebody else.
"""

import importlib.util
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time

import pytest
from dev_project import module


def test_no_compiler(project):
    line = project.fails("build", PATH="/nowhere", CXX=None)
    assert "no C++ compiler: install g++" in line
    assert "CXX names no-such++" in project.fails("build", CXX="no-such++")


def test_a_compiler_that_is_gone_after_configuring(project):
    path = project.fake("other++", 'exec c++ "$@"')
    project.builds(CXX="other++", PATH=path)
    (project.root / "fakes/other++").unlink()
    project.source("a", "int a() { return 3; }\n")
    assert "CXX names other++, which is not there" in project.fails("build", CXX="other++", PATH=path)


def test_no_headers(project):
    site = next((project.root / ".venv").glob("lib/python*/site-packages"))
    (site / "no_headers.pth").write_text("import sysconfig; sysconfig.get_path = lambda name: '/no where'\n")
    line = project.fails("build")
    assert "no Python headers in /no where: install them (Debian and Ubuntu: apt install python3-dev)" in line


def test_no_venv_module(project):
    venv = project.root / ".venv"
    (venv / "bin/python").unlink()
    # As Debian's Python without python3-venv does it: the folder is begun, then this is said.
    fake = project.root / "broken" / "venv"
    fake.mkdir(parents=True)
    (fake / "__init__.py").touch()
    (fake / "__main__.py").write_text(
        "import os, sys\nos.makedirs(sys.argv[-1] + '/bin', exist_ok=True)\n"
        "sys.exit('The virtual environment was not created because ensurepip is not\\navailable.')\n"
    )
    said = "this Python has no venv module: install it (Debian and Ubuntu: apt install python3-venv)"
    assert said in project.fails("build", PYTHONPATH=str(fake.parent))
    # Nothing that the old environment held counts any more.
    assert [path.name for path in venv.iterdir() if path.is_file()] == ["pyvenv.cfg"]
    (fake / "__main__.py").write_text("import ensurepip_of_nobody\n")
    assert said in project.fails("build", PYTHONPATH=str(fake.parent))


@pytest.mark.parametrize("jobs", ["1", "4"])
def test_a_compiler_killed_for_want_of_memory(project, jobs):
    """With several jobs fewer are tried; with one there is nothing left but to say so."""
    project.builds()
    project.fake("cc1plus", "kill -9 $$")
    project.source("a", "int a() { return 3; }\n")
    project.source("b", "int b() { return 3; }\n")
    # The compiler finds its parts where this says, as where the kernel kills one.
    ran = project.run("-j", jobs, "build", COMPILER_PATH=str(project.root / "fakes"))
    if ran.returncode == 0:
        pytest.skip("this compiler does not heed COMPILER_PATH")
    steps = re.findall(r"memory did not suffice for (\d) jobs, going on with (\d)", ran.stdout)
    assert steps == ([("4", "2"), ("2", "1")] if jobs == "4" else [])
    assert "the compiler ran out of memory" in ran.stderr and "add swap space" in ran.stderr
    assert ran.stderr.count("\n") == 1
    assert "2 steps" in project.builds()


def test_memory_that_suffices_with_fewer_jobs(project):
    project.builds()
    once = project.root / "once"
    real = subprocess.run(["c++", "-print-prog-name=cc1plus"], capture_output=True, text=True).stdout.strip()
    project.fake("cc1plus", f'if mkdir "{once}" 2> /dev/null; then kill -9 $$; fi; exec "{real}" "$@"')
    project.source("a", "int a() { return 3; }\n")
    project.source("b", "int b() { return 3; }\n")
    ran = project.run("-j", "2", "build", COMPILER_PATH=str(project.root / "fakes"))
    if not once.exists():
        pytest.skip("this compiler does not heed COMPILER_PATH")
    assert ran.returncode == 0, ran.stderr
    assert "memory did not suffice for 2 jobs, going on with 1" in ran.stdout


def test_a_full_disk_while_compiling(project):
    project.builds()
    project.fake("cc1plus", "echo 'x.s: fatal error: No space left on device' >&2; exit 1")
    project.source("a", "int a() { return 3; }\n")
    ran = project.run("build", COMPILER_PATH=str(project.root / "fakes"))
    if ran.returncode == 0:
        pytest.skip("this compiler does not heed COMPILER_PATH")
    assert re.search(r"dev: the disk is full: [\d.]+ GB are free in .*TMPDIR.*run this again", ran.stderr)


def test_a_source_that_speaks_of_a_full_disk_is_an_error_like_others(project):
    project.source("a", 'int a() { return "No space left on device Killed"; }\n')
    assert "src/a.cpp did not build" in project.fails("build")


def test_cmakes_message_is_the_line(project):
    line = project.fails("build", "-DPROBLEM=g++ 11 is too old:\n  take 12.")
    assert line.startswith("dev: g++ 11 is too old: take 12. (all that CMake printed: ")
    # The options of a failed run do not stay.
    assert "4 steps" in project.builds("-UPROBLEM")


def test_cmakes_message_when_ninja_runs_it(project):
    project.builds()
    text = (project.root / "CMakeLists.txt").read_text()
    (project.root / "CMakeLists.txt").write_text(text + 'message(FATAL_ERROR "the file\n  broke")\n')
    assert project.fails("build").startswith("dev: the file broke (")


def interrupt(project, number, slow="30"):
    """Begin a build of slow units and interrupt it by a signal; the exit status and what was printed."""
    project.fake("slow++", 'case "$*" in */src/[bcd].cpp*) sleep ' + slow + '; esac; exec c++ "$@"')
    variables = {**os.environ, "CXX": str(project.root / "fakes/slow++"), "CCACHE_DISABLE": "1"}
    project.source("a", "int a() { return 5; }\n")
    child = subprocess.Popen(
        project.command("-j", "2", "build"),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=variables,
        # Whoever runs the tests in the background may have had SIGINT ignored, and children inherit that.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    until = time.monotonic() + 60
    while "a.cpp.o" not in project.objects() and time.monotonic() < until:
        time.sleep(0.05)
    time.sleep(0.3)
    child.send_signal(number)
    printed = child.communicate(timeout=30)[0]
    return child.returncode, printed


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_build_goes_on_where_it_stopped(project, number):
    status, printed = interrupt(project, number)
    assert status == 128 + number
    assert (
        printed.endswith("dev: interrupted; the next run goes on from here\n") and "Traceback" not in printed
    )
    done = project.objects()
    assert set(done) == {"a.cpp.o"}
    project.fake("slow++", 'exec c++ "$@"')
    assert "3 steps" in project.builds(CXX=str(project.root / "fakes/slow++"))
    assert project.objects()["a.cpp.o"] == done["a.cpp.o"]


def test_a_killed_build_goes_on_where_it_stopped(project):
    status, _ = interrupt(project, signal.SIGKILL, slow="2")
    assert status == -signal.SIGKILL
    time.sleep(2.5)  # its compilers end by themselves
    done = project.objects()
    printed = project.builds(CXX=str(project.root / "fakes/slow++"))
    assert re.search(r"[123] steps", printed) and project.objects()["a.cpp.o"] == done["a.cpp.o"]


def test_an_interrupted_configuration_is_done_again(project):
    project.builds()
    stamp = project.root / "build/dev/configured.json"
    project.fails("build", "-DPROBLEM=stop")
    assert not stamp.exists()
    stamp.write_text("{half")
    assert "configuring" in project.builds("-UPROBLEM")
    json.loads(stamp.read_text())


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        ("none", None),
        ("no stamp", "its making was interrupted"),
        ("no interpreter", "its interpreter /nowhere/python3.11 is gone"),
        ("another place", "it was made for /other/pl ace/.venv"),
        ("another version", "it was made for Python 3.2, its interpreter is 3."),
    ],
)
def test_a_broken_environment_is_noticed(project, monkeypatch, damage, said):
    environment, venv = module("environment"), project.root / ".venv"
    monkeypatch.setattr(environment, "VENV", venv)
    monkeypatch.setattr(environment, "PYTHON", venv / "bin/python")
    (venv / "installed-libgloo-dev").unlink()
    if damage == "no stamp":
        (venv / "made").unlink()
    elif damage == "no interpreter":
        (venv / "bin/python").unlink()
        (venv / "bin/python").symlink_to("/nowhere/python3.11")
    elif damage == "another place":
        # As pip begins its scripts where a path has spaces or is long.
        quotes = "'" * 3
        text = f'#!/bin/sh\n{quotes}exec\' "/other/pl ace/.venv/bin/python3.11" "$0" "$@"\n\' {quotes}\n'
        (venv / "bin/pip").write_text(text)
    elif damage == "another version":
        config = (venv / "pyvenv.cfg").read_text()
        (venv / "pyvenv.cfg").write_text(re.sub(r"(?m)^version = .*", "version = 3.2.1", config))
    found = environment.damage()
    assert found is None if said is None else found.startswith(said)


def test_a_broken_environment_is_made_anew(project):
    venv = project.root / ".venv"
    (venv / "installed-libgloo-dev").unlink()
    (venv / "bin/python").unlink()
    # Without an index the packages cannot come: that is the end of this run, and its message.
    ran = project.run("build", PIP_NO_INDEX="1", PIP_CONFIG_FILE=os.devnull, PIP_FIND_LINKS="")
    assert "dev: making .venv anew: its interpreter " in ran.stdout
    assert (venv / "made").exists() and (venv / "bin/pip").exists() and (venv / "bin/python").exists()
    assert ran.returncode == 1 and ran.stderr.count("\n") == 1
    assert ran.stderr.startswith("dev: pip cannot reach its index for ")
    assert not (venv / "group-build").exists() and (venv / "group-build.begun").exists()


def test_a_folder_that_is_no_environment_is_left_alone(project):
    shutil.rmtree(project.root / ".venv")
    (project.root / ".venv").mkdir()
    (project.root / ".venv/precious").touch()
    assert ".venv is no virtual environment: move it away" in project.fails("build")
    assert (project.root / ".venv/precious").exists()


def test_a_link_to_an_unusable_environment_is_not_touched(project, tmp_path):
    (project.root / ".venv").rename(tmp_path / "shared")
    (tmp_path / "shared" / "made").unlink()
    (tmp_path / "shared" / "installed-libgloo-dev").unlink()
    (project.root / ".venv").symlink_to(tmp_path / "shared")
    assert ".venv is a link, and unusable: its making was interrupted" in project.fails("build")
    assert (tmp_path / "shared" / "bin").is_dir()


def test_no_network(project):
    if importlib.util.find_spec("pip") is None:
        pytest.skip("this environment has no pip")
    if project.pinned():  # then what the list has is installed, and no other versions
        path, wanted = project.root / "requirements/build-linux-x86_64.txt", "rushlight-nobodys==7"
        text = path.read_text()
        more = f"{text}{wanted} --hash=sha256:{'0' * 64}\n"
    else:
        path, wanted = project.root / "pyproject.toml", "rushlight-nobodys>=7"
        text = path.read_text()
        more = text.replace('"cmake>=3.25"', f'"cmake>=3.25", "{wanted}"')
    path.write_text(more)
    closed = {"PIP_INDEX_URL": "http://127.0.0.1:9/simple", "PIP_RETRIES": "1", "PIP_TIMEOUT": "2"}
    line = project.fails("build", PIP_CONFIG_FILE=os.devnull, no_proxy="*", **closed)
    assert f"pip cannot reach its index for {wanted}: check the network" in line
    assert "PIP_INDEX_URL" in line
    venv = project.root / ".venv"
    assert (venv / "pip-build.log").exists() and (venv / "group-build.begun").exists()
    # The next run goes on.
    path.write_text(text)
    (venv / "group-build").write_text("an older digest")
    assert "installing packages (build)" in project.builds()
    assert not (venv / "group-build.begun").exists()


def test_other_pins_are_installed(project):
    if not project.pinned():
        pytest.skip("no pins for this machine")
    assert "installing packages" not in project.builds()
    path = project.root / "requirements/build-linux-x86_64.txt"
    path.write_text(re.sub(r"(?m)^ninja==.*\n", "", path.read_text()))
    assert "installing packages (build)" in project.builds()
    assert "installing packages" not in project.builds()


def test_what_is_optional_is_left_out_without_network(project):
    code = (
        "import sys; sys.path.insert(0, 'tools'); from dev import environment;"
        "environment.install_group = lambda name: (_ for _ in ()).throw(environment.Failure('no network'));"
        "environment.install('oracle'); environment.install('lint')"
    )
    ran = subprocess.run([sys.executable, "-c", code], cwd=project.root, capture_output=True, text=True)
    assert "PyTorch could not be installed, what needs it is skipped: no network" in ran.stdout
    assert "Failure: no network" in ran.stderr
    assert not list((project.root / ".venv").glob("group-oracle*"))


def test_halves_of_packages_are_forgotten(project):
    site = next((project.root / ".venv").glob("lib/python*/site-packages"))
    for name, record in (("whole", "w.py,,\n"), ("half", "h.py,,\n"), ("listless", None)):
        info = site / f"{name}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        if record:
            (info / "RECORD").write_text(record)
    (site / "w.py").touch()
    code = "import sys; sys.path.insert(0, 'tools'); from dev import environment; environment.remove_halves()"
    (site / "borrowed.pth").unlink()
    subprocess.run([sys.executable, "-c", code], cwd=project.root, check=True)
    assert [path.name for path in site.glob("*.dist-info")] == ["whole-1.0.dist-info"]


def test_a_library_that_apt_cannot_fetch_is_left_out_and_tried_again_later(project):
    venv = project.root / ".venv"
    (venv / "installed-libgloo-dev").unlink()
    log = project.root / "asked"
    path = project.fake("apt-get", f'echo "$@" >> "{log}"; echo "E: Unable to fetch some archives"; exit 100')
    project.fake("dpkg", "exit 1")
    assert "Gloo could not be fetched by apt-get, what needs it is left out" in project.builds(PATH=path)
    asked = log.read_text()
    assert "Gloo" not in project.builds(PATH=path) and log.read_text() == asked
    assert "Gloo could not be fetched" in project.builds("--fresh", PATH=path)
    os.utime(venv / "failed-libgloo-dev", (0, 0))
    assert "Gloo could not be fetched" in project.builds(PATH=path)
    assert not (venv / "installed-libgloo-dev").exists() and not (venv / "apt").exists()


def test_half_unpacked_archives_are_unpacked_again(project):
    venv = project.root / ".venv"
    (venv / "installed-libgloo-dev").unlink()
    path = project.fake(
        "apt-get",
        'case "$*" in *print-uris*) echo "\'http://x/y.deb\' libgloo0_1.deb 1 SHA256:0";;'
        " *download*) touch libgloo0_1.deb;; esac",
    )
    project.fake("dpkg", 'mkdir -p "$3/usr/half"; exit 1')
    assert "Gloo could not be fetched" in project.builds(PATH=path)
    (venv / "failed-libgloo-dev").unlink()
    project.fake("dpkg", 'mkdir -p "$3/usr/whole"')
    project.builds(PATH=path)
    assert (venv / "installed-libgloo-dev").exists() and (venv / "debian/usr/whole").is_dir()
    assert (
        f"RUSHLIGHT_DEBIAN_ROOT:UNINITIALIZED={venv}/debian"
        in (project.root / "build/dev/CMakeCache.txt").read_text()
    )


def test_a_library_that_is_installed_is_not_fetched(project):
    venv = project.root / ".venv"
    (venv / "installed-libboost-dev").unlink()
    path = project.fake("apt-get", 'case "$*" in *download*) exit 100;; esac')
    project.fake("dpkg", "exit 1")
    assert "could not be fetched" not in project.builds(PATH=path)
    assert (venv / "installed-libboost-dev").exists()


def run_as_somebody_else(words):
    """Run a Python program as a user who may not write everywhere."""
    options = {"user": 65534, "group": 65534, "extra_groups": []} if os.geteuid() == 0 else {}
    for python in (sys.executable, shutil.which("python3", path="/usr/bin")):
        try:
            probe = [python, "-c", "import sys; sys.exit(sys.version_info < (3, 10))"]
            if python and subprocess.run(probe, capture_output=True, **options).returncode == 0:
                return subprocess.run([python, *words], capture_output=True, text=True, cwd="/", **options)
        except PermissionError:
            continue
    pytest.skip("another user cannot run Python here")


def test_a_read_only_folder(project):
    folders = [
        path for path in [project.root, *project.root.rglob("*")] if path.is_dir() and not path.is_symlink()
    ]
    for above in project.root.parents:
        if os.geteuid() == 0 and not above.stat().st_mode & 0o001:
            if not re.match(r"/tmp/|/var/tmp/", f"{above}/"):
                pytest.skip(f"another user cannot see {above}")
            above.chmod(above.stat().st_mode | 0o011)
    for folder in folders:
        folder.chmod(0o555)
    try:
        ran = run_as_somebody_else([project.root / "dev", "build"])
    finally:
        for folder in folders:
            folder.chmod(0o755)
    assert ran.returncode == 1
    assert re.fullmatch(r"dev: cannot write in (.*): make it writable, or copy the sources.*\n", ran.stderr)[
        1
    ].startswith(str(project.root))


@pytest.fixture
def mounted(tmp_path):
    """Runs a shell program where it may mount; the mounts end with it."""
    probe = ["unshare", "--mount", "sh", "-c", f'mount -t tmpfs -o size=64k none "{tmp_path}"']
    if not shutil.which("unshare") or subprocess.run(probe, capture_output=True).returncode:
        pytest.skip("mounting needs root")

    def run(program, *words):
        return subprocess.run(
            ["unshare", "--mount", "sh", "-c", program, "sh", *map(str, words)],
            capture_output=True,
            text=True,
            timeout=120,
            env={**os.environ, "CCACHE_DISABLE": "1"},
        )

    return run


def test_a_read_only_disk(project, mounted):
    project.builds()
    project.source("a", "int a() { return 3; }\n")
    ran = mounted(
        'mount --bind "$1" "$1" && mount -o remount,ro,bind "$1" && shift && exec "$@"',
        project.root,
        *project.command("build"),
    )
    assert ran.returncode == 1
    assert re.fullmatch(r"dev: cannot write in .*: make it writable, or copy the sources.*\n", ran.stderr)


def test_too_little_disk_is_said_before_anything_begins(project, mounted):
    (project.root / "build").mkdir()
    ran = mounted(
        'mount -t tmpfs -o size=200m none "$1" && shift && exec "$@"',
        project.root / "build",
        *project.command("build"),
    )
    assert ran.returncode == 1
    assert re.search(
        r"dev: too little disk space: a build takes 0\.8 GB, 0\.2 GB are free in .*make room", ran.stderr
    )
    assert ran.stderr.count("\n") == 1


def test_a_disk_that_fills_up(project, mounted):
    project.builds()
    project.source("a", "int a() { return 3; }\nchar wide[200000] = {1};\n")
    build = project.root / "build"
    copy = 'cp -a "$1" "$1.copy"; mount -t tmpfs -o size=400k none "$1"; cp -a "$1.copy/." "$1"; shift;'
    copy += ' exec "$@"'
    ran = mounted(copy, build, *project.command("build"))
    assert ran.returncode == 1, ran.stdout
    assert re.search(
        r"dev: the disk is full: [\d.]+ GB are free in .* run this again, it goes on where it stopped\n$",
        ran.stderr,
    )
