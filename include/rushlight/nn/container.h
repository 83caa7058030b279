// Containers: Sequential, ModuleList, ModuleDict, ParameterList, ParameterDict, Functional, and AnyModule,
// which they are made of.
#pragma once
#include <any>
#include <ranges>

#include "rushlight/nn/module.h"

namespace rushlight::nn {

// A value of any type, checked when it is taken out.
class AnyValue {
 public:
  template <class T>
    requires(!std::is_same_v<std::remove_cvref_t<T>, AnyValue>)
  explicit AnyValue(T&& value) : value_(std::forward<T>(value)) {}
  template <class T>
  T* try_get() {
    return std::any_cast<std::remove_cvref_t<T>>(&value_);
  }
  template <class T>
  T get() {
    if (auto* v = try_get<T>()) return *v;
    RL_FAIL("Attempted to cast AnyValue to ", demangle(typeid(T).name()), ", but its actual type is ",
            demangle(value_.type().name()));
  }
  const std::type_info& type_info() const { return value_.type(); }

 private:
  std::any value_;
};

// In a module whose forward has default arguments, the position and value of each, so that containers can
// leave them out: FORWARD_HAS_DEFAULT_ARGS({1, AnyValue(2)}, {2, AnyValue(3.0)})
#define FORWARD_HAS_DEFAULT_ARGS(...)                                                            \
  std::vector<std::pair<unsigned, ::rushlight::nn::AnyValue>> _forward_default_args() override { \
    return {__VA_ARGS__};                                                                        \
  }

// A module of any class, called with the arguments that its forward takes.
class AnyModule {
 public:
  AnyModule() = default;
  template <class M>
    requires std::is_base_of_v<Module, M>
  AnyModule(std::shared_ptr<M> module) : module_(module), call_(caller<M>(module.get(), &M::forward)) {}
  template <class M>
    requires(std::is_base_of_v<Module, std::remove_cvref_t<M>>)
  AnyModule(M&& module) : AnyModule(std::make_shared<std::remove_cvref_t<M>>(std::forward<M>(module))) {}
  template <class M>
  AnyModule(const ModuleHolder<M>& holder) : AnyModule(holder.ptr()) {}

  AnyModule clone(const std::optional<Device>& device = std::nullopt) const {
    AnyModule copy = *this;
    if (rebind_) {
      copy.module_ = module_->clone(device);
      copy.call_ = rebind_(copy.module_.get());
    }
    return copy;
  }
  template <class... Args>
  AnyValue any_forward(Args&&... args) {
    RL_CHECK(!is_empty(), "Cannot call forward() on an empty AnyModule");
    std::vector<AnyValue> values;
    (values.push_back(boxed(std::forward<Args>(args))), ...);
    return call_(values);
  }
  template <class R = Tensor, class... Args>
  R forward(Args&&... args) {
    return any_forward(std::forward<Args>(args)...).template get<R>();
  }
  // The module as one of class T, or in a holder T of its own.
  template <class T>
  decltype(auto) get() const {
    check_there("get");
    if constexpr (std::is_base_of_v<Module, T>)
      return static_cast<T&>(*cast<T>());
    else
      return T(cast<typename T::ContainedType>());
  }
  std::shared_ptr<Module> ptr() const {
    check_there("ptr");
    return module_;
  }
  template <class T>
  std::shared_ptr<T> ptr() const {
    check_there("ptr");
    return cast<T>();
  }
  const std::type_info& type_info() const {
    check_there("type_info");
    const Module& m = *module_;
    return typeid(m);
  }
  bool is_empty() const noexcept { return module_ == nullptr; }

