#include "cpu/fold.h"

#include <algorithm>
#include <cstring>

#include "core/parallel.h"

namespace rushlight::cpu {
namespace {

// The columns [first, stop) of one line of blocks that lie inside the image, and where the first one reads.
struct Inside {
  int64_t first, stop, at;
};
Inside inside(const FoldPlan& p, int64_t tap) {
  const int64_t shift = tap * p.dilation_w - p.pad_w;
  const int64_t first = shift < 0 ? std::min(p.columns, (-shift + p.stride_w - 1) / p.stride_w) : 0;
  const int64_t room = p.width - shift;
  const int64_t stop = room > 0 ? std::min(p.columns, (room + p.stride_w - 1) / p.stride_w) : 0;
  return {first, std::max(first, stop), first * p.stride_w + shift};
}

// Calls f(line of the columns, row of the image or -1, what is inside) for every line of one plane.
template <class F>
void for_lines(const FoldPlan& p, int64_t plane, F&& f) {
  for (int64_t i = 0; i < p.kernel_h; ++i)
    for (int64_t j = 0; j < p.kernel_w; ++j) {
      const Inside in = inside(p, j);
      for (int64_t r = 0; r < p.rows; ++r) {
        const int64_t y = r * p.stride_h - p.pad_h + i * p.dilation_h;
        const int64_t line = ((plane * p.kernel_h + i) * p.kernel_w + j) * p.rows + r;
        f(line * p.columns, y >= 0 && y < p.height ? (plane * p.height + y) * p.width : -1, in);
      }
    }
}

template <class F>
void for_planes(const FoldPlan& p, F&& f) {
  const int64_t cost = p.kernel_h * p.kernel_w * p.rows * p.columns;
  parallel_for(0, p.planes, std::max<int64_t>(1, kGrainSize / std::max<int64_t>(cost, 1)),
               [&](int64_t begin, int64_t end) {
                 for (int64_t plane = begin; plane < end; ++plane) f(plane);
               });
}

template <class E>
void spread(const FoldPlan& p, const E* image, E* columns) {
  for_planes(p, [&](int64_t plane) {
    for_lines(p, plane, [&](int64_t line, int64_t row, Inside in) {
      E* to = columns + line;
      if (row < 0) in.first = in.stop = p.columns;
      std::memset(static_cast<void*>(to), 0, static_cast<size_t>(in.first) * sizeof(E));
      const E* from = image + row + in.at;
      if (p.stride_w == 1 && in.stop > in.first)
        std::memcpy(to + in.first, from, static_cast<size_t>(in.stop - in.first) * sizeof(E));
      else
        for (int64_t c = in.first; c < in.stop; ++c) to[c] = from[(c - in.first) * p.stride_w];
      std::memset(static_cast<void*>(to + in.stop), 0, static_cast<size_t>(p.columns - in.stop) * sizeof(E));
    });
  });
}

struct Wide {
  uint64_t part[2];
};

}  // namespace

void image_to_columns(DType dtype, const FoldPlan& p, const void* image, void* columns) {
  const auto run = [&](auto tag) {
    using E = decltype(tag);
    spread(p, static_cast<const E*>(image), static_cast<E*>(columns));
  };
  switch (element_size(dtype)) {
    case 1:
      return run(uint8_t{});
    case 2:
      return run(uint16_t{});
    case 4:
      return run(uint32_t{});
    case 8:
      return run(uint64_t{});
    default:
      return run(Wide{});
  }
}

void columns_to_image(DType dtype, const FoldPlan& p, const void* columns, void* image) {
  visit_dtype(Concat<TypeList<bool>, FloatTypes, ComplexTypes>{}, dtype, "col2im_out_cpu", [&](auto tag) {
    using T = decltype(tag);
    using C = compute_type<T>;
    for_planes(p, [&](int64_t plane) {
      for_lines(p, plane, [&](int64_t line, int64_t row, Inside in) {
        if (row < 0) return;
        const T* from = static_cast<const T*>(columns) + line;
        T* to = static_cast<T*>(image) + row + in.at;
        const int64_t step = p.stride_w;
        for (int64_t c = in.first; c < in.stop; ++c) {
          T& target = to[(c - in.first) * step];
          if constexpr (std::is_same_v<T, bool>)
            target = target || from[c];
          else
            target = T(static_cast<C>(target) + static_cast<C>(from[c]));
        }
      });
    });
  });
}

}  // namespace rushlight::cpu
