"""Tutorials of PyTorch's C++ documentation as programs (tests/cpp/tutorials), built with find_package(Torch).

They run TorchScript archives of PyTorch: what C++ computes is what PyTorch does."""

import os
import shutil
import subprocess
import sys
import warnings
import zipfile
from pathlib import Path

import pytest

import rushlight
from rushlight.utils import cmake_prefix_path

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tests/python/graphs"))
CMAKE = shutil.which("cmake") or shutil.which("cmake", path=os.path.dirname(sys.executable))
torch = pytest.importorskip("torch", reason="PyTorch writes the archives")
import script_archive_models as own_models  # noqa: E402
import test_script_archives as own_archives  # noqa: E402
import torchscript_models as models  # noqa: E402
import torchscript_numbers as numbers  # noqa: E402
import torchscript_programs as programs  # noqa: E402

pytestmark = [
    pytest.mark.filterwarnings("ignore"),
    pytest.mark.skipif(
        shutil.which(os.environ.get("CXX", "c++")) is None, reason="no C++ compiler: programs cannot be built"
    ),
    pytest.mark.skipif(CMAKE is None, reason="no CMake: programs cannot be built"),
]
SOURCES = {name: source for source in (programs, models, numbers) for name in source.programs()}
ALL = {name: source.programs()[name] for name, source in SOURCES.items()}
CASES = [(name, way) for name, (_, _, ways) in ALL.items() for way in ways]


def run(*command, cwd=None, code=0):
    done = subprocess.run(
        [str(word) for word in command], cwd=cwd, text=True, capture_output=True, timeout=600
    )
    assert done.returncode == code, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout + done.stderr


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The folder with the programs; RUSHLIGHT_TUTORIALS names one that is there already."""
    if folder := os.environ.get("RUSHLIGHT_TUTORIALS"):
        return Path(folder)
    folder = tmp_path_factory.mktemp("tutorials")
    source = ROOT / "tests/cpp/tutorials"
    run(CMAKE, "-S", source, "-B", folder, f"-DCMAKE_PREFIX_PATH={cmake_prefix_path}")
    run(CMAKE, "--build", folder)
    return folder


def check_equal(expected, found):
    if isinstance(expected, torch.Tensor):
        assert found.dtype == expected.dtype
        torch.testing.assert_close(found.detach(), expected.detach(), rtol=1e-4, atol=1e-5, equal_nan=True)
    elif isinstance(expected, (list, tuple)):
        assert isinstance(found, (list, tuple)) and len(found) == len(expected)
        for e, f in zip(expected, found, strict=True):
            check_equal(e, f)
    elif isinstance(expected, dict):
        assert list(found) == list(expected)
        check_equal(list(expected.values()), list(found.values()))
    else:
        assert type(found) is type(expected) and found == expected


def saved(name, way, path):
    """The archive, as PyTorch loads it, and inputs for it."""
    torch.manual_seed(0)
    module, inputs, _ = SOURCES[name].programs()[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return programs.save(module, inputs, way, path), list(inputs)


# --- archives


@pytest.mark.parametrize(("name", "way"), CASES)
def test_archives_compute_what_pytorch_does(name, way, built, tmp_path):
    expected, inputs = saved(name, way, tmp_path / "model.pt")
    torch.save(inputs, tmp_path / "inputs.pt")
    files = [tmp_path / f for f in ("model.pt", "inputs.pt", "result.pt", "again.pt")]
    run(built / "loading", *files)
    with torch.no_grad():
        for _ in range(2):  # modules that count calls have counted two
            result = expected(*inputs)  # with its hooks, as C++ calls it the second time
    check_equal(result, torch.load(tmp_path / "result.pt"))
    # What C++ wrote, PyTorch reads: it stands where the program left it.
    again = torch.jit.load(tmp_path / "again.pt")
    with torch.no_grad():
        check_equal(expected(*inputs), again(*inputs))


@pytest.mark.parametrize("name", own_models.CASES)
def test_our_own_archives_compute_the_same(name, built, tmp_path):
    """What `torch.jit.save` of Rushlight writes: C++ runs it without Python, and PyTorch reads it again."""
    script, inputs = own_archives.made(name)
    files = [tmp_path / f for f in ("model.pt", "inputs.pt", "result.pt", "again.pt")]
    rushlight.jit.save(script, files[0])
    torch.save(list(own_archives.as_oracle(inputs)), files[1])
    run(built / "loading", *files)
    for _ in range(2):  # modules that count calls have counted two
        expected = own_archives.as_oracle(script(*inputs))
    own_archives.check_equal(expected, torch.load(files[2], weights_only=False))
    torch.jit.load(files[3])


def test_an_archive_for_python_alone_says_why(built, tmp_path):
    class Packs(rushlight.nn.Module):
        def forward(self, x):
            return rushlight.nn.utils.rnn.pack_padded_sequence(x, rushlight.tensor([2, 1])).data

    rushlight.jit.save(rushlight.jit.script(Packs()), tmp_path / "model.pt")
    said = run(built / "loading", tmp_path / "model.pt", code=255)
    assert "code for Python alone" in said and "pack_padded_sequence" in said


def test_the_loading_tutorial(built, tmp_path):
    expected, _ = saved("resnet", "trace", tmp_path / "model.pt")
    with torch.no_grad():
        values = expected(torch.ones(1, 3, 32, 32))[0, :5]
    printed = run(built / "loading", tmp_path / "model.pt")
    found = [float(word) for word in printed.partition("[")[0].split()]
    assert found == pytest.approx(values.tolist(), abs=1e-4) and "CPUFloatType{1,5}" in printed
    missing = run(built / "loading", tmp_path / "missing.pt", code=255)
    assert missing.startswith("error loading the model: ") and "missing.pt" in missing


def test_gpu_archives_need_one(built, tmp_path):
    """A storage's place is believed no further than the machine goes."""
    saved("mlp", "script", tmp_path / "model.pt")
    moved = rewritten(tmp_path / "model.pt", "data.pkl", lambda data: data.replace(b"cpu", b"gpu"))
    assert "gpu" in run(built / "loading", moved, code=255)


