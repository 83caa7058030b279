#include "cpu/winograd.h"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "core/constant_memory.h"
#include "core/device_math.h"
#include "core/parallel.h"
#include "cpu/buffer.h"
#include "cpu/chain_product.h"
#include "cpu/gemm.h"
#include "cpu/has_vectors.h"
#include "cpu/isa_variant.h"
#include "cpu/onednn_cache.h"

namespace rushlight::cpu {

#ifdef RUSHLIGHT_WITH_ONEDNN

RL_DECLARE_VARIANTS(WinogradKernels winograd_kernels(int results);)

namespace {

using dnnl::memory;

// Below these the transforms cost what the products save: channels on either side, and tiles. Where filters
// are transformed more is at stake than where they are what results.
constexpr int64_t kLeastChannels = 16, kLeastTiles = 96, kLeastWeightTiles = 32, kLeastLargeTiles = 32;
// Of one image, where the batch must not decide.
constexpr int64_t kLeastImageTiles = 9, kLeastLargeImageTiles = 4;
// Of transformed tiles. The same for any number of threads, so that results are where oneDNN's products are:
// with AVX-512.
constexpr int64_t kCacheBytes = 1 << 20;

WinogradKernels kernels_of(int64_t results) {
  return RL_ISA_VARIANT(winograd_kernels(static_cast<int>(results)));
}

WinogradTiles tiles_of(const ConvShape& s, bool gradient, int64_t results) {
  WinogradTiles t{};
  t.results = results;
  t.height = gradient ? s.output[1] : s.input[1], t.width = gradient ? s.output[2] : s.input[2];
  t.out_height = gradient ? s.input[1] : s.output[1], t.out_width = gradient ? s.input[2] : s.output[2];
  t.channels = gradient ? s.out_channels : s.in_channels;
  t.out_channels = gradient ? s.in_channels : s.out_channels;
  t.rows = (t.out_height + results - 1) / results, t.columns = (t.out_width + results - 1) / results;
  t.top = gradient ? 2 - s.padding[1] : s.padding[1], t.left = gradient ? 2 - s.padding[2] : s.padding[2];
  return t;
}

// Products [lines, channels] x [channels, out_channels], the filters in an order of oneDNN's own.
struct Plan {
  dnnl::matmul primitive;
  memory::desc tiles, filters, products, scratch;
};

// Transformed filters as they are written, in the order of the weight's first two dimensions.
memory::desc natural_filters(const WinogradTiles& t, bool turned) {
  const int64_t in = t.channels, out = t.out_channels;
  return {{t.points(), in, out},
          memory::data_type::f32,
          turned ? memory::dims{in * out, out, 1} : memory::dims{in * out, 1, in}};
}

Plan make_plan(int64_t lines, const WinogradTiles& t, bool turned) {
  using tag = memory::format_tag;
  const int64_t points = t.points(), channels = t.channels, out_channels = t.out_channels;
  const auto type = memory::data_type::f32;
  dnnl::primitive_attr attr;
  attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  const auto make = [&](const memory::desc& filters) {
    return dnnl::matmul::primitive_desc(onednn_engine(),
                                        memory::desc({points, lines, channels}, type, tag::abc), filters,
                                        memory::desc({points, lines, out_channels}, type, tag::abc), attr);
  };
  auto pd = make(memory::desc({points, channels, out_channels}, type, tag::any));
  // A product that packs its factors itself takes them in any order.
  if (pd.weights_desc() == memory::desc({points, channels, out_channels}, type, tag::abc))
    pd = make(natural_filters(t, turned));
  return {dnnl::matmul(pd), pd.src_desc(), pd.weights_desc(), pd.dst_desc(), pd.scratchpad_desc()};
}

std::shared_ptr<const Plan> plan_for(int64_t lines, const WinogradTiles& t, bool turned) {
  static PlanCache<Plan, 6> plans;
  return plans.get({t.points(), lines, t.channels, t.out_channels, turned, get_num_threads()},
                   [&] { return make_plan(lines, t, turned); });
}

int64_t grain(const WinogradTiles& t, int64_t channels) {
  return std::max<int64_t>(1, kGrainSize / (t.points() * channels));
}
int64_t lines_at_once(const WinogradTiles& t, int64_t tiles, int64_t least) {
  const int64_t line = t.points() * (t.channels + t.out_channels) * static_cast<int64_t>(sizeof(float));
  const int64_t most = std::max(least, kCacheBytes / line), rounds = (tiles + most - 1) / most;
  return (tiles + rounds - 1) / rounds;
}

// Transformed filters in the layout of a plan: they may be kept where the weight is constant.
struct Filters final : ConstantMemory::Made {
  Filters(const memory::desc& layout, bool turned)
      : layout(layout), turned(turned), data(static_cast<int64_t>(layout.get_size())) {}
  size_t nbytes() const override { return layout.get_size(); }
  const memory::desc layout;
  const bool turned;
  const Buffer data;
};

class Convolution {
 public:
  Convolution(const WinogradTiles& t, int64_t batch, const float* weight, bool gradient)
      : kernels_(kernels_of(t.results)),
        t_(t),
        tiles_(batch * t.rows * t.columns),
        lines_(lines_at_once(t, tiles_, 64)),
        turned_(gradient),
        plan_(batch_invariant() ? nullptr : plan_for(lines_, t, gradient)),
        wanted_(plan_ ? plan_->filters : natural_filters(t, gradient)),
        filters_(filters_of(weight, gradient)),
        image_(plan_ ? bytes(plan_->tiles) : floats(t.channels)),
        products_(plan_ ? bytes(plan_->products) : floats(t.out_channels)),
        scratch_(plan_ ? bytes(plan_->scratch) : 0) {
    std::memset(image_.as<void>(), 0, floats(t.channels));  // lines beyond the last tile
  }

