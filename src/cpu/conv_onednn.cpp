#include "cpu/conv_onednn.h"

#ifdef RUSHLIGHT_WITH_ONEDNN
#include <atomic>
#include <string_view>
#include <vector>

#include "core/constant_memory.h"
#include "core/cpu_allocator.h"
#include "core/parallel.h"
#include "cpu/chain_product.h"
#include "cpu/onednn_cache.h"

namespace rushlight::cpu {
namespace {

using dnnl::memory;

memory::data_type data_type(DType t) {
  return t == DType::BFloat16 ? memory::data_type::bf16 : memory::data_type::f32;
}

memory::dims spatial(const ConvShape& s, const std::array<int64_t, 3>& a) {
  return memory::dims(a.end() - s.spatial, a.end());
}
memory::dims with_channels(int64_t n, int64_t c, memory::dims rest) {
  rest.insert(rest.begin(), {n, c});
  return rest;
}

// How the caller's memory is laid out.
memory::desc user_image(const ConvShape& s, int64_t channels, const std::array<int64_t, 3>& size) {
  using tag = memory::format_tag;
  static constexpr tag planes[] = {tag::ncw, tag::nchw, tag::ncdhw},
                       last[] = {tag::nwc, tag::nhwc, tag::ndhwc};
  return {with_channels(s.batch, channels, spatial(s, size)), data_type(s.dtype),
          (s.channels_last ? last : planes)[s.spatial - 1]};
}
memory::desc user_weight(const ConvShape& s) {
  using tag = memory::format_tag;
  static constexpr tag plain[] = {tag::oiw, tag::oihw, tag::oidhw},
                       grouped[] = {tag::goiw, tag::goihw, tag::goidhw};
  memory::dims dims =
      with_channels(s.out_channels / s.groups, s.in_channels / s.groups, spatial(s, s.kernel));
  if (s.groups > 1) dims.insert(dims.begin(), s.groups);
  return {dims, data_type(s.dtype), (s.groups > 1 ? grouped : plain)[s.spatial - 1]};
}
memory::desc user_bias(const ConvShape& s) {
  return {{s.out_channels}, data_type(s.dtype), memory::format_tag::x};
}

// The layout left to oneDNN. Plain planes would send it to its slow reference path; channels-last it likes as
// it is.
memory::desc free_layout(const ConvShape& s, const memory::desc& user, bool image) {
  if (image && s.channels_last) return user;
  return {user.get_dims(), user.get_data_type(), memory::format_tag::any};
}

enum class Kind : uint8_t { Forward, ForwardBias, InputGradient, WeightGradient };

// A compiled convolution, the layouts it wants and the reorders to and from the caller's.
struct Plan {
  dnnl::primitive primitive;
  memory::desc source, weight, destination, scratch;
};

// Plans for several threads may add up in another order than those for one.
bool runs_alone(Kind kind) {
  return batch_invariant() || (kind == Kind::WeightGradient && same_on_any_threads());
}

// What determines a plan.
using Words = std::array<int64_t, 27>;
Words words_of(const ConvShape& s, Kind kind) {
  Words w{static_cast<int64_t>(s.dtype),
          s.spatial,
          s.batch,
          s.in_channels,
          s.out_channels,
          s.groups,
          s.channels_last,
          static_cast<int64_t>(kind),
          runs_alone(kind) ? 1 : get_num_threads()};
  size_t i = 9;
  for (const auto* a : {&s.input, &s.output, &s.kernel, &s.stride, &s.padding, &s.dilation})
    for (int64_t v : *a) w[i++] = v;
  return w;
}

PlanCache<Plan, 27>& plans() {
  static PlanCache<Plan, 27> cache;
  return cache;
}

struct Geometry {
  memory::dims stride, dilation, padding_before, padding_after;
  explicit Geometry(const ConvShape& s)
      : stride(spatial(s, s.stride)), padding_before(spatial(s, s.padding)) {
    for (int i = 3 - s.spatial; i < 3; ++i) {
      dilation.push_back(s.dilation[i] - 1);  // oneDNN counts the gap
      const int64_t reach = (s.output[i] - 1) * s.stride[i] + (s.kernel[i] - 1) * s.dilation[i] + 1;
      padding_after.push_back(reach - s.input[i] - s.padding[i]);
    }
  }
};

// oneDNN frees the code of its brgemm kernels only when the process ends. Once so many convolutions had such
// code, others take a kernel whose code goes with the plan; those are as fast within a few percent.
constexpr int kMostKeptCodes = 256;
template <class Make>
auto choose_kernel(Make&& make) {
  static std::atomic<int> kept{0};
  const auto is_a = [](const auto& pd, std::string_view kind) {
    return std::string_view(pd.impl_info_str()).starts_with(kind);
  };
  auto first = make();
  if (!is_a(first, "brg") || kept++ < kMostKeptCodes) return first;
  for (auto other = make(); other.next_impl();)
    if (is_a(other, "jit")) return other;
  return first;
}

Plan make_plan(const ConvShape& s, Kind kind) {
  const Geometry g(s);
  const auto source = free_layout(s, user_image(s, s.in_channels, s.input), true);
  const auto weight = free_layout(s, user_weight(s), false);
  const auto destination = free_layout(s, user_image(s, s.out_channels, s.output), true);
  const memory::desc bias = kind == Kind::ForwardBias ? user_bias(s) : memory::desc();
  dnnl::primitive_attr attr;
  attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  using Forward = dnnl::convolution_forward::primitive_desc;
  using InputGradient = dnnl::convolution_backward_data::primitive_desc;
  using WeightGradient = dnnl::convolution_backward_weights::primitive_desc;
  const auto algorithm = dnnl::algorithm::convolution_direct;
  const auto prop = kind == Kind::Forward || kind == Kind::ForwardBias ? dnnl::prop_kind::forward_inference
                                                                       : dnnl::prop_kind::forward_training;
  const auto make_forward = [&] {
    return Forward(onednn_engine(), prop, algorithm, source, weight, bias, destination, g.stride, g.dilation,
                   g.padding_before, g.padding_after, attr);
  };
  if (kind == Kind::InputGradient) {
    const Forward hint = make_forward();
    const InputGradient pd = choose_kernel([&] {
      return InputGradient(onednn_engine(), algorithm, source, weight, destination, g.stride, g.dilation,
                           g.padding_before, g.padding_after, hint, attr);
    });
    return {dnnl::convolution_backward_data(pd), pd.diff_src_desc(), pd.weights_desc(), pd.diff_dst_desc(),
            pd.scratchpad_desc()};
  }
  if (kind == Kind::WeightGradient) {
    const Forward hint = make_forward();
    const WeightGradient pd = choose_kernel([&] {
      return WeightGradient(onednn_engine(), algorithm, source, weight, destination, g.stride, g.dilation,
                            g.padding_before, g.padding_after, hint, attr);
    });
    return {dnnl::convolution_backward_weights(pd), pd.src_desc(), pd.diff_weights_desc(), pd.diff_dst_desc(),
            pd.scratchpad_desc()};
  }
  const Forward forward = choose_kernel(make_forward);
  return {dnnl::convolution_forward(forward), forward.src_desc(), forward.weights_desc(), forward.dst_desc(),
          forward.scratchpad_desc()};
}

// A constant weight in the layout that a plan wants.
struct PackedWeight final : ConstantMemory::Made {
  PackedWeight(const memory::desc& layout, void* data) : layout(layout), data(data) {}
  ~PackedWeight() override { cpu_deallocate(data, layout.get_size()); }
  size_t nbytes() const override { return layout.get_size(); }
  const memory::desc layout;
  void* const data;
};

std::shared_ptr<const PackedWeight> packed_constant(dnnl::stream& stream, const memory::desc& user,
                                                    const memory::desc& wanted, const void* data) {
  if (user == wanted || !ConstantMemory::contains(data)) return nullptr;
  const auto same = [&](const PackedWeight& w) { return w.layout == wanted; };
  if (auto found = ConstantMemory::find<PackedWeight>(data, same)) return found;
  auto packed = std::make_shared<const PackedWeight>(wanted, cpu_allocate(wanted.get_size()));
  memory from(user, onednn_engine(), const_cast<void*>(data)), to(wanted, onednn_engine(), packed->data);
  dnnl::reorder(from, to).execute(stream, from, to);
  ConstantMemory::keep(data, packed);
  return packed;
}

// One operand while a convolution runs: the caller's memory, or a buffer in the layout that the plan wants.
class Operand {
 public:
  Operand(dnnl::stream& stream, const memory::desc& user, const memory::desc& wanted, const void* data,
          bool output)
      : stream_(stream),
        user_(user, onednn_engine(), const_cast<void*>(data)),
        inner_(user_),
        output_(output) {
    if (user == wanted) return;
    bytes_ = wanted.get_size();
    buffer_ = cpu_allocate(bytes_);
    inner_ = memory(wanted, onednn_engine(), buffer_);
    if (!output) dnnl::reorder(user_, inner_).execute(stream_, user_, inner_);
  }
  ~Operand() { cpu_deallocate(buffer_, bytes_); }
  Operand(const Operand&) = delete;
  memory& get() { return inner_; }
  void finish() {
    if (output_ && buffer_) dnnl::reorder(inner_, user_).execute(stream_, inner_, user_);
  }

