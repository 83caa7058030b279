"""What is published: equal lists stay equal, wheels hold what they should, workflows run our commands."""

import base64
import ctypes
import hashlib
import importlib.util
import json
import os
import platform
import re
import subprocess
import sys
import types
import zipfile
import zlib
from pathlib import Path

import pytest
from dev_project import module

ROOT = Path(__file__).resolve().parents[3]
BILL = "rushlight-0.1.0.dist-info/sboms/rushlight.cdx.json"


def test_developers_build_with_the_wheels_packages():
    if sys.version_info < (3, 11):
        pytest.skip("tomllib came with Python 3.11")
    import tomllib

    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    added = {"cmake>=3.25", "ninja"}  # scikit-build-core asks for these itself
    assert set(project["dependency-groups"]["build"]) - added == set(project["build-system"]["requires"])
    assert project["dependency-groups"]["demo"] == project["project"]["optional-dependencies"]["demo"]
    # Else a package that asks for another PyTorch would replace the oracle.
    assert set(project["dependency-groups"]["oracle"]) <= set(project["dependency-groups"]["packages"])


def load(path):
    spec = importlib.util.spec_from_file_location(Path(path).stem, ROOT / path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def check_wheel():
    return load("tools/check_wheel.py")


def a_wheels_files():
    licences = ["tbb", "onednn-cpu-tbb", "intel-cmplr-lib-rt", "mkl-static", "libgloo0"]
    return [
        *check_wheel().NEEDED,
        "rushlight/_C.cpython-311-x86_64-linux-gnu.so",
        *(f"rushlight/lib/{name}" for name in ("libtbb.so.12", "libdnnl.so.3", "libimf.so", "libintlc.so.5")),
        "rushlight.libs/libgloo-12ab34cd.so.0.5.0",
        *(f"rushlight/lib/licenses/{name}.txt" for name in licences),
        "rushlight-0.1.0.dist-info/licenses/LICENSE",
        BILL,
    ]


def test_a_whole_wheel_passes():
    assert check_wheel().contents(a_wheels_files()) == []


@pytest.mark.parametrize(
    ("without", "added", "complaint"),
    [
        ("rushlight/py.typed", None, "rushlight/py.typed is missing"),
        ("rushlight/_C.cpython-311-x86_64-linux-gnu.so", None, "the extension module is missing"),
        (BILL, None, "the bill of materials is missing"),
        ("rushlight/lib/licenses/tbb.txt", None, "libtbb.so.12 comes without the licence of tbb"),
        ("rushlight/lib/licenses/libgloo0.txt", None, "without the licence of libgloo"),
        (None, "rushlight.libs/libstrange-1.so.2", "nobody says under which licence"),
        (None, "tests/test_x.py", "tests would be installed beside the package"),
    ],
)
def test_what_a_wheel_lacks_is_named(without, added, complaint):
    files = [name for name in a_wheels_files() if name != without] + ([added] if added else [])
    (wrong,) = check_wheel().contents(files)
    assert complaint in wrong


def test_auditwheel_looks_for_nothing_that_the_wheel_holds():
    there = ["libdnnl.so.3", "libimf.so", "libintlc.so.5", "librushlight.so", "libtbb.so.12"]
    assert load("tools/wheels.py").bundled(a_wheels_files()) == there


def test_every_byte_of_a_wheel_is_counted_once(tmp_path):
    with zipfile.ZipFile(tmp_path / "a.whl", "w", zipfile.ZIP_DEFLATED) as archive:
        for name in a_wheels_files():
            archive.writestr(name, name * 50)
        entries = archive.infolist()
    parts = check_wheel().sizes(entries)
    assert sum(packed for packed, _ in parts.values()) == sum(entry.compress_size for entry in entries)
    assert parts["oneDNN"][1] == len("rushlight/lib/libdnnl.so.3") * 50
    assert parts["headers"][1] == 50 * sum(len(name) for name in a_wheels_files() if name.endswith(".h"))


def test_the_limit_of_a_wheel_is_that_of_the_documents():
    limit = check_wheel().MEGABYTES
    told = re.search(r"^\| wheel \| ([\d.]+) MB", (ROOT / "README.md").read_text(), re.MULTILINE)[1]
    assert limit - 1 <= float(told) <= limit
    assert f"at most {limit} MB" in (ROOT / "docs" / "releasing.md").read_text()
    assert f"at most {limit} MB" in check_wheel().__doc__
    assert f"A wheel has {told} MB" in (ROOT / "ARCHITECTURE.md").read_text()


def test_packing_a_wheel_keeps_its_files(tmp_path, monkeypatch):
    """With zlib in the place of the better compressor, which only those who make wheels install."""
    stand_in = types.SimpleNamespace(deflate_compress=lambda data, level: zlib.compress(data, 9, wbits=-15))
    monkeypatch.setitem(sys.modules, "deflate", stand_in)
    script = zipfile.ZipInfo("rushlight/bin/run", (2024, 5, 6, 7, 8, 10))
    script.external_attr = 0o100755 << 16
    files = {"a/ä.py": b"x = 1\n" * 1000, "a/empty": b"", "a/noise": os.urandom(5000)}
    with zipfile.ZipFile(tmp_path / "a.whl", "w") as archive:
        archive.mkdir("a") if hasattr(archive, "mkdir") else archive.writestr("a/", "")
        archive.writestr(script, "#!")
        for name, data in files.items():
            archive.writestr(name, data)
    (tmp_path / "dist").mkdir()
    packed = load("tools/wheels.py").pack(tmp_path / "a.whl", tmp_path / "dist")
    assert packed.stat().st_size < (tmp_path / "a.whl").stat().st_size
    with zipfile.ZipFile(packed) as archive:
        assert archive.testzip() is None
        assert {name: archive.read(name) for name in files} == files
        kept = archive.getinfo(script.filename)
        assert kept.external_attr == script.external_attr
        assert archive.namelist() == sorted([script.filename, *files])


def _small_wheel(path, order):
    files = {name: name.encode() * 9 for name in a_wheels_files() if "/sboms/" not in name}
    files["rushlight-0.1.0.dist-info/RECORD"] = b"out of date"
    with zipfile.ZipFile(path, "w") as archive:
        for i, name in enumerate(sorted(files, key=lambda name: hash((name, order)))):
            archive.writestr(zipfile.ZipInfo(name, (2020 + i % 5, 1, 1 + order, 0, 0, 0)), files[name])
    return path


def test_a_wheel_has_the_same_bytes_whenever_it_is_packed(tmp_path, monkeypatch):
    """Whatever the order and the times of the files; with its bill of materials and a true RECORD."""
    stand_in = types.SimpleNamespace(deflate_compress=lambda data, level: zlib.compress(data, 9, wbits=-15))
    monkeypatch.setitem(sys.modules, "deflate", stand_in)
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    wheels, packed = load("tools/wheels.py"), []
    for order in (1, 2):
        folder = tmp_path / str(order)
        (folder / "dist").mkdir(parents=True)
        packed.append(wheels.pack(_small_wheel(folder / "a.whl", order), folder / "dist"))
    assert packed[0].read_bytes() == packed[1].read_bytes()
    with zipfile.ZipFile(packed[0]) as archive:
        assert {info.date_time for info in archive.infolist()} == {(2023, 11, 14, 22, 13, 20)}
        bill = json.loads(archive.read(BILL))
        record = archive.read("rushlight-0.1.0.dist-info/RECORD").decode().splitlines()
        assert len(record) == len(archive.namelist())
        for line in record[:-1]:
            name, digest, size = line.rsplit(",", 2)
            data = archive.read(name)
            made = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            assert (digest, int(size)) == (f"sha256={made}", len(data))
    found = {part["name"]: part for part in bill["components"]}
    assert found.keys() == {"tbb", "onednn-cpu-tbb", "intel-cmplr-lib-rt", "mkl-static", "libgloo0"}
    assert found["mkl-static"]["version"] == "2024.2.2"
    assert [f["name"] for f in found["tbb"]["components"]] == ["rushlight/lib/libtbb.so.12"]
    assert bill["specVersion"] == "1.6" and bill["metadata"]["component"]["version"] == "0.1.0"


def test_the_pinned_hashes_are_of_what_the_build_asks_for():
    """requirements/: each requirement of the group `build`, and nothing without a hash."""
    lines = (ROOT / "requirements" / "build-linux-x86_64.txt").read_text().splitlines()
    pins = [line for line in lines if line and not line.startswith("#")]
    assert pins and all(re.fullmatch(r"[\w-]+==[\w.]+ --hash=sha256:[0-9a-f]{64}", pin) for pin in pins)
    named = {re.split("==", pin)[0].replace("_", "-"): pin.split()[0] for pin in pins}
    text = (ROOT / "pyproject.toml").read_text()
    group = re.search(r"^build = \[(.*?)^\]", text, re.M | re.S)[1]
    for requirement in re.findall(r'"([^"]+)"', group):
        if "sys_platform!=" in requirement:
            continue
        name, version = re.match(r"([\w-]+)(?:==([\w.]+))?", requirement).groups()
        assert name in named
        assert version is None or named[name] == f"{name}=={version}"


def test_interpreters_are_found_once_for_each_version():
    wheels = load("tools/wheels.py")
    tags = [wheels.ask(path, wheels.TAG) for path in wheels.every_interpreter()]
    assert tags and len(set(tags)) == len(tags)
    assert all(tag.rstrip("t") in {f"3{minor}" for minor in wheels.SUPPORTED} for tag in tags)


SMALL_LIBRARY = """
struct Kind { virtual int answer() { return 7; } virtual ~Kind() = default; };
namespace { struct Other : Kind { int answer() override { return 8; } }; }
static int deep(int x) { return x * 3; }
extern "C" {
__attribute__((noinline)) int step(int x) { return deep(x) + 1; }
int (*table[])(int) = {step};
int dnnl_used(int i) { Kind* k = new Kind; int a = table[i](i) + k->answer(); delete k; return a; }
__attribute__((visibility("hidden"), noinline)) int refusing(int x) { return table[x](x) + 41; }
int dnnl_refused(int i) { return refusing(i); }
__attribute__((noinline)) void refuse(int i) { if (i < 0) throw i; }
int dnnl_catches(int i) { try { refuse(i); return 0; } catch (int caught) { return caught; } }
int dnnl_graph_gone(int i) { Kind* k = new Other; int a = k->answer() + i; delete k; return a; }
}
"""


@pytest.mark.skipif(
    sys.platform != "linux" or platform.machine() != "x86_64", reason="reads x86-64 ELF files"
)
def test_slimming_a_library_keeps_what_is_reached(tmp_path):
    slim = load("cmake/slim_onednn.py")
    (tmp_path / "a.cpp").write_text(SMALL_LIBRARY)
    built, out = tmp_path / "a.so", tmp_path / "slim.so"
    flags = ["-O1", "-fPIC", "-shared", "-Wl,-Bsymbolic"]
    subprocess.run(["c++", *flags, tmp_path / "a.cpp", "-o", built], check=True)
    library = slim.Library(built)
    library.find_objects(built)
    refusing = {library.names.index("refusing")}
    kept = slim.slim(library, "objdump", built, refusing)
    out.write_bytes(library.data)
    names = {library.names[i] for i in kept}
    assert {"step", "dnnl_used", "refusing", "_ZN4Kind6answerEv", "_ZTV4Kind"} <= names
    assert {"dnnl_graph_gone", "_ZN12_GLOBAL__N_15Other6answerEv"} <= set(library.names)
    assert not {"dnnl_graph_gone", "_ZN12_GLOBAL__N_15Other6answerEv"} & names
    changed = ctypes.CDLL(str(out))
    assert changed.dnnl_used(0) == 8
    assert changed.dnnl_catches(-4) == -4
    assert changed.dnnl_refused(0) == 3  # dnnl_unimplemented
    with pytest.raises(AttributeError):
        _ = changed.dnnl_graph_gone
    assert ctypes.CDLL(str(built)).dnnl_graph_gone(1) == 9


def test_what_oneDNN_constructs_for_rushlight_is_kept():
    refuses = load("cmake/slim_onednn.py").refuses
    create = "_ZN4dnnl4impl16primitive_desc_t6createINS0_3cpu3x64"
    data = "L16dnnl_data_type_t"
    for kept in (
        f"{create}24brgemm_convolution_fwd_tILNS3_9cpu_isa_tE39ELb1EE4pd_t",
        f"{create}6matmul15brgemm_matmul_tILNS3_9cpu_isa_tE231EE4pd_t",
        f"_ZN4dnnl4impl3cpu16simple_reorder_tI{data}3E17dnnl_format_tag_t1E{data}2EE4pd_t6createEPPNS0_12reorder_pd_tE",
        "_ZN4dnnl4impl3cpu3x6424brgemm_convolution_fwd_tILNS2_9cpu_isa_tE39ELb1EE4pd_t4initEP11dnnl_engine",
    ):
        assert not refuses(kept), kept
    for left_out in (
        f"{create}23jit_uni_pooling_fwd_tILNS3_9cpu_isa_tE39E{data}3EE4pd_t",
        f"{create}39jit_avx512_core_x8s8s32x_convolution_fwd_tE4pd_t",
        f"{create}26brgemm_deconvolution_fwd_tILNS3_9cpu_isa_tE39EE4pd_t",
        f"_ZN4dnnl4impl3cpu16simple_reorder_tI{data}3E17dnnl_format_tag_t1E{data}5EE4pd_t6createEPPNS0_12reorder_pd_tE",
    ):
        assert refuses(left_out), left_out


def test_a_wheel():
    """RUSHLIGHT_TEST_WHEEL names one, for this interpreter: it is installed alone and trains."""
    wheel = os.environ.get("RUSHLIGHT_TEST_WHEEL")
    if not wheel:
        pytest.skip("RUSHLIGHT_TEST_WHEEL names no wheel")
    subprocess.run([sys.executable, ROOT / "tools" / "check_wheel.py", wheel], check=True, timeout=280)


def steps_of(workflow):
    """The shell programs of a workflow's steps: what follows `run:`, on its line or indented below it."""
    lines = workflow.read_text().splitlines()
    steps = []
    for number, line in enumerate(lines):
        found = re.match(r"( *)-? *run: *(\S.*)", line)
        if not found:
            continue
        indent, text = len(found[1]), found[2]
        if text in ("|", ">"):
            below = lines[number + 1 :]
            end = next(
                (i for i, l in enumerate(below) if l.strip() and len(l) - len(l.lstrip()) <= indent), None
            )
            text = ("\n" if text == "|" else " ").join(below[:end])
        steps.append(text)
    return steps


# What a workflow may give to commands of `./dev`; x stands for what a matrix has.
GIVEN = {
    "wheel": r"/opt/python/\S+/bin/python",
    "sanitize": "x",
    "fuzz": r"x|-max_total_time=\d+",
    "test": r"tests/\S+",
}
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


# Actions of others than GitHub, each with the reason. They run where there is nothing to take.
OTHERS_ACTIONS = {"msys2/setup-msys2@v2": "g++ for Windows and a shell to run it from"}


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.name)
def test_workflows_are_read_as_they_are_meant(workflow):
    yaml = pytest.importorskip("yaml", reason="comes with MkDocs")
    content = yaml.safe_load(workflow.read_text())
    # Nobody waits for what nothing but a clock starts, or a hand. GitHub ends a job after six hours.
    started = set(content[True])  # YAML reads `on` as a truth value
    longest = 300 if started <= {"schedule", "workflow_dispatch"} else 120
    assert content["permissions"] == {"contents": "read"} and "secrets." not in workflow.read_text()
    read = []
    for job in content["jobs"].values():
        assert job["runs-on"] and job["timeout-minutes"] <= longest
        for step in job["steps"]:
            assert len({"run", "uses"} & step.keys()) == 1, step
            read += [step["run"]] if "run" in step else []
            used = step.get("uses", "actions/x@v1")
            assert re.fullmatch(r"actions/[\w-]+@v\d+", used) or used in OTHERS_ACTIONS, used
    squeezed = [" ".join(step.split()) for step in steps_of(workflow)]
    # A comment behind a command belongs to YAML, not to the shell.
    assert [" ".join(step.split()) for step in read] == [
        step.split("  #")[0].split(" # ")[0] for step in squeezed
    ]


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.name)
def test_steps_of_workflows_are_programs_that_this_tree_can_run(workflow):
    steps = steps_of(workflow)
    assert steps
    for step in steps:
        step = re.sub(r"\$\{\{.*?\}\}", "x", step)
        assert subprocess.run(["bash", "-n", "-c", step], capture_output=True, text=True).stderr == "", step
        for command in re.findall(r"\./dev ([^&|;\n]*)", step.replace("\\\n", " ")):
            name, *arguments = command.split()
            ran = subprocess.run([sys.executable, ROOT / "dev", "help"], capture_output=True, text=True)
            assert re.search(rf"^\./dev {name}\b", ran.stdout, re.M), command
            assert all(re.fullmatch(GIVEN.get(name, "nothing"), argument) for argument in arguments), command
            assert all((ROOT / path).exists() for path in arguments if path.startswith("tests/")), command


