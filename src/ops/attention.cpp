#include "ops/attention.h"

#include <cmath>
#include <limits>

#include "cpu/attention.h"
#include "device/layers.h"
#include "dispatch/table.h"
#include "ops/attention_parts.h"
#include "ops/copy.h"
#include "ops/differentiated.h"
#include "ops/factory.h"
#include "ops/index.h"
#include "ops/matmul.h"
#include "ops/operators.h"
#include "ops/random.h"
#include "ops/reduction.h"
#include "ops/register.h"
#include "ops/softmax.h"
#include "ops/view.h"

namespace rushlight {

using namespace ops;

namespace attention {

double scale_of(const Tensor& query, std::optional<double> scale) {
  if (scale || query.dim() == 0) return scale.value_or(1);
  return 1 / std::sqrt(static_cast<double>(query->sizes.back()));
}

void check(const Operands& a) {
  const auto& [q, k, v, mask, causal, scale] = a;
  RL_CHECK(q.dim() >= 2 && k.dim() >= 2 && v.dim() >= 2,
           "scaled_dot_product_attention: Expected query, key, and value to all be  at least 2 dimensional, "
           "but got query.dim(): ",
           q.dim(), ", key.dim(): ", k.dim(), " and value.dim(): ", v.dim(), " instead.");
  RL_CHECK(
      q.dtype() == k.dtype() && q.dtype() == v.dtype(),
      "Expected query, key, and value to have the same dtype, but got query.dtype: ", cpp_name(q.dtype()),
      " key.dtype: ", cpp_name(k.dtype()), " and value.dtype: ", cpp_name(v.dtype()), " instead.");
  RL_CHECK(
      !mask.defined() || is_bool(mask.dtype()) || mask.dtype() == q.dtype() || mask.dtype() == DType::Float32,
      "Expected attn_mask dtype to be bool or float or to match query dtype, but got attn_mask.dtype: ",
      cpp_name(mask.dtype()), " and  query.dtype: ", cpp_name(q.dtype()), " instead.");
}

Tensor minus_infinity_where_not(const Tensor& mask, DType dtype) {
  const Tensor zeros = new_zeros(mask, mask.sizes(), dtype);
  return rushlight::masked_fill(zeros, ops::logical_not(mask),
                                Scalar(-std::numeric_limits<double>::infinity()));
}

Tensor repeat_heads(const Tensor& t, const Tensor& query) {
  const int64_t have = t.size(-3), want = query.size(-3);
  RL_CHECK(have > 0 && want % have == 0, "scaled_dot_product_attention: number of heads in query (", want,
           ") must be divisible by the number in key and value (", have, ")");
  return have == want ? t : repeat_interleave(t, want / have, -3);
}

Tensor sum_heads(const Tensor& t, const Tensor& like) {
  if (like.dim() < 3 || t.size(-3) == like.size(-3)) return t;
  return sum_dim(unflatten(t, -3, IntList{like.size(-3), t.size(-3) / like.size(-3)}),
                 OptIntList(IntList{-3}), false, std::nullopt);
}

Tensor with_dense_rows(const Tensor& t) {
  const int64_t width = t.size(-1), row = t.stride(-2);
  return (t.stride(-1) == 1 || width == 1) && (row >= width || t.size(-2) == 1) ? t : contiguous(t);
}

Dims lead_of(const Tensor& t) { return t.sizes().slice(0, static_cast<size_t>(t.dim()) - 2).dims(); }
Dims joined(IntList lead, int64_t rows, int64_t columns) {
  Dims d = lead.dims();
  d.push_back(rows);
  if (columns >= 0) d.push_back(columns);
  return d;
}

namespace {

// Heads next to each other in memory, [batch, length, heads, width], as models want them back.
Tensor empty_heads(IntList sizes, DType dtype, Device device) {
  if (sizes.size() != 4) return empty_tensor(sizes, dtype, device);
  const int64_t row = sizes[1] * sizes[3];
  return empty_strided_tensor(sizes, IntList{sizes[2] * row, sizes[3], row, 1}, dtype, device);
}

}  // namespace

Tensor empty_as(const Tensor& t, IntList sizes) {
  const bool heads_inside = t.dim() == 4 && t->strides[1] < t->strides[2];
  return heads_inside ? empty_heads(sizes, t.dtype(), t.device())
                      : empty_tensor(sizes, t.dtype(), t.device());
}

bool tiled(const Operands& a, bool grouped) {
  const Tensor &q = a.query, &k = a.key, &v = a.value, &mask = a.mask;
  const auto fits = [&](const Tensor& t) {
    if (t.dim() != q.dim()) return false;
    for (int64_t d = 0; d < q.dim() - 2; ++d) {
      const bool heads = grouped && d == q.dim() - 3;
      if (t.size(d) != q.size(d) && !(heads && t.size(d) > 0 && q.size(d) % t.size(d) == 0)) return false;
    }
    return t.numel() > 0;
  };
  constexpr uint32_t kTransforms = kPythonDispatch | kWrapped | kForwardGrad;
  const uint32_t flags = q->flags | k->flags | v->flags | (mask.defined() ? mask->flags : 0);
  return is_floating(q.dtype()) && !is_float8(q.dtype()) && fits(k) && fits(v) && q.numel() > 0 &&
         (q.dim() < 3 || k.size(-3) == v.size(-3)) && k.size(-1) == q.size(-1) && k.size(-2) == v.size(-2) &&
         (flags & kTransforms & dispatch_state.consider) == 0;
}

void check_tiled(const char* who, const Operands& a) {
  check(a);
  RL_CHECK(tiled(a, true), who, ": shapes do not fit: ", describe(a.query), ", ", describe(a.key), " and ",
           describe(a.value));
}

void check_results(const char* who, const Operands& a, const Tensor& grad, const Tensor& out,
                   const Tensor& logsumexp) {
  const Dims lead = lead_of(a.query);
  const int64_t queries = a.query.size(-2);
  const auto expect = [&](const char* name, const Tensor& t, IntList sizes, DType dtype) {
    RL_CHECK(t.sizes() == sizes && t.dtype() == dtype, who, ": expected ", name, " of shape ", sizes,
             " and dtype ", dtype_name(dtype), ", got ", describe(t));
    RL_CHECK(t.device() == a.query.device(), who, ": expected ", name, " on device ", a.query.device(),
             ", got ", t.device());
  };
  const Dims sizes = joined(lead, queries, a.value.size(-1));
  expect("grad_out", grad, sizes, a.query.dtype());
  expect("out", out, sizes, a.query.dtype());
  expect("logsumexp", logsumexp, joined(lead, queries, -1), compute_dtype(a.query.dtype()));
}

}  // namespace attention

namespace {

using attention::Operands, attention::empty_as, attention::gradients_reference, attention::joined,
    attention::lead_of, attention::scale_of, attention::tiled, attention::with_dense_rows;

// --- the reference implementation: all scores at once, in public operators

// A query that may look at nothing gets zeros, not NaN, and so do the gradients of its scores.
Tensor softmax_or_zero(const Tensor& scores, bool masked) {
  if (!masked) return softmax(scores, -1, std::nullopt);
  const Tensor nothing = all_dim(isneginf(scores), -1, true);
  const Tensor p = softmax(rushlight::masked_fill(scores, nothing, Scalar(0)), -1, std::nullopt);
  return rushlight::masked_fill(p, nothing, Scalar(0));
}

// Before dropout: the probabilities of every query and key. Heads are not grouped.
Tensor probabilities(const Operands& a) {
  Tensor scores = matmul(a.query * Scalar(a.scale), transpose(a.key, -2, -1));
  const auto apply = [&](const Tensor& mask) {
    scores =
        scores + (is_bool(mask.dtype()) ? attention::minus_infinity_where_not(mask, a.query.dtype()) : mask);
  };
  if (a.causal) apply(tril(new_ones(a.query, IntList{a.query.size(-2), a.key.size(-2)}, DType::Bool), 0));
  if (a.mask.defined()) apply(a.mask);
  return softmax_or_zero(scores, a.mask.defined());
}

Operands ungrouped(Operands a) {
  a.key = attention::repeat_heads(a.key, a.query), a.value = attention::repeat_heads(a.value, a.query);
  return a;
}

Tensor attention_reference(const Operands& a, double dropout_p) {
  const DType dtype = a.query.dtype();
  if (is_reduced_float(dtype) && a.key.dtype() == dtype && a.value.dtype() == dtype) {
    const auto wide = [](const Tensor& t) { return to_dtype(t, DType::Float32); };
    const Tensor mask = a.mask.defined() && !is_bool(a.mask.dtype()) ? wide(a.mask) : a.mask;
    return to_dtype(
        attention_reference({wide(a.query), wide(a.key), wide(a.value), mask, a.causal, a.scale}, dropout_p),
        dtype);
  }
  Tensor p = probabilities(a);
  if (p.dtype() != a.value.dtype()) p = to_dtype(p, a.value.dtype());
  if (dropout_p > 0) p = dropout(p, dropout_p, true);
  return matmul(p, a.value);
}

}  // namespace

Grads attention::gradients_reference(const Tensor& grad, const Operands& a, const Tensor& factors,
                                     bool mask_wanted) {
  const Operands all = a.query.dim() >= 3 ? ungrouped(a) : a;
  const Tensor p = probabilities(all);
  const auto dropped = [&](const Tensor& t) { return factors.defined() ? t * factors : t; };
  const Tensor flow = dropped(matmul(grad, transpose(all.value, -2, -1)));
  const Tensor scores = p * (flow - sum_dim(flow * p, OptIntList(IntList{-1}), true, std::nullopt));
  const Tensor products = scores * Scalar(a.scale);
  return Grads{matmul(products, all.key), sum_heads(matmul(transpose(products, -2, -1), a.query), a.key),
               sum_heads(matmul(transpose(dropped(p), -2, -1), grad), a.value),
               mask_wanted ? scores : Tensor()};
}

namespace {

// --- in tiles on the CPU

// Where the matrices of t start, its leading dimensions expanded to `lead`.
Dims matrix_starts(const Tensor& t, IntList lead) {
  Dims starts{0};
  const auto own = static_cast<int64_t>(t.dim()) - 2, missing = static_cast<int64_t>(lead.size()) - own;
  for (size_t d = 0; d < lead.size(); ++d) {
    const int64_t at = static_cast<int64_t>(d) - missing;
    const int64_t step = at < 0 || t.size(at) == 1 ? 0 : t.stride(at);
    Dims next;
    for (int64_t s : starts)
      for (int64_t i = 0; i < lead[d]; ++i) next.push_back(s + i * step);
    starts = std::move(next);
  }
  return starts;
}

cpu::AttentionOperand operand_of(const Tensor& t, IntList lead) {
  return {t.data_ptr(), matrix_starts(t, lead), t.stride(-2)};
}

// Rows must be dense.
cpu::AttentionPlan plan_of(const Operands& a) {
  const auto& [q, k, v, mask, causal, scale] = a;
  const Dims lead = lead_of(q), shared = lead_of(k);
  cpu::AttentionPlan p;
  p.dtype = q.dtype();
  p.batch = checked_numel(lead);
  p.group = q.dim() >= 3 ? q.size(-3) / k.size(-3) : 1;
  p.queries = q.size(-2), p.keys = k.size(-2), p.width = q.size(-1), p.value_width = v.size(-1);
  p.scale = scale, p.causal = causal;
  p.query = operand_of(q, lead), p.key = operand_of(k, shared), p.value = operand_of(v, shared);
  if (mask.defined()) {
    const Tensor whole = expand(mask, joined(lead, p.queries, p.keys), false);
    p.mask = {whole.data_ptr(), whole.dtype(), matrix_starts(whole, lead), whole.stride(-2),
              whole.stride(-1)};
  }
  return p;
}

Operands dense(const Operands& a) {
  return {
      with_dense_rows(a.query), with_dense_rows(a.key), with_dense_rows(a.value), a.mask, a.causal, a.scale};
}

constexpr const char *kFlash = "_scaled_dot_product_flash_attention_for_cpu",
                     *kFlashBackward = "_scaled_dot_product_flash_attention_for_cpu_backward";

std::tuple<Tensor, Tensor> flash_attention_kernel(const Call&, const Tensor& query, const Tensor& key,
                                                  const Tensor& value, double dropout_p, bool causal,
                                                  const Tensor& mask, std::optional<double> scale) {
  const Operands a{query, key, value, mask, causal, scale_of(query, scale)};
  attention::check_tiled(kFlash, a);
  RL_CHECK(dropout_p == 0, kFlash, ": Currently do not support dropout > 0, got ", dropout_p);
  const Dims lead = lead_of(query);
  Tensor out =
      empty_as(query, joined(lead, query.size(-2), value.size(-1)));  // PyTorch's layout: the query's
  Tensor logsumexp =
      empty_tensor(joined(lead, query.size(-2), -1), compute_dtype(query.dtype()), query.device());
  if (device_layers(out)) attention::run_on_device(a, {}, out, logsumexp);
  if (!out.is_cpu()) return {out, logsumexp};
  const Operands operands = dense(a);
  cpu::AttentionPlan plan = plan_of(operands);
  plan.out = operand_of(out, lead);
  plan.logsumexp = logsumexp.data_ptr();
  cpu::attention(plan);
  return {out, logsumexp};
}

std::tuple<Tensor, Tensor, Tensor> flash_attention_backward_kernel(const Call&, const Tensor& grad,
                                                                   const Tensor& query, const Tensor& key,
                                                                   const Tensor& value, const Tensor& out,
                                                                   const Tensor& logsumexp, double dropout_p,
                                                                   bool causal, const Tensor& mask,
                                                                   std::optional<double> scale) {
  const Operands a{query, key, value, mask, causal, scale_of(query, scale)};
  attention::check_tiled(kFlashBackward, a);
  attention::check_results(kFlashBackward, a, grad, out, logsumexp);
  RL_CHECK(dropout_p == 0, kFlashBackward, ": Currently do not support dropout > 0, got ", dropout_p);
  if (device_layers(grad)) {
    auto [dq, dk, dv, none] = attention::gradients_on_device(grad, a, {}, out, logsumexp, false);
    return {dq, dk, dv};
  }
  const Dims lead = lead_of(query), shared = lead_of(key);
  Tensor dq = empty_as(query, query.sizes()), dk = empty_as(key, key.sizes()),
         dv = empty_as(value, value.sizes());
  if (!grad.is_cpu()) return {dq, dk, dv};
  const Operands operands = dense(a);
  const Tensor g = with_dense_rows(grad), result = with_dense_rows(out), sums = contiguous(logsumexp);
  cpu::AttentionPlan plan = plan_of(operands);
  plan.out = operand_of(result, lead);
  plan.logsumexp = sums.data_ptr();
  cpu::attention_backward(
      plan, {operand_of(g, lead), operand_of(dq, lead), operand_of(dk, shared), operand_of(dv, shared)});
  return {dq, dk, dv};
}

// The mask that also hides what comes after each query.
Tensor causal_too(const Operands& a) {
  const Tensor past = tril(new_ones(a.query, IntList{a.query.size(-2), a.key.size(-2)}, DType::Bool), 0);
  if (is_bool(a.mask.dtype())) return logical_and(a.mask, past);
  return a.mask + attention::minus_infinity_where_not(past, a.mask.dtype());
}

Tensor attention_body(const Call&, const Tensor& query, const Tensor& key, const Tensor& value,
                      const Tensor& mask, double dropout_p, bool causal, std::optional<double> scale,
                      bool grouped) {
  const Operands a{query, key, value, mask, causal, scale_of(query, scale)};
  check(a);
  if (causal && mask.defined())
    return scaled_dot_product_attention(query, key, value, causal_too(a), dropout_p, false, scale, grouped);
  const bool records = GradMode::enabled(), trains_mask = is_differentiated(mask);
  if (tiled(a, grouped)) {
    if (dropout_p == 0 && !trains_mask)
      return std::get<0>(flash_attention(query, key, value, 0.0, causal, mask, scale));
    if (device_layers(query))
      return std::get<0>(efficient_attention(query, key, value, mask, records, dropout_p, causal, scale));
  }
  return attention_reference(grouped && query.dim() >= 3 ? ungrouped(a) : a, dropout_p);
}

}  // namespace

void register_attention_operators(Table& t) {
  t.composite(
       scaled_dot_product_attention,
       "nn::scaled_dot_product_attention(Tensor query, Tensor key, Tensor value, Tensor? attn_mask=None, "
       "float dropout_p=0.0, bool is_causal=False, *, float? scale=None, bool enable_gqa=False) -> Tensor",
       attention_body)
      .doc(
          "softmax(query @ key.T * scale + mask) @ value. Shapes: [..., L, E], [..., S, E], [..., S, Ev] "
          "give [..., L, Ev].")
      .kept_whole()
      .autocast(Cast::Half);
  t.op(flash_attention,
       "_scaled_dot_product_flash_attention_for_cpu(Tensor query, Tensor key, Tensor value, float "
       "dropout_p=0.0, bool is_causal=False, *, Tensor? attn_mask=None, float? scale=None) -> (Tensor "
       "output, Tensor logsumexp)",
       flash_attention_kernel)
      .function_only()
      .doc("Attention computed in tiles: the scores of all queries and keys never exist at once.")
      .family(Family::Attention)
      .on_devices()
      .derivative([](Grad g, In<0> q, In<1> k, In<2> v, Out<0> out, Out<1> logsumexp, Attr<4, bool> causal,
                     In<5> mask, Attr<6, std::optional<double>> scale) {
        if (!g.defined()) return Grads{Tensor(), Tensor(), Tensor(), Tensor()};
        if (derivatives_wanted() || dispatch_state.level)
          return gradients_reference(g, {q, k, v, mask, causal, scale_of(q, *scale)}, Tensor(), false);
        auto [dq, dk, dv] = flash_attention_backward(g, q, k, v, out, logsumexp, 0.0, causal, mask, scale);
        return Grads{dq, dk, dv, Tensor()};
      });
  t.op(flash_attention_backward,
       "_scaled_dot_product_flash_attention_for_cpu_backward(Tensor grad_out, Tensor query, Tensor key, "
       "Tensor value, Tensor out, Tensor logsumexp, float dropout_p, bool is_causal, *, Tensor? "
       "attn_mask=None, float? scale=None) -> (Tensor grad_query, Tensor grad_key, Tensor grad_value)",
       flash_attention_backward_kernel)
      .function_only()
      .doc("Gradients of attention in tiles, whose scores are computed again.")
      .family(Family::Gradient)
      .on_devices()
      .not_differentiable(
          "the rule of the forward operator uses its reference implementation when gradients are recorded");
}

}  // namespace rushlight
