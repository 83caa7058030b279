// Distributions sampled by rejection or search: each value takes an unpredictable number of draws.
#include <algorithm>
#include <limits>
#include <vector>

#include "cpu/random_draws.h"

namespace rushlight::cpu {

namespace {

// Transformed rejection (Hoermann, 1993) for large rates, products of uniforms for small ones.
int64_t poisson(double rate, Draws& draws) {
  RL_CHECK(rate >= 0, "invalid Poisson rate, expected rate to be non-negative");
  if (rate == 0) return 0;
  if (rate < 10) {
    const double limit = std::exp(-rate);
    int64_t k = 0;
    for (double product = draws.uniform(); product > limit; product *= draws.uniform()) k++;
    return k;
  }
  const double root = std::sqrt(rate), log_rate = std::log(rate);
  const double b = 0.931 + 2.53 * root, a = -0.059 + 0.02483 * b;
  const double inverse_alpha = 1.1239 + 1.1328 / (b - 3.4), v_r = 0.9277 - 3.6224 / (b - 2);
  while (true) {
    const double u = draws.uniform() - 0.5, v = draws.uniform(), us = 0.5 - std::fabs(u);
    const auto k = static_cast<int64_t>(std::floor((2 * a / us + b) * u + rate + 0.43));
    if (us >= 0.07 && v <= v_r) return k;
    if (k < 0 || (us < 0.013 && v > us)) continue;
    if (std::log(v) + std::log(inverse_alpha) - std::log(a / (us * us) + b) <=
        -rate + static_cast<double>(k) * log_rate - std::lgamma(static_cast<double>(k) + 1))
      return k;
  }
}

// log k! less Stirling's approximation.
double stirling_tail(double k) {
  static constexpr double kTail[] = {
      0.0810614667953272, 0.0413406959554092, 0.0276779256849983, 0.02079067210376509, 0.0166446911898211,
      0.0138761288230707, 0.0118967099458917, 0.0104112652619720, 0.00925546218271273, 0.00833056343336287};
  if (k <= 9) return kTail[static_cast<int>(k)];
  const double square = (k + 1) * (k + 1);
  return (1.0 / 12 - (1.0 / 360 - 1.0 / 1260 / square) / square) / (k + 1);
}

// Hoermann's BTRS for count * p >= 10.
double binomial_by_rejection(double count, double p, Draws& draws) {
  const double deviation = std::sqrt(count * p * (1 - p));
  const double b = 1.15 + 2.53 * deviation, a = -0.0873 + 0.0248 * b + 0.01 * p, c = count * p + 0.5;
  const double v_r = 0.92 - 4.2 / b, r = p / (1 - p), alpha = (2.83 + 5.1 / b) * deviation;
  const double m = std::floor((count + 1) * p);
  while (true) {
    const double u = draws.uniform() - 0.5;
    double v = draws.uniform();
    const double us = 0.5 - std::fabs(u), k = std::floor((2 * a / us + b) * u + c);
    if (k < 0 || k > count) continue;
    if (us >= 0.07 && v <= v_r) return k;
    v = std::log(v * alpha / (a / (us * us) + b));
    const double bound = (m + 0.5) * std::log((m + 1) / (r * (count - m + 1))) +
                         (count + 1) * std::log((count - m + 1) / (count - k + 1)) +
                         (k + 0.5) * std::log(r * (count - k + 1) / (k + 1)) + stirling_tail(m) +
                         stirling_tail(count - m) - stirling_tail(k) - stirling_tail(count - k);
    if (v <= bound) return k;
  }
}

// Sums waiting times between successes.
double binomial_by_waiting(double count, double p, Draws& draws) {
  const double log_failure = std::log1p(-p);
  double time = 0, successes = 0;
  while (true) {
    time += std::ceil(std::log(draws.uniform()) / log_failure);
    if (time > count) return successes;
    successes++;
  }
}

double binomial(double count, double p, Draws& draws) {
  if (count <= 0 || p <= 0) return 0;
  if (p >= 1) return count;
  if (std::isnan(p)) return p;
  const double rarer = p <= 0.5 ? p : 1 - p;
  const double k = count * rarer >= 10 ? binomial_by_rejection(count, rarer, draws)
                                       : binomial_by_waiting(count, rarer, draws);
  return p <= 0.5 ? k : count - k;
}

// Marsaglia and Tsang (2000); the single-precision constants are part of PyTorch's stream.
template <class T>
double gamma(T alpha, Draws& draws) {
  double scale = 1;
  if (alpha < 1) {
    if (alpha == 0) return 0;
    scale *= std::pow(1 - draws.uniform(), static_cast<double>(1.0f / alpha));
    alpha += 1.0f;
  }
  const double d = alpha - 1.0f / 3.0f, c = 1.0 / std::sqrt(9.0 * d);
  while (true) {
    double x, y;
    do {
      x = draws.normal();
      y = 1.0 + c * x;
    } while (y <= 0);
    const double v = y * y * y, u = 1 - draws.uniform(), xx = x * x;
    if (u < 1.0 - 0.0331f * xx * xx) return scale * d * v;
    if (std::log(u) < 0.5 * xx + d * (1.0 - v + std::log(v))) return scale * d * v;
  }
}

}  // namespace

void draw_poisson(RandomOut out, const void* rate, Generator& g) {
  Draws draws(g);
  visit_dtype(FloatTypes{}, out.dtype, "poisson_cpu", [&](auto tag) {
    using T = decltype(tag);
    const T* next = static_cast<const T*>(rate);
    fill_each(out, TypeList<T>{}, "poisson_cpu", [&] { return poisson(convert<double>(*next++), draws); });
  });
}

void draw_binomial(RandomOut out, const void* count, const void* probability, Generator& g) {
  Draws draws(g);
  visit_dtype(TypeList<float, double>{}, out.dtype, "binomial_cpu", [&](auto tag) {
    using T = decltype(tag);
    const T *n = static_cast<const T*>(count), *p = static_cast<const T*>(probability);
    fill_each(out, TypeList<T>{}, "binomial_cpu",
              [&] { return binomial(convert<double>(*n++), convert<double>(*p++), draws); });
  });
}

void draw_gamma(RandomOut out, const void* alpha, Generator& g) {
  Draws draws(g);
  visit_dtype(TypeList<float, double>{}, out.dtype, "gamma_cpu", [&](auto tag) {
    using T = decltype(tag);
    const T* next = static_cast<const T*>(alpha);
    fill_each(out, TypeList<T>{}, "gamma_cpu", [&] {
      // Zero would be outside the support.
      return std::max(std::numeric_limits<T>::min(), static_cast<T>(gamma(*next++, draws)));
    });
  });
}

void draw_rrelu_slopes(RandomOut out, const void* input, double lower, double upper, Generator& g) {
  Draws draws(g);
  visit_dtype(TypeList<float, double, BFloat16>{}, out.dtype, "rrelu_with_noise_out_cpu", [&](auto tag) {
    using T = decltype(tag);
    using A = compute_type<T>;
    const T* next = static_cast<const T*>(input);
    const double low = static_cast<A>(lower), high = static_cast<A>(upper);
    fill_each(out, TypeList<T>{}, "rrelu_with_noise_out_cpu", [&]() -> double {
      return static_cast<A>(*next++) <= 0 ? draws.uniform() * (high - low) + low : 1;
    });
  });
}

// The running sum of weights at every step, and the least weight. What is not finite shows in the last sum.
// Not inlined: among calls the sum would lie in memory.
template <class T>
[[gnu::noinline]] static std::pair<compute_type<T>, compute_type<T>> sum_in_steps(const T* weights, int64_t n,
                                                                                  int64_t step,
                                                                                  compute_type<T>* sums) {
  compute_type<T> sum = 0, least = 0;
  for (int64_t i = 0; i < n; ++sums) {
    for (const int64_t end = std::min(n, i + step); i < end; ++i) {
      const compute_type<T> weight = weights[i];
      least = weight < least ? weight : least;
      sum += weight;
    }
    *sums = sum;
  }
  return {sum, least};
}

template <class T>
static void check_weights(const T* weights, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    const compute_type<T> weight = weights[i];
    RL_CHECK(!(weight < 0), "invalid multinomial distribution (encountering probability entry < 0)");
    RL_CHECK(std::isfinite(weight),
             "invalid multinomial distribution (encountering probability entry = infinity or NaN)");
  }
}

