#include "dispatch/shared_out.h"

#include <algorithm>
#include <bit>

#include "core/error.h"

namespace rushlight {
namespace {

// Operands that out= must not partly overlap: a bit per parameter of the schema. `strict`: nor be.
struct Rule {
  std::string_view space, name;
  uint64_t operands;
  bool strict = false;
};
constexpr uint64_t kFirst = 1, kSecond = 2, kAll = ~uint64_t{0};
constexpr Rule kRules[] = {
    {"", "addbmm", kFirst},
    {"", "addmm", kFirst},
    {"", "addmv", kFirst},
    {"", "addr", kAll},
    {"", "baddbmm", kFirst},
    {"", "bernoulli", kFirst},
    {"", "clamp_max", kAll},
    {"", "clamp_min", kAll},
    {"", "column_stack", kAll},
    {"", "conj_physical", kFirst},
    {"", "cross", kAll, true},
    {"", "cumprod", kFirst},
    {"", "cumsum", kFirst},
    {"", "deg2rad", kFirst},
    {"", "diff", kFirst},
    {"", "dstack", kAll},
    {"", "hstack", kAll},
    {"", "igamma", kAll},
    {"", "igammac", kAll},
    {"", "kron", kAll},
    {"", "ldexp", kFirst},
    {"", "logcumsumexp", kFirst},
    {"", "max", kAll},
    {"", "min", kAll},
    {"", "normal", kAll},
    {"", "outer", kAll},
    {"", "rad2deg", kFirst},
    {"", "renorm", kFirst},
    {"", "row_stack", kAll},
    {"", "square", kFirst},
    {"", "stack", kAll, true},
    {"", "true_divide", kAll},
    {"", "vstack", kAll},
    {"linalg", "cross", kAll, true},
    {"linalg", "solve_triangular", kSecond},
    {"nn", "gelu", kFirst},
    {"nn", "hardshrink", kFirst},
    {"nn", "softplus", kFirst},
    {"nn", "softshrink", kFirst},
};

const Rule* rule_of(const Op& op) {
  const auto rule = std::find_if(std::begin(kRules), std::end(kRules), [&](const Rule& r) {
    return r.space == op.schema.space && r.name == op.schema.name;
  });
  return rule == std::end(kRules) ? nullptr : rule;
}

void check_apart(const Op& op, const Tensor& out, const Tensor& operand, size_t parameter) {
  if (!operand.defined() || !out->storage || out->storage.get() != operand->storage.get()) return;
  const Rule* rule = rule_of(op);
  if (!rule || !(rule->operands >> parameter & 1)) return;
  if (!is_non_overlapping_and_dense(out) || !is_non_overlapping_and_dense(operand)) return;
  const Overlap overlap = memory_overlap(out, operand);
  RL_CHECK(overlap == Overlap::No || (overlap == Overlap::Full && !rule->strict),
           "unsupported operation: some elements of the input tensor and the written-to tensor refer to a "
           "single memory location. Please clone() the tensor before performing the operation. (",
           op.name(), ")");
}

constexpr std::string_view kFromOutput[] = {
    "index_add", "index_copy", "index_reduce", "msort", "scatter", "scatter_add", "scatter_reduce",
};

}  // namespace

void check_shared_outputs(const Op& op, const Value* args, const Tensor* out, size_t count) {
  for (size_t i = 0; i < count; ++i)
    for (uint64_t bits = op.tensor_parameters; bits; bits &= bits - 1) {
      const auto parameter = static_cast<size_t>(std::countr_zero(bits));
      const Value& v = args[parameter];
      if (v.is_none()) continue;
      if (v.tag() == Tag::Tensor)
        check_apart(op, out[i], v.tensor(), parameter);
      else if (v.tag() == Tag::TensorList)
        for (const Tensor& t : v.tensors()) check_apart(op, out[i], t, parameter);
    }
}

bool starts_from_output(const Op& op) {
  return op.schema.space.empty() &&
         std::find(std::begin(kFromOutput), std::end(kFromOutput), op.schema.name) != std::end(kFromOutput);
}

}  // namespace rushlight
