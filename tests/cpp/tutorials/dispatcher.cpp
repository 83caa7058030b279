// "Registering a Dispatched Operator in C++": a schema, a kernel for a device, and a rule for gradients, each
// registered apart.
#include <torch/library.h>
#include <torch/torch.h>

#include "check.h"

static torch::Tensor myadd(const torch::Tensor& self, const torch::Tensor& other) {
  static auto op =
      c10::Dispatcher::singleton().findSchemaOrThrow("myops::myadd", "").typed<decltype(myadd)>();
  return op.call(self, other);
}

static int kernel_calls = 0;

static torch::Tensor myadd_cpu(const torch::Tensor& self_, const torch::Tensor& other_) {
  TORCH_CHECK(self_.sizes() == other_.sizes());
  TORCH_INTERNAL_ASSERT(self_.device().type() == torch::DeviceType::CPU);
  ++kernel_calls;
  torch::Tensor self = self_.contiguous(), other = other_.contiguous();
  torch::Tensor result = torch::empty(self.sizes(), self.options());
  const float *a = self.data_ptr<float>(), *b = other.data_ptr<float>();
  float* to = result.data_ptr<float>();
  for (int64_t i = 0; i < result.numel(); ++i) to[i] = a[i] + b[i];
  return result;
}

class MyAddFunction : public torch::autograd::Function<MyAddFunction> {
 public:
  static torch::Tensor forward(torch::autograd::AutogradContext*, torch::Tensor self, torch::Tensor other) {
    at::AutoDispatchBelowADInplaceOrView guard;
    return myadd(self, other);
  }
  static torch::autograd::tensor_list backward(torch::autograd::AutogradContext*,
                                               torch::autograd::tensor_list grad_outputs) {
    return {grad_outputs[0], grad_outputs[0]};
  }
};
static torch::Tensor myadd_autograd(const torch::Tensor& self, const torch::Tensor& other) {
  return MyAddFunction::apply(self, other);
}

// Registrations may come in any order.
TORCH_LIBRARY_IMPL(myops, Autograd, m) { m.impl("myadd", myadd_autograd); }
TORCH_LIBRARY_IMPL(myops, CPU, m) { m.impl("myadd", myadd_cpu); }
TORCH_LIBRARY(myops, m) {
  m.def("myadd(Tensor self, Tensor other) -> Tensor");
  m.def("nowhere(Tensor self) -> Tensor");
}
TORCH_LIBRARY_FRAGMENT(myops, m) {
  m.def("twice(Tensor self, int times=2) -> Tensor",
        [](const torch::Tensor& x, int64_t times) { return x * times; });
}

int main() {
  torch::Tensor a = torch::rand({2, 3}, torch::requires_grad()), b = torch::rand({2, 3});
  torch::Tensor y = myadd(a, b);
  CHECK(torch::allclose(y, a + b) && kernel_calls == 1);
  CHECK(y.grad_fn() != nullptr);
  y.sum().backward();
  CHECK(torch::equal(a.grad(), torch::ones({2, 3})));
  CHECK(!b.grad().defined());

  auto twice = c10::Dispatcher::singleton().findSchemaOrThrow("myops::twice", "");
  CHECK(torch::equal(twice.typed<torch::Tensor(const torch::Tensor&, int64_t)>().call(b, 3), b * 3));
  auto nowhere = c10::Dispatcher::singleton().findSchemaOrThrow("myops::nowhere", "");
  CHECK(throws<c10::Error>([&] { nowhere.typed<torch::Tensor(const torch::Tensor&)>().call(b); }));
  CHECK(throws<c10::Error>([] { c10::Dispatcher::singleton().findSchemaOrThrow("myops::unknown", ""); }));
  CHECK(throws<c10::Error>([&] { myadd(a, torch::rand({3, 2})); }));
  return 0;
}