def test_nightly_tries_what_there_is():
    """Its matrices hold what the commands take: all sanitizers, all readers, kinds that leaks.py knows."""
    yaml = pytest.importorskip("yaml", reason="comes with MkDocs")
    jobs = yaml.safe_load((ROOT / ".github/workflows/nightly.yml").read_text())["jobs"]
    of = {name: job["strategy"]["matrix"] for name, job in jobs.items()}
    assert of["sanitize"] == {"kind": ["", "thread"]}
    assert of["fuzz"] == {"reader": module("fuzz").READERS}
    source = (ROOT / "tests/fuzz/leaks.py").read_text()
    kinds = re.findall(
        r'"(\w+)": ', "".join(re.findall(r"^(?:KINDS|DAMAGED) = \{.*?\}", source, re.M | re.S))
    )
    assert [kind.split()[0] for kind in of["leaks"]["kind"]] == kinds
    options = {word for kind in of["leaks"]["kind"] for word in kind.split() if word.startswith("-")}
    assert options <= set(re.findall(r'add_argument\("(--\w+)"', source))


def test_workflows_and_the_project_name_the_same_interpreters():
    text = (ROOT / ".github/workflows/wheels.yml").read_text()
    built = {f"3.{minor}" for minor in re.findall(r"/opt/python/cp3(\d+)-cp3\d+/bin/python\b", text)}
    tested = set(re.findall(r'"(3\.\d+)"', (ROOT / ".github/workflows/ci.yml").read_text()))
    assert tested <= built and min(built, key=lambda v: int(v[2:])) == "3.10"
    assert 'requires-python = ">=3.10"' in (ROOT / "pyproject.toml").read_text()


