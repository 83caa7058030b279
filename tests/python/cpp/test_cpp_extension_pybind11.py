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
void fails(int how) {
  TORCH_CHECK_INDEX(how != 0, "an index");
  TORCH_CHECK_VALUE(how != 1, "a value");
  TORCH_CHECK_TYPE(how != 2, "a type");
  TORCH_CHECK_NOT_IMPLEMENTED(how != 3, "not yet");
  if (how == 4) throw std::out_of_range("far");
  if (how == 5) throw py::key_error("absent");
  torch::ones({2}).to(torch::kInt8).index_select(0, torch::ones({1}).to(torch::kLong) * 7);
}
torch::Tensor filled(at::IntArrayRef sizes, at::Scalar value, std::optional<at::ScalarType> type,
                     at::Device on) {
  return torch::full(sizes, value, torch::TensorOptions().dtype(type.value_or(torch::kFloat)).device(on));
}
py::tuple described(const torch::Tensor& x) { return py::make_tuple(x.sizes(), x.scalar_type(), x.device()); }
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  m.def("scaled", &scaled, py::arg("x"), py::arg("by") = 2.0);
  m.def("same", &same);
  m.def("fails", &fails);
  m.def("filled", &filled, py::arg("sizes"), py::arg("value") = at::Scalar(1), py::arg("type") = py::none(),
        py::arg("on") = at::Device("cpu"));
  m.def("described", &described);
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
    kinds = [IndexError, ValueError, TypeError, NotImplementedError, IndexError, KeyError, IndexError]
    for how, kind in enumerate(kinds):
        with pytest.raises(kind) as raised:
            module.fails(how)
        assert raised.type is kind


def test_types_sizes_and_numbers(module):
    assert torch.equal(module.filled((2, 1), 3, torch.int16, "cpu"), torch.full((2, 1), 3, dtype=torch.int16))
    assert module.filled([2], True, torch.bool).tolist() == [True, True]
    assert module.filled([1], 1 + 2j, torch.complex64, torch.device("cpu")).tolist() == [1 + 2j]
    assert module.filled(torch.Size([2])).tolist() == [1, 1]
    assert module.described(torch.ones(2, 3).half()) == ((2, 3), torch.float16, torch.device("cpu"))
    for wrong in [(2, 1), ([2], "a"), ([2], 1, "float"), ([2], 1, None, 3)]:
        with pytest.raises(TypeError, match="incompatible function arguments"):
            module.filled(*wrong)
