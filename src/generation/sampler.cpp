#include "generation/sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "ops/copy.h"
#include "ops/random.h"
#include "ops/scan.h"
#include "ops/softmax.h"
#include "ops/sort.h"

namespace rushlight::generation {
namespace {

constexpr float kNever = -std::numeric_limits<float>::infinity();

std::span<float> values_of(const Tensor& t) { return {t.data<float>(), static_cast<size_t>(t.numel())}; }

}  // namespace

void Sampling::check() const {
  RL_CHECK_VALUE(std::isfinite(temperature) && temperature >= 0,
                 "the temperature must be zero or above, not ", temperature);
  RL_CHECK_VALUE(top_k >= 0, "top-k must be zero or above, not ", top_k);
  RL_CHECK_VALUE(top_p > 0 && top_p <= 1, "top-p must be above zero and not above one, not ", top_p);
  RL_CHECK_VALUE(std::isfinite(repetition_penalty) && repetition_penalty > 0,
                 "the repetition penalty must be above zero, not ", repetition_penalty);
  for (const double penalty : {presence_penalty, frequency_penalty})
    RL_CHECK_VALUE(std::isfinite(penalty), "a penalty must be a finite number, not ", penalty);
  for (const auto& [token, value] : bias)
    RL_CHECK_VALUE(std::isfinite(value), "the bias of the token ", token, " must be a finite number, not ",
                   value);
}

Sampler::Sampler(const Sampling& sampling)
    : sampling_(sampling), generator_(make_ref<Generator>(Device{}, sampling.seed)) {
  sampling_.check();
}

int64_t Sampler::next(const Tensor& logits, std::span<const int64_t> seen, size_t prompt) {
  const GradMode no_grad(false);
  Tensor scores = ops::to_copy(logits, DType::Float32, std::nullopt, MemoryFormat::Contiguous);
  const std::span<float> values = values_of(scores);
  RL_CHECK(!values.empty() && std::ranges::none_of(values, [](float v) { return std::isnan(v); }),
           "the model gave no numbers for the next token");
  penalize(values, seen);
  discourage(values, seen.subspan(prompt));
  for (const auto& [token, value] : sampling_.bias)
    values[static_cast<size_t>(token)] += static_cast<float>(value);
  if (sampling_.temperature == 0) return std::ranges::max_element(values) - values.begin();
  const auto temperature = static_cast<float>(sampling_.temperature);
  for (float& v : values) v /= temperature;
  if (sampling_.top_k > 0) keep_largest(values);
  if (sampling_.top_p < 1) keep_nucleus(scores);
  const Tensor probabilities = ops::softmax(scores, -1, std::nullopt);
  return *ops::multinomial(probabilities, 1, false, generator_.get()).data<int64_t>();
}

void Sampler::penalize(std::span<float> scores, std::span<const int64_t> seen) const {
  if (sampling_.repetition_penalty == 1) return;
  const auto penalty = static_cast<float>(sampling_.repetition_penalty);
  std::vector<int64_t> once(seen.begin(), seen.end());
  std::ranges::sort(once);
  once.erase(std::unique(once.begin(), once.end()), once.end());
  for (const int64_t id : once) {
    float& v = scores[static_cast<size_t>(id)];
    v = v < 0 ? v * penalty : v / penalty;
  }
}

void Sampler::discourage(std::span<float> scores, std::span<const int64_t> made) const {
  if (sampling_.presence_penalty == 0 && sampling_.frequency_penalty == 0) return;
  std::vector<int64_t> sorted(made.begin(), made.end());
  std::ranges::sort(sorted);
  for (auto at = sorted.begin(); at != sorted.end();) {
    const auto end = std::upper_bound(at, sorted.end(), *at);
    const double taken =
        sampling_.presence_penalty + sampling_.frequency_penalty * static_cast<double>(end - at);
    scores[static_cast<size_t>(*at)] -= static_cast<float>(taken);
    at = end;
  }
}

void Sampler::keep_largest(std::span<float> scores) const {
  const auto k = static_cast<size_t>(sampling_.top_k);
  if (k >= scores.size()) return;
  std::vector<float> sorted(scores.begin(), scores.end());
  std::ranges::nth_element(sorted, sorted.begin() + static_cast<ptrdiff_t>(k - 1), std::greater<>());
  const float least = sorted[k - 1];
  for (float& v : scores)
    if (v < least) v = kNever;
}

// The fewest tokens whose probabilities sum to top_p; of the rest the sum from the least one on is not above
// 1 - top_p.
void Sampler::keep_nucleus(Tensor& scores) const {
  const auto [sorted, order] = ops::sort(scores, -1, false);
  const Tensor sums = ops::cumsum(ops::softmax(sorted, -1, std::nullopt), -1, std::nullopt);
  const auto rest = static_cast<float>(1 - sampling_.top_p);
  const std::span<float> values = values_of(scores), sum = values_of(sums);
  for (size_t i = 0; i + 1 < sum.size(); ++i)
    if (sum[i] <= rest) values[static_cast<size_t>(order.data<int64_t>()[i])] = kNever;
}

TokenChance chance_of(const Tensor& logits, int64_t token, int64_t count) {
  const GradMode no_grad(false);
  const Tensor scores = ops::to_copy(logits, DType::Float32, std::nullopt, MemoryFormat::Contiguous);
  const Tensor logarithms = ops::log_softmax(scores, -1, std::nullopt);
  const std::span<const float> values = values_of(logarithms);
  std::vector<int64_t> order(values.size());
  std::iota(order.begin(), order.end(), 0);
  const auto end = order.begin() + std::min<int64_t>(count, std::ssize(order));
  std::partial_sort(order.begin(), end, order.end(), [&](int64_t a, int64_t b) {
    const float x = values[static_cast<size_t>(a)], y = values[static_cast<size_t>(b)];
    return x != y ? x > y : a < b;
  });
  const auto of = [&](int64_t id) { return Likelihood{id, values[static_cast<size_t>(id)]}; };
  TokenChance chance{of(token), {}};
  std::transform(order.begin(), end, std::back_inserter(chance.top), of);
  return chance;
}

}  // namespace rushlight::generation
