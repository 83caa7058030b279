#include "cpu/affine.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/long_work.h"
#include "core/parallel.h"
#include "cpu/isa_variant.h"

namespace rushlight::cpu {

RL_DECLARE_VARIANTS(AffineKernels affine_kernels();)

namespace {

const AffineKernels& kernels() {
  static const AffineKernels chosen = RL_ISA_VARIANT(affine_kernels());
  return chosen;
}

// f(first element, number of elements, first channel, step between settings) for runs of neighbours.
template <class F>
void for_runs(const AffinePlan& plan, F f) {
  const int64_t lines = plan.inner == 1 ? plan.outer : plan.outer * plan.channels;
  const int64_t length = plan.inner == 1 ? plan.channels : plan.inner;
  if (plan.channels == 1) {
    parallel_for(0, plan.outer * plan.inner, kGrainSize,
                 [&](int64_t begin, int64_t end) { f(begin, end - begin, int64_t(0), int64_t(0)); });
    return;
  }
  parallel_for(0, lines, std::max<int64_t>(1, kGrainSize / std::max<int64_t>(1, length)),
               [&](int64_t begin, int64_t end) {
                 for (int64_t line = begin; line < end; ++line)
                   if (plan.inner == 1)
                     f(line * length, length, int64_t(0), int64_t(1));
                   else
                     f(line * length, length, line % plan.channels, int64_t(0));
               });
}

}  // namespace

void quantize_affine(const AffinePlan& plan, const float* x, DType dtype, float low, float high, void* out) {
  for_runs(plan, [&](int64_t at, int64_t n, int64_t channel, int64_t step) {
    kernels().quantize(x + at, n, plan.factors + channel, plan.zeros + channel, step, low, high,
                       dtype == DType::Int8, static_cast<char*>(out) + at);
  });
}

void dequantize_affine(const AffinePlan& plan, DType dtype, const void* x, float* out) {
  for_runs(plan, [&](int64_t at, int64_t n, int64_t channel, int64_t step) {
    kernels().dequantize(static_cast<const char*>(x) + at, dtype == DType::Int8, n, plan.factors + channel,
                         plan.zeros + channel, step, out + at);
  });
}

void add_affine(const AffineOperand& a, const AffineOperand& b, int64_t n, bool relu, float scale, float zero,
                DType dtype, float low, float high, void* out) {
  constexpr int64_t kBlock = 1024;  // both operands as floats stay in the nearest cache
  const float inverse = 1 / scale, least = relu ? 0 : -INFINITY;
  if (a.dtype == dtype && b.dtype == dtype) {
    const AffineSum sum{a.scale, a.zero, b.scale, b.zero, least, inverse, zero, low, high};
    return parallel_for(0, n, kGrainSize, [&](int64_t begin, int64_t end) {
      kernels().sum_bytes(static_cast<const char*>(a.data) + begin, static_cast<const char*>(b.data) + begin,
                          dtype == DType::Int8, end - begin, sum, static_cast<char*>(out) + begin);
    });
  }
  parallel_for(0, n, kGrainSize, [&](int64_t begin, int64_t end) {
    float left[kBlock], right[kBlock];
    const auto floats = [&](const AffineOperand& x, int64_t at, int64_t count, float* to) -> const float* {
      if (x.dtype == DType::Float32) return static_cast<const float*>(x.data) + at;
      kernels().dequantize(static_cast<const char*>(x.data) + at, x.dtype == DType::Int8, count, &x.scale,
                           &x.zero, 0, to);
      return to;
    };
    for (int64_t at = begin; at < end; at += kBlock) {
      const int64_t count = std::min(kBlock, end - at);
      const float *p = floats(a, at, count, left), *q = floats(b, at, count, right);
      kernels().sum(p, q, count, least, left);
      kernels().quantize(left, count, &inverse, &zero, 0, low, high, dtype == DType::Int8,
                         static_cast<char*>(out) + at);
    }
  });
}

namespace {

struct RowSettings {
  float scale, bias;
};
RowSettings settings_of(const RowTable& t, const uint8_t* row) {
  const uint8_t* at = row + t.number_bytes();
  if (t.bits == 8) {
    RowSettings s;
    std::memcpy(&s, at, sizeof(s));
    return s;
  }
  Half halves[2];
  std::memcpy(halves, at, sizeof(halves));
  return {static_cast<float>(halves[0]), static_cast<float>(halves[1])};
}

uint8_t nearest(float x, float most) {
  const float bounded = x > 0 ? std::min(x, most) : 0;
  return static_cast<uint8_t>(std::nearbyint(bounded));
}

void pack_bytes(const RowTable& t, const float* x, float least, float most, uint8_t* row) {
  constexpr float kLeastRange = 1e-8f;
  const float inverse = 255 / (most - least + kLeastRange);
  for (int64_t i = 0; i < t.width; ++i) row[i] = nearest((x[i] - least) * inverse, 255);
  const RowSettings s{(most - least) / 255, least};
  std::memcpy(row + t.width, &s, sizeof(s));
}
void pack_parts(const RowTable& t, const float* x, float least, float most, uint8_t* row) {
  const Half bias(least);
  least = static_cast<float>(bias);
  const auto highest = static_cast<float>((1 << t.bits) - 1);
  Half scale(most == least ? 1 : (most - least) / highest);
  float inverse = 1 / static_cast<float>(scale);
  if (std::isinf(inverse)) scale = Half(1.0f), inverse = 1;
  std::memset(row, 0, static_cast<size_t>(t.number_bytes()));
  const int64_t each = t.each();
  for (int64_t i = 0; i < t.width; ++i)
    row[i / each] = static_cast<uint8_t>(row[i / each] | nearest((x[i] - least) * inverse, highest)
                                                             << (i % each * t.bits));
  const Half settings[2] = {scale, bias};
  std::memcpy(row + t.number_bytes(), settings, sizeof(settings));
}

// out += the row's numbers * scale + bias. Kernels know bytes and halves of them: quarters become bytes
// first.
void accumulate(const RowTable& t, const uint8_t* row, float scale, float bias, float* out) {
  if (t.bits != 2) return kernels().accumulate(row, t.bits, t.width, scale, bias, out);
  constexpr int64_t kBlock = 256;
  uint8_t numbers[kBlock];
  for (int64_t at = 0; at < t.width; at += kBlock) {
    const int64_t n = std::min(kBlock, t.width - at);
    for (int64_t i = 0; i < n; ++i)
      numbers[i] = static_cast<uint8_t>(row[(at + i) / 4] >> ((at + i) % 4 * 2) & 3);
    kernels().accumulate(numbers, 8, n, scale, bias, out + at);
  }
}

// The length of the difference that rounding to a range makes.
float rounding_loss(const float* x, int64_t n, RowRange range, float highest) {
  const float span = range.most - range.least, scale = span == 0 ? 1 : span / highest, inverse = 1 / scale;
  float sum = 0;
  for (int64_t i = 0; i < n; ++i) {
    const float step = std::clamp(std::nearbyint((x[i] - range.least) * inverse), 0.0f, highest);
    const float difference = step * scale + range.least - x[i];
    sum += difference * difference;
  }
  return std::sqrt(sum);
}

}  // namespace

RowRange narrowed_range(const float* x, int64_t n, int64_t steps, float ratio, int bits) {
  if (n == 0) return {0, 0};
  const auto [least, most] = std::minmax_element(x, x + n);
  RowRange best{*least, *most}, now = best;
  const auto highest = static_cast<float>((1 << bits) - 1);
  const float step = (now.most - now.least) / static_cast<float>(steps);
  const float left = static_cast<float>(static_cast<int64_t>(static_cast<float>(steps) * (1 - ratio))) * step;
  float loss = rounding_loss(x, n, now, highest), least_loss = loss;
  InterruptPoll poll;
  for (int64_t given = 0; given < steps && now.least + left < now.most; ++given) {
    const RowRange from_below{now.least + step, now.most}, from_above{now.least, now.most - step};
    const float below = rounding_loss(x, n, from_below, highest),
                above = rounding_loss(x, n, from_above, highest);
    if (loss < below && loss < above && loss < least_loss) least_loss = loss, best = now;
    const RowRange next = below < above ? from_below : from_above;
    if (next == now) break;  // a step that is lost in rounding moves no end, however often it is given up
    now = next;
    loss = std::min(below, above);
    poll(n);
  }
  return best;
}

void pack_rows(const RowTable& t, const float* x, const RowRange* ranges, uint8_t* out) {
  if (t.width == 0) std::memset(out, 0, static_cast<size_t>(t.rows * t.row_bytes()));
  if (t.width == 0) return;
  parallel_for(0, t.rows, std::max<int64_t>(1, kGrainSize / t.width), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      const float* from = x + r * t.width;
      const auto [least, most] = std::minmax_element(from, from + t.width);
      const RowRange range = ranges ? ranges[r] : RowRange{*least, *most};
      (t.bits == 8 ? pack_bytes : pack_parts)(t, from, range.least, range.most, out + r * t.row_bytes());
    }
  });
}

