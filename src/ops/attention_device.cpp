// Attention on devices: in tiles on the chip where the device's library has them for these operands, else all
// keys for as many queries at a time as keep their scores within a bound.
#include <algorithm>

#include "core/device_math.h"
#include "core/generator.h"
#include "device/layers.h"
#include "dispatch/table.h"
#include "ops/attention_parts.h"
#include "ops/copy.h"
#include "ops/device_loops.h"
#include "ops/factory.h"
#include "ops/index.h"
#include "ops/matmul.h"
#include "ops/operators.h"
#include "ops/reduction.h"
#include "ops/register.h"
#include "ops/view.h"

namespace rushlight {
namespace {

using namespace ops;
using namespace attention;

// What dropout makes of the weights of `count` queries from `first` on; undefined: it leaves them.
Tensor dropout_factors(const Operands& a, const Dropout& dropout, int64_t first, int64_t count) {
  if (dropout.p == 0) return Tensor();
  const Dims lead = lead_of(a.query);
  const DeviceDropoutFactors which{dropout, checked_numel(lead), a.query.size(-2), a.key.size(-2), first,
                                   count};
  const DType dtype = compute_dtype(a.query.dtype());
  Tensor factors = empty_tensor(joined(lead, count, which.keys), dtype, a.query.device());
  device_layers(factors)->dropout_factors(factors.device().index(), dtype, which, factors.data_ptr());
  return factors;
}

// --- so many queries at a time

Tensor wide(const Tensor& t) { return is_reduced_float(t.dtype()) ? to_dtype(t, DType::Float32) : t; }

class Scores {
 public:
  Scores(const Operands& a, const Dropout& dropout)
      : a_(a),
        dropout_(dropout),
        grouped_(a.query.dim() >= 3),
        query(wide(a.query)),
        key(wide(grouped_ ? repeat_heads(a.key, a.query) : a.key)),
        value(wide(grouped_ ? repeat_heads(a.value, a.query) : a.value)) {}

  // Calls f(first query, count) for all of them.
  template <class F>
  void for_queries(F&& f) const {
    constexpr int64_t kMost = int64_t{1} << 26;  // bytes
    const int64_t queries = query.size(-2), keys = key.size(-2);
    const int64_t one =
        query.numel() / (queries * query.size(-1)) * keys * static_cast<int64_t>(element_size(query.dtype()));
    const int64_t step = std::clamp<int64_t>(kMost / std::max<int64_t>(one, 1), 1, queries);
    for (int64_t first = 0; first < queries; first += step) f(first, std::min(step, queries - first));
  }

  // Those rows of a mask or of its gradient that belong to some queries.
  static Tensor rows_of(const Tensor& mask, int64_t first, int64_t count) {
    return mask.dim() >= 2 && mask.size(-2) > 1 ? narrow(mask, -2, first, count) : mask;
  }
  Tensor operator()(int64_t first, int64_t count) const {
    const Tensor scores = matmul(narrow(query, -2, first, count) * Scalar(a_.scale), transpose(key, -2, -1));
    if (a_.causal) {
      const Tensor seen = tril(new_ones(query, IntList{count, key.size(-2)}, DType::Bool), first);
      return scores + minus_infinity_where_not(seen, scores.dtype());
    }
    if (!a_.mask.defined()) return scores;
    const Tensor part = rows_of(a_.mask, first, count);
    return scores + (is_bool(part.dtype()) ? minus_infinity_where_not(part, scores.dtype()) : part);
  }
  // exp(scores - logsumexp), zero for queries that look at nothing.
  Tensor probabilities(int64_t first, int64_t count, const Tensor& logsumexp) const {
    const Tensor shift = unsqueeze(narrow(logsumexp, -1, first, count), -1);
    return exp((*this)(first, count) - rushlight::masked_fill(shift, isneginf(shift), Scalar(0)));
  }
  Tensor factors(int64_t first, int64_t count) const { return dropout_factors(a_, dropout_, first, count); }
  // The gradient of heads that may have been repeated.
  Tensor narrowed(const Tensor& t, const Tensor& like) const {
    return to_dtype(grouped_ ? sum_heads(t, like) : t, like.dtype());
  }

 private:
  const Operands& a_;
  const Dropout& dropout_;
  const bool grouped_;

