// Loops over elements that have the scale of their channel.
#pragma once
#include <algorithm>
#include <cstdint>

// Each instruction set compiles its own.
namespace rushlight::cpu::RL_ISA {
namespace {

// One scale for a run of elements, or one for each.
struct Same {
  const float *scale, *zero_point;
  float scale_at(int64_t) const { return *scale; }
  float zero_at(int64_t) const { return *zero_point; }
};
struct Each {
  const float *scale, *zero_point;
  float scale_at(int64_t i) const { return scale[i]; }
  float zero_at(int64_t i) const { return zero_point[i]; }
};

// Calls run(settings, first element, elements) for what lies in [begin, end). Channels has channels, inner,
// scale and zero_point: element p belongs to channel p / inner % channels.
template <class Channels, class Run>
[[gnu::always_inline]] inline void by_channel(const Channels& c, int64_t begin, int64_t end, Run run) {
  while (begin < end) {
    const int64_t channel = begin / c.inner % c.channels;
    const float *scale = c.scale + channel, *zero = c.zero_point + channel;
    const bool one = c.inner > 1 || c.channels == 1;
    const int64_t left = c.channels == 1 ? end - begin
                         : one           ? c.inner - begin % c.inner
                                         : c.channels - channel;
    const int64_t n = std::min(left, end - begin);
    if (one)
      run(Same{scale, zero}, begin, n);
    else
      run(Each{scale, zero}, begin, n);
    begin += n;
  }
}

}  // namespace
}  // namespace rushlight::cpu::RL_ISA
