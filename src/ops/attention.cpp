#include "ops/attention.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "cpu/attention.h"
#include "dispatch/device_attention.h"
#include "dispatch/device_layers.h"
#include "dispatch/table.h"
#include "ops/copy.h"
#include "ops/device_loops.h"
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
namespace {

using namespace ops;

void check_attention(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& mask, bool causal) {
  RL_CHECK(q.dim() >= 2 && k.dim() >= 2 && v.dim() >= 2,
           "scaled_dot_product_attention: Expected query, key, and value to all be  at least 2 dimensional, "
           "but got query.dim(): ",
           q.dim(), ", key.dim(): ", k.dim(), " and value.dim(): ", v.dim(), " instead.");
  RL_CHECK(
      q.dtype() == k.dtype() && q.dtype() == v.dtype(),
      "Expected query, key, and value to have the same dtype, but got query.dtype: ", dtype_name(q.dtype()),
      " key.dtype: ", dtype_name(k.dtype()), " and value.dtype: ", dtype_name(v.dtype()), " instead.");
  RL_CHECK(!causal || !mask.defined(),
           "_scaled_dot_product_attention: Explicit attn_mask should not be set when is_causal=True");
  RL_CHECK(
      !mask.defined() || is_bool(mask.dtype()) || mask.dtype() == q.dtype() || mask.dtype() == DType::Float32,
      "Expected attn_mask dtype to be bool or float or to match query dtype, but got attn_mask.dtype: ",
      dtype_name(mask.dtype()), " and  query.dtype: ", dtype_name(q.dtype()), " instead.");
}

Tensor minus_infinity_where_not(const Tensor& mask, DType dtype) {
  const Tensor zeros = new_zeros(mask, mask.sizes(), dtype);
  return rushlight::masked_fill(zeros, ops::logical_not(mask),
                                Scalar(-std::numeric_limits<double>::infinity()));
}

// Grouped queries: each head of key and value serves several heads of query.
Tensor repeat_heads(const Tensor& t, const Tensor& query) {
  const int64_t have = t.size(-3), want = query.size(-3);
  RL_CHECK(have > 0 && want % have == 0, "scaled_dot_product_attention: number of heads in query (", want,
           ") must be divisible by the number in key and value (", have, ")");
  return have == want ? t : repeat_interleave(t, want / have, -3);
}

// A query that may look at nothing gets zeros, not NaN.
Tensor softmax_or_zero(const Tensor& scores, bool masked) {
  const Tensor p = softmax(scores, -1, std::nullopt);
  if (!masked) return p;
  const Tensor nothing = all_dim(isneginf(scores), -1, true);
  return rushlight::masked_fill(p, nothing, Scalar(0));
}

// --- the slow twin: all scores at once, in public operators
// -------------------------------------------------------------------------------------------

double scale_of(const Tensor& query, std::optional<double> scale) {
  return scale.value_or(1 / std::sqrt(static_cast<double>(query->sizes.back())));
}

// Before dropout: the probabilities of every query and key.
Tensor probabilities(const Tensor& query, const Tensor& key, const Tensor& given_mask, bool causal,
                     double scale) {
  Tensor scores = matmul(query * Scalar(scale), transpose(key, -2, -1));
  Tensor mask = given_mask;
  if (causal) mask = tril(new_ones(query, IntList{query.size(-2), key.size(-2)}, DType::Bool), 0);
  if (mask.defined() && is_bool(mask.dtype())) mask = minus_infinity_where_not(mask, query.dtype());
  if (mask.defined()) scores = scores + mask;
  return softmax_or_zero(scores, given_mask.defined());
}

Tensor attention_twin(const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& mask,
                      double dropout_p, bool causal, double scale) {
  if (is_reduced_float(query.dtype()) && key.dtype() == query.dtype() && value.dtype() == query.dtype()) {
    const auto wide = [](const Tensor& t) { return to_dtype(t, DType::Float32); };
    const Tensor wide_mask = mask.defined() && !is_bool(mask.dtype()) ? wide(mask) : mask;
    return to_dtype(attention_twin(wide(query), wide(key), wide(value), wide_mask, dropout_p, causal, scale),
                    query.dtype());
  }
  Tensor p = probabilities(query, key, mask, causal, scale);
  if (p.dtype() != value.dtype()) p = to_dtype(p, value.dtype());
  if (dropout_p > 0) p = dropout(p, dropout_p, true);
  return matmul(p, value);
}

// --- on devices: all keys for so many queries that their scores stay within a bound
// ---------------------------------------------------------------------------------------------------------

class DeviceScores {
 public:
  DeviceScores(const Tensor& query, const Tensor& key, const Tensor& mask, bool causal, double scale)
      : query_(wide(query)),
        key_(transpose(wide(key), -2, -1)),
        mask_(mask),
        causal_(causal),
        scale_(scale) {}