 public:
  const Tensor query, key, value;
};

Tensor times(const Tensor& t, const Tensor& factors) { return factors.defined() ? t * factors : t; }

void run_in_parts(const Operands& a, const Dropout& dropout, const Tensor& out, const Tensor& logsumexp) {
  const Scores scores(a, dropout);
  const Tensor total = logsumexp.defined() ? logsumexp
                                           : empty_tensor(joined(lead_of(a.query), a.query.size(-2), -1),
                                                          compute_dtype(a.query.dtype()), a.query.device());
  scores.for_queries([&](int64_t first, int64_t count) {
    loops::copy(narrow(total, -1, first, count), ops::logsumexp(scores(first, count), IntList{-1}, false));
    const Tensor p = times(scores.probabilities(first, count, total), scores.factors(first, count));
    loops::copy(narrow(out, -2, first, count), matmul(p, scores.value));
  });
}

std::array<Tensor, 4> gradients_in_parts(const Tensor& grad, const Operands& a, const Dropout& dropout,
                                         const Tensor& out, const Tensor& logsumexp, bool mask_wanted) {
  const Scores scores(a, dropout);
  const auto zeros = [&](const Tensor& like) { return new_zeros(scores.query, like.sizes(), std::nullopt); };
  const Tensor g = wide(grad), dq = zeros(scores.query), dk = zeros(scores.key), dv = zeros(scores.value),
               dm = mask_wanted ? zeros(a.mask) : Tensor();
  const Tensor along = sum_dim(g * wide(out), OptIntList(IntList{-1}), true, std::nullopt);
  scores.for_queries([&](int64_t first, int64_t count) {
    auto part = [&](const Tensor& t) { return narrow(t, -2, first, count); };
    const Tensor p = scores.probabilities(first, count, logsumexp), factors = scores.factors(first, count);
    const Tensor flow = p * (times(matmul(part(g), transpose(scores.value, -2, -1)), factors) - part(along));
    const Tensor products = flow * Scalar(a.scale);
    loops::copy(part(dq), matmul(products, scores.key));
    add.inplace(dk, matmul(transpose(products, -2, -1), part(scores.query)), Scalar(1));
    add.inplace(dv, matmul(transpose(times(p, factors), -2, -1), part(g)), Scalar(1));
    if (!mask_wanted) return;
    const Tensor rows = Scores::rows_of(dm, first, count);
    add.inplace(rows, sum_to_size(flow, rows.sizes()), Scalar(1));
  });
  return {to_dtype(dq, a.query.dtype()), scores.narrowed(dk, a.key), scores.narrowed(dv, a.value),
          mask_wanted ? to_dtype(dm, a.mask.dtype()) : Tensor()};
}

// --- in tiles

DeviceAttention::Operand operand_of(const Tensor& t, IntList lead) {
  DeviceAttention::Operand o{t.data_ptr(), {}, t.stride(-2)};
  const size_t own = static_cast<size_t>(t.dim()) - 2, missing = lead.size() - own;
  for (size_t d = missing; d < lead.size(); ++d)
    o.strides[d] = t->sizes[d - missing] == 1 ? 0 : t->strides[d - missing];
  return o;
}

Operands dense(const Operands& a) {
  return {
      with_dense_rows(a.query), with_dense_rows(a.key), with_dense_rows(a.value), a.mask, a.causal, a.scale};
}

// Nothing where the device has no tiles for these operands. Rows must be dense.
std::optional<DeviceAttention> plan_of(const Operands& a, const Dropout& dropout, const Tensor& out,
                                       const Tensor& logsumexp) {
  const auto& [q, k, v, mask, causal, scale] = a;
  const Dims lead = lead_of(q), shared = lead_of(k);
  if (lead.size() > DeviceAttention::kMaxLead) return std::nullopt;
  DeviceAttention p;
  p.dtype = q.dtype();
  p.lead_rank = static_cast<int>(lead.size());
  std::copy(lead.begin(), lead.end(), p.lead);
  p.group = q.dim() >= 3 ? q.size(-3) / k.size(-3) : 1;
  p.queries = q.size(-2), p.keys = k.size(-2), p.width = q.size(-1), p.value_width = v.size(-1);
  p.scale = scale, p.causal = causal, p.dropout = dropout;
  p.query = operand_of(q, lead), p.out = operand_of(out, lead);
  p.key = operand_of(k, shared), p.value = operand_of(v, shared);
  p.logsumexp = logsumexp.defined() ? logsumexp.data_ptr() : nullptr;
  if (!mask.defined()) return p;
  const Tensor whole = expand(mask, joined(lead, p.queries, p.keys), false);
  p.mask = operand_of(whole, lead);
  p.mask_column = whole.stride(-1), p.mask_dtype = whole.dtype();
  return p;
}

// As gradients_on_device; nothing where there are no tiles.
std::optional<std::array<Tensor, 4>> gradients_in_tiles(const Tensor& grad, const Operands& given,
                                                        const Dropout& dropout, const Tensor& out,
                                                        const Tensor& logsumexp, bool mask_wanted) {
  const DeviceLayers* layers = device_layers(grad);
  const Operands a = dense(given);
  const Tensor g = with_dense_rows(grad), x = with_dense_rows(out), sums = contiguous(logsumexp);
  const auto plan = plan_of(a, dropout, x, sums);
  if (!layers->attention_backward || !plan) return std::nullopt;
  const Dims lead = lead_of(a.query), shared = lead_of(a.key);
  std::array<Tensor, 4> results{empty_as(given.query, a.query.sizes()), empty_as(given.key, a.key.sizes()),
                                empty_as(given.value, a.value.sizes()), Tensor()};
  DeviceAttentionGradients gradients{operand_of(g, lead), operand_of(results[0], lead),
                                     operand_of(results[1], shared), operand_of(results[2], shared)};
  if (mask_wanted) {
    gradients.mask_adds = a.mask.numel() < plan->batch() * plan->queries * plan->keys;
    if (gradients.mask_adds && device_math().deterministic_algorithms) return std::nullopt;
    const DType dtype = compute_dtype(a.query.dtype());
    results[3] = gradients.mask_adds || a.causal ? new_zeros(a.mask, a.mask.sizes(), dtype)
                                                 : empty_tensor(a.mask.sizes(), dtype, a.mask.device());
    const Tensor whole = expand(results[3], joined(lead, plan->queries, plan->keys), false);
    gradients.mask = operand_of(whole, lead), gradients.mask_column = whole.stride(-1);
  }
  if (!layers->attention_backward(grad.device().index(), *plan, gradients)) return std::nullopt;
  if (mask_wanted) results[3] = to_dtype(results[3], a.mask.dtype());
  return results;
}

// --- dropout

// Where in the generator's stream the numbers of the weights begin: on the CPU, or on the device where a
// graph is recorded.
struct Place {
  Tensor seed, offset;
};

Place take_place(const Operands& a, double p) {
  const Device device = a.query.device();
  const Device at = device.is_meta() ? device : Device();
  const Place none{empty_tensor(IntList{}, DType::Int64, at), empty_tensor(IntList{}, DType::Int64, at)};
  if (device.is_meta()) return none;
  const int64_t weights = p > 0 ? checked_numel(lead_of(a.query)) * a.query.size(-2) * a.key.size(-2) : 0;
  const Generator::Place place = device_generator(device.index()).take(static_cast<uint64_t>(weights));
  if (!place.base) {
    *none.seed.data<int64_t>() = static_cast<int64_t>(place.seed);
    *none.offset.data<int64_t>() = static_cast<int64_t>(place.offset);
    return none;
  }
  const Place there{empty_tensor(IntList{}, DType::Int64, device),
                    empty_tensor(IntList{}, DType::Int64, device)};
  device_layers(a.query)->random_place(device.index(), place.base, place.offset, there.seed.data<int64_t>(),
                                       there.offset.data<int64_t>());
  return there;
}

Dropout dropout_at(double p, const Tensor& seed, const Tensor& offset) {
  Dropout d{p};
  if (p == 0) return d;
  const int64_t *seed_at = seed.data<int64_t>(), *offset_at = offset.data<int64_t>();
  if (seed.is_cpu())
    d.seed = static_cast<uint64_t>(*seed_at), d.offset = static_cast<uint64_t>(*offset_at);
  else
    d.seed_at = seed_at, d.offset_at = offset_at;
  return d;
}

// --- operators

using Four = std::tuple<Tensor, Tensor, Tensor, Tensor>;

void check_dropout(double p) {
  RL_CHECK(p >= 0 && p <= 1, "dropout probability has to be between 0 and 1, but got ", p);
}

Four efficient_attention_kernel(const Call&, const Tensor& query, const Tensor& key, const Tensor& value,
                                const Tensor& mask, bool wants_logsumexp, double dropout_p, bool causal,
                                std::optional<double> scale) {
  const Operands a{query, key, value, mask, causal, scale_of(query, scale)};
  check_tiled("_scaled_dot_product_efficient_attention", a);
  check_dropout(dropout_p);
  RL_CHECK_AS(NotImplemented, query.device().is_meta() || device_layers(query),
              "_scaled_dot_product_efficient_attention is for devices; on the CPU call "
              "scaled_dot_product_attention");
  const Dims lead = lead_of(query);
  Tensor out = empty_as(query, joined(lead, query.size(-2), value.size(-1))), logsumexp;
  logsumexp = empty_tensor(joined(lead, wants_logsumexp ? query.size(-2) : 0, -1),
                           compute_dtype(query.dtype()), query.device());
  const Place place = take_place(a, dropout_p);
  if (!query.device().is_meta())
    run_on_device(a, dropout_at(dropout_p, place.seed, place.offset), out,
                  wants_logsumexp ? logsumexp : Tensor());
  return {out, logsumexp, place.seed, place.offset};
}

Four efficient_attention_backward_kernel(const Call&, const Tensor& grad, const Tensor& query,
                                         const Tensor& key, const Tensor& value, const Tensor& mask,
                                         const Tensor& out, const Tensor& logsumexp, const Tensor& seed,
                                         const Tensor& offset, double dropout_p, std::span<const bool> wanted,
                                         bool causal, std::optional<double> scale) {
  const Operands a{query, key, value, mask, causal, scale_of(query, scale)};
  constexpr const char* kWho = "_scaled_dot_product_efficient_attention_backward";
  check_tiled(kWho, a);
  check_dropout(dropout_p);
  RL_CHECK(logsumexp.dim() > 0 && logsumexp.size(-1) == query.size(-2), kWho, ": logsumexp was not computed");
  check_results(kWho, a, grad, out, logsumexp);
  for (const Tensor& place : {seed, offset})
    RL_CHECK(place.dtype() == DType::Int64 && place.numel() == 1, kWho,
             ": expected philox_seed and philox_offset to be one int64 each, got ", describe(place));
  const bool mask_wanted = wanted[3] && mask.defined();
  if (query.device().is_meta())
    return {empty_as(query, query.sizes()), empty_as(key, key.sizes()), empty_as(value, value.sizes()),
            mask_wanted ? empty_like_tensor(mask, mask.dtype()) : Tensor()};
  RL_CHECK_AS(NotImplemented, device_layers(grad), kWho, " is for devices");
  auto [dq, dk, dv, dm] =
      gradients_on_device(grad, a, dropout_at(dropout_p, seed, offset), out, logsumexp, mask_wanted);
  return {dq, dk, dv, dm};
}

}  // namespace

void attention::run_on_device(const Operands& given, const Dropout& dropout, const Tensor& out,
                              const Tensor& logsumexp) {
  const DeviceLayers* layers = device_layers(out);
  const Operands a = dense(given);
  const auto plan = plan_of(a, dropout, out, logsumexp);
  if (!plan || !layers->attention || !layers->attention(out.device().index(), *plan))
    run_in_parts(given, dropout, out, logsumexp);
}

std::array<Tensor, 4> attention::gradients_on_device(const Tensor& grad, const Operands& a,
                                                     const Dropout& dropout, const Tensor& out,
                                                     const Tensor& logsumexp, bool mask_wanted) {
  const auto results = gradients_in_tiles(grad, a, dropout, out, logsumexp, mask_wanted);
  return results ? *results : gradients_in_parts(grad, a, dropout, out, logsumexp, mask_wanted);
}

void register_device_attention_operators(Table& t) {
  t.op(efficient_attention,
       "_scaled_dot_product_efficient_attention(Tensor query, Tensor key, Tensor value, Tensor? attn_bias, "
       "bool compute_log_sumexp, float dropout_p=0.0, bool is_causal=False, *, float? scale=None) -> (Tensor "
       "output, Tensor log_sumexp, Tensor philox_seed, Tensor philox_offset)",
       efficient_attention_kernel)
      .function_only()
      .on_devices()
      .doc("Attention in tiles on a device, with dropout that is drawn where the weights are.")
      .family(Family::Attention)
      .derivative([](Grad g, In<0> q, In<1> k, In<2> v, In<3> mask, Out<0> out, Out<1> logsumexp, Out<2> seed,
                     Out<3> offset, Attr<5, double> p, Attr<6, bool> causal,
                     Attr<7, std::optional<double>> scale, Needs need) {
        if (!g.defined()) return Grads{Tensor(), Tensor(), Tensor(), Tensor()};
        if (derivatives_wanted() || dispatch_state.level) {
          const Operands a{q, k, v, mask, causal, scale_of(q, *scale)};
          const Tensor factors = dropout_factors(a, dropout_at(p, seed, offset), 0, q.size(-2));
          return gradients_reference(g, a, factors.defined() ? to_dtype(factors, q.dtype()) : factors,
                                     need[3]);
        }
        const bool wanted[] = {need[0], need[1], need[2], need[3]};
        auto [dq, dk, dv, dm] = efficient_attention_backward(g, q, k, v, mask, out, logsumexp, seed, offset,
                                                             p, wanted, causal, scale);
        return Grads{dq, dk, dv, dm};
      });
  t.op(efficient_attention_backward,
       "_scaled_dot_product_efficient_attention_backward(Tensor grad_out_, Tensor query, Tensor key, Tensor "
       "value, Tensor attn_bias, Tensor out, Tensor logsumexp, Tensor philox_seed, Tensor philox_offset, "
       "float dropout_p, bool[4] grad_input_mask, bool is_causal=False, *, float? scale=None) -> (Tensor, "
       "Tensor, Tensor, Tensor)",
       efficient_attention_backward_kernel)
      .function_only()
      .on_devices()
      .doc("Gradients of attention in tiles on a device: the weights are computed and drawn again.")
      .family(Family::Gradient)
      .not_differentiable(
          "the rule of the forward operator uses its reference implementation when gradients are recorded");
}

}  // namespace rushlight
