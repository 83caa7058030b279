"""Operators in C++, compiled against the headers while the test runs."""

import os
import shutil
import subprocess
import sys

import pytest

import rushlight as torch
from rushlight.utils import cpp_extension

pytestmark = pytest.mark.skipif(
    shutil.which(os.environ.get("CXX", "c++")) is None, reason="no C++ compiler: extensions cannot be built"
)

INLINE = """
torch::Tensor scaled_sine(torch::Tensor x, double factor) {
  TORCH_CHECK(factor >= 0, "scaled_sine: the factor must not be negative, but got ", factor);
  return torch::sin(x) * factor;
}
std::vector<torch::Tensor> halves(const std::vector<torch::Tensor>& list, std::optional<double> by) {
  std::vector<torch::Tensor> result;
  for (const torch::Tensor& t : list) result.push_back(t * by.value_or(0.5));
  return result;
}
int64_t count(const torch::Tensor& x) { return x.numel(); }
"""

KERNEL = """
#include <rushlight/extension.h>
using namespace rushlight;

// Reads memory, and so brings its derivative.
static Tensor cube(const Tensor& x) {
  RL_CHECK(x.dtype() == DType::Float64, "cube: expected float64, got ", dtype_name(x.dtype()));
  const Tensor in = ops::contiguous(x), out = empty_tensor(x.sizes(), x.dtype());
  const double* from = in.data<double>();
  double* to = out.data<double>();
  for (int64_t i = 0; i < in.numel(); ++i) to[i] = from[i] * from[i] * from[i];
  return out;
}
static Tensor opaque(const Tensor& x) { return ops::clone(x); }

RUSHLIGHT_LIBRARY(kernels, m) {
  m.kernel("cube(Tensor x) -> Tensor", cube).derivative([](Grad g, In<0> x) { return g * x * x * 3.0; });
  m.kernel("opaque(Tensor x) -> Tensor", opaque);
}
"""


@pytest.fixture(scope="module")
def inline(tmp_path_factory):
    folder = tmp_path_factory.mktemp("inline")
    names = ["scaled_sine", "halves", "count"]
    return cpp_extension.load_inline(
        "inline_test", INLINE, functions=names, build_directory=str(folder)
    ), folder


def test_functions_of_strings(inline):
    module, folder = inline
    with pytest.raises(AttributeError, match="module 'inline_test' has no attribute 'absent'"):
        module.absent  # noqa: B018
    x = torch.randn(3, 4, dtype=torch.float64, requires_grad=True)
    torch.testing.assert_close(module.scaled_sine(x, 2.0), torch.sin(x) * 2)
    assert torch.autograd.gradcheck(lambda x: module.scaled_sine(x, 2.0), x)
    torch.testing.assert_close(torch.vmap(lambda x: module.scaled_sine(x, 1.0))(x), torch.sin(x))
    first, second = module.halves([torch.ones(2), torch.ones(1)], None)
    assert first.tolist() == [0.5, 0.5] and second.tolist() == [0.5]
    assert module.halves([torch.ones(1)], 3.0)[0].item() == 3.0
    assert module.count(x) == 12
    assert torch.ops.inline_test.count(torch.ones(5)) == 5
    with pytest.raises(RuntimeError, match="must not be negative, but got -1"):
        module.scaled_sine(x, -1.0)
    with pytest.raises(RuntimeError, match="missing value for argument 'x1'"):
        module.scaled_sine(x)


def test_sources_may_register_the_functions_they_show(tmp_path):
    source = """
    torch::Tensor same(torch::Tensor x) { return x.clone(); }
    TORCH_LIBRARY(inline_shown, m) { m.def("same", same); m.def("other(Tensor x) -> Tensor", same); }
    """
    module = cpp_extension.load_inline(
        "inline_shown", source, functions="same", build_directory=str(tmp_path)
    )
    for function in (module.same, torch.ops.inline_shown.same, torch.ops.inline_shown.other):
        assert function(torch.ones(2)).tolist() == [1, 1]


def test_the_same_source_is_not_compiled_again(inline, monkeypatch):
    module, folder = inline
    monkeypatch.setattr(cpp_extension, "_run", lambda *args: pytest.fail("compiled again"))
    again = cpp_extension.load("inline_test", [str(folder / "main.cpp")], build_directory=str(folder))
    assert again is module


def test_programs_are_taken_apart_beside_operators_of_libraries(inline):
    class Scaled(torch.nn.Module):
        def forward(self, x):
            return torch.nn.functional.silu(x) * 2

    x = torch.randn(3)
    program = torch.export.export(Scaled(), (x,)).run_decompositions()
    assert torch.allclose(program.module()(x), Scaled()(x))


TWICE = "torch::Tensor twice(const torch::Tensor& x) { return x * 2; }\n"


def test_functions_beside_operators_of_the_same_name(tmp_path):
    source = TWICE + 'TORCH_LIBRARY(beside_test, m) { m.def("twice(Tensor x) -> Tensor", twice); }'
    module = cpp_extension.load_inline(
        "beside_test", source, functions="twice", build_directory=str(tmp_path)
    )
    x = torch.ones(2)
    assert module.twice(x).tolist() == torch.ops.beside_test.twice(x).tolist() == [2, 2]
    assert module.twice is not torch.ops.beside_test.twice.default


