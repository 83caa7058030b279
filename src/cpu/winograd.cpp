#include "cpu/winograd.h"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "core/constant_memory.h"
#include "core/parallel.h"
#include "cpu/buffer.h"
#include "cpu/isa_variant.h"
#include "cpu/onednn_cache.h"

namespace rushlight::cpu {

#ifdef RUSHLIGHT_WITH_ONEDNN

RL_DECLARE_VARIANTS(WinogradKernels winograd_kernels();)

namespace {

using dnnl::memory;

constexpr int64_t kPoints = 16;
// Below these the transforms cost what the products save.
constexpr int64_t kLeastChannels = 32, kLeastFilters = 64 * 48, kLeastTiles = 96;
// Of transformed tiles. The same for any number of threads, so that results are where oneDNN's products are:
// with AVX-512.
constexpr int64_t kCacheBytes = 2 << 20;

WinogradTiles tiles_of(const ConvShape& s, bool gradient) {
  WinogradTiles t{};
  t.height = gradient ? s.output[1] : s.input[1], t.width = gradient ? s.output[2] : s.input[2];
  t.out_height = gradient ? s.input[1] : s.output[1], t.out_width = gradient ? s.input[2] : s.output[2];
  t.channels = gradient ? s.out_channels : s.in_channels;
  t.out_channels = gradient ? s.in_channels : s.out_channels;
  t.rows = (t.out_height + 1) / 2, t.columns = (t.out_width + 1) / 2;
  t.top = gradient ? 2 - s.padding[1] : s.padding[1], t.left = gradient ? 2 - s.padding[2] : s.padding[2];
  return t;
}

// 16 products [lines, channels] x [channels, out_channels], the filters in an order of oneDNN's own.
struct Plan {
  dnnl::matmul primitive;
  memory::desc tiles, filters, products, scratch;
};

Plan make_plan(int64_t lines, int64_t channels, int64_t out_channels) {
  using tag = memory::format_tag;
  const auto type = memory::data_type::f32;
  dnnl::primitive_attr attr;
  attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  const dnnl::matmul::primitive_desc pd(onednn_engine(),
                                        memory::desc({kPoints, lines, channels}, type, tag::abc),
                                        memory::desc({kPoints, channels, out_channels}, type, tag::any),
                                        memory::desc({kPoints, lines, out_channels}, type, tag::abc), attr);
  return {dnnl::matmul(pd), pd.src_desc(), pd.weights_desc(), pd.dst_desc(), pd.scratchpad_desc()};
}

std::shared_ptr<const Plan> plan_for(int64_t lines, const WinogradTiles& t) {
  static PlanCache<Plan, 4> plans;
  return plans.get({lines, t.channels, t.out_channels, get_num_threads()},
                   [&] { return make_plan(lines, t.channels, t.out_channels); });
}

int64_t lines_at_once(const WinogradTiles& t, int64_t tiles) {
  const int64_t line = kPoints * (t.channels + t.out_channels) * static_cast<int64_t>(sizeof(float));
  const int64_t most = std::max<int64_t>(64, kCacheBytes / line), rounds = (tiles + most - 1) / most;
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
      : t_(t),
        tiles_(batch * t.rows * t.columns),
        lines_(lines_at_once(t, tiles_)),
        plan_(plan_for(lines_, t)),
        filters_(filters_of(weight, gradient)),
        image_(bytes(plan_->tiles)),
        products_(bytes(plan_->products)),
        scratch_(bytes(plan_->scratch)) {
    std::memset(image_.as<void>(), 0, plan_->tiles.get_size());  // lines beyond the last tile
  }

  bool run(const float* image, const float* bias, float* result, const EpilogueArguments* after) {
    dnnl::engine& engine = onednn_engine();
    dnnl::stream stream(engine);
    const std::unordered_map<int, memory> args{
        {DNNL_ARG_SRC, memory(plan_->tiles, engine, image_.as<void>())},
        {DNNL_ARG_WEIGHTS, memory(plan_->filters, engine, filters_->data.as<void>())},
        {DNNL_ARG_DST, memory(plan_->products, engine, products_.as<void>())},
        {DNNL_ARG_SCRATCHPAD, memory(plan_->scratch, engine, scratch_.as<void>())}};
    std::atomic<bool> finite{true};
    for (int64_t first = 0; first < tiles_ && finite; first += lines_) {
      const int64_t count = std::min(lines_, tiles_ - first);
      parallel_for(0, count, grain(t_.channels), [&](int64_t begin, int64_t end) {
        kernels_.image(t_, image, first + begin, first + end, begin, lines_, image_.as<float>());
      });
      plan_->primitive.execute(stream, args);
      stream.wait();
      parallel_for(0, count, grain(t_.out_channels), [&](int64_t begin, int64_t end) {
        if (!kernels_.results(t_, products_.as<float>(), first + begin, first + end, begin, lines_, bias,
                              result, after))
          finite = false;
      });
    }
    return finite;
  }

 private:
  static int64_t bytes(const memory::desc& d) { return static_cast<int64_t>(d.get_size()); }
  static int64_t grain(int64_t channels) { return std::max<int64_t>(1, kGrainSize / (kPoints * channels)); }

  std::shared_ptr<const Filters> filters_of(const float* weight, bool turned) {
    const bool constant = ConstantMemory::contains(weight);
    const auto same = [&](const Filters& f) { return f.turned == turned && f.layout == plan_->filters; };
    if (constant)
      if (auto found = ConstantMemory::find<Filters>(weight, same)) return found;
    auto made = std::make_shared<const Filters>(plan_->filters, turned);
    transform_filters(weight, turned, made->data.as<void>());
    if (constant) ConstantMemory::keep(weight, made);
    return made;
  }

  void transform_filters(const float* weight, bool gradient, void* filters) {
    const int64_t in = t_.channels, out = t_.out_channels;
    const Buffer plain(kPoints * in * out * static_cast<int64_t>(sizeof(float)));
    parallel_for(0, out, grain(in), [&](int64_t begin, int64_t end) {
      kernels_.filters(weight, out, in, gradient, begin, end, plain.as<float>());
    });
    dnnl::engine& engine = onednn_engine();
    dnnl::stream stream(engine);
    memory from({{kPoints, in, out}, memory::data_type::f32, memory::dims{in * out, 1, in}}, engine,
                plain.as<void>());
    memory to(plan_->filters, engine, filters);
    dnnl::reorder(from, to).execute(stream, from, to);
    stream.wait();
  }

  WinogradKernels kernels_ = RL_ISA_VARIANT(winograd_kernels());
  WinogradTiles t_;
  int64_t tiles_, lines_;
  std::shared_ptr<const Plan> plan_;
  std::shared_ptr<const Filters> filters_;
  Buffer image_, products_, scratch_;
};

bool convolve(const ConvShape& s, bool gradient, const void* image, const void* weight, const void* bias,
              void* result, const EpilogueArguments* after) {
  bool finite = false;
  run_in_pool([&] {
    Convolution c(tiles_of(s, gradient), s.batch, static_cast<const float*>(weight), gradient);
    finite = c.run(static_cast<const float*>(image), static_cast<const float*>(bias),
                   static_cast<float*>(result), after);
  });
  return finite;
}

}  // namespace

bool winograd_convolves(const ConvShape& s) {
  static const bool fast = host::isa() >= host::Isa::kAvx2;
  if (!fast || s.dtype != DType::Float32 || !s.channels_last || s.spatial != 2 || s.groups != 1) return false;
  for (int i = 1; i < 3; ++i)
    if (s.kernel[i] != 3 || s.stride[i] != 1 || s.dilation[i] != 1 || s.padding[i] > 2) return false;
  const int64_t tiles = s.batch * ((s.output[1] + 1) / 2) * ((s.output[2] + 1) / 2);
  return std::min(s.in_channels, s.out_channels) >= kLeastChannels &&
         s.in_channels * s.out_channels >= kLeastFilters && tiles >= kLeastTiles;
}

bool winograd_forward(const ConvShape& s, const void* input, const void* weight, const void* bias,
                      void* output, const EpilogueArguments* after) {
  return convolve(s, false, input, weight, bias, output, after);
}
bool winograd_input_gradient(const ConvShape& s, const void* output_gradient, const void* weight,
                             void* input_gradient) {
  return convolve(s, true, output_gradient, weight, nullptr, input_gradient, nullptr);
}

#else

bool winograd_convolves(const ConvShape&) { return false; }
bool winograd_forward(const ConvShape&, const void*, const void*, const void*, void*,
                      const EpilogueArguments*) {
  return false;
}
bool winograd_input_gradient(const ConvShape&, const void*, const void*, void*) { return false; }

#endif

}  // namespace rushlight::cpu