 private:
  dnnl::stream& stream_;
  memory user_, inner_;
  void* buffer_ = nullptr;
  size_t bytes_ = 0;
  bool output_;
};

struct Arrays {
  const void *source, *weight, *bias, *destination;
};

void run(const ConvShape& s, Kind kind, const Arrays& arrays) {
  (runs_alone(kind) ? run_alone : run_in_pool)([&] {
    try {
      const auto plan = plans().get(words_of(s, kind), [&] { return make_plan(s, kind); });
      dnnl::stream stream(onednn_engine());
      Operand source(stream, user_image(s, s.in_channels, s.input), plan->source, arrays.source,
                     kind == Kind::InputGradient);
      const auto packed = kind == Kind::WeightGradient
                              ? nullptr
                              : packed_constant(stream, user_weight(s), plan->weight, arrays.weight);
      Operand weight(stream, packed ? plan->weight : user_weight(s), plan->weight,
                     packed ? packed->data : arrays.weight, kind == Kind::WeightGradient);
      Operand destination(stream, user_image(s, s.out_channels, s.output), plan->destination,
                          arrays.destination, kind == Kind::Forward || kind == Kind::ForwardBias);
      const size_t scratch_bytes = plan->scratch.get_size();
      void* scratch = cpu_allocate(scratch_bytes);
      std::unordered_map<int, memory> args{
          {DNNL_ARG_SCRATCHPAD, memory(plan->scratch, onednn_engine(), scratch)}};
      switch (kind) {
        case Kind::ForwardBias:
          args.insert({DNNL_ARG_BIAS, memory(user_bias(s), onednn_engine(), const_cast<void*>(arrays.bias))});
          [[fallthrough]];
        case Kind::Forward:
          args.insert({{DNNL_ARG_SRC, source.get()},
                       {DNNL_ARG_WEIGHTS, weight.get()},
                       {DNNL_ARG_DST, destination.get()}});
          break;
        case Kind::InputGradient:
          args.insert({{DNNL_ARG_DIFF_SRC, source.get()},
                       {DNNL_ARG_WEIGHTS, weight.get()},
                       {DNNL_ARG_DIFF_DST, destination.get()}});
          break;
        case Kind::WeightGradient:
          args.insert({{DNNL_ARG_SRC, source.get()},
                       {DNNL_ARG_DIFF_WEIGHTS, weight.get()},
                       {DNNL_ARG_DIFF_DST, destination.get()}});
          break;
      }
      plan->primitive.execute(stream, args);
      for (Operand* o : {&source, &weight, &destination}) o->finish();
      stream.wait();
      cpu_deallocate(scratch, scratch_bytes);
    } catch (const dnnl::error& e) {
      RL_FAIL("convolution: oneDNN failed: ", e.what());
    }
  });
}

}  // namespace

bool onednn_convolves(const ConvShape& s) {
  if (s.input_numel() == 0 || s.weight_numel() == 0) return false;
  if (s.dtype == DType::Float32) return true;
  return s.dtype == DType::BFloat16 && onednn_has_avx512();
}

void onednn_conv_forward(const ConvShape& s, const void* input, const void* weight, const void* bias,
                         void* output) {
  run(s, bias ? Kind::ForwardBias : Kind::Forward, {input, weight, bias, output});
}
void onednn_conv_input_gradient(const ConvShape& s, const void* output_gradient, const void* weight,
                                void* input_gradient) {
  run(s, Kind::InputGradient, {input_gradient, weight, nullptr, output_gradient});
}
void onednn_conv_weight_gradient(const ConvShape& s, const void* output_gradient, const void* input,
                                 void* weight_gradient) {
  run(s, Kind::WeightGradient, {input, weight_gradient, nullptr, output_gradient});
}

}  // namespace rushlight::cpu

#else

namespace rushlight::cpu {
bool onednn_convolves(const ConvShape&) { return false; }
void onednn_conv_forward(const ConvShape&, const void*, const void*, const void*, void*) { RL_ASSERT(false); }
void onednn_conv_input_gradient(const ConvShape&, const void*, const void*, void*) { RL_ASSERT(false); }
void onednn_conv_weight_gradient(const ConvShape&, const void*, const void*, void*) { RL_ASSERT(false); }
}  // namespace rushlight::cpu

#endif
