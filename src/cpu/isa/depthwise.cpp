#include "cpu/depthwise.h"

#include <cmath>

#include "cpu/isa/register_inl.h"
#include "cpu/scratch.h"

namespace rushlight::cpu::RL_ISA {
namespace {

template <class C>
constexpr int64_t kLanes = 64 / sizeof(C);
constexpr int64_t kUnroll = 4;

// Registers: kParts of them hold the kLanes elements, 64 bytes, that loops work on everywhere, so that sums
// do not depend on the instruction set.
constexpr int64_t kParts = 64 / kRegisterBytes;
template <class C>
constexpr int64_t kRegister = kRegisterBytes / sizeof(C);
template <class C>
struct VectorOf;
template <>
struct VectorOf<float> {
  typedef float type __attribute__((vector_size(kRegisterBytes)));
};
template <>
struct VectorOf<double> {
  typedef double type __attribute__((vector_size(kRegisterBytes)));
};
template <class C>
using Vector = typename VectorOf<C>::type;

template <class C>
[[gnu::always_inline]] inline Vector<C> load(const C* from) {
  Vector<C> v;
  __builtin_memcpy(&v, from, sizeof(v));
  return v;
}
template <class C>
[[gnu::always_inline]] inline void store(C* to, const Vector<C>& v) {
  __builtin_memcpy(to, &v, sizeof(v));
}

int64_t round_up(int64_t n, int64_t to) { return (n + to - 1) / to * to; }

// Where things lie in the buffer. A row holds `stride` phases: positions 0, stride, 2 * stride ... come
// first, so that each tap reads neighbours. Where nothing is skipped, all rows of a slice are one run.
struct Layout {
  int64_t phase, row, slice, size, taps;
  bool flat;
  int64_t run, runs, pitch;  // results of one run, runs of a slice, distance of rows within a run