 private:
  using Call = std::function<AnyValue(std::vector<AnyValue>&)>;
  void check_there(const char* method) const {
    RL_CHECK(!is_empty(), "Cannot call ", method, "() on an empty AnyModule");
  }
  template <class T>
  std::shared_ptr<T> cast() const {
    auto m = std::dynamic_pointer_cast<T>(module_);
    const Module& is = *module_;
    RL_CHECK(m, "Attempted to cast module of type ", demangle(typeid(is).name()), " to type ",
             demangle(typeid(T).name()));
    return m;
  }
  template <class T>
  static T argument(AnyValue& value, size_t i) {
    if (auto* v = value.try_get<T>()) return *v;
    RL_FAIL("Expected argument #", i, " to be of type ", demangle(typeid(T).name()),
            ", but received value of type ", demangle(value.type_info().name()));
  }
  static AnyValue boxed(AnyValue v) { return v; }
  template <class T>
    requires(!std::is_same_v<std::remove_cvref_t<T>, AnyValue>)
  static AnyValue boxed(T&& v) {
    return AnyValue(std::forward<T>(v));
  }
  template <class M, class B, class R, class... A>
  Call caller(M* module, R (B::*)(A...)) {
    rebind_ = [](Module* m) { return AnyModule().caller<M>(dynamic_cast<M*>(m), &M::forward); };
    return [module](std::vector<AnyValue>& args) -> AnyValue {
      std::optional<AnyValue> result;
      fill_in(*module, args, sizeof...(A));
      try_arities<M, R, std::tuple<std::remove_cvref_t<A>...>>(*module, args, result,
                                                               std::make_index_sequence<sizeof...(A) + 1>{});
      RL_CHECK(
          result, module->name(), "'s forward() method expects ", sizeof...(A), " argument(s), but received ",
          args.size(), ".",
          args.size() < sizeof...(A)
              ? str(" If ", module->name(),
                    "'s forward() method has default arguments, please make sure the forward() method is "
                    "declared with a corresponding `FORWARD_HAS_DEFAULT_ARGS` macro.")
              : "");
      return std::move(*result);
    };
  }
  // Appends the arguments that FORWARD_HAS_DEFAULT_ARGS lists and the caller left out.
  static void fill_in(Module& m, std::vector<AnyValue>& args, size_t most) {
    const auto defaults = m._forward_default_args();
    if (defaults.empty()) return;
    RL_CHECK(args.size() >= defaults[0].first && args.size() <= most, m.name(),
             "'s forward() method expects at least ", defaults[0].first, " argument(s) and at most ", most,
             " argument(s), but received ", args.size(), ".");
    for (const auto& [position, value] : defaults)
      if (position >= args.size()) args.push_back(value);
  }
  template <class M, class R, class Types, size_t... N>
  static void try_arities(M& m, std::vector<AnyValue>& args, std::optional<AnyValue>& result,
                          std::index_sequence<N...>) {
    (try_arity<M, R, Types>(m, args, result, std::make_index_sequence<N>{}), ...);
  }
  // Trailing parameters may have defaults.
  template <class M, class R, class Types, size_t... I>
  static void try_arity(M& m, std::vector<AnyValue>& args, std::optional<AnyValue>& result,
                        std::index_sequence<I...>) {
    if constexpr (requires { m.forward(std::declval<std::tuple_element_t<I, Types>>()...); })
      if (args.size() == sizeof...(I))
        result.emplace(AnyValue(R(m.forward(argument<std::tuple_element_t<I, Types>>(args[I], I)...))));
  }
  std::shared_ptr<Module> module_;
  std::function<Call(Module*)> rebind_;  // call_ for a copy of the module; caller() fills it
  Call call_;
};

class NamedAnyModule {
 public:
  template <class M>
  NamedAnyModule(std::string name, M&& module) : name_(std::move(name)), module_(std::forward<M>(module)) {}
  const std::string& name() const { return name_; }
  AnyModule& module() { return module_; }
  const AnyModule& module() const { return module_; }

 private:
  std::string name_;
  AnyModule module_;
};

// One module after the other.
class SequentialImpl : public Cloneable<SequentialImpl> {
 public:
  using Iterator = std::vector<AnyModule>::iterator;
  SequentialImpl() = default;
  explicit SequentialImpl(std::initializer_list<NamedAnyModule> named) {
    for (const NamedAnyModule& m : named) push_back(m.name(), m.module());
  }
  explicit SequentialImpl(const OrderedDict<std::string, AnyModule>& named) {
    for (const auto& item : named) push_back(item.key(), item.value());
  }
  template <class... M>
    requires(sizeof...(M) > 0)
  explicit SequentialImpl(M&&... modules) {
    (push_back(std::forward<M>(modules)), ...);
  }
  std::shared_ptr<Module> clone(const std::optional<Device>& device = std::nullopt) const override {
    auto copy = std::make_shared<SequentialImpl>();
    size_t i = 0;
    for (const auto& c : children_) copy->push_back(c.key(), modules_[i++].clone(device));
    return copy;
  }
  void reset() override {}
  void pretty_print(std::ostream& stream) const override;

