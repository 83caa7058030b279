// nn::Module: parameters, buffers and submodules by name. ModuleHolder: a module by reference, as a value.
#pragma once
#include "rushlight/nn/options.h"
#include "rushlight/ordered_dict.h"

namespace rushlight {
namespace serialize {
class InputArchive;
class OutputArchive;
}  // namespace serialize

namespace nn {

template <class Contained>
class ModuleHolder;
class AnyModule;
class AnyValue;

namespace detail {
template <class T>
struct Held {
  using type = T;
};
template <class T>
  requires requires { typename T::ContainedType; }
struct Held<T> {
  using type = typename T::ContainedType;
};
}  // namespace detail

class Module : public std::enable_shared_from_this<Module> {
 public:
  using ModuleApplyFunction = std::function<void(Module&)>;
  using ConstModuleApplyFunction = std::function<void(const Module&)>;
  using NamedModuleApplyFunction = std::function<void(const std::string&, Module&)>;
  using ConstNamedModuleApplyFunction = std::function<void(const std::string&, const Module&)>;
  using NamedModulePointerApplyFunction =
      std::function<void(const std::string&, const std::shared_ptr<Module>&)>;
  using ModulePointerApplyFunction = std::function<void(const std::shared_ptr<Module>&)>;

  Module() = default;
  explicit Module(std::string name) : name_(std::move(name)) {}
  Module(const Module&) = default;
  Module& operator=(const Module&) = default;
  Module(Module&&) = default;
  Module& operator=(Module&&) = default;
  virtual ~Module() = default;

  // The class's name, unless one was given.
  const std::string& name() const;
  // A deep copy; classes that derive from Cloneable have one.
  virtual std::shared_ptr<Module> clone(const std::optional<Device>& device = std::nullopt) const;

  void apply(const ModuleApplyFunction& function);
  void apply(const ConstModuleApplyFunction& function) const;
  void apply(const NamedModuleApplyFunction& function, const std::string& name_prefix = {});
  void apply(const ModulePointerApplyFunction& function) const;
  void apply(const ConstNamedModuleApplyFunction& function, const std::string& name_prefix = {}) const;
  void apply(const NamedModulePointerApplyFunction& function, const std::string& name_prefix = {}) const;

  std::vector<Tensor> parameters(bool recurse = true) const;
  OrderedDict<std::string, Tensor> named_parameters(bool recurse = true) const;
  std::vector<Tensor> buffers(bool recurse = true) const;
  OrderedDict<std::string, Tensor> named_buffers(bool recurse = true) const;
  std::vector<std::shared_ptr<Module>> modules(bool include_self = true) const;
  OrderedDict<std::string, std::shared_ptr<Module>> named_modules(const std::string& name_prefix = {},
                                                                  bool include_self = true) const;
  std::vector<std::shared_ptr<Module>> children() const { return children_.values(); }
  OrderedDict<std::string, std::shared_ptr<Module>> named_children() const { return children_; }

  virtual void train(bool on = true);
  void eval() { train(false); }
  virtual bool is_training() const noexcept { return is_training_; }
  virtual void to(Device device, ScalarType dtype, bool non_blocking = false);
  virtual void to(ScalarType dtype, bool non_blocking = false);
  virtual void to(Device device, bool non_blocking = false);
  void to(DeviceType device, bool non_blocking = false) { to(Device(device), non_blocking); }
  virtual void zero_grad(bool set_to_none = true);

  virtual void save(serialize::OutputArchive& archive) const;
  virtual void load(serialize::InputArchive& archive);
  virtual void pretty_print(std::ostream& stream) const;
  virtual bool is_serializable() const { return true; }

  // This module as one of class T, or of the class that the holder T holds; null where it is another.
  template <class T>
  auto* as() noexcept {
    return dynamic_cast<typename detail::Held<T>::type*>(this);
  }
  template <class T>
  const auto* as() const noexcept {
    return dynamic_cast<const typename detail::Held<T>::type*>(this);
  }

  Tensor& register_parameter(std::string name, Tensor tensor, bool requires_grad = true);
  Tensor& register_buffer(std::string name, Tensor tensor);
  template <class T>
  std::shared_ptr<T> register_module(std::string name, std::shared_ptr<T> module) {
    register_child(std::move(name), module);
    return module;
  }
  template <class T>
  std::shared_ptr<T> register_module(std::string name, ModuleHolder<T> holder) {
    return register_module(std::move(name), holder.ptr());
  }
  template <class T>
  std::shared_ptr<T> replace_module(const std::string& name, std::shared_ptr<T> module) {
    children_[name] = module;
    return module;
  }
  template <class T>
  std::shared_ptr<T> replace_module(const std::string& name, ModuleHolder<T> holder) {
    return replace_module(name, holder.ptr());
  }
  void unregister_module(const std::string& name);

 protected:
  // See FORWARD_HAS_DEFAULT_ARGS in container.h.
  virtual std::vector<std::pair<unsigned, AnyValue>> _forward_default_args();
  OrderedDict<std::string, Tensor> parameters_{"Parameter"};
  OrderedDict<std::string, Tensor> buffers_{"Buffer"};
  OrderedDict<std::string, std::shared_ptr<Module>> children_{"Submodule"};
  bool is_training_ = true;

