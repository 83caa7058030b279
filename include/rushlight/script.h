// Models in files behind the interface of libtorch's script modules: torch.jit.save's archives
// (docs/torchscript.md) and files of rushlight.export.save_file (docs/one_file.md). Programs that load one
// and run it compile unchanged.
#pragma once
#include <istream>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "rushlight/ivalue.h"
#include "rushlight/runtime.h"

namespace rushlight::jit {

class Program;
struct Function;
class Module;

using rushlight::IValue;
using Stack = std::vector<IValue>;
using Kwargs = std::unordered_map<std::string, IValue>;
using ExtraFilesMap = std::unordered_map<std::string, std::string>;
using JITException = Error;

// A method of an object: method({x}, {{"scale", 2.0}}).
class Method {
 public:
  Method(std::shared_ptr<Instance> object, const Function* function)
      : object_(std::move(object)), function_(function) {}
  const std::string& name() const;
  size_t num_inputs() const;  // with the object itself
  IValue operator()(std::vector<IValue> inputs, const Kwargs& kwargs = {}) const;
  Module owner() const;

 private:
  std::shared_ptr<Instance> object_;
  const Function* function_;
};

class Object {
 public:
  Object() = default;
  explicit Object(std::shared_ptr<Instance> instance) : instance_(std::move(instance)) {}

  bool hasattr(const std::string& name) const;
  IValue attr(const std::string& name) const;
  IValue attr(const std::string& name, IValue otherwise) const;
  void setattr(const std::string& name, IValue value) const;
  std::optional<Method> find_method(const std::string& name) const;
  Method get_method(const std::string& name) const;
  std::vector<Method> get_methods() const;
  template <class... A>
  IValue run_method(const std::string& name, A&&... arguments) const {
    return get_method(name)({IValue(std::forward<A>(arguments))...});
  }
  Object copy() const;      // shares what its attributes hold
  Object deepcopy() const;  // shares nothing
  const std::shared_ptr<Instance>& instance() const;
  std::string type_name() const;  // of the class, without its path

 protected:
  std::shared_ptr<Instance> instance_;
};

template <class T>
struct Named {
  std::string name;
  T value;
};
using NameTensor = Named<Tensor>;
using NameValue = Named<IValue>;
template <class T>
using NamedList = std::vector<Named<T>>;

class Module : public Object {
 public:
  Module() = default;
  explicit Module(std::shared_ptr<Instance> instance) : Object(std::move(instance)) {}
  explicit Module(runtime::Model model) : model_(std::move(model)) {}

  // Of a model in one file: tensors in the order of its inputs; several outputs are a tuple.
  IValue forward(std::vector<IValue> inputs, const Kwargs& kwargs = {}) const;
  // With the hooks that were scripted with the module.
  IValue operator()(std::vector<IValue> inputs, const Kwargs& kwargs = {}) const;

  std::vector<Tensor> parameters(bool recurse = true) const;
  NamedList<Tensor> named_parameters(bool recurse = true) const;
  std::vector<Tensor> buffers(bool recurse = true) const;
  NamedList<Tensor> named_buffers(bool recurse = true) const;
  std::vector<IValue> attributes(bool recurse = true) const;
  NamedList<IValue> named_attributes(bool recurse = true) const;
  std::vector<Module> modules() const;
  NamedList<Module> named_modules() const;
  std::vector<Module> children() const;
  NamedList<Module> named_children() const;

  // A model in one file is for inference, on the CPU: these only check.
  void train(bool on = true);
  void eval() { train(false); }
  bool is_training() const;
  void to(Device device, ScalarType dtype, bool non_blocking = false);
  void to(ScalarType dtype, bool non_blocking = false);
  void to(Device device, bool non_blocking = false);
  void to(DeviceType device, bool non_blocking = false) { to(Device(device), non_blocking); }

  Module copy() const;
  Module deepcopy(const std::optional<Device>& device = std::nullopt) const;
  Module clone() const { return deepcopy(); }
  void save(const std::string& filename, const ExtraFilesMap& extra_files = {}) const;
  void save(std::ostream& stream, const ExtraFilesMap& extra_files = {}) const;
  std::string dump_to_str(bool with_values = false) const;
  void dump(bool with_values = false) const;
  friend bool operator==(const Module& a, const Module& b) { return a.instance_ == b.instance_; }

  const runtime::Model& model() const;  // of a model in one file

 private:
  template <class T, class Add>
  NamedList<T> collect(bool recurse, Add add) const;
  void change_tensors(const std::function<Tensor(const Tensor&)>& change);
  std::optional<runtime::Model> model_;
};

Module load(const std::string& path, std::optional<Device> device = std::nullopt);
// The records extra/NAME of the archive replace the values of a map's keys.
Module load(const std::string& path, std::optional<Device> device, ExtraFilesMap& extra_files);
Module load(std::istream& stream, std::optional<Device> device = std::nullopt);
Module load(std::istream& stream, std::optional<Device> device, ExtraFilesMap& extra_files);
void save(const Module& module, const std::string& filename, const ExtraFilesMap& extra_files = {});
// A copy for inference, whose weights take part in no gradient. The module must be in evaluation mode.
Module freeze(const Module& module,
              const std::optional<std::vector<std::string>>& preserved_attrs = std::nullopt,
              bool optimize_numerics = true);
// The same. Operators choose their kernels when they run, so that there is nothing to do ahead.
Module optimize_for_inference(const Module& module, const std::vector<std::string>& other_methods = {});

namespace script {
using jit::ExtraFilesMap;
using jit::load;
using jit::Method;
using jit::Module;
using jit::Object;
}  // namespace script

}  // namespace rushlight::jit
