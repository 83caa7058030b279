"""Extensions whose module pybind11 makes: tensors go in and come out as themselves."""

import os
import shutil

import pytest

import rushlight as torch
from rushlight.utils import cpp_extension

pytest.importorskip("pybind11", reason="the extension's module is pybind11's")
pytestmark = pytest.mark.skipif(
    shutil.which(os.environ.get("CXX", "c++")) is None, reason="no C++ compiler: extensions cannot be built"
)

SOURCE = """
#include <torch/extension.h>

torch::Tensor scaled(torch::Tensor x, double by) {
  TORCH_CHECK(by > 0, "by must be positive");
  return torch::mul(x, by);
}
torch::Tensor same(torch::Tensor x) { return x; }
std::vector<torch::Tensor> joined(const std::vector<torch::Tensor>& list, std::optional<torch::Tensor> last) {
  std::vector<torch::Tensor> result(list);
  if (last) result.push_back(*last);
  return result;
}
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  m.def("scaled", &scaled, py::arg("x"), py::arg("by") = 2.0);
  m.def("same", &same);
  m.def("joined", &joined, py::arg("list"), py::arg("last") = py::none());
}
"""


@pytest.fixture(scope="module")
def module(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pybind11")
    (folder / "source.cpp").write_text(SOURCE)
    return cpp_extension.load("pybind11_test", [folder / "source.cpp"], build_directory=str(folder))


def test_tensors_both_ways(module):
    x = torch.randn(3, requires_grad=True)
    y = module.scaled(x, by=3.0)
    y.sum().backward()
    assert torch.equal(x.grad, torch.full((3,), 3.0)) and torch.equal(module.scaled(x), 2 * x)
    assert module.same(x) is x
    a, b = module.joined([x], y)
    assert a is x and b is y and len(module.joined([x])) == 1


def test_errors(module):
    with pytest.raises(TypeError, match="torch.Tensor"):
        module.scaled(1.0)
    with pytest.raises(RuntimeError, match="by must be positive"):
        module.scaled(torch.zeros(1), -1.0)
