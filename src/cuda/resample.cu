// Resizing by tables of neighbours and their weights.
#include "cuda/channels.h"
#include "cuda/elements.h"
#include "cuda/layers.h"
#include "device/layers.h"

namespace rushlight::cuda {
namespace {

template <class S>
struct Resample {
  using C = std::conditional_t<std::is_integral_v<S>, double, ComputeOf<S>>;
  DeviceResample plan;
  const S* in;
  S* out;
  RL_BOTH void operator()(int64_t i) const {
    int64_t at[3], rest = i / plan.inner;
    const int64_t inner = i - rest * plan.inner;
    for (int a = 2; a >= 0; --a) at[a] = rest % plan.axis[a].out, rest /= plan.axis[a].out;
    const auto& [depth, height, width] = plan.axis;
    C sum = 0;
    for (int64_t z = 0; z < depth.taps; ++z) {
      const int64_t dz = z * depth.out + at[0];
      for (int64_t y = 0; y < height.taps; ++y) {
        const int64_t dy = y * height.out + at[1];
        const C outer = static_cast<C>(depth.weight[dz]) * static_cast<C>(height.weight[dy]);
        const int64_t row = ((rest * depth.in + depth.index[dz]) * height.in + height.index[dy]) * width.in;
        for (int64_t x = 0; x < width.taps; ++x) {
          const int64_t dx = x * width.out + at[2];
          const C weight = outer * static_cast<C>(width.weight[dx]);
          if (plan.skip_zeros && weight == C(0)) continue;
          sum += weight * number<C>(in[(row + width.index[dx]) * plan.inner + inner]);
        }
      }
    }
    if constexpr (std::is_integral_v<S>)
      out[i] = static_cast<S>(sum <= 0 ? 0 : sum >= 255 ? 255 : sum + 0.5);
    else
      out[i] = number<S>(sum);
  }
};

// The nearest element alone, which is moved as it is; there are no weights, and fewer than 2^31 of them. Four
// neighbours of a row of the result where they lie side by side and `quads`.
template <class Word, bool quads>
struct Nearest {
  Divider inner, width, height, depth;  // of the result; width in fours
  int64_t in[3];
  const int32_t* index[3];
  const Word* from;
  Word* to;
  RL_BOTH void operator()(int64_t i) const {
    auto rest = static_cast<uint32_t>(i);
    auto split = [&](const Divider& by) {
      const uint32_t quotient = by.divide(rest), left = rest - quotient * by.divisor;
      rest = quotient;
      return left;
    };
    const uint32_t k = quads ? 0 : split(inner), x = split(width), y = split(height), z = split(depth);
    const int64_t row = ((rest * in[0] + index[0][z]) * in[1] + index[1][y]) * in[2];
    if constexpr (quads) {
      const auto at = *(reinterpret_cast<const Neighbours<int32_t>*>(index[2]) + x);
      Neighbours<Word> all;
      for (int n = 0; n < kAtOnce; ++n) all.item[n] = from[row + at.item[n]];
      *(reinterpret_cast<Neighbours<Word>*>(to) + i) = all;
    } else {
      to[i] = from[(row + index[2][x]) * inner.divisor + k];
    }
  }
};

bool lies_in_steps_of(const void* data, size_t size) { return reinterpret_cast<uintptr_t>(data) % size == 0; }

template <class Word, bool quads>
void nearest(const Launch& at, const DeviceResample& plan, int64_t inner, const void* in, void* out) {
  const auto& [depth, height, width] = plan.axis;
  const int64_t row = quads ? width.out / kAtOnce : width.out;
  auto divider = [](int64_t size) { return Divider(static_cast<uint32_t>(size)); };
  for_each_index(at, plan.batch * depth.out * height.out * row * inner,
                 Nearest<Word, quads>{divider(inner),
                                      divider(row),
                                      divider(height.out),
                                      divider(depth.out),
                                      {depth.in, height.in, width.in},
                                      {depth.index, height.index, width.index},
                                      static_cast<const Word*>(in),
                                      static_cast<Word*>(out)});
}

void nearest(const Launch& at, size_t item, const DeviceResample& plan, const void* in, void* out) {
  // Channels that come last are one element of each place, in words as wide as they fill.
  const size_t bytes = item * static_cast<size_t>(plan.inner);
  size_t word = item;
  while (plan.inner > 1 && word < 16 && bytes % (word * 2) == 0 && lies_in_steps_of(in, word * 2) &&
         lies_in_steps_of(out, word * 2))
    word *= 2;
  const auto inner = static_cast<int64_t>(bytes / word);
  visit_word(word, [&](auto tag) {
    using Word = typename decltype(tag)::type;
    const DeviceResample::Axis& width = plan.axis[2];
    if (inner == 1 && width.out % kAtOnce == 0 && lies_in_steps_of(out, alignof(Neighbours<Word>)) &&
        lies_in_steps_of(width.index, 16))
      nearest<Word, true>(at, plan, 1, in, out);
    else
      nearest<Word, false>(at, plan, inner, in, out);
  });
}

}  // namespace

void resample(int device, DType dtype, const DeviceResample& plan, const void* in, void* out) {
  const int64_t n = plan.batch * plan.axis[0].out * plan.axis[1].out * plan.axis[2].out * plan.inner;
  const Launch at{device, "resample"};
  if (!plan.axis[2].weight) return nearest(at, element_size(dtype), plan, in, out);
  if (dtype == DType::UInt8)
    return for_each_index(
        at, n, Resample<uint8_t>{plan, static_cast<const uint8_t*>(in), static_cast<uint8_t*>(out)});
  visit_floating(dtype, [&](auto tag) {
    using S = typename decltype(tag)::type;
    for_each_index(at, n, Resample<S>{plan, static_cast<const S*>(in), static_cast<S*>(out)});
  });
}

}  // namespace rushlight::cuda