  static Tensor wide(const Tensor& t) {
    return is_reduced_float(t.dtype()) ? to_dtype(t, DType::Float32) : t;
  }

  // Calls f(first query, count) for all of them.
  template <class F>
  void for_queries(F&& f) const {
    constexpr int64_t kMost = int64_t{1} << 26;  // bytes
    const int64_t queries = query_.size(-2), keys = key_.size(-1);
    const int64_t one = query_.numel() / (queries * query_.size(-1)) * keys *
                        static_cast<int64_t>(element_size(query_.dtype()));
    const int64_t step = std::clamp<int64_t>(kMost / std::max<int64_t>(one, 1), 1, queries);
    for (int64_t first = 0; first < queries; first += step) f(first, std::min(step, queries - first));
  }

  Tensor operator()(int64_t first, int64_t count) const {
    Tensor scores = matmul(narrow(query_, -2, first, count) * Scalar(scale_), key_);
    if (causal_) {
      const Tensor seen = tril(new_ones(query_, IntList{count, key_.size(-1)}, DType::Bool), first);
      return scores + minus_infinity_where_not(seen, scores.dtype());
    }
    if (!mask_.defined()) return scores;
    const Tensor part = mask_.dim() >= 2 && mask_.size(-2) > 1 ? narrow(mask_, -2, first, count) : mask_;
    return scores + (is_bool(part.dtype()) ? minus_infinity_where_not(part, scores.dtype()) : part);
  }
  // exp(scores - logsumexp), zero for queries that look at nothing.
  Tensor probabilities(int64_t first, int64_t count, const Tensor& logsumexp) const {
    const Tensor shift = unsqueeze(narrow(logsumexp, -1, first, count), -1);
    return exp((*this)(first, count) - rushlight::masked_fill(shift, isneginf(shift), Scalar(0)));
  }

