// The loops of resizing, for each instruction set. Rows are resized first and kept while rows below need
// them; a volume's slices likewise.
#include "cpu/resample.h"

#include <cmath>
#include <cstring>

#include "core/parallel.h"
#include "cpu/isa/resample_axis_inl.h"
#include "cpu/isa/resample_bytes_inl.h"
#include "cpu/scratch.h"

namespace rushlight::cpu::RL_ISA {
namespace {

template <class T, bool skip_zeros>
class Resampler {
  using A = Arithmetic<T>;
  using Middle = typename A::Middle;
  using Weight = typename A::Weight;
  using Sum = typename A::Sum;

 public:
  explicit Resampler(const ResamplePlan& p)
      : plan_(p), depth_(p.axis[0]), height_(p.axis[1]), width_(p.axis[2]), inner_(p.inner) {}

  void run(const T* in, T* out) {
    const auto& [d, h, w] = plan_.axis;
    const int64_t in_plane = d.in * h.in * w.in * inner_, slice = h.out * w.out * inner_;
    const int64_t row_cost = w.out * inner_ * (w.taps + h.taps);
    if constexpr (std::is_same_v<T, uint8_t>)
      if (ByteResampler bytes(plan_, height_, width_); bytes.fits()) return bytes.run(in, out);
    if (d.in == 1 && d.out == 1) {
      parallel_for(0, plan_.batch * h.out, std::max<int64_t>(1, kGrainSize / std::max<int64_t>(row_cost, 1)),
                   [&](int64_t begin, int64_t end) {
                     while (begin < end) {
                       const int64_t n = begin / h.out, stop = std::min(end, (n + 1) * h.out);
                       resize_slice(in + n * in_plane, out + n * slice, begin - n * h.out, stop - n * h.out);
                       begin = stop;
                     }
                   });
      return;
    }
    const int64_t cost = h.out * row_cost;
    parallel_for(0, plan_.batch * d.out, std::max<int64_t>(1, kGrainSize / std::max<int64_t>(cost, 1)),
                 [&](int64_t begin, int64_t end) {
                   while (begin < end) {
                     const int64_t n = begin / d.out, stop = std::min(end, (n + 1) * d.out);
                     resize_volume(in + n * in_plane, out + n * d.out * slice, begin - n * d.out,
                                   stop - n * d.out);
                     begin = stop;
                   }
                 });
  }

 private:
  // The last lines made, by their number in the input.
  struct Ring {
    int64_t size, length;
    Scratch<Middle> data;
    Scratch<int64_t> number;
    Ring(const ResampleAxis& axis, int64_t length)
        : size(axis.span()), length(length), data(size * length), number(size) {
      for (int64_t i = 0; i < size; ++i) number[i] = -1;
    }
    Middle* line(int64_t i) { return data.at(i % size * length); }
    bool claim(int64_t i) {  // whether line i has yet to be made
      if (number[i % size] == i) return false;
      number[i % size] = i;
      return true;
    }
  };

  void resize_volume(const T* in, T* out, int64_t begin, int64_t end) {
    const auto& [d, h, w] = plan_.axis;
    const int64_t slice = h.out * w.out * inner_;
    Ring ring(d, slice);
    for (int64_t z = begin; z < end; ++z)
      blend(depth_, ring, z, slice, out + z * slice,
            [&](int64_t i) { resize_slice(in + i * h.in * w.in * inner_, ring.line(i), 0, h.out); });
  }

  template <class To>
  void resize_slice(const T* in, To* out, int64_t begin, int64_t end) {
    const auto& [d, h, w] = plan_.axis;
    const int64_t row = w.out * inner_;
    if constexpr (std::is_same_v<To, Middle> && std::is_same_v<T, Middle>) {
      if (h.in == 1 && h.out == 1) return resize_row(in, out);
    }
    Ring ring(h, row);
    Scratch<Middle> wide(is_reduced_v<T> ? w.in * inner_ : 0);
    for (int64_t y = begin; y < end; ++y)
      blend(height_, ring, y, row, out + y * row, [&](int64_t i) {
        const T* from = in + i * w.in * inner_;
        if constexpr (is_reduced_v<T>) {
          for (int64_t k = 0; k < w.in * inner_; ++k) wide[k] = static_cast<Middle>(from[k]);
          resize_row(wide.at(0), ring.line(i));
        } else {
          resize_row(from, ring.line(i));
        }
      });
  }

