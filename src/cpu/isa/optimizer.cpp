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

template <class T>
void sgd(const StepArrays& a, const SgdOptions& o, int64_t begin, int64_t end) {
  steps::sgd<T>(a, o, Adjacent{begin, end});
}
template <class T>
void adam(const StepArrays& a, const AdamOptions& o, int64_t begin, int64_t end) {
  steps::adam<T>(a, o, Adjacent{begin, end});
}
template <class T>
void unscale(const StepArrays& a, double scale, int64_t begin, int64_t end) {
  steps::unscale<T>(a, scale, Adjacent{begin, end});
}
template <void (*rule)(const StepArrays&, const UpdateOptions&, Adjacent)>
void update(const StepArrays& a, const UpdateOptions& o, int64_t begin, int64_t end) {
  rule(a, o, Adjacent{begin, end});
}

template <class T>
using Rules = steps::Rules<T, Adjacent>;

template <class T>
constexpr StepLoops loops_of = {
    sgd<T>,
    adam<T>,
    {update<Rules<T>::adagrad>, update<Rules<T>::rmsprop>, update<Rules<T>::adadelta>,
     update<Rules<T>::adamax>, update<Rules<T>::nadam>, update<Rules<T>::radam>, update<Rules<T>::asgd>,
     update<Rules<T>::rprop>},
    unscale<T>};

// The numbers of a block do not meet, so that they may stand in any order.
template <class T>
void to_block(const T* from, float* block, int64_t n) {
  if constexpr (std::is_same_v<T, BFloat16>)
    if (n % 2 == 0) return part_pairs(from, block, n);
  widen(from, block, n);
}
template <class T>
void from_block(const float* block, T* to, int64_t n) {
  if constexpr (std::is_same_v<T, BFloat16>)
    if (n % 2 == 0) return join_pairs(block, to, n);
  narrow(block, to, n);
}

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
      if (whole[k]) to_block(static_cast<const T*>(whole[k]) + at, blocks[k], count);
    kLoop(part, o, 0, count);
    for (int k = 0; k < kArrays; ++k)
      if (whole[k] && k != kGradient) from_block(blocks[k], static_cast<T*>(whole[k]) + at, count);
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
      return &loops_of_halves<BFloat16>;
    default:
      return nullptr;
  }
}

}  // namespace rushlight::cpu::RL_ISA