  template <class R = Tensor, class... In>
  R forward(In&&... inputs) {
    RL_CHECK(!is_empty(), "Cannot call forward() on an empty Sequential");
    auto at = modules_.begin();
    AnyValue value = at->any_forward(std::forward<In>(inputs)...);
    while (++at != modules_.end()) value = at->any_forward(std::move(value));
    if (auto* result = value.template try_get<R>()) return std::move(*result);
    RL_FAIL("The type of the return value is ", demangle(value.type_info().name()),
            ", but you asked for type ", demangle(typeid(R).name()));
  }
  void push_back(AnyModule module) { push_back(std::to_string(modules_.size()), std::move(module)); }
  void push_back(std::string name, AnyModule module) {
    register_module(std::move(name), module.ptr());
    modules_.push_back(std::move(module));
  }
  void push_back(NamedAnyModule named) { push_back(named.name(), named.module()); }
  template <class M>
    requires std::is_base_of_v<Module, M>
  void push_back(std::shared_ptr<M> module) {
    push_back(AnyModule(std::move(module)));
  }
  template <class M>
    requires std::is_base_of_v<Module, std::remove_cvref_t<M>>
  void push_back(M&& module) {
    push_back(AnyModule(std::forward<M>(module)));
  }
  template <class M>
  void push_back(const ModuleHolder<M>& holder) {
    push_back(AnyModule(holder));
  }
  template <class M>
  void push_back(std::string name, const ModuleHolder<M>& holder) {
    push_back(std::move(name), AnyModule(holder));
  }
  template <class Container>
    requires std::ranges::range<Container>
  void extend(Container&& container) {
    for (const auto& m : container) push_back(m);
  }
  Iterator begin() { return modules_.begin(); }
  Iterator end() { return modules_.end(); }
  template <class T>
  T& at(size_t i) {
    return checked(i).get<T>();
  }
  std::shared_ptr<Module> ptr(size_t i) const { return checked(i).ptr(); }
  template <class T>
  std::shared_ptr<T> ptr(size_t i) const {
    return checked(i).ptr<T>();
  }
  std::shared_ptr<Module> operator[](size_t i) const { return ptr(i); }
  size_t size() const noexcept { return modules_.size(); }
  bool is_empty() const noexcept { return modules_.empty(); }

 private:
  const AnyModule& checked(size_t i) const {
    RL_CHECK_INDEX(i < modules_.size(), "Index out of range");
    return modules_[i];
  }
  std::vector<AnyModule> modules_;
};

class Sequential : public ModuleHolder<SequentialImpl> {
 public:
  using ModuleHolder<SequentialImpl>::ModuleHolder;
  using Impl = SequentialImpl;
  Sequential() = default;
  Sequential(std::initializer_list<NamedAnyModule> named)
      : ModuleHolder(std::make_shared<SequentialImpl>(named)) {}
  template <class R = Tensor, class... In>
  R forward(In&&... inputs) {
    return get()->template forward<R>(std::forward<In>(inputs)...);
  }
  template <class... In>
  Tensor operator()(In&&... inputs) {
    return get()->forward(std::forward<In>(inputs)...);
  }
};

class ModuleListImpl : public Cloneable<ModuleListImpl> {
 public:
  ModuleListImpl() = default;
  template <class... M>
    requires(sizeof...(M) > 0)
  explicit ModuleListImpl(M&&... modules) {
    (push_back(std::forward<M>(modules)), ...);
  }
  std::shared_ptr<Module> clone(const std::optional<Device>& device = std::nullopt) const override;
  void reset() override {}
  void pretty_print(std::ostream& stream) const override;
  void push_back(std::shared_ptr<Module> module);
  template <class M>
  void push_back(const ModuleHolder<M>& holder) {
    push_back(std::static_pointer_cast<Module>(holder.ptr()));
  }
  template <class M>
    requires std::is_base_of_v<Module, std::remove_cvref_t<M>>
  void push_back(M&& module) {
    push_back(
        std::static_pointer_cast<Module>(std::make_shared<std::remove_cvref_t<M>>(std::forward<M>(module))));
  }
  template <class Container>
    requires std::ranges::range<Container>
  void extend(Container&& container) {
    for (const auto& m : container) push_back(m);
  }
  void insert(size_t index, std::shared_ptr<Module> module);
  template <class M>
  void insert(size_t index, const ModuleHolder<M>& holder) {
    insert(index, std::static_pointer_cast<Module>(holder.ptr()));
  }
  template <class M>
    requires std::is_base_of_v<Module, std::remove_cvref_t<M>>
  void insert(size_t index, M&& module) {
    insert(index, std::static_pointer_cast<Module>(
                      std::make_shared<std::remove_cvref_t<M>>(std::forward<M>(module))));
  }
  auto begin() { return modules_.begin(); }
  auto end() { return modules_.end(); }
  auto begin() const { return modules_.begin(); }
  auto end() const { return modules_.end(); }
  template <class T>
  T& at(size_t i) {
    auto* m = dynamic_cast<T*>(ptr(i).get());
    RL_CHECK(m, "Unable to cast module[", i, "] to the asked type");
    return *m;
  }
  std::shared_ptr<Module> ptr(size_t i) const {
    RL_CHECK_INDEX(i < modules_.size(), "Index out of range");
    return modules_[i];
  }
  template <class T>
  std::shared_ptr<T> ptr(size_t i) const {
    return std::dynamic_pointer_cast<T>(ptr(i));
  }
  std::shared_ptr<Module> operator[](size_t i) const { return ptr(i); }
  size_t size() const noexcept { return modules_.size(); }
  bool is_empty() const noexcept { return modules_.empty(); }

