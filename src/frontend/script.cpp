#include "rushlight/script.h"

#include <algorithm>
#include <fstream>
#include <functional>
#include <iostream>
#include <sstream>
#include <unordered_set>

#include "frontend/pickle.h"
#include "frontend/torchscript/interpreter.h"
#include "frontend/torchscript/reader.h"
#include "frontend/torchscript/writer.h"
#include "io/mapped_file.h"

namespace rushlight::jit {

// --- methods and objects

const std::string& Method::name() const { return function_->name; }
size_t Method::num_inputs() const { return function_->parameters.size(); }
Module Method::owner() const { return Module(object_); }
IValue Method::operator()(std::vector<IValue> inputs, const Kwargs& kwargs) const {
  inputs.insert(inputs.begin(), IValue(object_));
  return run(*object_->type->program, *function_, bind_arguments(*function_, std::move(inputs), kwargs));
}

const std::shared_ptr<Instance>& Object::instance() const {
  RL_CHECK(instance_, "this jit::Module is empty, or a model in one file, which can only be run");
  return instance_;
}
std::string Object::type_name() const { return instance()->type->name; }
bool Object::hasattr(const std::string& name) const { return find_attribute(*instance(), name) != nullptr; }
IValue Object::attr(const std::string& name) const { return attribute(*instance(), name); }
IValue Object::attr(const std::string& name, IValue otherwise) const {
  const IValue* found = find_attribute(*instance(), name);
  return found ? *found : std::move(otherwise);
}
void Object::setattr(const std::string& name, IValue value) const {
  RL_CHECK(!instance()->type->constants.contains(name), "Can't set constant '", name,
           "' which has value: ", instance()->type->constants[name].kind());
  set_attribute(*instance(), name, std::move(value));
}
std::optional<Method> Object::find_method(const std::string& name) const {
  const Function* found = instance()->type->method(name);
  return found ? std::optional(Method(instance(), found)) : std::nullopt;
}
Method Object::get_method(const std::string& name) const {
  const auto found = find_method(name);
  RL_CHECK(found, "Method '", name, "' is not defined.");
  return *found;
}
std::vector<Method> Object::get_methods() const {
  std::vector<Method> out;
  for (const auto& item : instance()->type->methods) out.emplace_back(instance(), item.value().get());
  return out;
}
Object Object::copy() const { return Object(std::make_shared<Instance>(*instance())); }
Object Object::deepcopy() const { return Object(IValue(instance()).deepcopy().toObject()); }

// --- modules

const runtime::Model& Module::model() const {
  RL_CHECK(model_, "this jit::Module is empty: torch::jit::load gives one that can run");
  return *model_;
}

IValue Module::forward(std::vector<IValue> inputs, const Kwargs& kwargs) const {
  if (instance_) return get_method("forward")(std::move(inputs), kwargs);
  RL_CHECK(kwargs.empty(), "a model in one file takes its inputs by position");
  std::vector<Tensor> tensors;
  for (const IValue& value : inputs) tensors.push_back(value.toTensor());
  std::vector<Tensor> results = model().run(tensors);
  if (results.size() == 1) return IValue(std::move(results[0]));
  return IValue(IValue::Tuple{IValue::List(results.begin(), results.end()), {}, {}});
}

IValue Module::operator()(std::vector<IValue> inputs, const Kwargs& kwargs) const {
  if (!instance_) return forward(std::move(inputs), kwargs);
  for (const std::string& name : instance_->type->forward_pre_hooks) {
    const IValue changed = run_method(name, IValue(IValue::Tuple{inputs, {}, {}}));
    if (changed.isTuple())
      inputs = changed.toTupleRef().items;
    else if (!changed.isNone())
      inputs = {changed};
  }
  IValue result = forward(inputs, kwargs);
  for (const std::string& name : instance_->type->forward_hooks) {
    IValue changed = run_method(name, IValue(IValue::Tuple{inputs, {}, {}}), result);
    if (!changed.isNone()) result = std::move(changed);
  }
  return result;
}

// Calls add(prefix, module) for this module and, if asked, those below; each once.
static void walk(const std::shared_ptr<Instance>& module, const std::string& prefix, bool recurse,
                 std::unordered_set<const Instance*>& seen,
                 const std::function<void(const std::string&, Instance&)>& visit) {
  if (!seen.insert(module.get()).second) return;
  visit(prefix, *module);
  if (!recurse) return;
  for (const auto& item : module->attributes)
    if (item.value().isModule()) walk(item.value().toObject(), prefix + item.key() + ".", true, seen, visit);
}
template <class T, class Add>
NamedList<T> Module::collect(bool recurse, Add add) const {
  NamedList<T> out;
  std::unordered_set<const Instance*> seen;
  walk(instance(), "", recurse, seen, [&](const std::string& prefix, Instance& m) { add(prefix, m, out); });
  return out;
}
template <class T>
static std::vector<T> values_of(const NamedList<T>& named) {
  std::vector<T> out;
  for (const Named<T>& item : named) out.push_back(item.value);
  return out;
}
static void add_tensors(const std::string& prefix, const Instance& m, const std::vector<std::string>& names,
                        NamedList<Tensor>& out) {
  for (const std::string& name : names)
    if (const IValue* v = find_attribute(m, name); v && v->isTensor())
      out.push_back({prefix + name, v->toTensor()});
}
NamedList<Tensor> Module::named_parameters(bool recurse) const {
  return collect<Tensor>(recurse, [](const std::string& prefix, const Instance& m, NamedList<Tensor>& out) {
    add_tensors(prefix, m, m.type->parameters, out);
  });
}
NamedList<Tensor> Module::named_buffers(bool recurse) const {
  return collect<Tensor>(recurse, [](const std::string& prefix, const Instance& m, NamedList<Tensor>& out) {
    add_tensors(prefix, m, m.type->buffers, out);
  });
}
NamedList<IValue> Module::named_attributes(bool recurse) const {
  return collect<IValue>(recurse, [](const std::string& prefix, const Instance& m, NamedList<IValue>& out) {
    for (const auto& item : m.attributes) out.push_back({prefix + item.key(), item.value()});
  });
}
NamedList<Module> Module::named_modules() const {
  NamedList<Module> out = {{"", *this}};
  for (const NameValue& item : named_attributes())
    if (item.value.isModule()) out.push_back({item.name, item.value.toModule()});
  return out;
}
NamedList<Module> Module::named_children() const {
  NamedList<Module> out;
  for (const NameValue& item : named_attributes(false))
    if (item.value.isModule()) out.push_back({item.name, item.value.toModule()});
  return out;
}
std::vector<Tensor> Module::parameters(bool recurse) const { return values_of(named_parameters(recurse)); }
std::vector<Tensor> Module::buffers(bool recurse) const { return values_of(named_buffers(recurse)); }
std::vector<IValue> Module::attributes(bool recurse) const { return values_of(named_attributes(recurse)); }
std::vector<Module> Module::modules() const { return values_of(named_modules()); }
std::vector<Module> Module::children() const { return values_of(named_children()); }

void Module::train(bool on) {
  if (model_) {
    RL_CHECK(!on, "a model in a file is for inference: train it before it is exported");
    return;
  }
  for (const Module& m : modules()) {
    if (m.instance()->attributes.contains("training"))
      set_attribute(*m.instance(), "training", IValue(on));
    else
      RL_CHECK(!on, "module.train() has no effect on a frozen module");
  }
}
bool Module::is_training() const { return instance_ && attr("training", IValue(false)).toBool(); }

// Parameters and buffers keep their places: a module that is listed twice still shares them.
void Module::change_tensors(const std::function<Tensor(const Tensor&)>& change) {
  std::unordered_map<const void*, Tensor> done;
  const auto changed = [&](const IValue& v) {
    const Tensor& t = v.toTensor();
    Tensor& fresh = done[t.impl()];
    if (!fresh.defined()) {
      fresh = change(t.detach());
      if (t.requires_grad() && is_floating(fresh.dtype())) fresh = fresh.detach().set_requires_grad(true);
    }
    return IValue(fresh);
  };
  for (const Module& m : modules())
    for (auto& item : m.instance()->attributes) {
      IValue& v = item.value();
      if (v.isTensor()) v = changed(v);
      if (v.isTensorList())
        for (IValue& inner : v.list_body()->items) inner = changed(inner);
    }
}
void Module::to(Device device, bool non_blocking) {
  if (model_) {
    RL_CHECK(device.is_cpu(), "models in files run on the CPU, not on ", device);
    return;
  }
  change_tensors([&](const Tensor& t) { return t.to(device, non_blocking); });
}
void Module::to(ScalarType dtype, bool) {
  RL_CHECK(is_floating(dtype), "to(): expected a floating point dtype, but got ", dtype_name(dtype));
  if (!instance_) RL_CHECK(model_.has_value() == false, "a model in one file keeps its dtype");
  change_tensors([&](const Tensor& t) { return is_floating(t.dtype()) ? t.to(dtype) : t; });
}
void Module::to(Device device, ScalarType dtype, bool non_blocking) {
  to(dtype, non_blocking);
  to(device, non_blocking);
}

Module Module::copy() const { return model_ ? *this : Module(Object::copy().instance()); }
Module Module::deepcopy(const std::optional<Device>& device) const {
  if (model_) return *this;  // which nobody can change
  Module made(Object::deepcopy().instance());
  if (device) made.to(*device);
  return made;
}
void Module::save(const std::string& filename, const ExtraFilesMap& extra_files) const {
  frontend::write_file(filename, {write_module(instance(), extra_files)});
}
void Module::save(std::ostream& stream, const ExtraFilesMap& extra_files) const {
  const std::string bytes = write_module(instance(), extra_files);
  stream.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}
std::string Module::dump_to_str(bool with_values) const {
  std::ostringstream out;
  std::unordered_set<const Instance*> seen;
  walk(instance(), "", true, seen, [&](const std::string& prefix, const Instance& m) {
    out << "module " << m.type->path << (prefix.empty() ? "" : " as " + prefix.substr(0, prefix.size() - 1))
        << " {\n";
    for (const auto& item : m.attributes) {
      out << "  " << item.key() << " = ";
      if (item.value().isTensor() && !with_values)
        out << item.value().toTensor().toString() << item.value().toTensor().sizes() << "\n";
      else
        out << item.value() << "\n";
    }
    for (const auto& item : m.type->methods) out << "  def " << item.key() << "\n";
    out << "}\n";
  });
  return out.str();
}
void Module::dump(bool with_values) const { std::cout << dump_to_str(with_values); }

// --- files

static Module read(std::string_view bytes, const std::string& name, std::optional<Device> device,
                   ExtraFilesMap& extra_files) {
  const io::Archive archive(std::make_unique<io::MemorySource>(bytes), name);
  RL_CHECK(archive.has("constants.pkl"),
           "PytorchStreamReader failed locating file constants.pkl: file not found: ", name,
           " is no TorchScript archive; weights are read by torch::load, and models are exported by "
           "torch.jit.save or "
           "rushlight.export.save_file");
  const auto has_code = [](const io::Archive::Record& r) { return r.name.starts_with("code/"); };
  if (std::ranges::none_of(archive.records(), has_code)) {
    const char* const why = "rushlight.txt";  // what torch.jit.save found no words for
    RL_NOT_IMPLEMENTED("jit.load: ", name,
                       " is an archive of Rushlight's torch.jit.save with code for Python alone",
                       archive.has(why) ? " (" + read_record(archive, why) + ")" : std::string(),
                       "; write the model with rushlight.export.save_file for programs of C++");
  }
  for (auto& [key, content] : extra_files) content = read_record(archive, "extra/" + key);
  return Module(read_module(archive, name, device));
}
Module load(const std::string& path, std::optional<Device> device, ExtraFilesMap& extra_files) {
  const Ref<io::MappedFile> file = io::MappedFile::open(path);
  if (file->bytes().starts_with("PK")) return read(file->bytes(), path, device, extra_files);
  Module module(runtime::Model::load(path));
  if (device) module.to(*device);
  return module;
}
Module load(const std::string& path, std::optional<Device> device) {
  ExtraFilesMap none;
  return load(path, device, none);
}
Module load(std::istream& stream, std::optional<Device> device, ExtraFilesMap& extra_files) {
  std::ostringstream bytes;
  bytes << stream.rdbuf();
  return read(bytes.str(), "<stream>", device, extra_files);
}
Module load(std::istream& stream, std::optional<Device> device) {
  ExtraFilesMap none;
  return load(stream, device, none);
}
void save(const Module& module, const std::string& filename, const ExtraFilesMap& extra_files) {
  module.save(filename, extra_files);
}

Module freeze(const Module& module, const std::optional<std::vector<std::string>>& preserved_attrs, bool) {
  RL_CHECK(!module.is_training(),
           "Freezing module in training mode is not yet supported: call eval() before");
  for (const std::string& name : preserved_attrs.value_or(std::vector<std::string>()))
    RL_CHECK(module.hasattr(name) || module.find_method(name), "Attribute ", name, " does not exist");
  Module frozen = module.deepcopy();
  for (const Module& m : frozen.modules())
    for (auto& item : m.instance()->attributes)
      if (item.value().isTensor()) item.value() = IValue(item.value().toTensor().detach());
  return frozen;
}
Module optimize_for_inference(const Module& module, const std::vector<std::string>& other_methods) {
  return freeze(module, other_methods);
}

}  // namespace rushlight::jit