  bool run(const float* image, const float* bias, float* result, const EpilogueArguments* after) {
    std::atomic<bool> finite{true};
    for (int64_t first = 0; first < tiles_ && (finite || !plan_); first += lines_) {
      const int64_t count = std::min(lines_, tiles_ - first);
      parallel_for(0, count, grain(t_, t_.channels), [&](int64_t begin, int64_t end) {
        kernels_.image(t_, image, first + begin, first + end, begin, lines_, image_.as<float>());
      });
      multiply();
      parallel_for(0, count, grain(t_, t_.out_channels), [&](int64_t begin, int64_t end) {
        if (!kernels_.results(t_, products_.as<float>(), first + begin, first + end, begin, lines_, bias,
                              result, after))
          finite = false;
      });
    }
    return finite;
  }

 private:
  static int64_t bytes(const memory::desc& d) { return static_cast<int64_t>(d.get_size()); }
  int64_t floats(int64_t channels) const {
    return t_.points() * lines_ * channels * static_cast<int64_t>(sizeof(float));
  }

  void multiply() {
    const int64_t in = t_.channels, out = t_.out_channels;
    if (!plan_)
      return gemm_batch(DType::Float32, t_.points(), lines_, out, in, 1, {image_.as<float>(), in, 1},
                        lines_ * in, {filters_->data.as<float>(), turned_ ? out : 1, turned_ ? 1 : in},
                        in * out, 0, products_.as<float>(), out, lines_ * out);
    dnnl::engine& engine = onednn_engine();
    dnnl::stream stream(engine);
    plan_->primitive.execute(stream,
                             {{DNNL_ARG_SRC, memory(plan_->tiles, engine, image_.as<void>())},
                              {DNNL_ARG_WEIGHTS, memory(wanted_, engine, filters_->data.as<void>())},
                              {DNNL_ARG_DST, memory(plan_->products, engine, products_.as<void>())},
                              {DNNL_ARG_SCRATCHPAD, memory(plan_->scratch, engine, scratch_.as<void>())}});
    stream.wait();
  }

  std::shared_ptr<const Filters> filters_of(const float* weight, bool turned) {
    const bool constant = ConstantMemory::contains(weight);
    const auto same = [&](const Filters& f) { return f.turned == turned && f.layout == wanted_; };
    if (constant)
      if (auto found = ConstantMemory::find<Filters>(weight, same)) return found;
    auto made = std::make_shared<const Filters>(wanted_, turned);
    transform_filters(weight, turned, made->data.as<void>());
    if (constant) ConstantMemory::keep(weight, made);
    return made;
  }

  void transform_filters(const float* weight, bool turned, void* filters) {
    const memory::desc natural = natural_filters(t_, turned);
    const bool as_wanted = wanted_ == natural;
    const Buffer plain(as_wanted ? 0 : bytes(natural));
    void* to = as_wanted ? filters : plain.as<void>();
    const int64_t rows = turned ? t_.channels : t_.out_channels,
                  columns = turned ? t_.out_channels : t_.channels;
    parallel_for(0, rows, grain(t_, columns), [&](int64_t begin, int64_t end) {
      kernels_.filters(weight, rows, columns, turned, begin, end, static_cast<float*>(to));
    });
    if (as_wanted) return;
    dnnl::engine& engine = onednn_engine();
    dnnl::stream stream(engine);
    memory from(natural, engine, to), into(wanted_, engine, filters);
    dnnl::reorder(from, into).execute(stream, from, into);
    stream.wait();
  }

