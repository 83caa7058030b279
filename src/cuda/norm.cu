// Normalisations. Rows are groups of channels, of which layer norm has one without inner dimension; batch
// norm goes by channel.
#include <cmath>
#include <initializer_list>

#include "cuda/channels.h"
#include "cuda/held_row.h"
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
    const int64_t group = groups == 1 ? 0 : row - quotient(row, groups) * groups;
    return group * per_group + (inner == 1 ? i : quotient(i, inner));
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
// What one thread sums, relative to its first element: that is no further from the mean than the deviation
// of what it sums allows.
template <class C>
struct Shifted {
  C count, shift, sum, squares;
  RL_BOTH void add(C x) {
    if (count == C(0)) shift = x;
    const C d = x - shift;
    count += C(1), sum += d, squares += d * d;
  }
  RL_BOTH Moments<C> moments() const {
    if (count == C(0)) return {C(0), C(0), C(0)};
    const C mean = sum / count, rest = squares - sum * mean;
    return {count, shift + mean, rest < C(0) ? C(0) : rest};
  }
};
// Of packed rows, whose packs lie within a channel or, without an inner dimension, along channels.
template <class S, class C, int held>
struct PackedNormRow {
  NormRow<S, C> norm;
  RL_BOTH void operator()(const Block& block) const {
    const RowChannels& channel = norm.channel;
    const int64_t packs = channel.n / kPack, inner_packs = channel.inner / kPack;
    const C n = static_cast<C>(channel.n);
    HeldRow<S, C, held> row(norm.x + block.index * channel.n, packs, block);
    C m = 0, squares = 0;
    if (norm.rms) {
      row.each([&](int64_t, const C(&x)[kPack]) {
        for (int k = 0; k < kPack; ++k) squares += x[k] * x[k];
      });
      squares = block_reduce(block, squares, Added{});
    } else if constexpr (row.kHeld > 0) {
      row.each([&](int64_t, const C(&x)[kPack]) {
        for (int k = 0; k < kPack; ++k) m += x[k];
      });
      m = block_reduce(block, m, Added{}) / n;
      row.each([&](int64_t, const C(&x)[kPack]) {
        for (int k = 0; k < kPack; ++k) squares += (x[k] - m) * (x[k] - m);
      });
      squares = block_reduce(block, squares, Added{});
    } else {
      Shifted<C> shifted{};
      row.each([&](int64_t, const C(&x)[kPack]) {
        for (int k = 0; k < kPack; ++k) shifted.add(x[k]);
      });
      const Moments<C> moments = block_reduce(block, shifted.moments(), JoinMoments{});
      m = moments.mean, squares = moments.squares;
    }
    const C r = C(1) / std::sqrt(squares / n + norm.eps);
    if (block.thread == 0 && norm.mean) norm.mean[block.index] = m;
    if (block.thread == 0 && norm.rstd) norm.rstd[block.index] = r;
    const int64_t first = channel(block.index, 0);
    S* y = norm.y + block.index * channel.n;
    row.each([&](int64_t i, const C(&x)[kPack]) {
      C scaled[kPack];
      for (int k = 0; k < kPack; ++k) scaled[k] = (x[k] - m) * r;
      if (inner_packs == 0) {
        const int64_t c = first + i * kPack;
        if (norm.weight) {
          const auto w = *reinterpret_cast<const Pack<C, kPack>*>(norm.weight + c);
          for (int k = 0; k < kPack; ++k) scaled[k] *= w.v[k];
        }
        if (norm.bias) {
          const auto b = *reinterpret_cast<const Pack<C, kPack>*>(norm.bias + c);
          for (int k = 0; k < kPack; ++k) scaled[k] += b.v[k];
        }
      } else if (norm.weight || norm.bias) {
        const int64_t c = first + quotient(i, inner_packs);
        const C w = norm.weight ? norm.weight[c] : C(1), b = norm.bias ? norm.bias[c] : C(0);
        for (int k = 0; k < kPack; ++k) scaled[k] = scaled[k] * w + b;
      }
      write_pack(y, i, scaled);
    });
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

// Of packed rows, as PackedNormRow.
template <class S, class C, int held>
struct PackedNormRowBackward {
  NormRowBackward<S, C> norm;
  RL_BOTH void operator()(const Block& block) const {
    const RowChannels& channel = norm.channel;
    const int64_t start = block.index * channel.n, packs = channel.n / kPack;
    const int64_t inner_packs = channel.inner / kPack, first = channel(block.index, 0);
    const C m = norm.mean ? norm.mean[block.index] : C(0), r = norm.rstd[block.index];
    const C n = static_cast<C>(channel.n);
    HeldRow<S, C, held> grads(norm.grad + start, packs, block), xs(norm.x + start, packs, block);
    auto weigh = [&](int64_t i, const C(&g)[kPack], C(&flow)[kPack]) {
      const bool along = inner_packs == 0;
      const C* w =
          norm.weight ? norm.weight + first + (along ? i * kPack : quotient(i, inner_packs)) : nullptr;
      for (int k = 0; k < kPack; ++k) flow[k] = w ? g[k] * w[along ? k : 0] : g[k];
    };
    Two<C> sums{C(0), C(0)};
    grads.each_with(xs, [&](int64_t i, const C(&g)[kPack], const C(&x)[kPack]) {
      C flow[kPack];
      weigh(i, g, flow);
      for (int k = 0; k < kPack; ++k) sums.first += flow[k], sums.second += flow[k] * ((x[k] - m) * r);
    });
    sums = block_reduce(block, sums, AddTwo{});
    const C along = sums.second / n, shift = norm.mean ? sums.first / n : C(0);
    grads.each_with(xs, [&](int64_t i, const C(&g)[kPack], const C(&x)[kPack]) {
      C flow[kPack];
      weigh(i, g, flow);
      for (int k = 0; k < kPack; ++k) flow[k] = r * (flow[k] - shift - (x[k] - m) * r * along);
      write_pack(norm.grad_x + start, i, flow);
    });
  }
};

// By channel the sums of gradients, alone and times the normalised values. An element's statistics lie at
// outer * step + channel / share.
template <class S, class C>
struct GradientSums : ChannelOperation<GradientSums<S, C>, Two<C>, AddTwo> {
  const S *grad, *x;
  const C *mean, *rstd;
  int64_t step, share;
  bool by_position;  // the outer dimension is the position in a column
  C *grad_weight, *grad_bias;

  struct Statistics {
    C mean, rstd;
    int64_t place;
  };
  template <int W>
  struct Loaded {
    Pack<S, W> grad, x;
    int64_t outer;
    Statistics row;
  };
  RL_BOTH Statistics at(int64_t place) const { return {mean ? mean[place] : C(0), rstd[place], place}; }
  template <int W>
  RL_BOTH Loaded<W> load(int64_t offset, int64_t outer) const {
    Loaded<W> loaded{*reinterpret_cast<const Pack<S, W>*>(grad + offset),
                     *reinterpret_cast<const Pack<S, W>*>(x + offset),
                     outer,
                     {}};
    if (by_position && step == 1) loaded.row = at(outer);
    return loaded;
  }
  RL_BOTH Statistics context(int64_t channel, int64_t run) const {
    const int64_t part = share == 1 ? channel : quotient(channel, share);
    return by_position ? Statistics{C(0), C(0), part} : at(run * step + part);
  }
  template <int W>
  RL_BOTH void fold(Two<C>& sums, const Loaded<W>& v, int k, const Statistics& channel, int64_t) const {
    const Statistics s = !by_position ? channel : step == 1 ? v.row : at(v.outer * step + channel.place);
    const C g = number<C>(v.grad.v[k]);
    sums.first += g;
    sums.second += g * ((number<C>(v.x.v[k]) - s.mean) * s.rstd);
  }
  RL_BOTH void finish(int64_t c, const Two<C>& sums) const {
    if (grad_weight) grad_weight[c] = sums.second;
    if (grad_bias) grad_bias[c] = sums.first;
  }
};

// step: groups of a row, 0 where statistics are those of channels.
template <class S, class C>
void sum_gradients(const Launch& launch, cpu::ChannelShape s, const cpu::NormGradients& a, int64_t step,
                   int64_t share, C* grad_weight, C* grad_bias) {
  GradientSums<S, C> sums;
  sums.grad = static_cast<const S*>(a.grad), sums.x = static_cast<const S*>(a.x);
  sums.mean = static_cast<const C*>(a.mean), sums.rstd = static_cast<const C*>(a.rstd);
  sums.step = step, sums.share = std::max<int64_t>(share, 1);
  sums.by_position = step != 0 && s.inner == 1;
  sums.grad_weight = grad_weight, sums.grad_bias = grad_bias;
  reduce_channels(launch, s, packs(a.grad, sizeof(S)) && packs(a.x, sizeof(S)), sums);
}

RowChannels channels_of(cpu::ChannelShape s, int64_t groups) {
  const int64_t per_group = s.channels / groups;
  return {per_group * s.inner, groups, per_group, s.inner};
}

// Whether packs of rows lie within a channel or, without an inner dimension, along channels.
bool in_packs(cpu::ChannelShape s, const RowChannels& channel, size_t item,
              std::initializer_list<const void*> operands) {
  return channel.n > 16 && (s.inner == 1 ? channel.per_group : s.inner) % kPack == 0 &&
         std::all_of(operands.begin(), operands.end(), [item](const void* p) { return packs(p, item); });
}

template <class F>
void for_each_row(const Launch& at, int64_t rows, int64_t n, const F& f) {
  if (n <= 16) return for_each_index(at, rows, AloneInBlock<F>{f});
  for_each_block(at, rows, f);
}

// --- by channel

template <class S, class C>
struct ChannelMoments : ChannelOperation<ChannelMoments<S, C>, Moments<C>, JoinMoments> {
  using Acc = Shifted<C>;
  static constexpr int kResident = 3;
  const S* x;
  C *mean, *variance;
  RL_BOTH Shifted<C> begin() const { return Shifted<C>{}; }
  RL_BOTH Moments<C> total(const Shifted<C>& acc) const { return acc.moments(); }
  template <int W>
  RL_BOTH Pack<S, W> load(int64_t offset, int64_t) const {
    return *reinterpret_cast<const Pack<S, W>*>(x + offset);
  }
  RL_BOTH char context(int64_t, int64_t) const { return 0; }
  template <int W>
  RL_BOTH void fold(Shifted<C>& acc, const Pack<S, W>& pack, int k, char, int64_t) const {
    acc.add(number<C>(pack.v[k]));
  }
  RL_BOTH void finish(int64_t c, const Moments<C>& m) const {
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

// The channels of a pack of [outer, channels, inner]: one, or W that are neighbours.
template <int W>
struct PackChannels {
  int64_t channels, inner;
  RL_BOTH int64_t first(int64_t pack) const {
    if (inner == 1) {
      const int64_t across = channels / W;
      return (pack - quotient(pack, across) * across) * W;
    }
    const int64_t line = quotient(pack, inner / W);
    return line - quotient(line, channels) * channels;
  }
  RL_BOTH int64_t step() const { return inner == 1 ? 1 : 0; }
};

template <class S, class C, int W>
struct Affine {
  const S* x;
  const C *scale, *shift;
  S* y;
  PackChannels<W> channels;
  RL_BOTH void operator()(int64_t i) const {
    const int64_t c = channels.first(i), step = channels.step();
    auto pack = reinterpret_cast<const Pack<S, W>*>(x)[i];
    for (int k = 0; k < W; ++k)
      pack.v[k] = number<S>(number<C>(pack.v[k]) * scale[c + k * step] + shift[c + k * step]);
    reinterpret_cast<Pack<S, W>*>(y)[i] = pack;
  }
};

template <class S, class C, int W>
struct ChannelBackward {
  const S *grad, *x;
  const C *weight, *mean, *rstd, *sums, *products;  // the sums: null in evaluation
  S* grad_x;
  PackChannels<W> channels;
  C count;
  RL_BOTH void operator()(int64_t i) const {
    const int64_t first = channels.first(i), step = channels.step();
    auto flows = reinterpret_cast<const Pack<S, W>*>(grad)[i];
    Pack<S, W> xs;
    if (sums) xs = reinterpret_cast<const Pack<S, W>*>(x)[i];
    for (int k = 0; k < W; ++k) {
      const int64_t c = first + k * step;
      C flow = number<C>(flows.v[k]);
      if (sums) flow -= (sums[c] + (number<C>(xs.v[k]) - mean[c]) * rstd[c] * products[c]) / count;
      flows.v[k] = number<S>(flow * rstd[c] * (weight ? weight[c] : C(1)));
    }
    reinterpret_cast<Pack<S, W>*>(grad_x)[i] = flows;
  }
};

// f(Held<W>{}) with as many elements as a pack of the shape may have.
template <class F>
void for_packs(cpu::ChannelShape s, bool aligned, F&& f) {
  const int64_t line = s.inner == 1 ? s.channels : s.inner;
  aligned&& line % kPack == 0 ? f(Held<kPack>{}) : f(Held<1>{});
}

template <class S, class C>
void backward_by_channel(int device, cpu::ChannelShape s, const cpu::NormGradients& a, bool training) {
  const Launch launch{device, "batch_norm_backward"};
  DeviceBackend& backend = device_backend(DeviceType::CUDA);
  const size_t bytes = static_cast<size_t>(s.channels) * 2 * sizeof(C);
  auto* own = static_cast<C*>(backend.allocate(bytes, device));
  C* sums = a.grad_bias ? static_cast<C*>(a.grad_bias) : own;
  C* products = a.grad_weight ? static_cast<C*>(a.grad_weight) : own + s.channels;
  sum_gradients<S, C>(launch, s, a, 0, 1, products, sums);
  if (a.grad_x)
    for_packs(s, packs(a.grad, sizeof(S)) && packs(a.x, sizeof(S)) && packs(a.grad_x, sizeof(S)),
              [&](auto width) {
                constexpr int W = decltype(width)::value;
                for_each_index(launch, s.outer * s.channels * s.inner / W,
                               ChannelBackward<S, C, W>{static_cast<const S*>(a.grad),
                                                        static_cast<const S*>(a.x),
                                                        static_cast<const C*>(a.weight),
                                                        static_cast<const C*>(a.mean),
                                                        static_cast<const C*>(a.rstd),
                                                        training ? sums : nullptr,
                                                        products,
                                                        static_cast<S*>(a.grad_x),
                                                        {s.channels, s.inner},
                                                        static_cast<C>(s.outer * s.inner)});
              });
  backend.deallocate(own, bytes, device);
}

}  // namespace

void norm(int device, DType dtype, cpu::ChannelShape s, int64_t groups, const cpu::NormArguments& a,
          bool rms) {
  visit_floating(dtype, [&](auto tag) {
    using S = typename decltype(tag)::type;
    using C = ComputeOf<S>;
    const RowChannels channel = channels_of(s, groups);
    const NormRow<S, C> row{channel,
                            static_cast<const S*>(a.x),
                            static_cast<const C*>(a.weight),
                            static_cast<const C*>(a.bias),
                            static_cast<S*>(a.y),
                            static_cast<C*>(a.mean),
                            static_cast<C*>(a.rstd),
                            static_cast<C>(a.eps),
                            rms};
    if (in_packs(s, channel, sizeof(S), {a.x, a.y}) && packs(a.weight, sizeof(C)) && packs(a.bias, sizeof(C)))
      return for_each_held_row<sizeof(C) == 4 ? 8 : 4>(
          {device, "norm"}, s.outer * groups, channel.n / kPack,
          [&](auto held) { return PackedNormRow<S, C, decltype(held)::value>{row}; });
    for_each_row({device, "norm"}, s.outer * groups, channel.n, row);
  });
}

void norm_backward(int device, DType dtype, cpu::ChannelShape s, int64_t groups, const cpu::NormGradients& a,
                   bool) {
  visit_floating(dtype, [&](auto tag) {
    using S = typename decltype(tag)::type;
    using C = ComputeOf<S>;
    const RowChannels channel = channels_of(s, groups);
    const Launch launch{device, "norm_backward"};
    const NormRowBackward<S, C> row{channel,
                                    static_cast<const S*>(a.grad),
                                    static_cast<const S*>(a.x),
                                    static_cast<const C*>(a.weight),
                                    static_cast<const C*>(a.mean),
                                    static_cast<const C*>(a.rstd),
                                    static_cast<S*>(a.grad_x)};
    if (a.grad_x && channel.n > 0) {
      if (in_packs(s, channel, sizeof(S), {a.grad, a.x, a.grad_x}))
        for_each_held_row<4>(launch, s.outer * groups, channel.n / kPack, [&](auto held) {
          return PackedNormRowBackward<S, C, decltype(held)::value>{row};
        });
      else
        for_each_row(launch, s.outer * groups, channel.n, row);
    }
    if (a.grad_weight || a.grad_bias)
      sum_gradients<S, C>(launch, s, a, groups, channel.per_group, static_cast<C*>(a.grad_weight),
                          static_cast<C*>(a.grad_bias));
  });
}

void channel_statistics(int device, DType dtype, cpu::ChannelShape s, const void* x, void* mean,
                        void* variance) {
  visit_floating(dtype, [&](auto tag) {
    using S = typename decltype(tag)::type;
    using C = ComputeOf<S>;
    ChannelMoments<S, C> moments;
    moments.x = static_cast<const S*>(x);
    moments.mean = static_cast<C*>(mean), moments.variance = static_cast<C*>(variance);
    reduce_channels({device, "batch_norm"}, s, packs(x, sizeof(S)), moments);
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
    for_packs(s, packs(x, sizeof(S)) && packs(y, sizeof(S)), [&](auto width) {
      constexpr int W = decltype(width)::value;
      for_each_index({device, "batch_norm"}, s.outer * s.channels * s.inner / W,
                     Affine<S, C, W>{static_cast<const S*>(x),
                                     static_cast<const C*>(scale),
                                     static_cast<const C*>(shift),
                                     static_cast<S*>(y),
                                     {s.channels, s.inner}});
    });
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
