// Dropout of attention's weights where they are not in tiles, and what recorded graphs remember of it.
#include "cuda/attention_plan.h"
#include "cuda/channels.h"
#include "cuda/layers.h"

namespace rushlight::cuda {
namespace {

template <class C>
struct Factors {
  DeviceDropoutFactors which;
  C growth;
  C* out;
  RL_BOTH void operator()(int64_t i) const {
    const int64_t line = i / which.keys, b = line / which.count, query = which.first + line - b * which.count;
    const auto weight =
        static_cast<uint64_t>((b * which.queries + query) * which.keys + i - line * which.keys);
    DropoutNumbers(which.dropout, weight).draw(0, 1, [&](int, bool kept) { out[i] = kept ? growth : C(0); });
  }
};

struct Place {
  const uint64_t* base;
  uint64_t draws;
  int64_t *seed, *offset;
  RL_BOTH void operator()(int64_t) const {
    *seed = static_cast<int64_t>(base[0]), *offset = static_cast<int64_t>(base[1] + draws);
  }
};

}  // namespace

void dropout_factors(int device, DType dtype, const DeviceDropoutFactors& which, void* factors) {
  const Launch at{device, "attention_dropout"};
  const int64_t n = which.batch * which.count * which.keys;
  const double growth = which.dropout.growth();
  if (dtype == DType::Float64)
    for_each_index(at, n, Factors<double>{which, growth, static_cast<double*>(factors)});
  else
    for_each_index(at, n, Factors<float>{which, static_cast<float>(growth), static_cast<float*>(factors)});
}

void random_place(int device, const uint64_t* base, uint64_t draws, int64_t* seed, int64_t* offset) {
  for_each_index({device, "random_place"}, 1, Place{base, draws, seed, offset});
}

}  // namespace rushlight::cuda
