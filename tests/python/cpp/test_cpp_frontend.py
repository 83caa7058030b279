"""The C++ front end from outside: the CMake package, pkg-config, examples, and files shared with Python."""

import gzip
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import rushlight as torch
from rushlight import nn
from rushlight.utils import cmake_prefix_path

ROOT = Path(__file__).resolve().parents[3]
EXAMPLES = ROOT / "examples" / "cpp"
CMAKE = shutil.which("cmake") or shutil.which("cmake", path=os.path.dirname(sys.executable))

pytestmark = [
    pytest.mark.skipif(
        shutil.which(os.environ.get("CXX", "c++")) is None, reason="no C++ compiler: programs cannot be built"
    ),
    pytest.mark.skipif(CMAKE is None, reason="no CMake: programs cannot be built"),
]


def run(*command, cwd=None, timeout=600):
    done = subprocess.run(
        [str(word) for word in command], cwd=cwd, text=True, capture_output=True, timeout=timeout
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout


def build(project, folder, config="Debug"):
    run(
        CMAKE,
        "-S",
        project,
        "-B",
        folder,
        f"-DCMAKE_PREFIX_PATH={cmake_prefix_path}",
        f"-DCMAKE_BUILD_TYPE={config}",
    )
    run(CMAKE, "--build", folder)
    return folder


@pytest.fixture(scope="module")
def digits_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("digits") / "digits.bin"
    path.write_bytes(gzip.decompress((ROOT / "rushlight/demo/data/digits.bin.gz").read_bytes()))
    return path


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden = nn.Linear(64, 64)
        self.output = nn.Linear(64, 10)

    def forward(self, images):
        return self.output(torch.relu(self.hidden(images.flatten(1))))


def test_digits_learn_as_in_python(tmp_path, digits_file):
    """The same model from the same weights gives the same losses; what C++ saved, Python loads."""
    folder = build(EXAMPLES / "digits", tmp_path / "build")
    torch.manual_seed(5)
    net = Net()
    torch.save(net.state_dict(), tmp_path / "initial.pt")
    out = run(folder / "digits", digits_file, 2, tmp_path / "initial.pt", cwd=tmp_path)
    losses = [float(x) for x in re.findall(r"loss (\S+)", out)]

    from rushlight.demo import digits

    images, labels = digits.load().tensors
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    expected = []
    for _ in range(2):
        total = []
        for x, y in zip(images.split(128), labels.split(128)):
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(net(x), y)
            loss.backward()
            optimizer.step()
            total.append(loss.item())
        expected.append(sum(total) / len(total))
    assert losses == pytest.approx(expected, rel=1e-6)
    saved = torch.load(tmp_path / "digits.pt")
    for name, tensor in net.state_dict().items():
        torch.testing.assert_close(saved[name], tensor)
    assert list(saved) == list(net.state_dict())


def test_files_of_cpp_are_read_by_pytorch(tmp_path, digits_file):
    pytorch = pytest.importorskip("torch")
    folder = build(EXAMPLES / "dcgan", tmp_path / "build", "Release")
    out = run(folder / "dcgan", digits_file, 20, cwd=tmp_path)
    assert re.search(r"step 20 D \d\S* G \d", out), out
    saved = pytorch.load(tmp_path / "generator.pt", weights_only=True)
    assert saved["conv1.weight"].shape == (32, 64, 2, 2)
    assert "norm1.running_mean" in saved


def test_custom_operators_serve_cpp_and_python(tmp_path):
    folder = build(EXAMPLES / "custom_operator", tmp_path / "build")
    out = run(folder / "use_clipped")
    assert out.split()[:3] == ["1.0000", "2.7183", "0.0000"]
    program = (
        "import rushlight as torch\n"
        f"torch.ops.load_library({str(folder / 'libclipped_ops.so')!r})\n"
        "x = torch.tensor([0.0, 5.0], requires_grad=True)\n"
        "y = torch.ops.clipped_ops.clipped_exp(x, 10.0); y.sum().backward()\n"
        "assert y.tolist() == [1.0, 10.0] and x.grad.tolist() == [1.0, 0.0]\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", program], env=environment, text=True, capture_output=True)
    assert done.returncode == 0, done.stderr