  WinogradKernels kernels_;
  WinogradTiles t_;
  int64_t tiles_, lines_;
  bool turned_;
  std::shared_ptr<const Plan> plan_;  // null in batch-invariant mode
  memory::desc wanted_;
  std::shared_ptr<const Filters> filters_;
  Buffer image_, products_, scratch_;
};

// The product of an image's points with those of the gradient's, summed over all tiles.
bool weight_gradient(const WinogradTiles& t, int64_t batch, const float* image, const float* gradient,
                     float* result) {
  constexpr auto kItem = static_cast<int64_t>(sizeof(float));
  const WinogradKernels kernels = kernels_of(t.results);
  const int64_t in = t.channels, out = t.out_channels, tiles = batch * t.rows * t.columns,
                lines = lines_at_once(t, tiles, 128);
  const Buffer images(t.points() * lines * in * kItem), gradients(t.points() * lines * out * kItem),
      sums(t.points() * out * in * kItem);
  for (int64_t first = 0; first < tiles; first += lines) {
    const int64_t count = std::min(lines, tiles - first);
    parallel_for(0, count, grain(t, in + out), [&](int64_t begin, int64_t end) {
      kernels.image(t, image, first + begin, first + end, begin, lines, images.as<float>());
      kernels.gradient(t, gradient, first + begin, first + end, begin, lines, gradients.as<float>());
    });
    gemm_batch(DType::Float32, t.points(), out, in, count, 1, {gradients.as<float>(), 1, out}, lines * out,
               {images.as<float>(), in, 1}, lines * in, first ? 1 : 0, sums.as<float>(), in, out * in);
  }
  std::atomic<bool> finite{true};
  parallel_for(0, out, grain(t, in), [&](int64_t begin, int64_t end) {
    if (!kernels.collect(sums.as<float>(), out, in, begin, end, result)) finite = false;
  });
  return finite;
}

int64_t tiles_of(const ConvShape& s, int64_t results) {
  const auto along = [&](int axis) { return (s.output[axis] + results - 1) / results; };
  return (batch_invariant() ? 1 : s.batch) * along(1) * along(2);
}

// Results of a tile along an axis: 2 or 4, or 0 where the transforms cannot compute this or do not pay.
int64_t results_for(const ConvShape& s, int64_t least_tiles) {
  if (!has_vectors() || s.dtype != DType::Float32 || !s.channels_last || s.spatial != 2 || s.groups != 1)
    return 0;
  for (int i = 1; i < 3; ++i)
    if (s.kernel[i] != 3 || s.stride[i] != 1 || s.dilation[i] != 1 || s.padding[i] > 2) return 0;
  if (std::min(s.in_channels, s.out_channels) < kLeastChannels || device_math().direct_convolutions) return 0;
  const int64_t small = tiles_of(s, 2), large = tiles_of(s, 4),
                least_large = batch_invariant() ? kLeastLargeImageTiles : kLeastLargeTiles;
  if (batch_invariant()) least_tiles = kLeastImageTiles;
  // Of the multiplications a quarter must be saved: at odd sizes large tiles reach far beyond the image.
  if (large >= least_large && 36 * large * 4 <= 16 * small * 3) return 4;
  return small >= least_tiles ? 2 : 0;
}

bool convolve(const ConvShape& s, bool gradient, const void* image, const void* weight, const void* bias,
              void* result, const EpilogueArguments* after) {
  bool finite = false;
  run_in_pool([&] {
    Convolution c(tiles_of(s, gradient, results_for(s, kLeastTiles)), s.batch,
                  static_cast<const float*>(weight), gradient);
    finite = c.run(static_cast<const float*>(image), static_cast<const float*>(bias),
                   static_cast<float*>(result), after);
  });
  return finite;
}

}  // namespace

bool winograd_convolves(const ConvShape& s) { return results_for(s, kLeastTiles) > 0; }
bool winograd_convolves_weight(const ConvShape& s) { return results_for(s, kLeastWeightTiles) > 0; }

bool winograd_forward(const ConvShape& s, const void* input, const void* weight, const void* bias,
                      void* output, const EpilogueArguments* after) {
  return convolve(s, false, input, weight, bias, output, after);
}
bool winograd_input_gradient(const ConvShape& s, const void* output_gradient, const void* weight,
                             void* input_gradient) {
  return convolve(s, true, output_gradient, weight, nullptr, input_gradient, nullptr);
}
bool winograd_weight_gradient(const ConvShape& s, const void* output_gradient, const void* input,
                              void* weight_gradient) {
  return cpu::weight_gradient(tiles_of(s, false, results_for(s, kLeastWeightTiles)), s.batch,
                              static_cast<const float*>(input), static_cast<const float*>(output_gradient),
                              static_cast<float*>(weight_gradient));
}

#else

bool winograd_convolves(const ConvShape&) { return false; }
bool winograd_convolves_weight(const ConvShape&) { return false; }
bool winograd_weight_gradient(const ConvShape&, const void*, const void*, void*) { return false; }
bool winograd_forward(const ConvShape&, const void*, const void*, const void*, void*,
                      const EpilogueArguments*) {
  return false;
}
bool winograd_input_gradient(const ConvShape&, const void*, const void*, void*) { return false; }

#endif

}  // namespace rushlight::cpu