void unpack_rows(const RowTable& t, const uint8_t* packed, float* out) {
  parallel_for(0, t.rows, std::max<int64_t>(1, kGrainSize / std::max<int64_t>(1, t.width)),
               [&](int64_t begin, int64_t end) {
                 std::fill(out + begin * t.width, out + end * t.width, 0.0f);
                 for (int64_t r = begin; r < end; ++r) {
                   const uint8_t* row = packed + r * t.row_bytes();
                   const RowSettings s = settings_of(t, row);
                   accumulate(t, row, s.scale, s.bias, out + r * t.width);
                 }
               });
}

void sum_rows(const RowTable& t, const uint8_t* packed, const int64_t* indices, const int64_t* starts,
              int64_t bags, const float* factors, float* out) {
  const int64_t each =
      std::max<int64_t>(1, t.width * (starts[bags] - starts[0]) / std::max<int64_t>(1, bags));
  parallel_for(0, bags, std::max<int64_t>(1, kGrainSize / each), [&](int64_t begin, int64_t end) {
    std::fill(out + begin * t.width, out + end * t.width, 0.0f);
    for (int64_t b = begin; b < end; ++b)
      for (int64_t i = starts[b]; i < starts[b + 1]; ++i) {
        if (indices[i] < 0) continue;
        const uint8_t* row = packed + indices[i] * t.row_bytes();
        const RowSettings s = settings_of(t, row);
        const float factor = factors ? factors[i] : 1;
        accumulate(t, row, s.scale * factor, s.bias * factor, out + b * t.width);
      }
  });
}

}  // namespace rushlight::cpu
