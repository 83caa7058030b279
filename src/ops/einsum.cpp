#include "ops/einsum.h"

#include <algorithm>
#include <array>

#include "dispatch/table.h"
#include "ops/copy.h"
#include "ops/matmul.h"
#include "ops/operators.h"
#include "ops/reduction.h"
#include "ops/register.h"
#include "ops/view.h"

namespace rushlight {
namespace {

using namespace ops;

constexpr int kLetters = 52, kEllipsis = 52;  // labels: A-Z, a-z, "..."

int label_of(char c) {
  if (c >= 'A' && c <= 'Z') return c - 'A';
  if (c >= 'a' && c <= 'z') return c - 'a' + 26;
  return -1;
}
char letter_of(int label) { return static_cast<char>(label < 26 ? 'A' + label : 'a' + label - 26); }

using Labels = std::vector<int>;

Labels parse_labels(std::string_view text, const std::string& where) {
  Labels labels;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == ' ') continue;
    if (text[i] == '.') {
      RL_CHECK(text.substr(i, 3) == "...", "einsum(): found '.' for ", where,
               " that is not part of any ellipsis");
      RL_CHECK(std::find(labels.begin(), labels.end(), kEllipsis) == labels.end(), "einsum(): found '.' for ",
               where, " for which an ellipsis was already found");
      labels.push_back(kEllipsis);
      i += 2;
      continue;
    }
    const int label = label_of(text[i]);
    RL_CHECK(label >= 0, "einsum(): invalid subscript given at index ", i,
             " in the equation string, subscripts must be in [a-zA-Z] (", where, ")");
    labels.push_back(label);
  }
  return labels;
}

// Note [einsum]
// Every label gets a position: first those of the output, in its order, then those summed. Each operand is
// permuted to that order, with size 1 where it lacks a label; then operands are contracted from left to
// right, each pair as one batched matrix product, over the labels that nothing later needs.
struct Plan {
  std::vector<Labels> inputs;
  Labels output;
  int64_t ellipsis_dims = 0;
  std::array<int64_t, kLetters> position{};  // of letters; -1: unused
  int64_t ellipsis_position = 0;
  int64_t dims = 0, output_dims = 0;
};

Labels implicit_output(const std::vector<Labels>& inputs, bool any_ellipsis) {
  std::array<int, kLetters> count{};
  for (const Labels& l : inputs)
    for (int label : l)
      if (label != kEllipsis) ++count[static_cast<size_t>(label)];
  Labels output;
  if (any_ellipsis) output.push_back(kEllipsis);
  for (int label = 0; label < kLetters; ++label)
    if (count[static_cast<size_t>(label)] == 1) output.push_back(label);
  return output;
}

void place(Plan& p, int label) {
  if (label == kEllipsis) {
    p.ellipsis_position = p.dims;
    p.dims += p.ellipsis_dims;
  } else {
    p.position[static_cast<size_t>(label)] = p.dims++;
  }
}

Plan plan_of(std::string_view equation, TensorList tensors) {
  Plan p;
  const size_t arrow = equation.find("->");
  const std::string_view left = equation.substr(0, arrow);
  size_t begin = 0;
  while (true) {
    const size_t comma = left.find(',', begin);
    p.inputs.push_back(parse_labels(left.substr(begin, comma == left.npos ? left.npos : comma - begin),
                                    str("operand ", p.inputs.size())));
    if (comma == left.npos) break;
    begin = comma + 1;
  }
  RL_CHECK(p.inputs.size() <= tensors.size(),
           "einsum(): fewer operands were provided than specified in the equation");
  RL_CHECK(p.inputs.size() >= tensors.size(),
           "einsum(): more operands were provided than specified in the equation");
  bool any_ellipsis = false;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const Labels& l = p.inputs[i];
    const bool ellipsis = std::find(l.begin(), l.end(), kEllipsis) != l.end();
    const int64_t named = static_cast<int64_t>(l.size()) - ellipsis, n = tensors[i].dim();
    RL_CHECK(ellipsis ? named <= n : named == n, "einsum(): the number of subscripts in the equation (",
             named,
             ellipsis ? ") is more than the number of dimensions ("
                      : ") does not match the number of dimensions (",
             n, ") for operand ", i, ellipsis ? "" : " and no ellipsis was given");
    any_ellipsis |= ellipsis;
    if (ellipsis) p.ellipsis_dims = std::max(p.ellipsis_dims, n - named);
  }
  p.output = arrow == equation.npos ? implicit_output(p.inputs, any_ellipsis)
                                    : parse_labels(equation.substr(arrow + 2), "the output");
  p.position.fill(-1);
  for (int label : p.output) {
    RL_CHECK(label == kEllipsis || p.position[static_cast<size_t>(label)] < 0, "einsum(): output subscript ",
             letter_of(label % kLetters), " appears more than once in the output");
    place(p, label);
  }
  p.output_dims = p.dims;
  const bool ellipsis_kept = std::find(p.output.begin(), p.output.end(), kEllipsis) != p.output.end();
  std::array<bool, kLetters> seen{};
  for (const Labels& l : p.inputs)
    for (int label : l)
      if (label != kEllipsis) {
        seen[static_cast<size_t>(label)] = true;
        if (p.position[static_cast<size_t>(label)] < 0) place(p, label);
      }
  if (!ellipsis_kept) place(p, kEllipsis);
  for (int label : p.output)
    RL_CHECK(label == kEllipsis || seen[static_cast<size_t>(label)], "einsum(): output subscript ",
             letter_of(label % kLetters), " does not appear in the equation for any input operand");
  return p;
}