def test_operators_of_a_library(built, tmp_path):
    class Shifts(torch.nn.Module):
        def forward(self, image, by):
            return torch.ops.my_ops.shift_rows(image, by) + 1

    library = torch.library.Library("my_ops", "FRAGMENT")
    library.define("shift_rows(Tensor image, Tensor by) -> Tensor")
    torch.jit.script(Shifts()).save(str(tmp_path / "model.pt"))
    torch.save([torch.arange(6.0).view(2, 3), torch.tensor([1, 2])], tmp_path / "inputs.pt")
    run(built / "loading", *(tmp_path / f for f in ("model.pt", "inputs.pt", "result.pt")))
    assert torch.load(tmp_path / "result.pt").tolist() == [[1, 1, 2], [1, 1, 4]]


def test_python_calls_operators_of_the_library(built):
    program = (
        "import rushlight as torch\n"
        f"torch.ops.load_library({str(built / 'libmy_operators.so')!r})\n"
        "ops = torch.ops.extension_cpp\n"
        "a, b = torch.rand(3), torch.rand(3)\n"
        "assert torch.allclose(ops.mymuladd(a, b, 2.0), a * b + 2)\n"
        "out = torch.empty(3); ops.myadd_out(a, b, out); assert torch.equal(out, a + b)\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", program], env=environment, text=True, capture_output=True)
    assert done.returncode == 0, done.stderr


# --- the other tutorials check themselves


@pytest.mark.parametrize("program", ["autograd", "dispatcher", "tensors"])
def test_programs(program, built):
    run(built / program)


def test_the_frontend_tutorial(built, tmp_path):
    run(built / "frontend", tmp_path)


def test_threads_share_a_module(built, tmp_path):
    torch.jit.script(torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))).save(
        str(tmp_path / "model.pt")
    )
    run(built / "threads", tmp_path / "model.pt")