 private:
  Tensor query_, key_, mask_;
  bool causal_;
  double scale_;
};

void device_attention(const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& mask,
                      bool causal, double scale, const Tensor& out, const Tensor& total) {
  const bool grouped = query.dim() >= 3;
  const DeviceScores scores(query, grouped ? repeat_heads(key, query) : key, mask, causal, scale);
  const Tensor v = DeviceScores::wide(grouped ? repeat_heads(value, query) : value);
  scores.for_queries([&](int64_t first, int64_t count) {
    loops::copy(narrow(total, -1, first, count), logsumexp(scores(first, count), IntList{-1}, false));
    loops::copy(narrow(out, -2, first, count), matmul(scores.probabilities(first, count, total), v));
  });
}

// Adds up the gradients of heads that were repeated.
Tensor sum_heads(const Tensor& t, const Tensor& like) {
  if (like.dim() < 3 || t.size(-3) == like.size(-3)) return t;
  return sum_dim(unflatten(t, -3, IntList{like.size(-3), t.size(-3) / like.size(-3)}),
                 OptIntList(IntList{-3}), false, std::nullopt);
}

Grads gradients_twin(const Tensor& g, const Tensor& query, const Tensor& key, const Tensor& value,
                     const Tensor& mask, bool causal, double scale) {
  const bool grouped = query.dim() >= 3;
  const Tensor k = grouped ? repeat_heads(key, query) : key, v = grouped ? repeat_heads(value, query) : value;
  const Tensor p = probabilities(query, k, mask, causal, scale);
  const Tensor flow = matmul(g, transpose(v, -2, -1));
  const Tensor inner = sum_dim(flow * p, OptIntList(IntList{-1}), true, std::nullopt);
  const Tensor scores = p * (flow - inner) * Scalar(scale);
  return Grads{matmul(scores, k), sum_heads(matmul(transpose(scores, -2, -1), query), key),
               sum_heads(matmul(transpose(p, -2, -1), g), value), Tensor()};
}

Grads device_gradients(const Tensor& grad, const Tensor& query, const Tensor& key, const Tensor& value,
                       const Tensor& out, const Tensor& total, const Tensor& mask, bool causal,
                       double scale) {
  const bool grouped = query.dim() >= 3;
  const Tensor k = grouped ? repeat_heads(key, query) : key;
  const DeviceScores scores(query, k, mask, causal, scale);
  const Tensor q = DeviceScores::wide(query), wide_key = DeviceScores::wide(k), g = DeviceScores::wide(grad);
  const Tensor v = DeviceScores::wide(grouped ? repeat_heads(value, query) : value);
  const Tensor along = sum_dim(g * DeviceScores::wide(out), OptIntList(IntList{-1}), true, std::nullopt);
  Tensor dq = new_zeros(q, q.sizes(), std::nullopt), dk = new_zeros(q, wide_key.sizes(), std::nullopt),
         dv = new_zeros(q, v.sizes(), std::nullopt);
  scores.for_queries([&](int64_t first, int64_t count) {
    auto part = [&](const Tensor& t) { return narrow(t, -2, first, count); };
    const Tensor p = scores.probabilities(first, count, total);
    const Tensor flow = p * (matmul(part(g), transpose(v, -2, -1)) - part(along)) * Scalar(scale);
    loops::copy(part(dq), matmul(flow, wide_key));
    add.inplace(dk, matmul(transpose(flow, -2, -1), part(q)), Scalar(1));
    add.inplace(dv, matmul(transpose(p, -2, -1), part(g)), Scalar(1));
  });
  auto narrow_again = [&](const Tensor& t, const Tensor& like) {
    return to_dtype(grouped ? sum_heads(t, like) : t, like.dtype());
  };
  return Grads{to_dtype(dq, query.dtype()), narrow_again(dk, key), narrow_again(dv, value)};
}

// --- in tiles
// ---------------------------------------------------------------------------------------------------------

Tensor with_dense_rows(const Tensor& t) {
  const int64_t width = t.size(-1), row = t.stride(-2);
  return (t.stride(-1) == 1 || width == 1) && (row >= width || t.size(-2) == 1) ? t : contiguous(t);
}

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

Dims lead_of(const Tensor& t) { return t.sizes().slice(0, static_cast<size_t>(t.dim()) - 2).dims(); }
Dims joined(IntList lead, int64_t rows, int64_t columns) {
  Dims d = lead.dims();
  d.push_back(rows);
  if (columns >= 0) d.push_back(columns);
  return d;
}

// Heads next to each other in memory, [batch, length, heads, width], as models want them back.
Tensor empty_heads(IntList sizes, DType dtype, Device device) {
  if (sizes.size() != 4) return empty_tensor(sizes, dtype, device);
  const int64_t row = sizes[1] * sizes[3];
  return empty_strided_tensor(sizes, IntList{sizes[2] * row, sizes[3], row, 1}, dtype, device);
}
// In the layout of t where its heads are next to each other.
Tensor empty_as(const Tensor& t, IntList sizes) {
  const bool heads_inside = t.dim() == 4 && t->strides[1] < t->strides[2];
  return heads_inside ? empty_heads(sizes, t.dtype(), t.device())
                      : empty_tensor(sizes, t.dtype(), t.device());
}

// Whether the tiles serve these operands; the leading dimensions must agree, but for groups of heads.
bool tiled(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& mask, bool grouped) {
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
         (flags & kTransforms & dispatch_state.consider) == 0 &&
         !(mask.defined() && mask.requires_grad_flag() && GradMode::enabled());
}

cpu::AttentionPlan plan_of(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& mask, bool causal,
                           std::optional<double> scale) {
  const Dims lead = lead_of(q), shared = lead_of(k);
  cpu::AttentionPlan p;
  p.dtype = q.dtype();
  p.batch = checked_numel(lead);
  p.group = q.dim() >= 3 ? q.size(-3) / k.size(-3) : 1;
  p.queries = q.size(-2), p.keys = k.size(-2), p.width = q.size(-1), p.value_width = v.size(-1);
  p.scale = scale_of(q, scale);
  p.causal = causal;
  p.query = operand_of(q, lead), p.key = operand_of(k, shared), p.value = operand_of(v, shared);
  if (mask.defined()) {
    const Tensor whole = expand(mask, joined(lead, p.queries, p.keys), false);
    p.mask = {whole.data_ptr(), whole.dtype(), matrix_starts(whole, lead), whole.stride(-2),
              whole.stride(-1)};
  }
  return p;
}

// --- in tiles on devices

DeviceAttention::Operand device_operand(const Tensor& t, IntList lead) {
  DeviceAttention::Operand o{t.data_ptr(), {}, t.stride(-2)};
  const size_t own = static_cast<size_t>(t.dim()) - 2, missing = lead.size() - own;
  for (size_t d = missing; d < lead.size(); ++d)
    o.strides[d] = t->sizes[d - missing] == 1 ? 0 : t->strides[d - missing];
  return o;
}

// Nothing where the device has no tiles for these operands. Rows must be dense.
std::optional<DeviceAttention> device_plan(const Tensor& q, const Tensor& k, const Tensor& v,
                                           const Tensor& mask, bool causal, double scale, const Tensor& out,
                                           const Tensor& logsumexp) {
  const Dims lead = lead_of(q), shared = lead_of(k);
  if (lead.size() > DeviceAttention::kMaxLead) return std::nullopt;
  DeviceAttention p;
  p.dtype = q.dtype();
  p.lead_rank = static_cast<int>(lead.size());
  std::copy(lead.begin(), lead.end(), p.lead);
  p.group = q.dim() >= 3 ? q.size(-3) / k.size(-3) : 1;
  p.queries = q.size(-2), p.keys = k.size(-2), p.width = q.size(-1), p.value_width = v.size(-1);
  p.scale = scale, p.causal = causal;
  p.query = device_operand(q, lead), p.out = device_operand(out, lead);
  p.key = device_operand(k, shared), p.value = device_operand(v, shared);
  p.logsumexp = logsumexp.data_ptr();
  if (!mask.defined()) return p;
  const Tensor whole = expand(mask, joined(lead, p.queries, p.keys), false);
  p.mask = device_operand(whole, lead);
  p.mask_column = whole.stride(-1), p.mask_dtype = whole.dtype();
  return p;
}

bool attention_in_device_tiles(const Tensor& query, const Tensor& key, const Tensor& value,
                               const Tensor& mask, bool causal, double scale, const Tensor& out,
                               const Tensor& logsumexp) {
  const DeviceLayers* layers = device_layers(out);
  if (!layers->attention) return false;
  const Tensor q = with_dense_rows(query), k = with_dense_rows(key), v = with_dense_rows(value);
  const auto plan = device_plan(q, k, v, mask, causal, scale, out, logsumexp);
  return plan && layers->attention(out.device().index(), *plan);
}

// As above, with the gradients of query, key and value.
bool gradients_in_device_tiles(const Tensor& grad, const Tensor& query, const Tensor& key,
                               const Tensor& value, const Tensor& out, const Tensor& logsumexp,
                               const Tensor& mask, bool causal, double scale,
                               const std::array<Tensor, 3>& results) {
  const DeviceLayers* layers = device_layers(grad);
  if (!layers->attention_backward) return false;
  const Tensor q = with_dense_rows(query), k = with_dense_rows(key), v = with_dense_rows(value),
               g = with_dense_rows(grad), x = with_dense_rows(out);
  const auto plan = device_plan(q, k, v, mask, causal, scale, x, logsumexp);
  if (!plan) return false;
  const Dims lead = lead_of(query), shared = lead_of(key);
  return layers->attention_backward(grad.device().index(), *plan,
                                    {device_operand(g, lead), device_operand(results[0], lead),
                                     device_operand(results[1], shared), device_operand(results[2], shared)});
}

std::tuple<Tensor, Tensor> flash_attention_kernel(const Call&, const Tensor& query, const Tensor& key,
                                                  const Tensor& value, double dropout_p, bool causal,
                                                  const Tensor& mask, std::optional<double> scale) {
  check_attention(query, key, value, mask, false);
  RL_CHECK(dropout_p == 0,
           "_scaled_dot_product_flash_attention_for_cpu: Currently do not support dropout > 0, got ",
           dropout_p);
  RL_CHECK(tiled(query, key, value, mask, true),
           "_scaled_dot_product_flash_attention_for_cpu: shapes do not fit: ", describe(query), ", ",
           describe(key), " and ", describe(value));
  const Dims lead = lead_of(query);
  Tensor out =
      empty_as(query, joined(lead, query.size(-2), value.size(-1)));  // PyTorch's layout: the query's
  Tensor logsumexp =
      empty_tensor(joined(lead, query.size(-2), -1), compute_dtype(query.dtype()), query.device());
  if (device_layers(out) &&
      !attention_in_device_tiles(query, key, value, mask, causal, scale_of(query, scale), out, logsumexp))
    device_attention(query, key, value, mask, causal, scale_of(query, scale), out, logsumexp);
  if (!out.is_cpu()) return {out, logsumexp};
  const Tensor q = with_dense_rows(query), k = with_dense_rows(key), v = with_dense_rows(value);
  cpu::AttentionPlan plan = plan_of(q, k, v, mask, causal, scale);
  plan.out = operand_of(out, lead);
  plan.logsumexp = logsumexp.data_ptr();
  cpu::attention(plan);
  return {out, logsumexp};
}

std::tuple<Tensor, Tensor, Tensor> flash_attention_backward_kernel(const Call&, const Tensor& grad,
                                                                   const Tensor& query, const Tensor& key,
                                                                   const Tensor& value, const Tensor& out,
                                                                   const Tensor& logsumexp, double,
                                                                   bool causal, const Tensor& mask,
                                                                   std::optional<double> scale) {
  const Dims lead = lead_of(query), shared = lead_of(key);
  Tensor dq = empty_as(query, query.sizes()), dk = empty_as(key, key.sizes()),
         dv = empty_as(value, value.sizes());
  if (device_layers(grad)) {
    if (gradients_in_device_tiles(grad, query, key, value, out, logsumexp, mask, causal,
                                  scale_of(query, scale), std::array<Tensor, 3>{dq, dk, dv}))
      return {dq, dk, dv};
    Grads g = device_gradients(grad, query, key, value, out, logsumexp, mask, causal, scale_of(query, scale));
    return {g[0], g[1], g[2]};
  }
  if (!grad.is_cpu()) return {dq, dk, dv};
  const Tensor q = with_dense_rows(query), k = with_dense_rows(key), v = with_dense_rows(value),
               g = with_dense_rows(grad);
  cpu::AttentionPlan plan = plan_of(q, k, v, mask, causal, scale);
  plan.out = operand_of(out, lead);
  plan.logsumexp = logsumexp.data_ptr();
  cpu::attention_backward(
      plan, {operand_of(g, lead), operand_of(dq, lead), operand_of(dk, shared), operand_of(dv, shared)});
  return {dq, dk, dv};
}

Tensor attention_body(const Call&, const Tensor& query, const Tensor& key, const Tensor& value,
                      const Tensor& mask, double dropout_p, bool causal, std::optional<double> scale,
                      bool grouped) {
  check_attention(query, key, value, mask, causal);
  if (dropout_p == 0 && tiled(query, key, value, mask, grouped))
    return std::get<0>(flash_attention(query, key, value, 0.0, causal, mask, scale));
  const bool repeat = grouped && query.dim() >= 3;
  const Tensor k = repeat ? repeat_heads(key, query) : key, v = repeat ? repeat_heads(value, query) : value;
  return attention_twin(query, k, v, mask, dropout_p, causal, scale_of(query, scale));
}

}  // namespace

