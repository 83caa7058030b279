#include "dispatch/extension.h"

namespace rushlight {

namespace {

std::vector<const Op*>& registered() {
  static std::vector<const Op*> list;
  return list;
}

}  // namespace

Op& OperatorLibrary::define(const std::string& schema, Op::Trampoline trampoline, const void* function,
                            size_t parameters, bool composite) {
  static std::deque<std::string> texts;  // schemas borrow
  const std::string& text = texts.emplace_back(space_ + "::" + schema);
  const Schema parsed = Schema::parse(text);
  RL_CHECK(parsed.parameters.size() == parameters, "OperatorLibrary: the schema ", text, " has ",
           parsed.parameters.size(), " parameters, the function ", parameters);
  for (const Op* op : mutable_operator_table().find(parsed.space, parsed.name))
    RL_CHECK(op->schema.overload != parsed.overload, "OperatorLibrary: there is an operator ", space_,
             "::", parsed.name, " already");
  Op& op = mutable_operator_table().define(text.c_str(), trampoline, function);
  op.is_function = op.is_method = false;
  if (composite) {
    op.family = Family::Composite;
    op.intercepted &= ~(kAutograd | kForwardGrad | kWrapped | kLowered | kPythonDispatch | kSparseTensor);
  }
  registered().push_back(&op);
  return op;
}

const std::vector<const Op*>& extension_operators() { return registered(); }

}  // namespace rushlight
