#include "rushlight/nn/container.h"

#include <cmath>
#include <ostream>

#include "rushlight/autograd.h"
#include "rushlight/nn/utils.h"

namespace rushlight::nn {

void SequentialImpl::pretty_print(std::ostream& out) const { out << "torch::nn::Sequential"; }
void ModuleListImpl::pretty_print(std::ostream& out) const { out << "torch::nn::ModuleList"; }
void ModuleDictImpl::pretty_print(std::ostream& out) const { out << "torch::nn::ModuleDict"; }
static void print(std::ostream& out, const char* name, const OrderedDict<std::string, Tensor>& parameters) {
  out << "torch::nn::" << name << "(\n";
  for (const auto& p : parameters)
    out << "(" << p.key() << "): Parameter containing: [" << p.value().scalar_type() << " of size "
        << p.value().sizes() << "]\n";
  out << ")";
}
void ParameterListImpl::pretty_print(std::ostream& out) const { print(out, "ParameterList", parameters_); }
void ParameterDictImpl::pretty_print(std::ostream& out) const { print(out, "ParameterDict", parameters_); }
void FunctionalImpl::pretty_print(std::ostream& out) const { out << "torch::nn::Functional()"; }

std::shared_ptr<Module> ModuleListImpl::clone(const std::optional<Device>& device) const {
  auto copy = std::make_shared<ModuleListImpl>();
  for (const auto& m : modules_) copy->push_back(m->clone(device));
  return copy;
}
void ModuleListImpl::push_back(std::shared_ptr<Module> module) {
  register_module(std::to_string(modules_.size()), module);
  modules_.push_back(std::move(module));
}
void ModuleListImpl::insert(size_t index, std::shared_ptr<Module> module) {
  RL_CHECK_INDEX(index <= modules_.size(), "Index out of range");
  modules_.insert(modules_.begin() + static_cast<std::ptrdiff_t>(index), std::move(module));
  children_.clear();
  for (size_t i = 0; i < modules_.size(); ++i) register_module(std::to_string(i), modules_[i]);
}

std::shared_ptr<Module> ModuleDictImpl::clone(const std::optional<Device>& device) const {
  auto copy = std::make_shared<ModuleDictImpl>();
  for (const auto& c : children_) copy->insert(c.key(), c.value()->clone(device));
  return copy;
}
std::shared_ptr<Module> ModuleDictImpl::pop(const std::string& key) {
  auto module = children_[key];
  unregister_module(key);
  return module;
}

namespace utils {

double clip_grad_norm_(const std::vector<Tensor>& parameters, double max_norm, double norm_type,
                       bool error_if_nonfinite) {
  NoGradGuard no_grad;
  std::vector<Tensor> norms;
  for (const Tensor& p : parameters)
    if (p.grad().defined()) norms.push_back(linalg::vector_norm(p.grad(), norm_type));
  if (norms.empty()) return 0.0;
  const double total = linalg::vector_norm(stack(norms), norm_type).item<double>();
  RL_CHECK(!error_if_nonfinite || std::isfinite(total), "The total norm of order ", norm_type,
           " for gradients from `parameters` is non-finite, so it cannot be clipped.");
  const double factor = max_norm / (total + 1e-6);
  if (factor < 1)
    for (const Tensor& p : parameters)
      if (p.grad().defined()) p.mutable_grad().mul_(factor);
  return total;
}
double clip_grad_norm_(Tensor parameter, double max_norm, double norm_type, bool error_if_nonfinite) {
  return clip_grad_norm_(std::vector<Tensor>{std::move(parameter)}, max_norm, norm_type, error_if_nonfinite);
}
void clip_grad_value_(const std::vector<Tensor>& parameters, double clip_value) {
  NoGradGuard no_grad;
  for (const Tensor& p : parameters)
    if (p.grad().defined()) p.mutable_grad().clamp_(Scalar(-clip_value), Scalar(clip_value));
}
void clip_grad_value_(Tensor parameter, double clip_value) {
  clip_grad_value_(std::vector<Tensor>{std::move(parameter)}, clip_value);
}
Tensor parameters_to_vector(const std::vector<Tensor>& parameters) {
  std::vector<Tensor> flat;
  for (const Tensor& p : parameters) flat.push_back(p.reshape(-1));
  return cat(flat);
}
void vector_to_parameters(const Tensor& vector, const std::vector<Tensor>& parameters) {
  int64_t at = 0;
  for (const Tensor& p : parameters) {
    p.set_data(vector.detach().narrow(0, at, p.numel()).view_as(p).clone());
    at += p.numel();
  }
}

}  // namespace utils
}  // namespace rushlight::nn