  // out = the weighted sum of the lines that output `o` of the axis looks at.
  template <class To, class Make>
  void blend(Axis<A>& a, Ring& ring, int64_t o, int64_t n, To* out, Make&& make) {
    const ResampleAxis& axis = a.axis;
    for (int64_t k = 0; k < axis.taps; ++k) {
      const int64_t i = axis.index[static_cast<size_t>(k * axis.out + o)];
      if (!(skip_zeros && a.weight[k * axis.out + o] == 0) && ring.claim(i)) make(i);
    }
    const auto line = [&](int64_t k) -> const Middle* {
      return ring.line(axis.index[static_cast<size_t>(k * axis.out + o)]);
    };
    const auto weight = [&](int64_t k) { return a.weight[k * axis.out + o]; };
    const int p = a.precision;
    if constexpr (!skip_zeros) {
      if (axis.taps == 1) return sum_lines<1>(line, weight, p, n, out);
      if (axis.taps == 2) return sum_lines<2>(line, weight, p, n, out);
      if (axis.taps == 4) return sum_lines<4>(line, weight, p, n, out);
    }
    constexpr int64_t kBlock = 256;
    for (int64_t from = 0; from < n; from += kBlock) {
      const int64_t count = std::min(kBlock, n - from);
      Sum sum[kBlock];
      for (int64_t x = 0; x < count; ++x) sum[x] = A::start(p);
      for (int64_t k = 0; k < axis.taps; ++k) {
        const Weight w = weight(k);
        if (w == 0 && skip_zeros) continue;
        const Middle* l = line(k) + from;
        for (int64_t x = 0; x < count; ++x) sum[x] += w * static_cast<Sum>(l[x]);
      }
      for (int64_t x = 0; x < count; ++x) out[from + x] = A::template finish<To>(sum[x], p);
    }
  }

  template <int K, class Line, class Factor, class To>
  static void sum_lines(Line&& line, Factor&& factor, int p, int64_t n, To* __restrict out) {
    const Middle* l[K];
    Weight w[K];
    for (int k = 0; k < K; ++k) l[k] = line(k), w[k] = factor(k);
    for (int64_t x = 0; x < n; ++x) {
      Sum sum = A::start(p);
#pragma GCC unroll 4
      for (int k = 0; k < K; ++k) sum += w[k] * static_cast<Sum>(l[k][x]);
      out[x] = A::template finish<To>(sum, p);
    }
  }

  void resize_row(const Middle* in, Middle* out) {
    const ResampleAxis& axis = width_.axis;
    if (axis.in == axis.out && axis.taps == 1 && axis.out == 1 && inner_ > 1) {
      std::memcpy(out, in, static_cast<size_t>(inner_) * sizeof(Middle));
      return;
    }
    switch (skip_zeros ? 0 : axis.taps) {
      case 1:
        return inner_ == 1 ? gather_row<1>(in, out) : pixel_row<1>(in, out);
      case 2:
        return inner_ == 1 ? gather_row<2>(in, out) : pixel_row<2>(in, out);
      case 4:
        return inner_ == 1 ? gather_row<4>(in, out) : pixel_row<4>(in, out);
      default:
        return inner_ == 1 ? gather_row_any(in, out) : pixel_row_any(in, out);
    }
  }

  template <int K>
  void gather_row(const Middle* __restrict in, Middle* __restrict out) {
    const int64_t n = width_.axis.out;
    const int32_t* index = width_.axis.index.data();
    const Weight* w = width_.weight.at(0);
    const int p = width_.precision;
    for (int64_t x = 0; x < n; ++x) {
      Sum sum = A::start(p);
#pragma GCC unroll 4
      for (int k = 0; k < K; ++k) sum += w[k * n + x] * static_cast<Sum>(in[index[k * n + x]]);
      out[x] = A::template finish<Middle>(sum, p);
    }
  }
  // Some outputs at a time, whose sums stay in registers, over the taps that one of them has.
  void gather_row_any(const Middle* __restrict in, Middle* __restrict out) {
    const int64_t n = width_.axis.out;
    int64_t x = 0;
    for (; x + 8 <= n; x += 8) gather_some<8>(in, out, x);
    for (; x + 3 <= n; x += 3) gather_some<3>(in, out, x);
    for (; x < n; ++x) gather_some<1>(in, out, x);
  }
  template <int N>
  [[gnu::always_inline]] inline void gather_some(const Middle* __restrict in, Middle* __restrict out,
                                                 int64_t x) {
    const int64_t n = width_.axis.out;
    const int p = width_.precision;
    int64_t taps = width_.used[x];
    for (int j = 1; j < N; ++j) taps = std::max(taps, width_.used[x + j]);
    Sum sum[N];
    for (int j = 0; j < N; ++j) sum[j] = A::start(p);
    const int32_t* index = width_.axis.index.data() + x;
    const Weight* w = width_.weight.at(x);
    for (int64_t k = 0; k < taps; ++k, index += n, w += n)
      for (int j = 0; j < N; ++j) {
        const Sum term = w[j] * static_cast<Sum>(in[index[j]]);
        sum[j] += skip_zeros && w[j] == 0 ? Sum(0) : term;
      }
    for (int j = 0; j < N; ++j) out[x + j] = A::template finish<Middle>(sum[j], p);
  }

