// The methods of tensors that are no operators of the table.
#include "rushlight/tensor.h"

#include <iostream>

#include "autograd/engine.h"
#include "autograd/meta.h"
#include "core/host/library.h"
#include "core/sparse.h"
#include "frontend/call.h"
#include "ops/complex.h"
#include "ops/copy.h"
#include "ops/view.h"
#include "rushlight/autograd.h"

namespace rushlight {

// --- assignment to what an index gave
Tensor& Tensor::operator=(const Tensor& value) && {
  copy_(value);
  return *this;
}
Tensor& Tensor::operator=(Tensor&& value) && {
  copy_(value);
  return *this;
}
Tensor& Tensor::operator=(const Scalar& value) && {
  fill_(value);
  return *this;
}

// --- what it is
TensorOptions Tensor::options() const { return TensorOptions(dtype()).device(device()).layout(layout()); }
Layout Tensor::layout() const { return impl_->sparse ? impl_->sparse->layout : Layout::Strided; }
bool Tensor::is_non_overlapping_and_dense() const { return rushlight::is_non_overlapping_and_dense(*this); }
uint64_t Tensor::use_count() const { return impl_ ? impl_->use_count() : 0; }

std::string Tensor::toString() const {
  if (!defined()) return "UndefinedType";
  const char* const device_name = device().is_cpu() ? "CPU" : device().is_cuda() ? "CUDA" : "Meta";
  return str(is_sparse() ? "Sparse" : "", device_name, legacy_name(dtype()), "Type");
}

void Tensor::print() const {
  if (defined())
    std::cout << "[" << toString() << " " << sizes() << "]\n";
  else
    std::cout << "[UndefinedTensor]\n";
}

void Tensor::check_type(ScalarType wanted) const {
  RL_CHECK(dtype() == wanted, "expected scalar type ", legacy_name(wanted), " but found ",
           legacy_name(dtype()));
}
void Tensor::check_dim(size_t wanted) const {
  RL_CHECK(dim() == static_cast<int64_t>(wanted), "TensorAccessor expected ", wanted, " dims but tensor has ",
           dim());
}

Scalar Tensor::item() const {
  RL_CHECK(defined(), "item(): the tensor is undefined");
  RL_CHECK(numel() == 1, "a Tensor with ", numel(), " elements cannot be converted to Scalar");
  static const Op& op = frontend::find_operator("_local_scalar_dense");
  const Value boxed[] = {Value(*this)};
  return frontend::call<Scalar>(op, boxed);
}

// --- conversions
Tensor Tensor::contiguous(MemoryFormat format) const { return ops::contiguous(*this, format); }
Tensor Tensor::where(const Tensor& condition, const Tensor& other) const {
  return rushlight::where(condition, *this, other);
}
Tensor Tensor::where(const Tensor& condition, const Scalar& other) const {
  return rushlight::where(condition, *this, other);
}
Tensor Tensor::to(ScalarType dtype, bool non_blocking, bool copy, std::optional<MemoryFormat> format) const {
  return ops::to(*this, dtype, std::nullopt, non_blocking, copy, format);
}
Tensor Tensor::to(const Device& device, ScalarType dtype, bool non_blocking, bool copy,
                  std::optional<MemoryFormat> format) const {
  return ops::to(*this, dtype, device, non_blocking, copy, format);
}
Tensor Tensor::to(const Device& device, bool non_blocking, bool copy) const {
  return ops::to(*this, std::nullopt, device, non_blocking, copy, std::nullopt);
}
Tensor Tensor::to(TensorOptions options, bool non_blocking, bool copy,
                  std::optional<MemoryFormat> format) const {
  RL_CHECK(!options.requires_grad(), "to(options) expects unset requires_grad flag, but got ",
           "options.requires_grad set as true");
  if (!format) format = options.memory_format_opt();
  return ops::to(*this, options.dtype_opt(), options.device_opt(), non_blocking, copy, format);
}
Tensor Tensor::to(const Tensor& other, bool non_blocking, bool copy) const {
  return ops::to(*this, other.dtype(), other.device(), non_blocking, copy, std::nullopt);
}
Tensor Tensor::cpu() const { return to(Device(kCPU)); }
Tensor Tensor::cuda() const { return to(Device(kCUDA)); }
Tensor Tensor::numpy_T() const { return ops::numpy_T(*this); }
Tensor Tensor::real() const { return rushlight::real(*this); }
Tensor Tensor::imag() const { return rushlight::imag(*this); }
Tensor Tensor::alias() const { return ops::alias(*this); }

// --- gradients
bool Tensor::requires_grad() const { return rushlight::requires_grad(*this); }
const Tensor& Tensor::set_requires_grad(bool on) const {
  rushlight::set_requires_grad(*this, on);
  return *this;
}
Tensor& Tensor::requires_grad_(bool on) const {
  rushlight::set_requires_grad(*this, on);
  return const_cast<Tensor&>(*this);
}
bool Tensor::is_leaf() const { return rushlight::is_leaf(*this); }
void Tensor::backward(const Tensor& gradient, std::optional<bool> retain_graph, bool create_graph) const {
  autograd::backward({*this}, gradient.defined() ? TensorList({gradient}) : TensorList(), retain_graph,
                     create_graph);
}
void Tensor::backward(const Tensor& gradient, std::optional<bool> retain_graph, bool create_graph,
                      TensorList inputs) const {
  RL_CHECK(!inputs.empty(), "'inputs' argument to backward cannot be empty");
  autograd::backward({*this}, gradient.defined() ? TensorList({gradient}) : TensorList(), retain_graph,
                     create_graph, inputs);
}
const Tensor& Tensor::grad() const {
  static const Tensor none;
  if (!impl_->autograd) return none;
  const Tensor& grad = impl_->autograd->grad;
  if (!grad.defined() && !is_leaf() && !retains_grad())
    warn(
        "The .grad attribute of a Tensor that is not a leaf Tensor is being accessed. Its .grad attribute "
        "won't "
        "be populated during autograd.backward(). If you indeed want the .grad field to be populated for a "
        "non-leaf Tensor, use .retain_grad() on the non-leaf Tensor.");
  return grad;
}
Tensor& Tensor::mutable_grad() const { return autograd_meta(*this).grad; }
void Tensor::retain_grad() const { rushlight::retain_grad(*this); }
bool Tensor::retains_grad() const { return rushlight::retains_grad(*this); }
Tensor& Tensor::detach_() const {
  detach_in_place(*this);
  return const_cast<Tensor&>(*this);
}
Tensor Tensor::data() const { return rushlight::tensor_data(*this); }
void Tensor::set_data(const Tensor& source) const { rushlight::set_data(*this, source); }
int64_t Tensor::output_nr() const { return rushlight::output_nr(*this); }

std::string demangle(const char* name) { return host::demangled(name); }

}  // namespace rushlight