void register_attention_operators(Table& t) {
  t.composite(scaled_dot_product_attention,
              "nn::scaled_dot_product_attention(Tensor query, Tensor key, Tensor value, Tensor? "
              "attn_mask=None, float dropout_p=0.0, "
              "bool is_causal=False, *, float? scale=None, bool enable_gqa=False) -> Tensor",
              attention_body)
      .doc(
          "softmax(query @ key.T * scale + mask) @ value. Shapes: [..., L, E], [..., S, E], [..., S, Ev] "
          "give [..., L, Ev].");
  t.op(flash_attention,
       "_scaled_dot_product_flash_attention_for_cpu(Tensor query, Tensor key, Tensor value, float "
       "dropout_p=0.0, bool is_causal=False, *, Tensor? attn_mask=None, float? scale=None) -> (Tensor "
       "output, "
       "Tensor logsumexp)",
       flash_attention_kernel)
      .function_only()
      .doc("Attention computed in tiles: the scores of all queries and keys never exist at once.")
      .derivative([](Grad g, In<0> q, In<1> k, In<2> v, Out<0> out, Out<1> logsumexp, Attr<4, bool> causal,
                     In<5> mask, Attr<6, std::optional<double>> scale) {
        if (!g.defined()) return Grads{Tensor(), Tensor(), Tensor(), Tensor()};
        if (derivatives_wanted() || dispatch_state.level)
          return gradients_twin(g, q, k, v, mask, causal, scale_of(q, *scale));
        auto [dq, dk, dv] = flash_attention_backward(g, q, k, v, out, logsumexp, 0.0, causal, mask, scale);
        return Grads{dq, dk, dv, Tensor()};
      });
  t.op(flash_attention_backward,
       "_scaled_dot_product_flash_attention_for_cpu_backward(Tensor grad_out, Tensor query, Tensor key, "
       "Tensor "
       "value, Tensor out, Tensor logsumexp, float dropout_p, bool is_causal, *, Tensor? attn_mask=None, "
       "float? "
       "scale=None) -> (Tensor grad_query, Tensor grad_key, Tensor grad_value)",
       flash_attention_backward_kernel)
      .function_only()
      .doc("Gradients of attention in tiles, whose scores are computed again.")
      .not_differentiable("the rule of the forward operator uses its twin when gradients are recorded");
}

}  // namespace rushlight