def test_hosted_ci_runs_what_every_machine_runs():
    """Beside tools to compile with there is one step, which `.ci/run` is."""
    steps = steps_of(ROOT / ".github/workflows/ci.yml")
    assert [step for step in steps if "apt-get" not in step] == [".ci/run"]
    assert os.access(ROOT / ".ci/run", os.X_OK)


def test_workflows_run_commands_that_exist():
    source = (ROOT / "tools/dev/commands.py").read_text()
    commands = set(re.findall(r"^@command\(\s*\"(\w+)", source, re.M))
    used = set()
    for program in (*WORKFLOWS, ROOT / ".ci/run", ROOT / ".pre-commit-config.yaml"):
        used |= set(re.findall(r"\./dev (\w+)", program.read_text()))
    assert {"lint", "test", "small", "portable", "wheel"} <= used <= commands
    for page in ("README.md", "CONTRIBUTING.md", "docs/releasing.md"):
        assert set(re.findall(r"\./dev (\w+)", (ROOT / page).read_text())) <= commands, page


def test_the_changelog_knows_the_version():
    version = re.search(r'^version = "(.*)"$', (ROOT / "pyproject.toml").read_text(), re.M)[1]
    text = (ROOT / "CHANGELOG.md").read_text()
    assert re.fullmatch(r"\d+\.\d+\.\d+", version) and version in text and "## [Unreleased]" in text
