#include "rushlight/nn/module.h"

#include <ostream>

#include "rushlight/autograd.h"
#include "rushlight/serialize.h"

namespace rushlight::nn {

const std::string& Module::name() const {
  if (!name_) {
    name_ = demangle(typeid(*this).name());
    // libtorch programs know its modules as torch::nn::LinearImpl.
    if (name_->starts_with("rushlight::")) name_ = "torch" + name_->substr(9);
  }
  return *name_;
}

std::shared_ptr<Module> Module::clone(const std::optional<Device>&) const {
  RL_FAIL("clone() has not been implemented for ", name(), ". Subclass torch::nn::Cloneable<", name(),
          "> instead of torch::nn::Module to inherit the ability "
          "to clone.");
}

void Module::copy_state_of(const Module& other, const std::optional<Device>& device) {
  NoGradGuard no_grad;
  auto copied = [&](const Tensor& t) { return device ? t.to(*device).clone() : t.clone(); };
  RL_CHECK(
      parameters_.size() == other.parameters_.size() && buffers_.size() == other.buffers_.size() &&
          children_.size() == other.children_.size(),
      "The cloned module does not have the same number of parameters, buffers or submodules as the original "
      "after calling reset(). Are you sure you called register_parameter(), register_buffer() and "
      "register_module() inside reset() and not the constructor?");
  for (const auto& p : other.parameters_)
    if (p.value().defined()) parameters_[p.key()].set_data(copied(p.value()));
  for (const auto& b : other.buffers_)
    if (b.value().defined()) buffers_[b.key()].set_data(copied(b.value()));
  for (const auto& c : other.children_) children_[c.key()]->become_copy_of(*c.value(), device);
  is_training_ = other.is_training_;
}

std::shared_ptr<Module> Module::adopt_copy(Module* copy, void (*reset)(Module&),
                                           const std::optional<Device>& device) const {
  std::shared_ptr<Module> adopted(copy);
  copy->parameters_.clear();
  copy->buffers_.clear();
  copy->children_.clear();
  reset(*copy);
  copy->copy_state_of(*this, device);
  return adopted;
}

void Module::refuse_copy_of(const Module& other) const {
  RL_FAIL("Attempted to clone submodule ", other.name(), " into one of another type, ", name());
}

// --- walking
static std::string joined(const std::string& prefix, const std::string& name) {
  return prefix.empty() ? name : prefix + "." + name;
}

std::shared_ptr<Module> Module::shared_from_this_checked() const {
  std::shared_ptr<const Module> self = weak_from_this().lock();
  RL_CHECK(
      self,
      "It looks like you attempted to retrieve your top-level module as a shared_ptr, but it is not stored "
      "in a shared_ptr. Use std::make_shared<",
      name(),
      "> instead of creating your module on the stack, or "
      "pass include_self=false.");
  return std::const_pointer_cast<Module>(self);
}

void Module::apply(const ModuleApplyFunction& function) {
  function(*this);
  for (auto& c : children_) c.value()->apply(function);
}
void Module::apply(const ConstModuleApplyFunction& function) const {
  function(*this);
  for (const auto& c : children_) static_cast<const Module&>(*c.value()).apply(function);
}
void Module::apply(const NamedModuleApplyFunction& function, const std::string& name_prefix) {
  function(name_prefix, *this);
  for (auto& c : children_) c.value()->apply(function, joined(name_prefix, c.key()));
}
void Module::apply(const ConstNamedModuleApplyFunction& function, const std::string& name_prefix) const {
  function(name_prefix, *this);
  for (const auto& c : children_)
    static_cast<const Module&>(*c.value()).apply(function, joined(name_prefix, c.key()));
}
void Module::apply(const NamedModulePointerApplyFunction& function, const std::string& name_prefix) const {
  function(name_prefix, shared_from_this_checked());
  for (const auto& c : children_) c.value()->apply(function, joined(name_prefix, c.key()));
}
void Module::apply(const ModulePointerApplyFunction& function) const {
  function(shared_from_this_checked());
  for (const auto& c : children_) c.value()->apply(function);
}

OrderedDict<std::string, Tensor> Module::named_parameters(bool recurse) const {
  OrderedDict<std::string, Tensor> result("Parameter");
  for (const auto& p : parameters_)
    if (p.value().defined()) result.insert(p.key(), p.value());
  if (recurse)
    for (const auto& c : children_)
      for (const auto& p : c.value()->named_parameters()) result.insert(joined(c.key(), p.key()), p.value());
  return result;
}
OrderedDict<std::string, Tensor> Module::named_buffers(bool recurse) const {
  OrderedDict<std::string, Tensor> result("Buffer");
  for (const auto& b : buffers_)
    if (b.value().defined()) result.insert(b.key(), b.value());
  if (recurse)
    for (const auto& c : children_)
      for (const auto& b : c.value()->named_buffers()) result.insert(joined(c.key(), b.key()), b.value());
  return result;
}
std::vector<Tensor> Module::parameters(bool recurse) const { return named_parameters(recurse).values(); }
std::vector<Tensor> Module::buffers(bool recurse) const { return named_buffers(recurse).values(); }

OrderedDict<std::string, std::shared_ptr<Module>> Module::named_modules(const std::string& prefix,
                                                                        bool include_self) const {
  OrderedDict<std::string, std::shared_ptr<Module>> result("Module");
  if (include_self) result.insert(prefix, shared_from_this_checked());
  for (const auto& c : children_)
    for (const auto& m : c.value()->named_modules(joined(prefix, c.key()))) result.insert(m.key(), m.value());
  return result;
}
std::vector<std::shared_ptr<Module>> Module::modules(bool include_self) const {
  return named_modules({}, include_self).values();
}

// --- state
void Module::train(bool on) {
  for (auto& c : children_) c.value()->train(on);
  is_training_ = on;
}
// Integers, as counters are, keep their type.
template <class Dict, class Convert>
static void convert_all(Dict& tensors, const Convert& convert) {
  for (auto& t : tensors)
    if (t.value().defined()) t.value().set_data(convert(t.value().data()));
}
void Module::to(Device device, ScalarType dtype, bool non_blocking) {
  for (auto& c : children_) c.value()->to(device, dtype, non_blocking);
  auto convert = [&](const Tensor& t) {
    return is_differentiable(t.dtype()) ? t.to(device, dtype, non_blocking) : t.to(device, non_blocking);
  };
  convert_all(parameters_, convert);
  convert_all(buffers_, convert);
}
void Module::to(ScalarType dtype, bool non_blocking) {
  for (auto& c : children_) c.value()->to(dtype, non_blocking);
  auto convert = [&](const Tensor& t) {
    return is_differentiable(t.dtype()) ? t.to(dtype, non_blocking) : t;
  };
  convert_all(parameters_, convert);
  convert_all(buffers_, convert);
}
void Module::to(Device device, bool non_blocking) {
  for (auto& c : children_) c.value()->to(device, non_blocking);
  auto convert = [&](const Tensor& t) { return t.to(device, non_blocking); };
  convert_all(parameters_, convert);
  convert_all(buffers_, convert);
}
void Module::zero_grad(bool set_to_none) {
  for (auto& c : children_) c.value()->zero_grad(set_to_none);
  for (auto& p : parameters_) {
    if (!p.value().defined() || !p.value().grad().defined()) continue;
    Tensor& grad = p.value().mutable_grad();
    if (set_to_none)
      grad.reset();
    else
      grad = grad.detach().zero_();
  }
}

std::vector<std::pair<unsigned, AnyValue>> Module::_forward_default_args() { return {}; }

static void check_name(const char* what, const std::string& name) {
  RL_CHECK(!name.empty(), what, " name must not be empty");
  RL_CHECK(name.find('.') == std::string::npos, what, " name must not contain a dot (got '", name, "')");
}
Tensor& Module::register_parameter(std::string name, Tensor tensor, bool requires_grad) {
  check_name("Parameter", name);
  if (tensor.defined()) {
    if (!tensor.is_leaf()) tensor = tensor.detach();
    tensor.set_requires_grad(requires_grad);
  } else if (requires_grad) {
    warn(
        "register_parameter: an undefined tensor cannot require grad. Ignoring the `requires_grad=true` "
        "function parameter.");
  }
  return parameters_.insert(std::move(name), std::move(tensor));
}
Tensor& Module::register_buffer(std::string name, Tensor tensor) {
  check_name("Buffer", name);
  return buffers_.insert(std::move(name), std::move(tensor));
}
void Module::register_child(std::string name, std::shared_ptr<Module> module) {
  check_name("Submodule", name);
  children_.insert(std::move(name), std::move(module));
}
void Module::unregister_module(const std::string& name) {
  RL_CHECK(children_.contains(name), "No Module with name `", name, "` is registered");
  children_.erase(name);
}

// --- archives: one file entry per tensor, named as Python's state_dict names it
void Module::save(serialize::OutputArchive& archive) const {
  for (const auto& p : parameters_)
    if (p.value().defined()) archive.write(p.key(), p.value());
  for (const auto& b : buffers_)
    if (b.value().defined()) archive.write(b.key(), b.value(), true);
  for (const auto& c : children_)
    if (c.value()->is_serializable()) {
      serialize::OutputArchive child;
      c.value()->save(child);
      archive.write(c.key(), child);
    }
}
void Module::load(serialize::InputArchive& archive) {
  NoGradGuard no_grad;
  for (auto& p : parameters_)
    if (p.value().defined()) archive.read(p.key(), p.value());
  for (auto& b : buffers_)
    if (b.value().defined()) archive.read(b.key(), b.value(), true);
  for (auto& c : children_)
    if (c.value()->is_serializable()) {
      serialize::InputArchive child;
      archive.read(c.key(), child);
      c.value()->load(child);
    }
}
serialize::OutputArchive& operator<<(serialize::OutputArchive& archive,
                                     const std::shared_ptr<Module>& module) {
  RL_CHECK(module != nullptr, "Cannot serialize empty module");
  module->save(archive);
  return archive;
}
serialize::InputArchive& operator>>(serialize::InputArchive& archive, const std::shared_ptr<Module>& module) {
  RL_CHECK(module != nullptr, "Cannot deserialize empty module");
  module->load(archive);
  return archive;
}

// --- printing
void Module::pretty_print(std::ostream& stream) const { stream << name(); }
void Module::print_tree(std::ostream& stream, const std::string& indentation) const {
  pretty_print(stream);
  if (children_.is_empty()) return;
  const std::string next = indentation + "  ";
  stream << "(\n";
  for (const auto& c : children_) {
    stream << next << "(" << c.key() << "): ";
    c.value()->print_tree(stream, next);
    stream << "\n";
  }
  stream << indentation << ")";
}
std::ostream& operator<<(std::ostream& stream, const Module& module) {
  module.print_tree(stream, "");
  return stream;
}

}  // namespace rushlight::nn
