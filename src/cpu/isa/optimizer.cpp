// The inner loops of fused optimizer steps.
#include "cpu/optimizer.h"

#include <algorithm>

#include "cpu/isa/half_inl.h"
#include "cpu/isa/pairs_inl.h"
#include "cpu/optimizer_steps.h"

namespace rushlight::cpu::RL_ISA {
namespace {

struct Adjacent {
  int64_t begin, end;
  static constexpr int64_t step = 1;
};

[[gnu::always_inline]] inline uint32_t joined(float lower, float upper) {
  return rounded_bits(lower) >> 16 | (rounded_bits(upper) & 0xffff0000u);
}

// Numbers of bfloat16, two at a time.
struct AdjacentPairs : Adjacent {
  template <int kStates, class Moved>
  int64_t in_pairs(const StepArrays& s, const Moved& moved) const {
    const auto pairs = [this](void* array) {
      return reinterpret_cast<Pair*>(static_cast<BFloat16*>(array) + begin);
    };
    Pair* __restrict param = pairs(s.param);
    const Pair* __restrict grad = pairs(s.grad);
    Pair* __restrict first = pairs(s.first);
    Pair* __restrict second = pairs(s.second);
    Pair* __restrict third = pairs(s.third);
    const int64_t count = (end - begin) / 2;
    for (int64_t i = 0; i < count; ++i) {
      const uint32_t p = param[i], g = grad[i];
      uint32_t a{}, b{}, c{};
      if constexpr (kStates & 1) a = first[i];
      if constexpr (kStates & 2) b = second[i];
      if constexpr (kStates & 4) c = third[i];
      float a0 = lower_number(a), b0 = lower_number(b), c0 = lower_number(c);
      float a1 = upper_number(a), b1 = upper_number(b), c1 = upper_number(c);
      const float p0 = moved(lower_number(p), lower_number(g), a0, b0, c0);
      const float p1 = moved(upper_number(p), upper_number(g), a1, b1, c1);
      if constexpr (kStates & 1) first[i] = joined(a0, a1);
      if constexpr (kStates & 2) second[i] = joined(b0, b1);
      if constexpr (kStates & 4) third[i] = joined(c0, c1);
      param[i] = joined(p0, p1);
    }
    return begin + 2 * count;
  }
};

template <class T>
using ElementsOf = std::conditional_t<std::is_same_v<T, BFloat16>, AdjacentPairs, Adjacent>;

template <class T>
void sgd(const StepArrays& a, const SgdOptions& o, int64_t begin, int64_t end) {
  steps::sgd<T>(a, o, ElementsOf<T>{begin, end});
}
template <class T>
void adam(const StepArrays& a, const AdamOptions& o, int64_t begin, int64_t end) {
  steps::adam<T>(a, o, ElementsOf<T>{begin, end});
}
template <class T>
void unscale(const StepArrays& a, double scale, int64_t begin, int64_t end) {
  steps::unscale<T>(a, scale, Adjacent{begin, end});
}
template <class Elements, void (*rule)(const StepArrays&, const UpdateOptions&, Elements)>
void update(const StepArrays& a, const UpdateOptions& o, int64_t begin, int64_t end) {
  rule(a, o, Elements{begin, end});
}

template <class T, class E = ElementsOf<T>, class R = steps::Rules<T, E>>
constexpr StepLoops loops_of = {
    sgd<T>,
    adam<T>,
    {update<E, R::adagrad>, update<E, R::rmsprop>, update<E, R::adadelta>, update<E, R::adamax>,
     update<E, R::nadam>, update<E, R::radam>, update<E, R::asgd>, update<E, R::rprop>},
    unscale<T>};

// Halves go through blocks of floats, in which a step was computed anyway: loops that convert each number do
// not become vectors.
template <class T, auto kLoop, class Options>
void by_blocks(const StepArrays& a, const Options& o, int64_t begin, int64_t end) {
  constexpr int64_t kBlock = 256;
  constexpr int kArrays = 5, kGradient = 1;
  float blocks[kArrays][kBlock];
  void* const whole[kArrays] = {a.param, a.grad, a.first, a.second, a.third};
  StepArrays part = a;
  void** const parts[kArrays] = {&part.param, &part.grad, &part.first, &part.second, &part.third};
  for (int k = 0; k < kArrays; ++k)
    if (whole[k]) *parts[k] = blocks[k];
  for (int64_t at = begin; at < end; at += kBlock) {
    const int64_t count = std::min(kBlock, end - at);
    for (int k = 0; k < kArrays; ++k)
      if (whole[k]) widen(static_cast<const T*>(whole[k]) + at, blocks[k], count);
    kLoop(part, o, 0, count);
    for (int k = 0; k < kArrays; ++k)
      if (whole[k] && k != kGradient) narrow(blocks[k], static_cast<T*>(whole[k]) + at, count);
  }
}
template <class T>
constexpr StepLoops loops_of_halves = [] {
  StepLoops loops{
      by_blocks<T, sgd<float>, SgdOptions>, by_blocks<T, adam<float>, AdamOptions>, {}, unscale<T>};
  [&]<size_t... rule>(std::index_sequence<rule...>) {
    ((loops.update[rule] = by_blocks<T, loops_of<float>.update[rule], UpdateOptions>), ...);
  }(std::make_index_sequence<kUpdateRules>{});
  return loops;
}();

}  // namespace

const StepLoops* optimizer_loops(DType dtype) {
  switch (dtype) {
    case DType::Float32:
      return &loops_of<float>;
    case DType::Float64:
      return &loops_of<double>;
    case DType::Float16:
      return &loops_of_halves<Half>;
    case DType::BFloat16:
      return &loops_of<BFloat16>;
    default:
      return nullptr;
  }
}

}  // namespace rushlight::cpu::RL_ISA