 private:
  template <class>
  friend class Cloneable;
  friend class AnyModule;
  friend std::ostream& operator<<(std::ostream& stream, const Module& module);
  void register_child(std::string name, std::shared_ptr<Module> module);
  void copy_state_of(const Module& other, const std::optional<Device>& device);
  // The part of clone() that is the same for every class: compiled once, not in each program for each class.
  std::shared_ptr<Module> adopt_copy(Module* copy, void (*reset)(Module&),
                                     const std::optional<Device>& device) const;
  [[noreturn]] void refuse_copy_of(const Module& other) const;
  // Makes this module, which a parent's reset() made anew, a copy of the one in the original.
  virtual void become_copy_of(const Module& other, const std::optional<Device>& device) {
    copy_state_of(other, device);
  }
  void print_tree(std::ostream& stream, const std::string& indentation) const;
  std::shared_ptr<Module> shared_from_this_checked() const;
  mutable std::optional<std::string> name_;
};

std::ostream& operator<<(std::ostream& stream, const Module& module);
serialize::OutputArchive& operator<<(serialize::OutputArchive& archive,
                                     const std::shared_ptr<Module>& module);
serialize::InputArchive& operator>>(serialize::InputArchive& archive, const std::shared_ptr<Module>& module);

// Gives Derived, whose reset() registers everything, a clone().
template <class Derived>
class Cloneable : public Module {
 public:
  using Module::Module;
  virtual void reset() = 0;
  std::shared_ptr<Module> clone(const std::optional<Device>& device = std::nullopt) const override {
    return adopt_copy(
        new Derived(static_cast<const Derived&>(*this)),
        [](Module& copy) { static_cast<Derived&>(copy).reset(); }, device);
  }

 private:
  void become_copy_of(const Module& other, const std::optional<Device>& device) override {
    if constexpr (std::is_copy_assignable_v<Derived>) {
      const std::shared_ptr<Module> copy = other.clone(device);
      const auto* same = dynamic_cast<const Derived*>(copy.get());
      if (!same) refuse_copy_of(other);
      static_cast<Derived&>(*this) = *same;
    } else {
      copy_state_of(other, device);
    }
  }
};

template <class Contained>
class ModuleHolder {
 public:
  using ContainedType = Contained;

  ModuleHolder() : impl_(make_default()) {}
  ModuleHolder(std::nullptr_t) {}
  template <class Head, class... Tail>
    requires(!(std::is_base_of_v<ModuleHolder, std::remove_cvref_t<Head>> && sizeof...(Tail) == 0) &&
             !std::is_convertible_v<Head, std::shared_ptr<Contained>>)
  explicit ModuleHolder(Head&& head, Tail&&... tail)
      : impl_(std::make_shared<Contained>(std::forward<Head>(head), std::forward<Tail>(tail)...)) {}
  ModuleHolder(std::shared_ptr<Contained> module) : impl_(std::move(module)) {}

  explicit operator bool() const noexcept { return !is_empty(); }
  bool is_empty() const noexcept { return impl_ == nullptr; }
  Contained* operator->() { return get(); }
  const Contained* operator->() const { return get(); }
  Contained& operator*() { return *get(); }
  const Contained& operator*() const { return *get(); }
  const std::shared_ptr<Contained>& ptr() const {
    RL_CHECK(!is_empty(), "Accessing empty ModuleHolder");
    return impl_;
  }
  Contained* get() const { return ptr().get(); }
  template <class... Args>
  decltype(auto) operator()(Args&&... args) {
    return get()->forward(std::forward<Args>(args)...);
  }
  template <class Arg>
  decltype(auto) operator[](Arg&& arg) {
    return (*get())[std::forward<Arg>(arg)];
  }

 protected:
  std::shared_ptr<Contained> impl_;

 private:
  static std::shared_ptr<Contained> make_default() {
    if constexpr (std::is_default_constructible_v<Contained>)
      return std::make_shared<Contained>();
    else
      RL_FAIL(
          "You are trying to default construct a module which has no default constructor. Use = nullptr "
          "to give it the empty state");
  }
};

template <class Contained>
std::ostream& operator<<(std::ostream& stream, const ModuleHolder<Contained>& holder) {
  return stream << static_cast<const Module&>(*holder);
}
template <class Contained>
serialize::OutputArchive& operator<<(serialize::OutputArchive& archive,
                                     const ModuleHolder<Contained>& holder) {
  return archive << std::static_pointer_cast<Module>(holder.ptr());
}
template <class Contained>
serialize::InputArchive& operator>>(serialize::InputArchive& archive, ModuleHolder<Contained>& holder) {
  return archive >> std::static_pointer_cast<Module>(holder.ptr());
}

}  // namespace nn
}  // namespace rushlight

// TORCH_MODULE(Net) defines the holder Net of the module NetImpl.
#define TORCH_MODULE_IMPL(Name, ImplType)                        \
  class Name : public ::rushlight::nn::ModuleHolder<ImplType> {  \
   public:                                                       \
    using ::rushlight::nn::ModuleHolder<ImplType>::ModuleHolder; \
    using Impl = ImplType;                                       \
  }
#define TORCH_MODULE(Name) TORCH_MODULE_IMPL(Name, Name##Impl)
