// "Extending TorchScript with Custom C++ Operators" and "Custom C++ and CUDA Operators": a library that
// registers operators, loaded by C++ programs and by Python.
#include <torch/library.h>
#include <torch/script.h>

namespace {

// Each row moved to the right by its own number, in place of OpenCV's warp.
torch::Tensor shift_rows(torch::Tensor image, torch::Tensor by) {
  TORCH_CHECK(image.dim() == 2 && by.size(0) == image.size(0),
              "shift_rows: a matrix and a number for each row");
  torch::Tensor out = torch::zeros_like(image);
  for (int64_t row = 0; row < image.size(0); ++row) {
    const int64_t n = by[row].item<int64_t>(), width = image.size(1);
    out[row].slice(0, n, width).copy_(image[row].slice(0, 0, width - n));
  }
  return out;
}

at::Tensor mymuladd_cpu(const at::Tensor& a, const at::Tensor& b, double c) {
  TORCH_CHECK(a.sizes() == b.sizes());
  TORCH_CHECK(a.dtype() == at::kFloat);
  at::Tensor a_contig = a.contiguous(), b_contig = b.contiguous();
  at::Tensor result = torch::empty(a_contig.sizes(), a_contig.options());
  const float *pa = a_contig.data_ptr<float>(), *pb = b_contig.data_ptr<float>();
  float* to = result.data_ptr<float>();
  for (int64_t i = 0; i < result.numel(); ++i) to[i] = pa[i] * pb[i] + static_cast<float>(c);
  return result;
}
void myadd_out_cpu(const at::Tensor& a, const at::Tensor& b, at::Tensor out) { out.copy_(a + b); }

}  // namespace

TORCH_LIBRARY(my_ops, m) { m.def("shift_rows", shift_rows); }

TORCH_LIBRARY(extension_cpp, m) {
  m.def("mymuladd(Tensor a, Tensor b, float c) -> Tensor");
  m.def("myadd_out(Tensor a, Tensor b, Tensor(a!) out) -> ()");
}
TORCH_LIBRARY_IMPL(extension_cpp, CPU, m) {
  m.impl("mymuladd", &mymuladd_cpu);
  m.impl("myadd_out", &myadd_out_cpu);
}
