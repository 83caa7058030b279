#include "cpu/fft_plan.h"

#include <cmath>
#include <list>
#include <numbers>

#include "core/error.h"
#include "core/fork_mutex.h"

namespace rushlight::cpu {

std::complex<double> unit_root(int64_t k, int64_t n) {
  // By symmetry to an eighth of the circle, where sine and cosine are at their most exact.
  const int64_t eighths = 8 * k / n;
  const int64_t rest = k - (eighths + 1) / 2 * (n / 4);
  if (n % 8 == 0) {
    const double angle = 2 * std::numbers::pi * static_cast<double>(rest) / static_cast<double>(n);
    const double c = std::cos(angle), s = std::sin(angle);
    switch ((eighths + 1) / 2 % 4) {
      case 0:
        return {c, -s};
      case 1:
        return {-s, -c};
      case 2:
        return {-c, s};
      default:
        return {s, c};
    }
  }
  if (2 * k > n) return std::conj(unit_root(n - k, n));
  const auto angle =
      2 * std::numbers::pi_v<long double> * static_cast<long double>(k) / static_cast<long double>(n);
  return {static_cast<double>(std::cos(angle)), static_cast<double>(-std::sin(angle))};
}

namespace {

constexpr int64_t kLargestRadix = 31;

template <class T>
std::complex<T> root(int64_t k, int64_t n) {
  return std::complex<T>(unit_root(k % n, n));
}

// Fours first, which save most; then the other factors in ascending order. Empty: a factor is too large.
std::vector<int64_t> radices(int64_t n) {
  std::vector<int64_t> found;
  for (; n % 4 == 0; n /= 4) found.push_back(4);
  for (int64_t r = 2; n > 1; ++r) {
    if (r > kLargestRadix) return {};
    for (; n % r == 0; n /= r) found.push_back(r);
  }
  return found;
}

int64_t smooth_length(int64_t least) {
  int64_t best = 1;
  while (best < least) best *= 2;
  for (int64_t fives = 1; fives < best; fives *= 5)
    for (int64_t m = fives; m < best; m *= 3) {
      int64_t length = m;
      while (length < least) length *= 2;
      best = std::min(best, length);
    }
  return best;
}

template <class T>
typename FftPlan<T>::Pass make_pass(int64_t radix, int64_t length) {
  typename FftPlan<T>::Pass pass{radix, length / radix, {}, {}};
  pass.twiddles.reserve(static_cast<size_t>(pass.rest * (radix - 1)));
  for (int64_t p = 0; p < pass.rest; ++p)
    for (int64_t k = 1; k < radix; ++k) pass.twiddles.push_back(root<T>(p * k, length));
  if (radix > 5)
    for (int64_t k = 0; k < radix; ++k) pass.roots.push_back(root<T>(k, radix));
  return pass;
}

template <class T>
std::unique_ptr<typename FftPlan<T>::Chirp> make_chirp(int64_t n) {
  RL_CHECK(n <= (int64_t{1} << 40), "fft: a transform of ", n, " points is too large");
  auto c = std::make_unique<typename FftPlan<T>::Chirp>();
  const int64_t length = smooth_length(2 * n - 1);
  c->plan = fft_plan<T>(length);
  // k^2 modulo 2 n, step by step: squares would overflow.
  for (int64_t k = 0, square = 0; k < n; ++k) {
    c->chirp.push_back(root<T>(square, 2 * n));
    square = (square + 2 * k + 1) % (2 * n);
  }
  std::vector<std::complex<T>> data(c->plan->buffer_size());
  const T scale = T(1) / static_cast<T>(length);
  for (int64_t k = 0; k < n; ++k)
    data[static_cast<size_t>(k)] = data[static_cast<size_t>((length - k) % length)] =
        std::conj(c->chirp[static_cast<size_t>(k)]) * scale;
  const auto* result = RL_ISA_VARIANT(fft_lines(*c->plan, 1, data.data()));
  c->transformed.assign(result, result + length);
  return c;
}

}  // namespace

template <class T>
FftPlan<T>::FftPlan(int64_t n) : n(n) {
  if (n == 1) return;
  const std::vector<int64_t> factors = radices(n);
  if (factors.empty()) {
    chirp = make_chirp<T>(n);
    return;
  }
  int64_t length = n;
  for (int64_t radix : factors) {
    passes.push_back(make_pass<T>(radix, length));
    length /= radix;
  }
}

template <class T>
size_t FftPlan<T>::buffer_size() const {
  return static_cast<size_t>(n) + (chirp ? chirp->plan->buffer_size() : static_cast<size_t>(n));
}

template <class T>
std::shared_ptr<const FftPlan<T>> fft_plan(int64_t n) {
  using Plan = std::shared_ptr<const FftPlan<T>>;
  constexpr size_t kKept = 16;
  constexpr int64_t kKeptPoints = int64_t{1} << 20;
  static ForkMutex mutex;
  static std::list<Plan> recent;  // the last used in front
  {
    std::lock_guard lock(mutex);
    for (auto it = recent.begin(); it != recent.end(); ++it)
      if ((*it)->n == n) {
        recent.splice(recent.begin(), recent, it);
        return recent.front();
      }
  }
  Plan plan = std::make_shared<const FftPlan<T>>(n);
  if (n > kKeptPoints) return plan;
  std::lock_guard lock(mutex);
  recent.push_front(plan);
  if (recent.size() > kKept) recent.pop_back();
  return plan;
}

template struct FftPlan<float>;
template struct FftPlan<double>;
template std::shared_ptr<const FftPlan<float>> fft_plan<float>(int64_t);
template std::shared_ptr<const FftPlan<double>> fft_plan<double>(int64_t);

}  // namespace rushlight::cpu