 private:
  std::vector<std::shared_ptr<Module>> modules_;
};
class ModuleList : public ModuleHolder<ModuleListImpl> {
 public:
  using ModuleHolder<ModuleListImpl>::ModuleHolder;
  using Impl = ModuleListImpl;
};

class ModuleDictImpl : public Cloneable<ModuleDictImpl> {
 public:
  ModuleDictImpl() = default;
  explicit ModuleDictImpl(const std::vector<std::pair<std::string, std::shared_ptr<Module>>>& modules) {
    for (const auto& [name, m] : modules) insert(name, m);
  }
  explicit ModuleDictImpl(const OrderedDict<std::string, std::shared_ptr<Module>>& modules) {
    for (const auto& m : modules) insert(m.key(), m.value());
  }
  std::shared_ptr<Module> clone(const std::optional<Device>& device = std::nullopt) const override;
  void reset() override {}
  void pretty_print(std::ostream& stream) const override;
  void insert(const std::string& name, std::shared_ptr<Module> module) {
    register_module(name, std::move(module));
  }
  template <class M>
  void insert(const std::string& name, const ModuleHolder<M>& holder) {
    insert(name, std::static_pointer_cast<Module>(holder.ptr()));
  }
  // Adds modules by name; those that are there already are replaced.
  void update(const std::vector<std::pair<std::string, std::shared_ptr<Module>>>& modules) {
    for (const auto& [name, m] : modules) set(name, m);
  }
  void update(const OrderedDict<std::string, std::shared_ptr<Module>>& modules) {
    for (const auto& m : modules) set(m.key(), m.value());
  }
  void update(const ModuleDictImpl& other) { update(other.children_); }
  void clear() { children_.clear(); }
  std::shared_ptr<Module> pop(const std::string& key);
  bool contains(const std::string& key) const noexcept { return children_.contains(key); }
  std::shared_ptr<Module> operator[](const std::string& key) const { return children_[key]; }
  template <class T>
  T& at(const std::string& key) {
    auto* m = dynamic_cast<T*>(children_[key].get());
    RL_CHECK(m, "Unable to cast module[", key, "] to the asked type");
    return *m;
  }
  std::vector<std::string> keys() const { return children_.keys(); }
  std::vector<std::shared_ptr<Module>> values() const { return children_.values(); }
  const auto& items() const { return children_.items(); }
  auto begin() { return children_.begin(); }
  auto end() { return children_.end(); }
  size_t size() const noexcept { return children_.size(); }
  bool empty() const noexcept { return children_.is_empty(); }