  Layout(const DepthwisePlan& p, int64_t lanes) {
    const auto& [d, h, w] = p.axis;
    phase = (w.reach + w.stride - 1) / w.stride;
    row = phase * w.stride;
    slice = row * h.reach;
    size = slice * d.reach + lanes * kUnroll;
    taps = d.taps * h.taps * w.taps;
    flat = h.stride == 1 && w.stride == 1;
    pitch = flat ? row : 0;
    run = flat ? (h.result - 1) * row + w.result : w.result;
    runs = flat ? 1 : h.result;
  }
  int64_t offset(const DepthwisePlan& p, int64_t tap) const {
    const auto& [d, h, w] = p.axis;
    const int64_t x = tap % w.taps * w.spacing, y = tap / w.taps % h.taps * h.spacing,
                  z = tap / w.taps / h.taps * d.spacing;
    return z * slice + y * row + x % w.stride * phase + x / w.stride;
  }
};

// Copies a plane to its places in a buffer whose other elements are zero.
template <class T, class C>
void place(const DepthwisePlan& p, const Layout& at, const T* from, C* to) {
  const auto& [d, h, w] = p.axis;
  auto inside = [](const DepthwiseAxis& a, int64_t i) {
    const int64_t position = i * a.step + a.offset;
    return position >= 0 && position < a.reach;
  };
  int64_t first = 0, last = w.source;
  while (first < last && !inside(w, first)) ++first;
  while (last > first && !inside(w, last - 1)) --last;
  for (int64_t z = 0; z < d.source; ++z) {
    for (int64_t y = 0; y < h.source; ++y, from += w.source) {
      if (!inside(d, z) || !inside(h, y)) continue;
      C* row = to + (z * d.step + d.offset) * at.slice + (y * h.step + h.offset) * at.row;
      if (w.stride == 1 && w.step == 1) {
        for (int64_t x = first; x < last; ++x) row[x + w.offset] = static_cast<C>(from[x]);
      } else if (w.stride == 1) {
        for (int64_t x = first; x < last; ++x) row[x * w.step + w.offset] = static_cast<C>(from[x]);
      } else {
        for (int64_t start = first; start < std::min(first + w.stride, last); ++start) {
          C* part = row + (start + w.offset) % w.stride * at.phase + (start + w.offset) / w.stride;
          const int64_t n = (last - start + w.stride - 1) / w.stride;
          if (w.stride == 2)
            for (int64_t i = 0; i < n; ++i) part[i] = static_cast<C>(from[start + 2 * i]);
          else
            for (int64_t i = 0; i < n; ++i) part[i] = static_cast<C>(from[start + w.stride * i]);
        }
      }
    }
  }
}

// line[x] = init + sum over taps, for kUnroll or one vectors of x.
template <int64_t U, class C>
inline void block(const C* from, const int64_t* offsets, const C* weights, int64_t taps, C init, bool add,
                  C* line) {
  constexpr int64_t kSums = U * kParts, L = kRegister<C>;
  Vector<C> sum[kSums];
#pragma GCC unroll 16
  for (int64_t u = 0; u < kSums; ++u) sum[u] = add ? load(line + u * L) : Vector<C>{} + init;
  for (int64_t t = 0; t < taps; ++t)
#pragma GCC unroll 16
    for (int64_t u = 0; u < kSums; ++u) sum[u] += weights[t] * load(from + offsets[t] + u * L);
#pragma GCC unroll 16
  for (int64_t u = 0; u < kSums; ++u) store(line + u * L, sum[u]);
}

template <class C>
void run_taps(const C* from, const int64_t* offsets, const C* weights, int64_t taps, C init, bool add,
              C* line, int64_t n) {
  constexpr int64_t L = kLanes<C>;
  int64_t x = 0;
  for (; x + L * (kUnroll - 1) < n; x += L * kUnroll)
    block<kUnroll>(from + x, offsets, weights, taps, init, add, line + x);
  for (; x + L < n; x += 2 * L) block<2>(from + x, offsets, weights, taps, init, add, line + x);
  for (; x < n; x += L) block<1>(from + x, offsets, weights, taps, init, add, line + x);
}

// Working memory of one thread.
template <class C>
struct Workspace {
  Workspace(const DepthwisePlan& p, const Layout& at, int64_t line_size)
      : memory(static_cast<C*>(
            take_scratch((at.size + line_size + at.taps) * sizeof(C) + at.taps * sizeof(int64_t) + 64))),
        buffer(memory),
        line(buffer + at.size),
        weights(line + line_size),
        offsets(reinterpret_cast<int64_t*>((reinterpret_cast<uintptr_t>(weights + at.taps) + 7) &
                                           ~uintptr_t{7})) {
    for (int64_t i = 0; i < at.size + line_size; ++i) buffer[i] = 0;
    for (int64_t t = 0; t < at.taps; ++t) offsets[t] = at.offset(p, t);
  }
  ~Workspace() { give_scratch(memory); }
  Workspace(const Workspace&) = delete;
  C *memory, *buffer, *line, *weights;
  int64_t* offsets;
};

int64_t plane_size(const DepthwisePlan& p, bool result) {
  int64_t n = 1;
  for (int i = 0; i < 3; ++i) n *= result ? p.axis[i].result : p.axis[i].source;
  return n;
}

template <class T>
void apply(const DepthwisePlan& p, int64_t begin, int64_t end, const void* source, const void* weight,
           const void* bias, void* result) {
  using C = compute_type<T>;
  const Layout at(p, kLanes<C>);
  const auto& [d, h, w] = p.axis;
  const int64_t line_size = round_up(at.run, kLanes<C> * kUnroll) * at.runs * d.result;
  const Workspace<C> space(p, at, line_size);
  const int64_t in_size = plane_size(p, false), out_size = plane_size(p, true),
                line_pitch = round_up(at.run, kLanes<C> * kUnroll);
  const int64_t source_channels = p.channels * p.sources / p.copies;
  for (int64_t plane = begin; plane < end; ++plane) {
    const int64_t n = plane / p.channels, c = plane % p.channels;
    for (int64_t s = 0; s < p.sources; ++s) {
      const int64_t channel = c / p.copies * p.sources + s, filter = p.sources > 1 ? channel : c;
      place(p, at, static_cast<const T*>(source) + (n * source_channels + channel) * in_size, space.buffer);
      const T* taps = static_cast<const T*>(weight) + filter * at.taps;
      for (int64_t t = 0; t < at.taps; ++t)
        space.weights[t] = static_cast<C>(taps[p.flipped ? at.taps - 1 - t : t]);
      const C init = bias ? static_cast<C>(static_cast<const T*>(bias)[c]) : C(0);
      for (int64_t z = 0; z < d.result; ++z)
        for (int64_t r = 0; r < at.runs; ++r)
          run_taps(space.buffer + z * d.stride * at.slice + r * h.stride * at.row, space.offsets,
                   space.weights, at.taps, init, s > 0, space.line + (z * at.runs + r) * line_pitch, at.run);
    }
    T* out = static_cast<T*>(result) + plane * out_size;
    for (int64_t z = 0; z < d.result; ++z)
      for (int64_t y = 0; y < h.result; ++y, out += w.result) {
        const C* line =
            space.line + (at.flat ? z * line_pitch + y * at.pitch : (z * h.result + y) * line_pitch);
        for (int64_t x = 0; x < w.result; ++x) out[x] = static_cast<T>(line[x]);
      }
  }
}

// The sum of g[x] * in[x + tap] over one run, added to a vector for each tap.
template <class C>
void add_products(const C* in, const int64_t* offsets, int64_t taps, const C* gradient, int64_t n, C* sums) {
  constexpr int64_t L = kLanes<C>;
  int64_t x = 0;
  for (; x + L * kUnroll <= n; x += L * kUnroll)
    for (int64_t part = 0; part < L; part += kRegister<C>) {
      const C* at = gradient + x + part;
      const Vector<C> g0 = load(at), g1 = load(at + L), g2 = load(at + 2 * L), g3 = load(at + 3 * L);
      for (int64_t t = 0; t < taps; ++t) {
        const C* v = in + x + part + offsets[t];
        C* sum = sums + t * L + part;
        store(sum,
              load(sum) + (g0 * load(v) + g1 * load(v + L)) + (g2 * load(v + 2 * L) + g3 * load(v + 3 * L)));
      }
    }
  for (; x < n; x += L)
    for (int64_t part = 0; part < L; part += kRegister<C>) {
      const Vector<C> g = load(gradient + x + part);
      for (int64_t t = 0; t < taps; ++t) {
        C* sum = sums + t * L + part;
        store(sum, load(sum) + g * load(in + x + part + offsets[t]));
      }
    }
}

// The same for one tap, element by element and without what lies between the rows.
template <class C>
double slow_product(const DepthwisePlan& p, const Layout& at, const C* buffer, int64_t offset,
                    const C* gradient, int64_t pitch) {
  const auto& [d, h, w] = p.axis;
  double sum = 0;
  for (int64_t z = 0; z < d.result; ++z)
    for (int64_t y = 0; y < h.result; ++y) {
      const C* in = buffer + z * d.stride * at.slice + y * h.stride * at.row + offset;
      const C* g = gradient + (at.flat ? z * pitch + y * at.pitch : (z * h.result + y) * pitch);
      for (int64_t x = 0; x < w.result; ++x) sum += static_cast<double>(g[x]) * static_cast<double>(in[x]);
    }
  return sum;
}

template <class T>
void weight_gradient(const DepthwisePlan& p, int64_t batch, int64_t begin, int64_t end, const void* input,
                     const void* gradient, void* result) {
  using C = compute_type<T>;
  const Layout at(p, kLanes<C>);
  const auto& [d, h, w] = p.axis;
  const int64_t pitch = round_up(at.run, kLanes<C>), line_size = pitch * at.runs * d.result;
  const Workspace<C> space(p, at, line_size);
  C* sums = static_cast<C*>(take_scratch(at.taps * 64));
  double* totals = static_cast<double*>(take_scratch(at.taps * sizeof(double)));
  const int64_t in_size = plane_size(p, false), out_size = plane_size(p, true);
  for (int64_t c = begin; c < end; ++c) {
    for (int64_t t = 0; t < at.taps; ++t) totals[t] = 0;
    for (int64_t n = 0; n < batch; ++n) {
      place(p, at, static_cast<const T*>(input) + (n * (p.channels / p.copies) + c / p.copies) * in_size,
            space.buffer);
      const T* g = static_cast<const T*>(gradient) + (n * p.channels + c) * out_size;
      for (int64_t z = 0; z < d.result; ++z)
        for (int64_t y = 0; y < h.result; ++y, g += w.result) {
          C* line = space.line + (at.flat ? z * pitch + y * at.pitch : (z * h.result + y) * pitch);
          for (int64_t x = 0; x < w.result; ++x) line[x] = static_cast<C>(g[x]);
        }
      for (int64_t i = 0; i < at.taps * kLanes<C>; ++i) sums[i] = 0;
      for (int64_t z = 0; z < d.result; ++z)
        for (int64_t r = 0; r < at.runs; ++r)
          add_products(space.buffer + z * d.stride * at.slice + r * h.stride * at.row, space.offsets, at.taps,
                       space.line + (z * at.runs + r) * pitch, at.run, sums);
      for (int64_t t = 0; t < at.taps; ++t) {
        double sum = 0;
        for (int64_t i = 0; i < kLanes<C>; ++i) sum += static_cast<double>(sums[t * kLanes<C> + i]);
        // Zeros between the rows have met elements that this tap does not see: harmless if those are finite.
        if (!(std::abs(sum) < std::numeric_limits<C>::infinity()))
          sum = slow_product(p, at, space.buffer, space.offsets[t], space.line, pitch);
        totals[t] += sum;
      }
    }
    for (int64_t t = 0; t < at.taps; ++t)
      static_cast<T*>(result)[c * at.taps + t] = static_cast<T>(static_cast<C>(totals[t]));
  }
  give_scratch(totals);
  give_scratch(sums);
}

}  // namespace

DepthwiseKernels depthwise_kernels(DType dtype) {
  return visit_dtype(FloatTypes{}, dtype, "convolution",
                     []<class T>(T) { return DepthwiseKernels{&apply<T>, &weight_gradient<T>}; });
}

}  // namespace rushlight::cpu::RL_ISA
