#include "frontend/call.h"

#include <unordered_map>

#include "autograd/meta.h"
#include "dispatch/table.h"
#include "rushlight/tensor.h"

namespace rushlight {

void detail::fill_operator_table() { operator_table(); }

namespace frontend {

const Op& find_operator(std::string_view name) {
  static const auto* const index = [] {
    auto* map = new std::unordered_map<std::string, const Op*>;
    for (const Op& op : operator_table().ops()) {
      std::string key(op.schema.space);
      if (!key.empty()) key += "::";
      key += op.schema.name;
      if (!op.schema.overload.empty()) (key += '.') += op.schema.overload;
      map->emplace(std::move(key), &op);
    }
    return map;
  }();
  const auto found = index->find(std::string(name));
  RL_ASSERT(found != index->end(), "no operator ", name);
  return *found->second;
}

template Tensor call<Tensor>(const Op&, const Value*);
template std::vector<Tensor> call<std::vector<Tensor>>(const Op&, const Value*);

Tensor& call_inplace(const Op& op, const Value* values, const Tensor& self) {
  Results results;
  call_boxed(op, values, results, &self, true);
  return const_cast<Tensor&>(self);
}

Tensor& call_writing(const Op& op, const Value* values, const Tensor& self) {
  Results results;
  call_boxed(op, values, results);
  return const_cast<Tensor&>(self);
}

Tensor& call_out(const Op& op, const Value* values, Tensor& out) {
  call_outs(op, values, &out);
  return out;
}

void call_outs(const Op& op, const Value* values, const Tensor* outs) {
  Results results;
  call_boxed(op, values, results, outs);
}

Tensor made(Tensor result, const TensorOptions& options) {
  if (options.memory_format_opt() && *options.memory_format_opt() == MemoryFormat::ChannelsLast)
    result = result.contiguous(MemoryFormat::ChannelsLast);
  if (options.requires_grad()) set_requires_grad(result, true);
  return result;
}

}  // namespace frontend
}  // namespace rushlight