void draw_with_replacement(DType dtype, const void* weights, int64_t rows, int64_t categories,
                           int64_t samples, int64_t* out, Generator& g) {
  Draws draws(g);
  visit_dtype(FloatTypes{}, dtype, "multinomial", [&](auto tag) {
    using T = decltype(tag);
    using Sum = compute_type<T>;
    const T* w = static_cast<const T*>(weights);
    // A few samples look at a part of the running sums only: those are kept at steps, and counted on from
    // there.
    const int64_t step = samples < categories / 16 ? 64 : 1, steps = (categories + step - 1) / step;
    std::vector<Sum> sums(static_cast<size_t>(steps));
    for (int64_t row = 0; row < rows; row++, w += categories, out += samples) {
      const auto [sum, least] = sum_in_steps(w, categories, step, sums.data());
      if (least < 0 || !std::isfinite(sum)) check_weights(w, categories);
      RL_CHECK(sum > 0, "invalid multinomial distribution (sum of probabilities <= 0)");
      if (step == 1)
        for (Sum& s : sums) s /= sum;
      const auto below = [=, sum = sum](Sum s, double drawn) { return (step == 1 ? s : s / sum) < drawn; };
      for (int64_t i = 0; i < samples; i++) {
        const double drawn = draws.uniform();
        const auto found = std::lower_bound(sums.begin(), sums.end(), drawn, below);
        int64_t at = (found - sums.begin()) * step;
        Sum passed = at > 0 ? *(found - 1) : Sum(0);
        if (step > 1)
          while (at < categories - 1 && below(passed += Sum(w[at]), drawn)) ++at;
        out[i] = at;
      }
    }
  });
}

}  // namespace rushlight::cpu
