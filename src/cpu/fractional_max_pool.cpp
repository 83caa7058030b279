#include "cpu/fractional_max_pool.h"

#include "core/parallel.h"

namespace rushlight::cpu {
namespace {

template <class T>
struct Best {
  compute_type<T> value;
  int64_t at;

  void consider(T candidate, int64_t position) {
    const auto x = static_cast<compute_type<T>>(candidate);
    if (x > value || x != x) value = x, at = position;
  }
};

// `starts`: of this plane.
template <class T>
void max_of_plane(const FractionalWindows& w, const int64_t* starts, const T* in, T* out, int64_t* indices) {
  constexpr int64_t kFlat[] = {0};
  const int64_t *deep = w.dims == 3 ? starts : kFlat, *high = w.dims == 3 ? starts + w.out[0] : starts,
                *wide = high + w.out[1];
  for (int64_t d = 0; d < w.out[0]; ++d)
    for (int64_t h = 0; h < w.out[1]; ++h)
      for (int64_t x = 0; x < w.out[2]; ++x, ++out, ++indices) {
        const int64_t corner = (deep[d] * w.in[1] + high[h]) * w.in[2] + wide[x];
        Best<T> best{static_cast<compute_type<T>>(in[corner]), corner};
        for (int64_t i = 0; i < w.kernel[0]; ++i)
          for (int64_t j = 0; j < w.kernel[1]; ++j) {
            const int64_t row = corner + (i * w.in[1] + j) * w.in[2];
            for (int64_t k = 0; k < w.kernel[2]; ++k) best.consider(in[row + k], row + k);
          }
        *out = static_cast<T>(best.value), *indices = best.at;
      }
}

}  // namespace

bool FractionalWindows::within() const {
  const int64_t* start = starts;
  bool inside = true;
  for (int64_t plane = 0; plane < planes; ++plane)
    for (size_t d = static_cast<size_t>(3 - dims); d < 3; ++d)
      for (int64_t i = 0; i < out[d]; ++i, ++start) inside &= *start >= 0 && *start <= in[d] - kernel[d];
  return inside;
}

void fractional_max_pool(const FractionalWindows& w, DType dtype, const void* in, void* out,
                         int64_t* indices) {
  const int64_t cost = w.out_plane() * w.kernel[0] * w.kernel[1] * w.kernel[2], starts = w.starts_of_plane();
  visit_dtype(FloatTypes{}, dtype, "fractional_max_pool", [&]<class T>(T) {
    parallel_for(0, w.planes, std::max<int64_t>(1, kGrainSize / std::max<int64_t>(1, cost)),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t p = begin; p < end; ++p)
                     max_of_plane(w, w.starts + p * starts, static_cast<const T*>(in) + p * w.in_plane(),
                                  static_cast<T*>(out) + p * w.out_plane(), indices + p * w.out_plane());
                 });
  });
}

}  // namespace rushlight::cpu
