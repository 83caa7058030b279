#include "dispatch/table.h"

#include "dispatch/pre_dispatch.h"
#include "dispatch/profiler.h"

namespace rushlight {

Op& Table::add(const char* text, Op::Trampoline trampoline, size_t parameters) {
  Op& op = ops_.emplace_back();
  op.schema = Schema::parse(text);
  op.trampoline = trampoline;
  op.id = static_cast<uint32_t>(ops_.size() - 1);
  op.intercepted |= kProfiled | kPreDispatch;
  const auto& list = op.schema.parameters;
  RL_ASSERT(parameters == kAnyLength || list.size() == parameters,
            "C++ signature and schema differ in length: ", text);
  RL_ASSERT(list.size() <= 64, "too many parameters: ", text);
  for (size_t i = 0; i < list.size(); ++i) {
    if (list[i].type == Tag::Tensor || list[i].type == Tag::TensorList) op.tensor_parameters |= 1ull << i;
    if (list[i].mutated) op.mutated |= 1ull << i;
  }
  for (const Return& r : op.schema.returns) op.has_named_returns |= !r.name.empty();
  // Only torch's operators are methods by default; other name spaces hold functions.
  op.is_method = op.schema.space.empty() && !list.empty() && list[0].name == "self";
  // A trailing underscore marks the in-place form, which PyTorch offers as a method.
  if (op.schema.name.ends_with('_') && !op.schema.name.starts_with('_') && op.is_method)
    op.is_function = false;
  return op;
}

Op& Table::define(const char* schema, Op::Trampoline trampoline, const void* kernel) {
  Schema::parse(schema);  // fails before anything is added
  Op& op = add(schema, trampoline, kAnyLength);
  op.kernel.fill(kernel);
  op.traits.aliasing = Aliasing::MayReturnInput;
  resolve_traits(op);
  return op;
}

std::vector<const Op*> Table::find(std::string_view space, std::string_view name) const {
  std::vector<const Op*> found;
  for (const Op& op : ops_)
    if (op.schema.space == space && op.schema.name == name) found.push_back(&op);
  return found;
}

void Table::freeze() {
  for (Op& op : ops_) {
    resolve_traits(op);
    const Traits& traits = op.traits;
    RL_ASSERT(op.kernel[0], "no CPU kernel: ", op.schema.text);
    RL_ASSERT(op.family == Family::Composite || op.derivative || op.refusal,
              "neither a derivative nor a refusal: ", op.schema.text);
    for (const auto& result : op.schema.returns)
      RL_ASSERT(!op.has_out || result.type != Tag::TensorList,
                "out= for a list of tensors: ", op.schema.text);
    RL_ASSERT(op.has_out || (traits.out == OutRule::Castable && !traits.out_overlap.apart),
              "a demand on an out= that does not exist: ", op.schema.text);
    RL_ASSERT(!traits.inplace_function || op.has_inplace, "no in-place form: ", op.schema.text);
    RL_ASSERT(!traits.one_node || op.family == Family::Composite,
              "an operator that is no composite is one node anyway: ", op.schema.text);
    RL_ASSERT(traits.tangent == Tangent::None || op.derivative || traits.tangent == Tangent::Linear,
              "a tangent without a derivative: ", op.schema.text);
  }
}

}  // namespace rushlight