// The operand with its dimensions at their positions; labels named twice become diagonals.
Tensor arranged(const Plan& p, const Labels& labels, Tensor t, size_t operand) {
  std::vector<int64_t> at(static_cast<size_t>(p.dims), -1);  // where each position stands in t
  int64_t d = 0;
  for (int label : labels) {
    if (label == kEllipsis) {
      const int64_t n =
          t.dim() - d -
          (static_cast<int64_t>(labels.end() - std::find(labels.begin(), labels.end(), kEllipsis)) - 1);
      for (int64_t i = 0; i < n; ++i)
        at[static_cast<size_t>(p.ellipsis_position + p.ellipsis_dims - n + i)] = d++;
      continue;
    }
    int64_t& where = at[static_cast<size_t>(p.position[static_cast<size_t>(label)])];
    if (where < 0) {
      where = d++;
      continue;
    }
    RL_CHECK(t->sizes[where] == t->sizes[d], "einsum(): subscript ", letter_of(label),
             " is repeated for operand ", operand, " but the sizes don't match, ", t->sizes[d],
             " != ", t->sizes[where]);
    t = movedim(diagonal(t, 0, where, d), IntList{-1}, IntList{where});
  }
  Dims order;
  for (int64_t where : at)
    if (where >= 0) order.push_back(where);
  t = permute(t, order);
  for (int64_t k = 0; k < p.dims; ++k)
    if (at[static_cast<size_t>(k)] < 0) t = unsqueeze(t, k);
  return t;
}