def test_values_and_modules(built, tmp_path):
    module = torch.jit.script(models.Everything().eval())
    module.save(str(tmp_path / "model.pt"), _extra_files={"note.txt": "hello"})
    run(built / "script_values", tmp_path / "model.pt", tmp_path)
    again = torch.jit.load(tmp_path / "again.pt")
    assert again.scale == 2.0 and again.scaled(torch.ones(2)).tolist() == [2, 2]
    for name, value in module.state_dict().items():
        check_equal(value, again.state_dict()[name])


# --- hostile and unknown content


def rewritten(source, record, change):
    """The archive with a record changed."""
    target = source.with_name("changed.pt")
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(target, "w") as new:
        for name in old.namelist():
            data = old.read(name)
            new.writestr(name, change(data) if name.endswith(record) else data)
    return target


class Old(torch.nn.Module):
    """Operators that once did something else."""

    def forward(self, a, b):
        quotients = torch.div(a, b), a.div(2), torch.div(a, b, out=torch.empty(1, dtype=a.dtype)), 7 / 2
        return quotients, torch.full([2], 3), torch.full([2], 3, dtype=torch.long), torch.linspace(0, 1, 5)


@pytest.mark.parametrize("version", [3, 4, 10])
def test_operators_are_those_of_an_archives_version(version, built, tmp_path):
    torch.jit.script(Old()).save(str(tmp_path / "model.pt"))
    path = rewritten(tmp_path / "model.pt", "version", lambda data: f"{version}\n".encode())
    expected = torch.jit.load(str(path))
    for values in ([-5.0], [-5])[: 1 + (version < 4)]:  # whole quotients do not fit where they are not whole
        inputs = [torch.tensor(values), torch.tensor([2])]
        torch.save(inputs, tmp_path / "inputs.pt")
        run(built / "loading", path, tmp_path / "inputs.pt", tmp_path / "result.pt")
        check_equal(expected(*inputs), torch.load(tmp_path / "result.pt"))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("torch.dim(x)", "torch.no_such_operator(x)", "no_such_operator"),
        ("torch.dim(x)", "open(x)", "'open' is not known"),
        (
            "torch.dim(x)",
            "x.__class__(x)",
            "aten::__class__: this operator of",
        ),
        ("torch.dim(x)", "(" * 2000 + "x" + ")" * 2000, "nested too deeply"),
        ("torch.dim(x)", "__torch__.torchscript_programs.Nothing(x)", "no code of"),
        ("return x", "return (self).forward(x, )", "functions call each other"),
        ("return x", "return y", "'y' is not known"),
        ("return x", "return [x", "expected ','"),
        ("return x", "import os", "is not known"),
    ],
)
def test_code_reaches_nothing_but_operators(old, new, message, built, tmp_path):
    programs.save(programs.Fails(), (), "script", tmp_path / "model.pt")
    changed = rewritten(
        tmp_path / "model.pt",
        "torchscript_programs.py",
        lambda data: data.replace(old.encode(), new.encode()),
    )
    torch.save([torch.zeros(2, 2)], tmp_path / "inputs.pt")
    done = subprocess.run(
        [built / "loading", changed, tmp_path / "inputs.pt", tmp_path / "result.pt"],
        text=True,
        capture_output=True,
    )
    assert done.returncode in (255, -6), done.returncode
    assert message in done.stderr, done.stderr[-2000:]


def test_damaged_archives_are_errors(built, tmp_path):
    saved("lstm", "script", tmp_path / "model.pt")
    content = (tmp_path / "model.pt").read_bytes()
    for at in range(40, len(content), len(content) // 25):
        (tmp_path / "bad.pt").write_bytes(content[:at] + bytes([content[at] ^ 0x55]) + content[at + 1 :])
        done = subprocess.run([built / "loading", tmp_path / "bad.pt"], capture_output=True)
        assert done.returncode in (0, 255, -6), done.returncode
    (tmp_path / "bad.pt").write_bytes(content[: len(content) // 2])
    assert "error loading" in run(built / "loading", tmp_path / "bad.pt", code=255)