def test_projects_that_look_for_torch(tmp_path):
    (tmp_path / "main.cpp").write_text(
        "#include <torch/torch.h>\n#include <iostream>\n"
        "int main() { std::cout << torch::ones({2, 2}).sum().item<int>() << std::endl; }\n"
    )
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.18)\nproject(p LANGUAGES CXX)\nfind_package(Torch REQUIRED)\n"
        "add_executable(p main.cpp)\ntarget_link_libraries(p ${TORCH_LIBRARIES})\n"
        "set_property(TARGET p PROPERTY CXX_STANDARD 20)\n"
    )
    assert run(build(tmp_path, tmp_path / "build") / "p").strip() == "4"


def test_pkg_config(tmp_path):
    tool = shutil.which("pkg-config")
    if tool is None:
        pytest.skip("no pkg-config")
    path = Path(cmake_prefix_path).parent / "pkgconfig"
    done = subprocess.run(
        [tool, "--cflags", "--libs", "rushlight"],
        env={**os.environ, "PKG_CONFIG_PATH": str(path)},
        text=True,
        capture_output=True,
    )
    assert done.returncode == 0, done.stderr
    source = tmp_path / "main.c"
    source.write_text("#include <rushlight/c.h>\nint main(void) { return rl_c_version() - RL_C_VERSION; }\n")
    flags = [flag for flag in done.stdout.split() if not flag.startswith("-std=")]
    run(os.environ.get("CC", "cc"), source, *flags, "-o", tmp_path / "main")
    run(tmp_path / "main")


def test_python_reads_and_writes_what_cpp_does(tmp_path):
    """Values of all kinds, through one small program that copies a file."""
    (tmp_path / "copy.cpp").write_text(
        "#include <rushlight/rushlight.h>\nint main(int, char** a) {\n"
        "  rushlight::save_value(rushlight::load_value(std::string(a[1])), std::string(a[2])); }\n"
    )
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.18)\nproject(copy LANGUAGES CXX)\n"
        "find_package(Rushlight REQUIRED)\n"
        "add_executable(copy copy.cpp)\ntarget_link_libraries(copy Rushlight::rushlight)\n"
    )
    program = build(tmp_path, tmp_path / "build") / "copy"
    base = torch.arange(12.0).view(3, 4)
    net = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3))
    optimizer = torch.optim.Adam(net.parameters())
    net(torch.ones(4, 2)).sum().backward()
    optimizer.step()
    value = {
        "half": base.half(),
        "view": base.t(),
        "bfloat": base.bfloat16(),
        "ints": torch.tensor([1, -(2**40)]),
        "bool": torch.tensor(True),
        "complex": torch.tensor([1 + 2j]),
        "empty": torch.empty(0, 3),
        "numbers": [1, -5, 2**40, 0.5, True, None, "text", (1, (2,))],
        "model": net.state_dict(),
        "optimizer": optimizer.state_dict(),
    }
    torch.save(value, tmp_path / "in.pt")
    run(program, tmp_path / "in.pt", tmp_path / "out.pt")
    back = torch.load(tmp_path / "out.pt")
    for name in ("half", "view", "bfloat", "ints", "bool", "complex", "empty"):
        torch.testing.assert_close(back[name], value[name], msg=name)
    assert back["numbers"] == value["numbers"]
    net.load_state_dict(back["model"])
    optimizer.load_state_dict(back["optimizer"])

    class Evil:
        def __reduce__(self):
            return os.system, ("touch evil",)

    torch.save({"evil": Evil()}, tmp_path / "evil.pt")
    done = subprocess.run(
        [program, tmp_path / "evil.pt", tmp_path / "x.pt"], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode != 0 and "system" in done.stderr and not (tmp_path / "evil").exists()