// Sums the product over `summed`; both have the same number of dimensions, of equal size or 1. Keeps them,
// with size 1. The result lies in memory with the dimensions of `a` first; `lone` (no further operand): in
// its own order if the dimensions of `b` come before all of those.
Tensor contract(Tensor a, Tensor b, const Dims& summed, bool lone) {
  Dims both, only_a, only_b, reduced, sum_a, sum_b;
  for (int64_t d = 0; d < a.dim(); ++d) {
    const bool in_a = a->sizes[d] != 1, in_b = b->sizes[d] != 1,
               sum = std::find(summed.begin(), summed.end(), d) != summed.end();
    if (sum && in_a != in_b) (in_a ? sum_a : sum_b).push_back(d);
    if (sum) {
      if (in_a && in_b) reduced.push_back(d);
    } else {
      (in_a == in_b ? both : in_a ? only_a : only_b).push_back(d);
    }
  }
  if (!sum_a.empty()) a = sum_dim(a, IntList(sum_a), true, std::nullopt);
  if (!sum_b.empty()) b = sum_dim(b, IntList(sum_b), true, std::nullopt);
  if (summed.empty()) return a * b;
  if (lone && !only_a.empty() && !only_b.empty() && only_b.back() < only_a[0])
    std::swap(a, b), std::swap(only_a, only_b);
  // A sum may have widened the integers of one operand.
  if (a.dtype() != b.dtype() && is_integral_or_bool(a.dtype()) && is_integral_or_bool(b.dtype()))
    a = to_dtype(a, DType::Int64), b = to_dtype(b, DType::Int64);
  auto sizes_product = [](const Tensor& t, const Dims& dims) {
    int64_t n = 1;
    for (int64_t d : dims) n *= t->sizes[d];
    return n;
  };
  auto ordered = [](std::initializer_list<const Dims*> parts, const Dims& last) {
    Dims order;
    for (const Dims* part : parts)
      for (int64_t d : *part) order.push_back(d);
    for (int64_t d : last) order.push_back(d);
    return order;
  };
  // All of size 1 in both: anywhere, so with the batch.
  for (int64_t d : summed)
    if (a->sizes[d] == 1 && b->sizes[d] == 1) both.push_back(d);
  const int64_t batch = sizes_product(a, both), rows = sizes_product(a, only_a),
                columns = sizes_product(b, only_b), inner = sizes_product(a, reduced);
  const Tensor left =
      reshape(permute(a, ordered({&both, &only_a, &reduced}, only_b)), IntList{batch, rows, inner});
  const Tensor right =
      reshape(permute(b, ordered({&both, &reduced, &only_b}, only_a)), IntList{batch, inner, columns});
  const Tensor product = bmm(left, right);
  const Dims order = ordered({&both, &only_a, &only_b}, reduced);
  Dims sizes, back(order.size());
  for (size_t i = 0; i < order.size(); ++i) {
    const int64_t d = order[i];
    const bool is_reduced = std::find(reduced.begin(), reduced.end(), d) != reduced.end();
    sizes.push_back(is_reduced ? 1 : a->sizes[d] != 1 ? a->sizes[d] : b->sizes[d]);
    back[static_cast<size_t>(d)] = static_cast<int64_t>(i);
  }
  return permute(reshape(product, sizes), back);
}

Tensor einsum_body(const Call&, std::string_view equation, TensorList tensors, const OptIntList&) {
  RL_CHECK(!tensors.empty(), "einsum(): must provide at least one operand");
  const Plan p = plan_of(equation, tensors);
  std::vector<Tensor> operands;
  for (size_t i = 0; i < tensors.size(); ++i) operands.push_back(arranged(p, p.inputs[i], tensors[i], i));
  for (int64_t d = 0; d < p.dims; ++d) {
    int64_t size = 1;
    for (size_t i = 0; i < operands.size(); ++i) {
      const int64_t own = operands[i]->sizes[d];
      RL_CHECK(own == 1 || size == 1 || own == size, "einsum(): subscript has size ", own, " for operand ", i,
               " which does not broadcast with previously seen size ", size);
      if (own != 1) size = own;
    }
  }
  auto needed_later = [&](int64_t d, size_t from) {
    for (size_t i = from; i < operands.size(); ++i)
      if (operands[i]->sizes[d] != 1) return true;
    return false;
  };
  Tensor result = operands[0];
  for (size_t i = 1; i < operands.size(); ++i) {
    Dims summed;
    for (int64_t d = p.output_dims; d < p.dims; ++d)
      if ((result->sizes[d] != 1 || operands[i]->sizes[d] != 1) && !needed_later(d, i + 1))
        summed.push_back(d);
    result = contract(result, operands[i], summed, operands.size() == 2);
  }
  if (p.dims == p.output_dims) return result.is_same(tensors[0]) ? alias(result) : result;
  Dims rest;
  for (int64_t d = p.output_dims; d < p.dims; ++d) rest.push_back(d);
  bool all_ones = tensors.size() > 1;  // of one operand all labels are summed, which widens integers
  for (int64_t d : rest) all_ones &= result->sizes[d] == 1;
  if (!all_ones) return sum_dim(result, IntList(rest), false, std::nullopt);
  return reshape(result, result.sizes().slice(0, static_cast<size_t>(p.output_dims)));
}

}  // namespace

void register_einsum_operators(Table& t) {
  t.composite(einsum, "einsum(str equation, Tensor[] tensors, *, int[]? path=None) -> Tensor", einsum_body)
      .variadic()
      .function_only()
      .doc("Products of the operands summed over the labels that the output lacks; see Note [einsum].")
      .autocast(Cast::None, Cast::Half);
}

}  // namespace rushlight
