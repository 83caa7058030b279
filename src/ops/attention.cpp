#include "ops/attention.h"

#include <cmath>
#include <limits>

#include "dispatch/table.h"
#include "ops/copy.h"
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

Tensor attention_body(const Call&, const Tensor& query, const Tensor& key, const Tensor& value,
                      const Tensor& given_mask, double dropout_p, bool causal, std::optional<double> scale,
                      bool grouped) {
  check_attention(query, key, value, given_mask, causal);
  const Tensor k = grouped && query.dim() >= 3 ? repeat_heads(key, query) : key,
               v = grouped && query.dim() >= 3 ? repeat_heads(value, query) : value;
  const double factor = scale.value_or(1 / std::sqrt(static_cast<double>(query->sizes.back())));
  Tensor scores = matmul(query * Scalar(factor), transpose(k, -2, -1));
  Tensor mask = given_mask;
  if (causal) mask = tril(new_ones(query, IntList{query.size(-2), key.size(-2)}, DType::Bool), 0);
  if (mask.defined() && is_bool(mask.dtype())) mask = minus_infinity_where_not(mask, query.dtype());
  if (mask.defined()) scores = scores + mask;
  Tensor p = softmax_or_zero(scores, given_mask.defined());
  if (p.dtype() != v.dtype()) p = to_dtype(p, v.dtype());
  if (dropout_p > 0) p = dropout(p, dropout_p, true);
  return matmul(p, v);
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
}

}  // namespace rushlight