 private:
  void set(const std::string& name, const std::shared_ptr<Module>& module) {
    contains(name) ? void(replace_module(name, module)) : insert(name, module);
  }
};
TORCH_MODULE(ModuleDict);

class ParameterListImpl : public Cloneable<ParameterListImpl> {
 public:
  ParameterListImpl() = default;
  template <class... T>
    requires(sizeof...(T) > 0)
  explicit ParameterListImpl(T&&... parameters) {
    (append(std::forward<T>(parameters)), ...);
  }
  void reset() override {}
  void pretty_print(std::ostream& stream) const override;
  void append(Tensor parameter) {
    const bool requires_grad = parameter.requires_grad();
    register_parameter(std::to_string(parameters_.size()), std::move(parameter), requires_grad);
  }
  template <class Container>
    requires std::ranges::range<Container>
  void extend(Container&& container) {
    for (const auto& p : container) {
      if constexpr (std::is_convertible_v<decltype(p), Tensor>)
        append(p);
      else
        append(p.value());
    }
  }
  ParameterListImpl& operator+=(const ParameterListImpl& other) {
    extend(other.parameters_.values());
    return *this;
  }
  Tensor& at(size_t i) {
    RL_CHECK_INDEX(i < size(), "Index out of range");
    return parameters_[std::to_string(i)];
  }
  Tensor& operator[](size_t i) { return at(i); }
  auto begin() { return parameters_.begin(); }
  auto end() { return parameters_.end(); }
  size_t size() const noexcept { return parameters_.size(); }
  bool is_empty() const noexcept { return parameters_.is_empty(); }
};
TORCH_MODULE(ParameterList);

class ParameterDictImpl : public Cloneable<ParameterDictImpl> {
 public:
  ParameterDictImpl() = default;
  explicit ParameterDictImpl(const OrderedDict<std::string, Tensor>& parameters) {
    for (const auto& p : parameters) insert(p.key(), p.value());
  }
  void reset() override {}
  void pretty_print(std::ostream& stream) const override;
  Tensor& insert(const std::string& key, Tensor parameter) {
    const bool requires_grad = parameter.requires_grad();
    return register_parameter(key, std::move(parameter), requires_grad);
  }
  // New values for parameters that are there already; fails where one is not.
  void update(const ParameterDictImpl& other) {
    for (const auto& p : other.parameters_) parameters_[p.key()] = p.value();
  }
  Tensor pop(const std::string& key) {
    Tensor t = parameters_[key];
    parameters_.erase(key);
    return t;
  }
  std::vector<std::string> keys() const { return parameters_.keys(); }
  std::vector<Tensor> values() const { return parameters_.values(); }
  const Tensor& get(const std::string& key) const { return parameters_[key]; }
  Tensor& operator[](const std::string& key) { return parameters_[key]; }
  bool contains(const std::string& key) const noexcept { return parameters_.contains(key); }
  size_t size() const noexcept { return parameters_.size(); }
  bool empty() const noexcept { return parameters_.is_empty(); }
  void clear() { parameters_.clear(); }
};
TORCH_MODULE(ParameterDict);

// A function as a module: nn::Functional(torch::relu), with further arguments bound.
class FunctionalImpl : public Cloneable<FunctionalImpl> {
 public:
  using Function = std::function<Tensor(Tensor)>;
  explicit FunctionalImpl(Function function) : function_(std::move(function)) {}
  template <class F, class... Args>
    requires(sizeof...(Args) > 0)
  explicit FunctionalImpl(F function, Args&&... args)
      : function_(
            [function, ... bound = std::forward<Args>(args)](Tensor x) { return function(x, bound...); }) {}
  void reset() override {}
  void pretty_print(std::ostream& stream) const override;
  Tensor forward(Tensor input) { return function_(std::move(input)); }
  Tensor operator()(Tensor input) { return forward(std::move(input)); }
  bool is_serializable() const override { return false; }

 private:
  Function function_;
};
class Functional : public ModuleHolder<FunctionalImpl> {
 public:
  using Impl = FunctionalImpl;
  using ModuleHolder<FunctionalImpl>::ModuleHolder;
  // Of an overloaded function of one tensor, as torch::relu is, the plain form is meant.
  Functional(Tensor (*function)(const Tensor&))
      : ModuleHolder(std::make_shared<FunctionalImpl>(FunctionalImpl::Function(function))) {}
};

}  // namespace rushlight::nn
