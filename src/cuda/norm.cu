// Normalisations. Rows are groups of channels, of which layer norm has one without inner dimension; batch
// norm goes by channel.
#include <cmath>

#include "cuda/channels.h"
#include "cuda/layers.h"
#include "device/layers.h"

namespace rushlight::cuda {
namespace {

struct Added {
  template <class C>
  RL_BOTH C operator()(C a, C b) const {
    return a + b;
  }
};

// Where a row's elements find their channel.
struct RowChannels {
  int64_t n, groups, per_group, inner;
  RL_BOTH int64_t operator()(int64_t row, int64_t i) const {
    return (row % groups) * per_group + (inner == 1 ? i : i / inner);
  }
};

template <class S, class C>
struct NormRow {
  RowChannels channel;
  const S* x;
  const C *weight, *bias;
  S* y;
  C *mean, *rstd;
  C eps;
  bool rms;
  RL_BOTH void operator()(const Block& block) const {
    const int64_t n = channel.n;
    const S* from = x + block.index * n;
    C m = 0, squares = 0;
    if (!rms) {
      for (int64_t i = block.thread; i < n; i += block.threads) m += number<C>(from[i]);
      m = block_reduce(block, m, Added{}) / static_cast<C>(n);
    }
    for (int64_t i = block.thread; i < n; i += block.threads) {
      const C d = number<C>(from[i]) - m;
      squares += d * d;
    }
    const C r = C(1) / std::sqrt(block_reduce(block, squares, Added{}) / static_cast<C>(n) + eps);
    if (block.thread == 0 && mean) mean[block.index] = m;
    if (block.thread == 0 && rstd) rstd[block.index] = r;
    for (int64_t i = block.thread; i < n; i += block.threads) {
      const int64_t c = channel(block.index, i);
      const C scaled = (number<C>(from[i]) - m) * r;
      y[block.index * n + i] = number<S>((weight ? scaled * weight[c] : scaled) + (bias ? bias[c] : C(0)));
    }
  }
};

template <class S, class C>
struct NormRowBackward {
  RowChannels channel;
  const S *grad, *x;
  const C *weight, *mean, *rstd;
  S* grad_x;
  RL_BOTH void operator()(const Block& block) const {
    const int64_t n = channel.n, start = block.index * n;
    const C m = mean ? mean[block.index] : C(0), r = rstd[block.index];
    auto flow = [&](int64_t i) {
      const C g = number<C>(grad[start + i]);
      return weight ? g * weight[channel(block.index, i)] : g;
    };
    Two<C> sums{C(0), C(0)};
    for (int64_t i = block.thread; i < n; i += block.threads) {
      const C g = flow(i);
      sums.first += g;
      sums.second += g * ((number<C>(x[start + i]) - m) * r);
    }
    sums = block_reduce(block, sums, AddTwo{});
    const C along = sums.second / static_cast<C>(n), shift = mean ? sums.first / static_cast<C>(n) : C(0);
    for (int64_t i = block.thread; i < n; i += block.threads) {
      const C centred = (number<C>(x[start + i]) - m) * r;
      grad_x[start + i] = number<S>(r * (flow(i) - shift - centred * along));
    }
  }
};

// The gradient of an element, alone and times the normalised value. Its statistics lie at
// outer * step + channel / share.
template <class S, class C>
struct GradientItem {
  const S *grad, *x;
  const C *mean, *rstd;
  int64_t step, share;
  RL_BOTH Two<C> operator()(int64_t outer, int64_t channel, int64_t offset) const {
    const int64_t at = outer * step + channel / share;
    const C g = number<C>(grad[offset]);
    return {g, g * ((number<C>(x[offset]) - (mean ? mean[at] : C(0))) * rstd[at])};
  }
};
template <class C>
struct KeepGradients {
  C *weight, *bias;
  RL_BOTH void operator()(int64_t c, const Two<C>& total) const {
    if (weight) weight[c] = total.second;
    if (bias) bias[c] = total.first;
  }
};

template <class S, class C>
GradientItem<S, C> item_of(const cpu::NormGradients& a, int64_t step, int64_t share) {
  return {static_cast<const S*>(a.grad),
          static_cast<const S*>(a.x),
          static_cast<const C*>(a.mean),
          static_cast<const C*>(a.rstd),
          step,
          std::max<int64_t>(share, 1)};
}

RowChannels channels_of(cpu::ChannelShape s, int64_t groups) {
  const int64_t per_group = s.channels / groups;
  return {per_group * s.inner, groups, per_group, s.inner};
}

template <class F>
void for_each_row(const Launch& at, int64_t rows, int64_t n, const F& f) {
  if (n <= 16) return for_each_index(at, rows, AloneInBlock<F>{f});
  for_each_block(at, rows, f);
}

// --- by channel

// Count, mean and squared deviations, joined as Chan, Golub and LeVeque do (1979).
template <class C>
struct Moments {
  C count, mean, squares;
};
struct JoinMoments {
  template <class C>
  RL_BOTH Moments<C> operator()(const Moments<C>& a, const Moments<C>& b) const {
    if (b.count == C(0)) return a;
    if (a.count == C(0)) return b;
    const C count = a.count + b.count, d = b.mean - a.mean, part = b.count / count;
    return {count, a.mean + d * part, a.squares + b.squares + d * d * a.count * part};
  }
};
template <class S, class C>
struct OneValue {
  const S* x;
  RL_BOTH Moments<C> operator()(int64_t, int64_t, int64_t offset) const {
    return {C(1), number<C>(x[offset]), C(0)};
  }
};
template <class C>
struct KeepMoments {
  C *mean, *variance;
  RL_BOTH void operator()(int64_t c, const Moments<C>& m) const {
    mean[c] = m.mean;
    variance[c] = m.count == C(0) ? C(0) : m.squares / m.count;
  }
};

template <class C>
struct Constants {
  BatchNormConstants a;
  RL_BOTH void operator()(int64_t c) const {
    auto* mean = static_cast<C*>(a.mean) + c;
    auto* variance = static_cast<C*>(a.variance) + c;
    auto running = [c](void* data, DType dtype, int64_t step) -> void* {
      return data ? static_cast<char*>(data) + c * step * stored_size(dtype) : nullptr;
    };
    void* old_mean = running(a.running_mean, a.mean_dtype, a.mean_step);
    void* old_variance = running(a.running_variance, a.variance_dtype, a.variance_step);
    if (a.training) {
      auto update = [&](void* at, DType dtype, double batch) {
        if (at) store(dtype, at, (1 - a.momentum) * load<double>(dtype, at) + a.momentum * batch);
      };
      update(old_mean, a.mean_dtype, static_cast<double>(*mean));
      update(old_variance, a.variance_dtype, static_cast<double>(*variance) * (a.count / (a.count - 1)));
    } else {
      *mean = load<C>(a.mean_dtype, old_mean);
      *variance = load<C>(a.variance_dtype, old_variance);
    }
    const double inverse = 1 / std::sqrt(static_cast<double>(*variance) + a.eps);
    const double scale = (a.weight ? static_cast<double>(static_cast<const C*>(a.weight)[c]) : 1.0) * inverse;
    const double bias = a.bias ? static_cast<double>(static_cast<const C*>(a.bias)[c]) : 0.0;
    *variance = static_cast<C>(inverse);
    static_cast<C*>(a.scale)[c] = static_cast<C>(scale);
    static_cast<C*>(a.shift)[c] = static_cast<C>(bias - static_cast<double>(*mean) * scale);
  }
};

template <class S, class C>
struct Affine {
  const S* x;
  const C *scale, *shift;
  S* y;
  int64_t channels, inner;
  RL_BOTH void operator()(int64_t i) const {
    const int64_t c = i / inner % channels;
    y[i] = number<S>(number<C>(x[i]) * scale[c] + shift[c]);
  }
};

template <class S, class C>
struct ChannelBackward {
  const S *grad, *x;
  const C *weight, *mean, *rstd, *sums, *products;  // the sums: null in evaluation
  S* grad_x;
  int64_t channels, inner;
  C count;
  RL_BOTH void operator()(int64_t i) const {
    const int64_t c = i / inner % channels;
    C flow = number<C>(grad[i]);
    if (sums) flow -= (sums[c] + (number<C>(x[i]) - mean[c]) * rstd[c] * products[c]) / count;
    grad_x[i] = number<S>(flow * rstd[c] * (weight ? weight[c] : C(1)));
  }
};

template <class S, class C>
void backward_by_channel(int device, cpu::ChannelShape s, const cpu::NormGradients& a, bool training) {
  const Launch launch{device, "batch_norm_backward"};
  DeviceBackend& backend = device_backend(DeviceType::CUDA);
  const size_t bytes = static_cast<size_t>(s.channels) * 2 * sizeof(C);
  auto* own = static_cast<C*>(backend.allocate(bytes, device));
  C* sums = a.grad_bias ? static_cast<C*>(a.grad_bias) : own;
  C* products = a.grad_weight ? static_cast<C*>(a.grad_weight) : own + s.channels;
  reduce_channels(launch, s, Two<C>{C(0), C(0)}, AddTwo{}, item_of<S, C>(a, 0, 1),
                  KeepGradients<C>{products, sums});
  if (a.grad_x)
    for_each_index(launch, s.outer * s.channels * s.inner,
                   ChannelBackward<S, C>{static_cast<const S*>(a.grad), static_cast<const S*>(a.x),
                                         static_cast<const C*>(a.weight), static_cast<const C*>(a.mean),
                                         static_cast<const C*>(a.rstd), training ? sums : nullptr, products,
                                         static_cast<S*>(a.grad_x), s.channels, s.inner,
                                         static_cast<C>(s.outer * s.inner)});
  backend.deallocate(own, bytes, device);
}

}  // namespace

void norm(int device, DType dtype, cpu::ChannelShape s, int64_t groups, const cpu::NormArguments& a,
          bool rms) {
  visit_floating(dtype, [&](auto tag) {
    using S = typename decltype(tag)::type;
    using C = ComputeOf<S>;
    const RowChannels channel = channels_of(s, groups);
    for_each_row({device, "norm"}, s.outer * groups, channel.n,
                 NormRow<S, C>{channel, static_cast<const S*>(a.x), static_cast<const C*>(a.weight),
                               static_cast<const C*>(a.bias), static_cast<S*>(a.y), static_cast<C*>(a.mean),
                               static_cast<C*>(a.rstd), static_cast<C>(a.eps), rms});
  });
}

void norm_backward(int device, DType dtype, cpu::ChannelShape s, int64_t groups, const cpu::NormGradients& a,
                   bool) {
  visit_floating(dtype, [&](auto tag) {
    using S = typename decltype(tag)::type;
    using C = ComputeOf<S>;
    const RowChannels channel = channels_of(s, groups);
    const Launch launch{device, "norm_backward"};
    if (a.grad_x && channel.n > 0)
      for_each_row(launch, s.outer * groups, channel.n,
                   NormRowBackward<S, C>{channel, static_cast<const S*>(a.grad), static_cast<const S*>(a.x),
                                         static_cast<const C*>(a.weight), static_cast<const C*>(a.mean),
                                         static_cast<const C*>(a.rstd), static_cast<S*>(a.grad_x)});
    if (a.grad_weight || a.grad_bias)
      reduce_channels(launch, s, Two<C>{C(0), C(0)}, AddTwo{}, item_of<S, C>(a, groups, channel.per_group),
                      KeepGradients<C>{static_cast<C*>(a.grad_weight), static_cast<C*>(a.grad_bias)});
  });
}

void channel_statistics(int device, DType dtype, cpu::ChannelShape s, const void* x, void* mean,
                        void* variance) {
  visit_floating(dtype, [&](auto tag) {
    using S = typename decltype(tag)::type;
    using C = ComputeOf<S>;
    reduce_channels({device, "batch_norm"}, s, Moments<C>{C(0), C(0), C(0)}, JoinMoments{},
                    OneValue<S, C>{static_cast<const S*>(x)},
                    KeepMoments<C>{static_cast<C*>(mean), static_cast<C*>(variance)});
  });
}

void batch_norm_constants(int device, DType compute, const BatchNormConstants& a) {
  const Launch launch{device, "batch_norm"};
  if (compute == DType::Float64)
    for_each_index(launch, a.channels, Constants<double>{a});
  else
    for_each_index(launch, a.channels, Constants<float>{a});
}

void channel_affine(int device, DType dtype, cpu::ChannelShape s, const void* x, const void* scale,
                    const void* shift, void* y) {
  visit_floating(dtype, [&](auto tag) {
    using S = typename decltype(tag)::type;
    using C = ComputeOf<S>;
    for_each_index({device, "batch_norm"}, s.outer * s.channels * s.inner,
                   Affine<S, C>{static_cast<const S*>(x), static_cast<const C*>(scale),
                                static_cast<const C*>(shift), static_cast<S*>(y), s.channels, s.inner});
  });
}

void channel_backward(int device, DType dtype, cpu::ChannelShape s, const cpu::NormGradients& a,
                      bool training) {
  visit_floating(dtype, [&](auto tag) {
    using S = typename decltype(tag)::type;
    backward_by_channel<S, ComputeOf<S>>(device, s, a, training);
  });
}

}  // namespace rushlight::cuda
