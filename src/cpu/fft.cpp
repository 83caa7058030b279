#include "cpu/fft.h"

#include <algorithm>

#include "core/parallel.h"
#include "cpu/fft_mkl.h"
#include "cpu/fft_plan.h"
#include "cpu/odometer.h"

namespace rushlight::cpu {
namespace {

// The lines along one axis: sizes of everything else and its strides on both sides, smallest steps last.
struct Lines {
  Dims sizes, in, out;
  int64_t count = 1;
};

Lines lines_of(std::vector<FftAxis> others) {
  std::ranges::stable_sort(others, std::greater{}, &FftAxis::out_stride);
  Lines lines;
  for (const FftAxis& a : others) {
    lines.sizes.push_back(a.n), lines.in.push_back(a.in_stride), lines.out.push_back(a.out_stride);
    lines.count *= a.n;
  }
  lines.sizes.push_back(1), lines.in.push_back(0), lines.out.push_back(0);
  return lines;
}

// Several lines at a time: load(into, step, offset), all passes, store(from, step, offset).
template <class T, class Load, class Store>
void for_lines(const FftPlan<T>& plan, const Lines& lines, Load&& load, Store&& store) {
  const int64_t at_once = std::min(plan.lines_at_once(), lines.count);
  if (at_once == 0) return;
  // Threads share groups of lines: which lines are computed together shows in the last bits of their results.
  const int64_t groups = (lines.count + at_once - 1) / at_once;
  const int64_t grain = std::max<int64_t>(1, kGrainSize / 8 / std::max<int64_t>(plan.n * at_once, 1));
  parallel_for(0, groups, grain, [&](int64_t first, int64_t last) {
    const int64_t begin = first * at_once, end = std::min(last * at_once, lines.count);
    std::vector<std::complex<T>> buffer(plan.buffer_size() * static_cast<size_t>(at_once));
    int64_t from[8], to[8], held = 0;
    auto flush = [&] {
      for (int64_t j = 0; j < held; ++j) load(buffer.data() + j, held, from[j]);
      const std::complex<T>* result = RL_ISA_VARIANT(fft_lines(plan, held, buffer.data()));
      for (int64_t j = 0; j < held; ++j) store(result + j, held, to[j]);
      held = 0;
    };
    for_each_row<2>(lines.sizes, {IntList(lines.in), IntList(lines.out)}, begin, end, [&](auto& offset) {
      from[held] = offset[0], to[held] = offset[1];
      if (++held == at_once) flush();
    });
    if (held) flush();
  });
}

// The inverse transform is the conjugate of the forward transform of the conjugate.
template <class T>
void complex_lines(const FftAxis& axis, const Lines& lines, bool forward, T scale, const std::complex<T>* in,
                   std::complex<T>* out) {
  const auto plan = fft_plan<T>(axis.n);
  auto turned = [forward](std::complex<T> z) { return forward ? z : std::conj(z); };
  for_lines<T>(
      *plan, lines,
      [&](std::complex<T>* into, int64_t step, int64_t offset) {
        for (int64_t i = 0; i < axis.n; ++i) into[i * step] = turned(in[offset + i * axis.in_stride]);
      },
      [&](const std::complex<T>* from, int64_t step, int64_t offset) {
        for (int64_t i = 0; i < axis.n; ++i)
          out[offset + i * axis.out_stride] = scale * turned(from[i * step]);
      });
}

template <class T>
std::vector<std::complex<T>> half_circle(int64_t n) {
  std::vector<std::complex<T>> roots;
  for (int64_t k = 0; k <= n / 2; ++k) roots.push_back(std::complex<T>(unit_root(k, n)));
  return roots;
}
template <class T>
std::complex<T> product(std::complex<T> a, std::complex<T> b) {  // without a branch for infinities
  return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
}

// An even number of real points is a transform of half as many complex points, taken apart afterwards.
template <class T>
void real_lines(const FftAxis& axis, const Lines& lines, T scale, const T* in, std::complex<T>* out) {
  const int64_t n = axis.n, half = n / 2;
  if (n % 2) {
    return for_lines<T>(
        *fft_plan<T>(n), lines,
        [&](std::complex<T>* into, int64_t step, int64_t offset) {
          for (int64_t i = 0; i < n; ++i) into[i * step] = in[offset + i * axis.in_stride];
        },
        [&](const std::complex<T>* from, int64_t step, int64_t offset) {
          for (int64_t i = 0; i <= half; ++i) out[offset + i * axis.out_stride] = scale * from[i * step];
        });
  }
  const auto roots = half_circle<T>(n);
  for_lines<T>(
      *fft_plan<T>(half), lines,
      [&](std::complex<T>* into, int64_t step, int64_t offset) {
        const T* x = in + offset;
        for (int64_t i = 0; i < half; ++i)
          into[i * step] = {x[2 * i * axis.in_stride], x[(2 * i + 1) * axis.in_stride]};
      },
      [&](const std::complex<T>* from, int64_t step, int64_t offset) {
        for (int64_t k = 0; k <= half; ++k) {
          const std::complex<T> a = from[k % half * step], b = std::conj(from[(half - k) % half * step]);
          const std::complex<T> odd = product(roots[static_cast<size_t>(k)], a - b);
          const std::complex<T> sum = a + b + std::complex<T>(odd.imag(), -odd.real());
          out[offset + k * axis.out_stride] = scale / 2 * sum;
        }
      });
}

template <class T>
void back_to_real_lines(const FftAxis& axis, const Lines& lines, T scale, const std::complex<T>* in, T* out) {
  const int64_t n = axis.n, half = n / 2;
  // The ends of a real signal's spectrum are real: what else is there does not count.
  auto point = [&](int64_t offset, int64_t k) {
    const std::complex<T> z = in[offset + k * axis.in_stride];
    return k == 0 || 2 * k == n ? std::complex<T>(z.real()) : z;
  };
  if (n % 2) {
    return for_lines<T>(
        *fft_plan<T>(n), lines,
        [&](std::complex<T>* into, int64_t step, int64_t offset) {
          into[0] = point(offset, 0);
          for (int64_t k = 1; k <= half; ++k) {
            into[(n - k) * step] = point(offset, k);
            into[k * step] = std::conj(into[(n - k) * step]);
          }
        },
        [&](const std::complex<T>* from, int64_t step, int64_t offset) {
          for (int64_t i = 0; i < n; ++i) out[offset + i * axis.out_stride] = scale * from[i * step].real();
        });
  }
  const auto roots = half_circle<T>(n);
  for_lines<T>(
      *fft_plan<T>(half), lines,
      [&](std::complex<T>* into, int64_t step, int64_t offset) {
        for (int64_t k = 0; k < half; ++k) {
          const std::complex<T> a = point(offset, k), b = std::conj(point(offset, half - k));
          const std::complex<T> odd = product(std::conj(roots[static_cast<size_t>(k)]), a - b);
          into[k * step] = std::conj(a + b + std::complex<T>(-odd.imag(), odd.real()));
        }
      },
      [&](const std::complex<T>* from, int64_t step, int64_t offset) {
        T* x = out + offset;
        for (int64_t i = 0; i < half; ++i) {
          x[2 * i * axis.out_stride] = scale * from[i * step].real();
          x[(2 * i + 1) * axis.out_stride] = -scale * from[i * step].imag();
        }
      });
}

// Axis after axis; the first pass moves the data from `in` to `out`, the others stay there.
template <class T>
void run_loops(const Fft& f, const void* in, void* out) {
  std::vector<FftAxis> axes = f.axes, batch = f.batch;
  const bool real = f.kind == FftKind::RealToComplex;
  const size_t count = axes.size();
  for (size_t step = 0; step < count; ++step) {
    const size_t a = count - 1 - step;
    std::vector<FftAxis> others = batch;
    for (size_t b = 0; b < count; ++b) {
      if (b == a) continue;
      others.push_back(axes[b]);
      // After the first pass only half of the last axis is there.
      if (real && b == count - 1) others.back().n = axes[b].n / 2 + 1;
    }
    const Lines lines = lines_of(others);
    const T scale = step + 1 == count ? static_cast<T>(f.scale) : T(1);
    auto* z = static_cast<std::complex<T>*>(out);
    if (f.kind == FftKind::ComplexToReal)
      back_to_real_lines<T>(axes[a], lines, scale, static_cast<const std::complex<T>*>(in),
                            static_cast<T*>(out));
    else if (real && step == 0)
      real_lines<T>(axes[a], lines, scale, static_cast<const T*>(in), z);
    else
      complex_lines<T>(axes[a], lines, real || f.forward, scale,
                       step ? z : static_cast<const std::complex<T>*>(in), z);
    if (step) continue;
    for (FftAxis& axis : axes) axis.in_stride = axis.out_stride;
    for (FftAxis& axis : batch) axis.in_stride = axis.out_stride;
  }
}

template <class T>
void fill_conjugate(const Fft& f, std::complex<T>* out) {
  const FftAxis& last = f.axes.back();
  std::vector<FftAxis> outer = f.batch;
  const size_t first_axis = outer.size();
  outer.insert(outer.end(), f.axes.begin(), f.axes.end() - 1);
  int64_t rows = 1;
  for (const FftAxis& a : outer) rows *= a.n;
  // Neighbours in memory are written together, be they of one row or of several.
  constexpr int64_t kTogether = 32;
  const int64_t together = last.out_stride == 1 ? 1 : kTogether;
  parallel_for(0, rows, std::max<int64_t>(together, kGrainSize / last.n), [&](int64_t begin, int64_t end) {
    for (int64_t first = begin; first < end; first += together) {
      const int64_t count = std::min(together, end - first);
      int64_t to[kTogether], from[kTogether];
      for (int64_t j = 0; j < count; ++j) {
        int64_t rest = first + j;
        to[j] = from[j] = 0;
        for (size_t d = outer.size(); d-- > 0; rest /= outer[d].n) {
          const int64_t i = rest % outer[d].n;
          to[j] += i * outer[d].out_stride;
          from[j] += (d < first_axis || i == 0 ? i : outer[d].n - i) * outer[d].out_stride;
        }
      }
      for (int64_t k = last.n / 2 + 1; k < last.n; ++k)
        for (int64_t j = 0; j < count; ++j)
          out[to[j] + k * last.out_stride] = std::conj(out[from[j] + (last.n - k) * last.out_stride]);
    }
  });
}

// Fewer axes for the same work: those of one point go, neighbours in memory join.
std::vector<FftAxis> collapsed(std::vector<FftAxis> batch) {
  std::erase_if(batch, [](const FftAxis& a) { return a.n == 1; });
  std::ranges::stable_sort(batch, std::greater{}, &FftAxis::out_stride);
  std::vector<FftAxis> joined;
  for (const FftAxis& a : batch) {
    if (!joined.empty()) {
      FftAxis& outer = joined.back();
      if (outer.in_stride == a.n * a.in_stride && outer.out_stride == a.n * a.out_stride) {
        outer = {outer.n * a.n, a.in_stride, a.out_stride};
        continue;
      }
    }
    joined.push_back(a);
  }
  return joined;
}

}  // namespace

void fft_loops(const Fft& transform, const void* in, void* out) {
  if (transform.double_precision)
    run_loops<double>(transform, in, out);
  else
    run_loops<float>(transform, in, out);
}

void fft(const Fft& transform, const void* in, void* out) {
  for (const FftAxis& a : transform.batch)
    if (a.n == 0) return;
  Fft simpler = transform;
  simpler.batch = collapsed(simpler.batch);
  // Complex axes have no order of their own: the last one's points should be neighbours in memory.
  if (simpler.kind == FftKind::Complex)
    std::ranges::stable_sort(simpler.axes, std::greater{}, &FftAxis::out_stride);
#ifdef RUSHLIGHT_WITH_MKL
  fft_mkl(simpler, in, out);
#else
  fft_loops(simpler, in, out);
#endif
}

void fft_fill_conjugate(const Fft& transform, void* out) {
  for (const FftAxis& a : transform.batch)
    if (a.n == 0) return;
  if (transform.double_precision)
    fill_conjugate(transform, static_cast<std::complex<double>*>(out));
  else
    fill_conjugate(transform, static_cast<std::complex<float>*>(out));
}

}  // namespace rushlight::cpu
