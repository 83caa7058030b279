#include "dispatch/extension.h"

#include <array>
#include <deque>
#include <utility>

namespace rushlight {

namespace {

std::vector<const Op*>& registered() {
  static std::vector<const Op*> list;
  return list;
}

bool keep_failures = false;
std::vector<std::string>& failures() {
  static std::vector<std::string> list;
  return list;
}

struct Implementation {
  Op::Trampoline run = nullptr;
  const void* function = nullptr;
  size_t parameters = 0;
};
// What an operator without a function of its own has as kernel.
struct Implementations {
  std::string name;
  std::array<Implementation, 6> by_key;
  Op* op = nullptr;  // once it is declared
  Implementation& at(DispatchKey key) { return by_key[static_cast<size_t>(key)]; }
  const Implementation& at(DispatchKey key) const { return by_key[static_cast<size_t>(key)]; }
};
Implementations& implementations_of(const std::string& name) {
  static std::deque<Implementations> all;
  for (Implementations& known : all)
    if (known.name == name) return known;
  return all.emplace_back(Implementations{name, {}, nullptr});
}

thread_local bool below_autograd = false;

DeviceType device_of(const Op& op, const Value* args) {
  for (size_t i = 0; i < op.schema.parameters.size(); ++i) {
    if (args[i].tag() == Tag::Tensor && !args[i].is_none()) return args[i].tensor().device().type();
    if (args[i].tag() == Tag::TensorList)
      for (const Tensor& t : args[i].tensors())
        if (t.defined()) return t.device().type();
  }
  return DeviceType::CPU;
}

void run_implementation(const void* kernel, const Call& call, const Value* args, Results& results) {
  const auto& all = *static_cast<const Implementations*>(kernel);
  const Implementation* chosen = &all.at(DispatchKey::Autograd);
  if (!chosen->run || below_autograd) chosen = &all.at(DispatchKey::CompositeImplicitAutograd);
  const DeviceType device = device_of(call.op, args);
  if (!chosen->run)
    chosen = &all.at(device == DeviceType::CPU    ? DispatchKey::CPU
                     : device == DeviceType::CUDA ? DispatchKey::CUDA
                                                  : DispatchKey::Meta);
  if (!chosen->run) chosen = &all.at(DispatchKey::CompositeExplicitAutograd);
  if (!chosen->run)
    RL_NOT_IMPLEMENTED("Could not run '", all.name, "' with arguments from the '", device_type_name(device),
                       "' backend: no implementation was registered for it");
  chosen->run(chosen->function, call, args, results);
}

void make_composite(Op& op) {
  op.family = Family::Composite;
  op.intercepted &= ~(kAutograd | kForwardGrad | kWrapped | kLowered | kPythonDispatch | kSpecialElements);
}

void check(const Implementations& all) {
  if (!all.op) return;
  for (const Implementation& i : all.by_key)
    RL_CHECK(!i.run || i.parameters == all.op->schema.parameters.size(), "OperatorLibrary: the schema ",
             all.op->schema.text, " has ", all.op->schema.parameters.size(), " parameters, the function ",
             i.parameters);
  if (all.at(DispatchKey::Autograd).run || all.at(DispatchKey::CompositeImplicitAutograd).run)
    make_composite(*all.op);
}

}  // namespace

BelowAutograd::BelowAutograd() : previous_(below_autograd) { below_autograd = true; }
BelowAutograd::~BelowAutograd() { below_autograd = previous_; }

bool OperatorLibrary::fill(const char* space, DispatchKey key, void (*body)(OperatorLibrary&)) {
  OperatorLibrary library(space, key);
  try {
    body(library);
  } catch (const std::exception& error) {
    if (!keep_failures) throw;
    failures().emplace_back(error.what());
    return false;
  }
  return true;
}

std::string OperatorLibrary::free_space(const std::string& name) const {
  std::string space = space_;
  for (int version = 1; !operator_table().find(space, name).empty(); ++version)
    space = space_ + "_v" + std::to_string(version);
  return space;
}

Op& OperatorLibrary::declare(const std::string& schema) {
  const std::string name = space_ + "::" + schema.substr(0, schema.find('('));
  Implementations& all = implementations_of(name);
  all.op = &define(schema, run_implementation, &all, SIZE_MAX, false);
  check(all);
  return *all.op;
}

void OperatorLibrary::implement(const std::string& name, DispatchKey key, Op::Trampoline run,
                                const void* function, size_t parameters) {
  const bool full = name.find("::") != std::string::npos;
  Implementations& all = implementations_of(full ? name : space_ + "::" + name);
  all.at(key) = {run, function, parameters};
  check(all);
}

Dispatcher& Dispatcher::singleton() {
  static Dispatcher one;
  return one;
}
OperatorHandle Dispatcher::findSchemaOrThrow(const char* name, const char* overload) const {
  const std::string_view full(name);
  const size_t colons = full.find("::");
  if (colons != std::string_view::npos) {
    const std::string_view space = full.substr(0, colons), own = space == "aten" ? "" : space;
    for (const Op* op : operator_table().find(own, full.substr(colons + 2)))
      if (op->schema.overload == overload) return OperatorHandle(*op);
  }
  RL_FAIL("Could not find schema for ", name, *overload ? "." : "", overload);
}

Op& OperatorLibrary::define(const std::string& schema, Op::Trampoline trampoline, const void* function,
                            size_t parameters, bool composite) {
  static std::deque<std::string> texts;  // schemas borrow
  const std::string& text = texts.emplace_back(space_ + "::" + schema);
  const Schema parsed = Schema::parse(text);
  RL_CHECK(parameters == SIZE_MAX || parsed.parameters.size() == parameters, "OperatorLibrary: the schema ",
           text, " has ", parsed.parameters.size(), " parameters, the function ", parameters);
  for (const Op* op : mutable_operator_table().find(parsed.space, parsed.name))
    RL_CHECK(op->schema.overload != parsed.overload, "OperatorLibrary: there is an operator ", space_,
             "::", parsed.name, " already");
  Op& op = mutable_operator_table().define(text.c_str(), trampoline, function);
  op.is_function = op.is_method = false;
  if (composite) make_composite(op);
  registered().push_back(&op);
  return op;
}

const std::vector<const Op*>& extension_operators() { return registered(); }
bool is_extension(const Op& op) { return !registered().empty() && op.id >= registered().front()->id; }

void keep_extension_failures() { keep_failures = true; }
std::vector<std::string> take_extension_failures() { return std::exchange(failures(), {}); }

}  // namespace rushlight