  template <int K>
  void pixel_row(const Middle* __restrict in, Middle* __restrict out) {
    const int64_t n = width_.axis.out;
    for (int64_t x = 0; x < n; ++x)
      sum_lines<K>([&](int k) { return in + width_.axis.index[static_cast<size_t>(k * n + x)] * inner_; },
                   [&](int k) { return width_.weight[k * n + x]; }, width_.precision, inner_,
                   out + x * inner_);
  }
  void pixel_row_any(const Middle* __restrict in, Middle* __restrict out) {
    constexpr int64_t kBlock = 128;
    const int64_t n = width_.axis.out;
    const int p = width_.precision;
    for (int64_t x = 0; x < n; ++x)
      for (int64_t from = 0; from < inner_; from += kBlock) {
        const int64_t count = std::min(kBlock, inner_ - from);
        Sum sum[kBlock];
        for (int64_t c = 0; c < count; ++c) sum[c] = A::start(p);
        for (int64_t k = 0; k < width_.axis.taps; ++k) {
          const Weight w = width_.weight[k * n + x];
          if (w == 0 && skip_zeros) continue;
          const Middle* from_pixel = in + width_.axis.index[static_cast<size_t>(k * n + x)] * inner_ + from;
          for (int64_t c = 0; c < count; ++c) sum[c] += w * static_cast<Sum>(from_pixel[c]);
        }
        for (int64_t c = 0; c < count; ++c)
          out[x * inner_ + from + c] = A::template finish<Middle>(sum[c], p);
      }
  }

  const ResamplePlan& plan_;
  Axis<A> depth_, height_, width_;
  int64_t inner_;
};

// Nearest neighbours: rows of elements of one size, copied.
template <class Element>
void copy_nearest(const ResamplePlan& plan, const void* in_data, void* out_data) {
  const auto& [d, h, w] = plan.axis;
  const int64_t inner = plan.inner, row_in = w.in * inner, row_out = w.out * inner, lines = d.out * h.out;
  const auto bytes = static_cast<size_t>(row_out) * sizeof(Element);
  parallel_for(0, plan.batch * lines, std::max<int64_t>(1, kGrainSize / std::max<int64_t>(row_out, 1)),
               [&](int64_t begin, int64_t end) {
                 const Element* made = nullptr;
                 for (int64_t i = begin; i < end; ++i) {
                   const int64_t z = d.index[static_cast<size_t>(i % lines / h.out)],
                                 y = h.index[static_cast<size_t>(i % h.out)];
                   const Element* from =
                       static_cast<const Element*>(in_data) + ((i / lines * d.in + z) * h.in + y) * row_in;
                   Element* to = static_cast<Element*>(out_data) + i * row_out;
                   if (from == made) {
                     std::memcpy(to, to - row_out, bytes);
                   } else if (inner == 1) {
                     const int32_t* index = w.index.data();
                     for (int64_t x = 0; x < w.out; ++x) to[x] = from[index[x]];
                   } else {
                     for (int64_t x = 0; x < w.out; ++x)
                       std::memcpy(to + x * inner, from + w.index[static_cast<size_t>(x)] * inner,
                                   static_cast<size_t>(inner) * sizeof(Element));
                   }
                   made = from;
                 }
               });
}

}  // namespace

void resample(DType dtype, const ResamplePlan& plan, const void* in, void* out) {
  if (plan.copies) {
    switch (element_size(dtype)) {
      case 1:
        return copy_nearest<uint8_t>(plan, in, out);
      case 2:
        return copy_nearest<uint16_t>(plan, in, out);
      case 4:
        return copy_nearest<uint32_t>(plan, in, out);
      default:
        return copy_nearest<uint64_t>(plan, in, out);
    }
  }
  visit_dtype(Concat<FloatTypes, TypeList<uint8_t>>{}, dtype, "interpolate", [&](auto tag) {
    using T = decltype(tag);
    if (plan.skip_zeros)
      Resampler<T, true>(plan).run(static_cast<const T*>(in), static_cast<T*>(out));
    else
      Resampler<T, false>(plan).run(static_cast<const T*>(in), static_cast<T*>(out));
  });
}

}  // namespace rushlight::cpu::RL_ISA
