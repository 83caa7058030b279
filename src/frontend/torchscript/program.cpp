#include "frontend/torchscript/program.h"

#include <algorithm>

namespace rushlight::jit {

const Function* ClassType::method(const std::string& wanted) const {
  const auto* found = methods.find(wanted);
  return found ? found->get() : nullptr;
}

const std::string& ClassType::declared_type(const std::string& field) const {
  static const std::string none;
  const auto found = std::ranges::find(fields, field);
  return found == fields.end() ? none : types[static_cast<size_t>(found - fields.begin())];
}

const IValue* find_attribute(const Instance& object, const std::string& name) {
  if (const IValue* own = object.attributes.find(name)) return own;
  return object.type->constants.find(name);
}
const IValue& attribute(const Instance& object, const std::string& name) {
  const IValue* found = find_attribute(object, name);
  RL_CHECK(found, "Module '", object.type->name, "' has no attribute '", name, "'");
  return *found;
}
void set_attribute(Instance& object, const std::string& name, IValue value) {
  if (IValue* own = object.attributes.find(name))
    *own = std::move(value);
  else
    object.attributes.insert(name, std::move(value));
}

const CodeFile* Program::file_at(const std::string& prefix) {
  const auto found = files_.find(prefix);
  if (found != files_.end()) return &found->second;
  std::string record = prefix;
  std::ranges::replace(record, '.', '/');
  record = "code/" + record + ".py";
  const auto text = texts.find(record);
  if (text == texts.end()) return nullptr;
  auto said = kept.find(".data/version");
  if (said == kept.end()) said = kept.find("version");
  const int64_t version = said == kept.end() ? INT64_MAX : std::strtoll(said->second.c_str(), nullptr, 10);
  CodeFile& file = files_[prefix] =
      parse_code(text->second, name_ + "/" + record, prefix, constants, version);
  for (const auto& type : file.classes) type->program = this;
  return &file;
}

Program::Named Program::find(const std::string& path) {
  const std::scoped_lock lock(mutex_);
  const size_t dot = path.rfind('.');
  const std::string last = path.substr(dot + 1);
  if (dot != std::string::npos)
    if (const CodeFile* file = file_at(path.substr(0, dot))) {
      for (const auto& type : file->classes)
        if (type->name == last) return {type.get(), nullptr};
      if (const auto* function = file->functions.find(last)) return {nullptr, function->get()};
    }
  // A function of a class.
  const size_t before = dot == std::string::npos ? dot : path.rfind('.', dot - 1);
  if (before != std::string::npos)
    if (const CodeFile* file = file_at(path.substr(0, before)))
      for (const auto& type : file->classes)
        if (type->name == path.substr(before + 1, dot - before - 1))
          if (const Function* function = type->method(last)) return {nullptr, function};
  RL_FAIL("jit.load: ", name_, " has no code of ", path);
}

std::shared_ptr<const ClassType> Program::class_at(const std::string& path) {
  const Named found = find(path);
  RL_CHECK(found.type, "jit.load: ", name_, ": ", path, " is no class");
  return std::shared_ptr<const ClassType>(shared_from_this(), found.type);
}

std::shared_ptr<Instance> Program::make(const ClassType& type) {
  auto made = std::make_shared<Instance>();
  made->type = std::shared_ptr<const ClassType>(shared_from_this(), &type);
  return made;
}

}  // namespace rushlight::jit