def test_an_edited_source_is_loaded_beside_the_former(tmp_path):
    def load(factor):
        source = f"torch::Tensor scaled(const torch::Tensor& x) {{ return x * {factor}; }}"
        return cpp_extension.load_inline(
            "edited_test", source, functions="scaled", build_directory=str(tmp_path)
        )

    first, second = load(2), load(3)
    assert (first.scaled(torch.ones(1)).item(), second.scaled(torch.ones(1)).item()) == (2, 3)
    assert load(2) is first


def test_what_cannot_be_registered_is_an_error(tmp_path):
    """An exception in a static initialiser must not end the process."""
    source = TWICE + 'TORCH_LIBRARY(failing_test, m) { m.def("twice", twice); m.def("twice", twice); }'
    with pytest.raises(RuntimeError, match="there is an operator failing_test::twice already"):
        cpp_extension.load_inline("failing_test", source, build_directory=str(tmp_path / "a"))
    source = TWICE + 'TORCH_LIBRARY_IMPL(kept_test, CPU, m) { m.impl("twice", twice); }'
    source += 'TORCH_LIBRARY(kept_test, m) { m.def("twice(Tensor x, Tensor y) -> Tensor"); }'
    with pytest.raises(RuntimeError, match="has 2 parameters, the function 1"):
        cpp_extension.load_inline(
            "kept_test", source, build_directory=str(tmp_path / "b"), is_python_module=False
        )
    assert torch.ones(1).add(1).item() == 2


def test_kernels_with_and_without_derivatives(tmp_path):
    source = tmp_path / "kernels.cpp"
    source.write_text(KERNEL)
    module = cpp_extension.load("kernels_test", [str(source)], build_directory=str(tmp_path / "build"))
    x = torch.randn(4, dtype=torch.float64, requires_grad=True)
    torch.testing.assert_close(module.cube(x), x**3)
    assert torch.autograd.gradcheck(module.cube, x) and torch.autograd.gradgradcheck(module.cube, x)
    torch.testing.assert_close(torch.vmap(module.cube)(x.detach().view(2, 2)).flatten(), x.detach() ** 3)
    assert module.cube(x).grad_fn.name() == "CubeBackward0"
    assert str(module.cube) == "kernels.cube.default"
    with torch.autocast("cpu"):
        module.cube(x)
    with torch.profiler.profile() as prof:
        module.cube(x)
    assert any("cube" in event.name for event in prof.events())
    with pytest.raises(RuntimeError, match="expected float64"):
        module.cube(torch.ones(2))
    assert module.opaque(x.detach()).tolist() == x.tolist()
    with pytest.raises(NotImplementedError, match="derivative for opaque"):
        module.opaque(x)
    assert any(record["name"] == "add" for record in torch._C._operator_records())
    assert not any(record["name"] == "cube" for record in torch._C._operator_records())


def test_errors(tmp_path):
    bad = tmp_path / "bad.cpp"
    bad.write_text("this is not C++")
    with pytest.raises(RuntimeError, match="Error building extension"):
        cpp_extension.load("bad", [str(bad)], build_directory=str(tmp_path / "build"))
    for call in (
        lambda: cpp_extension.load("x", ["kernel.cu"]),
        lambda: cpp_extension.load_inline("x", "", cuda_sources="__global__ void f() {}"),
        lambda: cpp_extension.load("x", [str(bad)], with_cuda=True),
        lambda: cpp_extension.CUDAExtension("x", ["a.cpp", "b.cu"]),
        lambda: cpp_extension.include_paths("cuda"),
    ):
        with pytest.raises(RuntimeError, match="no CUDA"):
            call()
    with pytest.raises(ValueError, match="identifier"):
        cpp_extension.load("a-b", [str(bad)])
    with pytest.raises(ValueError, match="no sources"):
        cpp_extension.load("x", [])


def test_setuptools_builds_a_package(tmp_path):
    pytest.importorskip("setuptools")
    (tmp_path / "ops.cpp").write_text(
        """
        #include <Python.h>
        #include <rushlight/extension.h>
        static rushlight::Tensor twice(const rushlight::Tensor& x) { return x + x; }
        RUSHLIGHT_LIBRARY(packaged, m) { m.def("twice", twice); }
        static PyModuleDef definition = {PyModuleDef_HEAD_INIT, "packaged_ops", nullptr, -1, nullptr};
        PyMODINIT_FUNC PyInit_packaged_ops() { return PyModule_Create(&definition); }
        """
    )
    (tmp_path / "setup.py").write_text(
        "from setuptools import setup\n"
        "from rushlight.utils.cpp_extension import BuildExtension, CppExtension\n"
        "setup(name='packaged', ext_modules=[CppExtension('packaged_ops', ['ops.cpp'])],\n"
        "      cmdclass={'build_ext': BuildExtension.with_options(use_ninja=False)})\n"
    )
    root = os.path.dirname(os.path.dirname(os.path.abspath(torch.__file__)))
    path = os.pathsep.join([root, str(tmp_path), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONPATH": path}

    def run(*command):
        done = subprocess.run(
            [sys.executable, *command],
            cwd=tmp_path,
            env=environment,
            text=True,
            capture_output=True,
            timeout=300,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    run("setup.py", "build_ext", "--inplace")
    program = "import rushlight, packaged_ops\n"
    program += "print(rushlight.ops.packaged.twice(rushlight.ones(2)).tolist())"
    assert "[2.0, 2.0]" in run("-c", program)
