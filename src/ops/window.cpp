// Windows of signals, sampled over their length: computed in float64, whatever dtype is asked for.
#include <algorithm>
#include <numbers>

#include "dispatch/table.h"
#include "ops/copy.h"
#include "ops/factory.h"
#include "ops/join.h"
#include "ops/operators.h"
#include "ops/plain.h"
#include "ops/pointwise.h"
#include "ops/view.h"

namespace rushlight {
namespace {

using namespace ops;

using OptLayout = std::optional<Layout>;
using OptBool = std::optional<bool>;

struct Options {
  OptDType dtype;
  OptLayout layout;
  OptDevice device;
  OptBool pin;
};

// Windows are symmetric: half of a long one is computed, and follows once more the other way round.
int64_t half_of(int64_t length, bool periodic) { return periodic ? length / 2 + 1 : (length + 1) / 2; }
Tensor mirror_image(const Tensor& half, int64_t length, bool periodic) {
  return flip(narrow(half, 0, periodic ? 1 : 0, length - half.size(0)), {0});
}

// Samples of formula(t) for t from 0 to 1, all of them or all but the last of one more when periodic.
template <class F>
Tensor sampled(const Call& call, int64_t length, bool periodic, const Options& o, F formula) {
  const DType dtype = o.dtype.value_or(get_default_dtype());
  RL_CHECK(is_floating(dtype), call.op.name(), " expects floating point dtypes, got: ", dtype_name(dtype));
  RL_CHECK(length >= 0, call.op.name(), " requires non-negative window_length, got window_length=", length);
  if (length <= 1) return ones(IntList{length}, dtype, o.layout, o.device, o.pin);
  const auto part = [&](int64_t begin, int64_t end) {
    const Tensor steps =
        arange(Scalar(begin), Scalar(end), Scalar(1), DType::Float64, o.layout, o.device, o.pin);
    return to_dtype(formula(steps / Scalar(periodic ? length : length - 1)), dtype);
  };
  constexpr int64_t kPart = 1 << 12;  // what lies between the passes stays in the cache
  if (length < 2 * kPart) return part(0, length);
  const Tensor window = empty(IntList{length}, dtype, o.layout, o.device, o.pin);  // fails before work begins
  if (!is_plain(window)) return part(0, length);
  const int64_t half = half_of(length, periodic);
  for (int64_t begin = 0; begin < half; begin += kPart) {
    const int64_t end = std::min(half, begin + kPart);
    copy_(narrow(window, 0, begin, end - begin), part(begin, end), false);
  }
  const Tensor image = mirror_image(narrow(window, 0, 0, half), length, periodic);
  copy_(narrow(window, 0, half, length - half), image, false);
  return window;
}

Tensor cosine(const Tensor& t, double turns) { return cos(t * Scalar(turns * 2 * std::numbers::pi)); }

Tensor bartlett(const Call& call, int64_t length, bool periodic, const Options& o) {
  constexpr int64_t kExact = 1 << 24;  // so far floats hold all whole numbers
  if (o.dtype.value_or(get_default_dtype()) == DType::Float32 && length > 256 && length < kExact) {
    const Tensor twice = arange(Scalar(int64_t{0}), Scalar(2 * half_of(length, periodic)), Scalar(int64_t{2}),
                                DType::Float32, o.layout, o.device, o.pin);
    if (is_plain(twice)) {
      const Tensor half = twice / Scalar(periodic ? length : length - 1);
      return cat({half, mirror_image(half, length, periodic)}, 0);
    }
  }
  return sampled(call, length, periodic, o,
                 [](const Tensor& t) { return Scalar(1) - abs(t * Scalar(2) - Scalar(1)); });
}
Tensor blackman(const Call& call, int64_t length, bool periodic, const Options& o) {
  return sampled(call, length, periodic, o, [](const Tensor& t) {
    return Scalar(0.42) - cosine(t, 1) * Scalar(0.5) + cosine(t, 2) * Scalar(0.08);
  });
}
Tensor hamming(const Call& call, int64_t length, bool periodic, const Options& o, double alpha = 0.54,
               double beta = 0.46) {
  return sampled(call, length, periodic, o, [&](const Tensor& t) {
    return rsub(cosine(t, 1), wrapped_number(Scalar(alpha)), Scalar(beta));
  });
}
Tensor hann(const Call& call, int64_t length, bool periodic, const Options& o) {
  return hamming(call, length, periodic, o, 0.5, 0.5);
}
Tensor kaiser(const Call& call, int64_t length, bool periodic, const Options& o, double beta = 12.0) {
  return sampled(call, length, periodic, o, [&](const Tensor& t) {
    const Tensor height = sqrt(clamp_min(Scalar(1) - square(t * Scalar(2) - Scalar(1)), Scalar(0)));
    return i0(height * Scalar(beta)) / i0(full_like(t, Scalar(beta)));
  });
}

using Window = Tensor (*)(const Call&, int64_t, bool, const Options&);

template <auto F>
Tensor plain(const Call& call, int64_t length, OptDType dtype, OptLayout layout, OptDevice device,
             OptBool pin) {
  return F(call, length, true, {dtype, layout, device, pin});
}
template <auto F>
Tensor of_period(const Call& call, int64_t length, bool periodic, OptDType dtype, OptLayout layout,
                 OptDevice device, OptBool pin) {
  return F(call, length, periodic, {dtype, layout, device, pin});
}
template <auto F>
Tensor with_number(const Call& call, int64_t length, bool periodic, double number, OptDType dtype,
                   OptLayout layout, OptDevice device, OptBool pin) {
  return F(call, length, periodic, {dtype, layout, device, pin}, number);
}

constexpr Window kBartlett = bartlett, kBlackman = blackman, kHann = hann;

Tensor default_hamming(const Call& call, int64_t length, bool periodic, const Options& o) {
  return hamming(call, length, periodic, o);
}
Tensor hamming_of_alpha(const Call& call, int64_t length, bool periodic, const Options& o, double alpha) {
  return hamming(call, length, periodic, o, alpha);
}
Tensor default_kaiser(const Call& call, int64_t length, bool periodic, const Options& o) {
  return kaiser(call, length, periodic, o);
}
Tensor hamming_of_both(const Call& call, int64_t length, bool periodic, double alpha, double beta,
                       OptDType dtype, OptLayout layout, OptDevice device, OptBool pin) {
  return hamming(call, length, periodic, {dtype, layout, device, pin}, alpha, beta);
}

#define RL_WINDOW(parameters)                                                         \
  parameters                                                                          \
      ", *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? " \
      "pin_memory=None) -> Tensor"

}  // namespace

void register_window_operators(Table& t) {
  const auto add = [&](const char* doc, const char* schema, auto body) {
    t.composite(schema, body).function_only().doc(doc);
  };
  const char* doc = "Triangle that is zero at its ends.";
  add(doc, RL_WINDOW("bartlett_window(int window_length"), plain<kBartlett>);
  add(doc, RL_WINDOW("bartlett_window.periodic(int window_length, bool periodic"), of_period<kBartlett>);
  doc = "0.42 - 0.5 cos(2 pi t) + 0.08 cos(4 pi t).";
  add(doc, RL_WINDOW("blackman_window(int window_length"), plain<kBlackman>);
  add(doc, RL_WINDOW("blackman_window.periodic(int window_length, bool periodic"), of_period<kBlackman>);
  doc = "Raised cosine window: (1 - cos(2 pi t)) / 2.";
  add(doc, RL_WINDOW("hann_window(int window_length"), plain<kHann>);
  add(doc, RL_WINDOW("hann_window.periodic(int window_length, bool periodic"), of_period<kHann>);
  doc = "alpha - beta cos(2 pi t).";
  add(doc, RL_WINDOW("hamming_window(int window_length"), plain<default_hamming>);
  add(doc, RL_WINDOW("hamming_window.periodic(int window_length, bool periodic"), of_period<default_hamming>);
  add(doc, RL_WINDOW("hamming_window.periodic_alpha(int window_length, bool periodic, float alpha"),
      with_number<hamming_of_alpha>);
  add(doc,
      RL_WINDOW(
          "hamming_window.periodic_alpha_beta(int window_length, bool periodic, float alpha, float beta"),
      hamming_of_both);
  doc = "i0(beta sqrt(1 - (2 t - 1)^2)) / i0(beta).";
  add(doc, RL_WINDOW("kaiser_window(int window_length"), plain<default_kaiser>);
  add(doc, RL_WINDOW("kaiser_window.periodic(int window_length, bool periodic"), of_period<default_kaiser>);
  add(doc, RL_WINDOW("kaiser_window.beta(int window_length, bool periodic, float beta"), with_number<kaiser>);
}

}  // namespace rushlight
