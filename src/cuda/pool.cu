// Maxima and means over windows. Gradients of means are gathered, so that they do not depend on the order in
// which threads run.
#include "cuda/channels.h"
#include "cuda/layers.h"
#include "cuda/pool_flat.h"
#include "cuda/update.h"
#include "device/layers.h"

namespace rushlight::cuda {
namespace {

using formulas::PoolSpan;

template <class S>
using PoolCompute = std::conditional_t<std::is_integral_v<S>, int64_t, ComputeOf<S>>;

// Where an element of planes [planes, axes..., inner] is.
struct Place {
  int64_t plane, at[3], inner;
};
RL_BOTH inline Place place_of(int64_t i, const int64_t (&sizes)[3], int64_t inner) {
  Place p;
  auto split = [&i](int64_t size) {
    const int64_t whole = size == 1 ? i : quotient(i, size), at = i - whole * size;
    i = whole;
    return at;
  };
  p.inner = split(inner);
  for (int a = 2; a >= 0; --a) p.at[a] = split(sizes[a]);
  p.plane = i;
  return p;
}

struct Planes {
  DevicePool pool;
  int64_t in[3], out[3];
  explicit Planes(const DevicePool& p) : pool(p) {
    for (int a = 0; a < 3; ++a) in[a] = p.axis[a].in, out[a] = p.axis[a].out;
  }
  int64_t outputs() const { return pool.planes * out[0] * out[1] * out[2] * pool.inner; }
  int64_t inputs() const { return pool.planes * in[0] * in[1] * in[2] * pool.inner; }
  RL_BOTH int64_t in_plane() const { return in[0] * in[1] * in[2]; }
  // The element at a position of the input plane that belongs to `p`.
  RL_BOTH int64_t input_at(const Place& p, int64_t position) const {
    return (p.plane * in_plane() + position) * pool.inner + p.inner;
  }
  // Calls f(position in the input plane) for the window of an output.
  template <class F>
  RL_BOTH void window(const PoolSpan (&span)[3], F&& f) const {
    for (int64_t z = span[0].start; z < span[0].end; z += pool.axis[0].dilation)
      for (int64_t y = span[1].start; y < span[1].end; y += pool.axis[1].dilation)
        for (int64_t x = span[2].start; x < span[2].end; x += pool.axis[2].dilation)
          f((z * in[1] + y) * in[2] + x);
  }
  template <class C>
  RL_BOTH C divisor(int64_t z, int64_t y, int64_t x) const {
    return static_cast<C>(pool.divisor != 0 ? static_cast<C>(pool.divisor) : static_cast<C>(z * y * x));
  }
};

template <class S>
struct MaxPool {
  using C = PoolCompute<S>;
  Planes planes;
  const S* in;
  S* out;
  int64_t* indices;
  RL_BOTH void operator()(int64_t i) const {
    const Place p = place_of(i, planes.out, planes.pool.inner);
    PoolSpan span[3];
    for (int a = 0; a < 3; ++a) span[a] = formulas::pool_window(planes.pool.axis[a], p.at[a]);
    int64_t best = (span[0].start * planes.in[1] + span[1].start) * planes.in[2] + span[2].start;
    C largest = 0;
    bool any = false;
    planes.window(span, [&](int64_t position) {
      const C value = number<C>(in[planes.input_at(p, position)]);
      if (any && !(value > largest || value != value)) return;
      any = true, largest = value, best = position;
    });
    out[i] = number<S>(largest);
    indices[i] = best;
  }
};

template <class S>
struct MaxPoolBackward {
  using C = PoolCompute<S>;
  Planes planes;
  const S* grad;
  const int64_t* indices;
  S* grad_in;
  RL_BOTH void operator()(int64_t i) const {
    const Place p = place_of(i, planes.out, planes.pool.inner);
    device_assert(indices[i] >= 0 && indices[i] < planes.in_plane(), "index outside of the plane");
    const C g = number<C>(grad[i]);
    update(grad_in + planes.input_at(p, indices[i]), [&](S old) { return number<S>(number<C>(old) + g); });
  }
};

template <class S>
struct MeanPool {
  using C = PoolCompute<S>;
  Planes planes;
  const S* in;
  S* out;
  RL_BOTH void operator()(int64_t i) const {
    const Place p = place_of(i, planes.out, planes.pool.inner);
    PoolSpan span[3];
    for (int a = 0; a < 3; ++a) span[a] = formulas::pool_window(planes.pool.axis[a], p.at[a]);
    C sum = 0;
    planes.window(span, [&](int64_t position) { sum += number<C>(in[planes.input_at(p, position)]); });
    out[i] = number<S>(
        static_cast<C>(sum / planes.template divisor<C>(span[0].count, span[1].count, span[2].count)));
  }
};

template <class S>
struct MeanPoolBackward {
  using C = PoolCompute<S>;
  Planes planes;
  const S* grad;
  S* grad_in;
  RL_BOTH bool covers(int axis, const PoolSpan& span, int64_t at) const {
    if (at < span.start || at >= span.end) return false;
    const int64_t dilation = planes.pool.axis[axis].dilation;
    return dilation == 1 || (at - span.start) % dilation == 0;
  }
  RL_BOTH void operator()(int64_t i) const {
    const Place p = place_of(i, planes.in, planes.pool.inner);
    PoolSpan over[3];
    for (int a = 0; a < 3; ++a) over[a] = formulas::windows_over(planes.pool.axis[a], p.at[a]);
    C sum = 0;
    for (int64_t z = over[0].start; z < over[0].end; ++z) {
      const PoolSpan dz = formulas::pool_window(planes.pool.axis[0], z);
      if (!covers(0, dz, p.at[0])) continue;
      for (int64_t y = over[1].start; y < over[1].end; ++y) {
        const PoolSpan dy = formulas::pool_window(planes.pool.axis[1], y);
        if (!covers(1, dy, p.at[1])) continue;
        for (int64_t x = over[2].start; x < over[2].end; ++x) {
          const PoolSpan dx = formulas::pool_window(planes.pool.axis[2], x);
          if (!covers(2, dx, p.at[2])) continue;
          const int64_t from = ((p.plane * planes.out[0] + z) * planes.out[1] + y) * planes.out[2] + x;
          sum += number<C>(grad[from * planes.pool.inner + p.inner]) /
                 planes.template divisor<C>(dz.count, dy.count, dx.count);
        }
      }
    }
    grad_in[i] = number<S>(sum);
  }
};

// One mean a plane is a reduction.
bool is_global_mean(const Planes& p) {
  for (int a = 0; a < 3; ++a) {
    if (p.out[a] != 1) return false;
    const PoolSpan span = formulas::pool_window(p.pool.axis[a], 0);
    if (span.start != 0 || span.end != p.in[a] || p.pool.axis[a].dilation != 1 || span.count != p.in[a])
      return false;
  }
  return p.in_plane() >= 16 && p.pool.divisor == 0;
}
void global_mean(int device, DType dtype, const Planes& p, const void* in, void* out) {
  View from, to;
  const auto item = static_cast<int64_t>(element_size(dtype));
  from.data = static_cast<char*>(const_cast<void*>(in)), to.data = static_cast<char*>(out);
  from.dtype = to.dtype = dtype, from.device = to.device = device;
  from.rank = 3, to.numel = p.outputs(), from.numel = p.inputs();
  const int64_t sizes[] = {p.pool.planes, p.in_plane(), p.pool.inner};
  for (int64_t d = 2, stride = item; d >= 0; stride *= sizes[d--])
    from.sizes[d] = sizes[d], from.strides[d] = stride;
  run_reduce(Reduction::Sum, from, uint64_t{1} << 1, to, {static_cast<double>(p.in_plane()), nullptr});
}

// Calls f(Tag<S>{}) for what means are computed of.
template <class F>
void visit_means(DType dtype, F&& f) {
  if (dtype == DType::Int64) return f(Tag<int64_t>{});
  visit_floating(dtype, f);
}

}  // namespace

void max_pool(int device, DType dtype, const DevicePool& pool, const void* in, void* out, int64_t* indices) {
  const Planes planes(pool);
  if (is_floating(dtype) && visit_flat(pool, [&](const FlatPool& flat, auto kernel) {
        visit_floating(dtype, [&](auto tag) {
          using S = typename decltype(tag)::type;
          for_each_index({device, "max_pool"}, planes.outputs(),
                         FlatMaxPool<S, decltype(kernel)::value>{flat, static_cast<const S*>(in),
                                                                 static_cast<S*>(out), indices});
        });
      }))
    return;
  visit_stored(dtype, [&](auto tag) {
    using S = typename decltype(tag)::type;
    for_each_index({device, "max_pool"}, planes.outputs(),
                   MaxPool<S>{planes, static_cast<const S*>(in), static_cast<S*>(out), indices});
  });
}

void max_pool_backward(int device, DType dtype, const DevicePool& pool, const void* grad,
                       const int64_t* indices, void* grad_in) {
  const Planes planes(pool);
  visit_stored(dtype, [&](auto tag) {
    using S = typename decltype(tag)::type;
    for_each_index(
        {device, "max_pool_backward"}, planes.outputs(),
        MaxPoolBackward<S>{planes, static_cast<const S*>(grad), indices, static_cast<S*>(grad_in)});
  });
}

void mean_pool(int device, DType dtype, const DevicePool& pool, const void* in, void* out) {
  const Planes planes(pool);
  if (is_global_mean(planes) && is_floating(dtype)) return global_mean(device, dtype, planes, in, out);
  if (is_floating(dtype) && visit_flat(pool, [&](const FlatPool& flat, auto kernel) {
        visit_floating(dtype, [&](auto tag) {
          using S = typename decltype(tag)::type;
          for_each_index({device, "mean_pool"}, planes.outputs(),
                         FlatMeanPool<S, decltype(kernel)::value>{flat, static_cast<const S*>(in),
                                                                  static_cast<S*>(out)});
        });
      }))
    return;
  visit_means(dtype, [&](auto tag) {
    using S = typename decltype(tag)::type;
    for_each_index({device, "mean_pool"}, planes.outputs(),
                   MeanPool<S>{planes, static_cast<const S*>(in), static_cast<S*>(out)});
  });
}

void mean_pool_backward(int device, DType dtype, const DevicePool& pool, const void* grad, void* grad_in) {
  const Planes planes(pool);
  const bool side_by_side = pool.axis[2].kernel == pool.axis[2].stride && pool.axis[2].padding == 0;
  if (is_floating(dtype) && side_by_side && visit_flat(pool, [&](const FlatPool& flat, auto kernel) {
        visit_floating(dtype, [&](auto tag) {
          using S = typename decltype(tag)::type;
          for_each_index({device, "mean_pool_backward"}, planes.inputs(),
                         FlatMeanPoolBackward<S, decltype(kernel)::value>{
                             flat, Divider(static_cast<uint32_t>(flat.width)),
                             Divider(static_cast<uint32_t>(flat.height)), static_cast<const S*>(grad),
                             static_cast<S*>(grad_in)});
        });
      }))
    return;
  visit_means(dtype, [&](auto tag) {
    using S = typename decltype(tag)::type;
    for_each_index({device, "mean_pool_backward"}, planes.inputs(),
                   MeanPoolBackward<S>{planes, static_cast<const S*>(grad), static_cast<S*>(grad_in)});
  });
}

}  // namespace rushlight::cuda
