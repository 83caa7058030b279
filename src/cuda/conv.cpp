// Convolutions by cuDNN, which is found at run time. What it does not take goes the way without it.
#include <array>
#include <map>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "core/device_math.h"
#include "cuda/check.h"
#include "cuda/conv_graph.h"
#include "cuda/conv_plan.h"
#include "cuda/launch.h"
#include "cuda/layers.h"
#include "cuda/library.h"
#include "cuda/workspace.h"

namespace rushlight::cuda {
namespace {

using cudnn::Performance;
using Handle = void*;
using Descriptor = void*;

// Its functions; a status of 0 is success. An algorithm is a number.
struct Cudnn {
  Library library{"cuDNN 9", {"cudnn"}, {"libcudnn.so.9"}, "nvidia-cudnn-cu13"};
  size_t (*version)() = nullptr;
  int (*create)(Handle*) = nullptr;
  int (*set_stream)(Handle, cudaStream_t) = nullptr;
  int (*create_tensor)(Descriptor*) = nullptr;
  int (*create_filter)(Descriptor*) = nullptr;
  int (*create_conv)(Descriptor*) = nullptr;
  int (*destroy_tensor)(Descriptor) = nullptr;
  int (*destroy_filter)(Descriptor) = nullptr;
  int (*destroy_conv)(Descriptor) = nullptr;
  int (*set_tensor)(Descriptor, int type, int rank, const int* sizes, const int* strides) = nullptr;
  int (*set_filter)(Descriptor, int type, int format, int rank, const int* sizes) = nullptr;
  int (*set_conv)(Descriptor, int spatial, const int* padding, const int* stride, const int* dilation,
                  int mode, int compute) = nullptr;
  int (*set_groups)(Descriptor, int) = nullptr;
  int (*set_math)(Descriptor, int) = nullptr;
  // By pass. The operands are what the pass reads, in cuDNN's order, then what it writes.
  using Get = int(Handle, Descriptor, Descriptor, Descriptor conv, Descriptor, int, int*, Performance*);
  using Find = int(Handle, Descriptor, const void*, Descriptor, const void*, Descriptor conv, Descriptor,
                   void*, int, int*, Performance*, void* workspace, size_t);
  using Run = int(Handle, const void* alpha, Descriptor, const void*, Descriptor, const void*,
                  Descriptor conv, int algorithm, void* workspace, size_t, const void* beta, Descriptor,
                  void*);
  Get* get[3] = {};
  Find* find[3] = {};
  Run* run[3] = {};

  Cudnn() {
    library.entry("cudnnGetVersion", &version);
    library.entry("cudnnCreate", &create);
    library.entry("cudnnSetStream", &set_stream);
    library.entry("cudnnCreateTensorDescriptor", &create_tensor);
    library.entry("cudnnCreateFilterDescriptor", &create_filter);
    library.entry("cudnnCreateConvolutionDescriptor", &create_conv);
    library.entry("cudnnDestroyTensorDescriptor", &destroy_tensor);
    library.entry("cudnnDestroyFilterDescriptor", &destroy_filter);
    library.entry("cudnnDestroyConvolutionDescriptor", &destroy_conv);
    library.entry("cudnnSetTensorNdDescriptor", &set_tensor);
    library.entry("cudnnSetFilterNdDescriptor", &set_filter);
    library.entry("cudnnSetConvolutionNdDescriptor", &set_conv);
    library.entry("cudnnSetConvolutionGroupCount", &set_groups);
    library.entry("cudnnSetConvolutionMathType", &set_math);
    const char* names[] = {"Forward", "BackwardData", "BackwardFilter"};
    for (size_t i = 0; i < 3; ++i) {
      library.entry(str("cudnnGetConvolution", names[i], "Algorithm_v7").c_str(), &get[i]);
      library.entry(str("cudnnFindConvolution", names[i], "AlgorithmEx").c_str(), &find[i]);
      library.entry(str("cudnnConvolution", names[i]).c_str(), &run[i]);
    }
  }
};

const Cudnn& api() {
  static const Cudnn one;
  return one;
}

// One handle for each device and thread.
Handle handle_of(int device) {
  thread_local std::array<Handle, DeviceBackend::kMaxDevices> handles{};
  Handle& handle = handles[static_cast<size_t>(device)];
  if (!handle && api().create(&handle) != 0) handle = nullptr;
  return handle;
}

// The descriptors of a convolution.
class Descriptors {
 public:
  explicit Descriptors(const ConvPlan& p) {
    const Cudnn& c = api();
    const int spatial = p.rank - 2;
    valid_ = c.create_tensor(&input) == 0 && c.create_tensor(&output) == 0 && c.create_filter(&weight) == 0 &&
             c.create_conv(&conv) == 0 &&
             c.set_tensor(input, p.data_type, p.rank, p.input.data(), p.input_strides.data()) == 0 &&
             c.set_tensor(output, p.data_type, p.rank, p.output.data(), p.output_strides.data()) == 0 &&
             c.set_filter(weight, p.data_type, p.format, p.rank, p.weight.data()) == 0 &&
             c.set_conv(conv, spatial, p.padding.data(), p.stride.data(), p.dilation.data(),
                        cudnn::kCrossCorrelation, p.compute_type) == 0 &&
             c.set_groups(conv, p.groups) == 0;
  }
  ~Descriptors() {
    const Cudnn& c = api();
    if (input) c.destroy_tensor(input);
    if (output) c.destroy_tensor(output);
    if (weight) c.destroy_filter(weight);
    if (conv) c.destroy_conv(conv);
  }
  Descriptors(const Descriptors&) = delete;
  bool valid() const { return valid_; }

  Descriptor input = nullptr, output = nullptr, weight = nullptr, conv = nullptr;

 private:
  bool valid_ = false;
};

// Those that a thread has made before: making them takes longer than a small convolution.
class Described {
 public:
  // Null where cuDNN refuses.
  static const Described* of(const std::string& key, const ConvPlan& plan, int math) {
    thread_local std::unordered_map<std::string, std::unique_ptr<Described>> known;
    const auto found = known.find(key);
    if (found != known.end()) return found->second.get();
    if (known.size() >= kMost) known.clear();
    auto made = std::make_unique<Described>(plan);
    if (!made->descriptors.valid() || !made->take(math)) made = nullptr;
    return known.emplace(key, std::move(made)).first->second.get();
  }

  explicit Described(const ConvPlan& plan) : descriptors(plan) {}
  // The arithmetic of what follows. What must not round goes on not to.
  bool take(int math) const {
    if (math_ == cudnn::kFmaMath || math == math_) return true;
    if (api().set_math(descriptors.conv, math) != 0) return false;
    math_ = math;
    return true;
  }

  Descriptors descriptors;

 private:
  static constexpr size_t kMost = 1024;
  mutable int math_ = -1;
};

// What a pass reads, and what it writes, in the order of cuDNN's arguments.
struct Operands {
  Descriptor first, second, result;
  const void *first_data, *second_data;
  void* result_data;
};
Operands operands_of(ConvPass pass, const Descriptors& d, void* input, void* weight, void* output) {
  switch (pass) {
    case ConvPass::Forward:
      return {d.input, d.weight, d.output, input, weight, output};
    case ConvPass::InputGradient:
      return {d.weight, d.output, d.input, weight, output, input};
    default:
      return {d.input, d.output, d.weight, input, output, weight};
  }
}

struct Choice {
  int algorithm = -1, math = 0;
  size_t memory = 0;
};

constexpr size_t kMostMemory = size_t{1} << 30, kMostMemoryOfGraphs = size_t{8} << 30;

// Asks cuDNN, or lets it try on what the operands hold; trying overwrites the result.
Choice ask(ConvPass pass, Handle handle, const Descriptors& d, const Operands& o, int device, bool benchmark,
           bool deterministic) {
  const auto at = static_cast<size_t>(pass);
  std::array<Performance, 16> found{};
  int count = 0;
  const auto most = static_cast<int>(found.size());
  if (benchmark) {
    constexpr size_t kTrial = size_t{1} << 28;
    const Workspace workspace(kTrial, device);
    if (api().find[at](handle, o.first, o.first_data, o.second, o.second_data, d.conv, o.result,
                       o.result_data, most, &count, found.data(), workspace.data(), kTrial) != 0)
      count = 0;
  }
  if (count == 0 &&
      api().get[at](handle, o.first, o.second, d.conv, o.result, most, &count, found.data()) != 0)
    return {};
  const int chosen = choose_algorithm({found.data(), static_cast<size_t>(count)}, kMostMemory, deterministic);
  if (chosen < 0) return {};
  const Performance& best = found[static_cast<size_t>(chosen)];
  return {best.algorithm, best.math, best.memory};
}

// The plans that a thread has; null where cuDNN has none.
const ConvGraph* graph_of(std::string key, Handle handle, int device, const ConvPlan& plan, ConvPass pass,
                          const ConvMemory& memory, const ConvWishes& wishes) {
  constexpr size_t kMost = 1024;
  thread_local std::unordered_map<std::string, std::unique_ptr<ConvGraph>> known;
  key.push_back(static_cast<char>(memory.alignment()));
  if (const auto found = known.find(key); found != known.end()) return found->second.get();
  if (known.size() >= kMost) known.clear();
  return known.emplace(std::move(key), ConvGraph::make(handle, device, plan, pass, memory, wishes))
      .first->second.get();
}

// The choices so far, for all threads.
class Choices {
 public:
  template <class F>
  Choice of(const std::string& key, F&& ask) {
    {
      const std::lock_guard lock(mutex_);
      if (const auto found = known_.find(key); found != known_.end()) return found->second;
    }
    const Choice choice = ask();
    const std::lock_guard lock(mutex_);
    if (known_.size() >= kMost) known_.clear();
    return known_[key] = choice;
  }

 private:
  static constexpr size_t kMost = 4096;
  std::mutex mutex_;
  std::map<std::string, Choice> known_;
};

}  // namespace

bool convolve(int device, ConvPass pass, const cpu::ConvShape& shape, void* input, void* weight,
              void* output) {
  const DeviceMath& math = device_math();
  if (!math.cudnn || !api().library.found()) return false;
  const std::optional<ConvPlan> plan = conv_plan(shape);
  if (!plan) return false;
  const bool tf32 = math.convolution_tf32 && shape.dtype == DType::Float32;
  const bool deterministic = math.deterministic || math.deterministic_algorithms;
  DeviceBackend& backend = device_backend(DeviceType::CUDA);
  const DeviceScope scope(backend.driver(), device);
  const Handle handle = handle_of(device);
  const StreamInfo stream = backend.stream(backend.current_stream(device));
  if (!handle || api().set_stream(handle, static_cast<cudaStream_t>(stream.handle)) != 0) return false;
  const bool benchmark = math.benchmark && !backend.driver().is_capturing(stream.handle);
  const std::string key = conv_key(*plan, pass, device, tf32, deterministic, benchmark);
  if (plan->data_type != cudnn::kDouble) {
    const ConvMemory memory{input, weight, output};
    const ConvGraph* graph = graph_of(key, handle, device, *plan, pass, memory,
                                      {tf32, deterministic, benchmark, kMostMemoryOfGraphs});
    if (graph && graph->run(memory, device)) {
      backend.launched(device, "convolution");
      return true;
    }
  }
  const Described* described = Described::of(key, *plan, math_of(plan->data_type, tf32));
  if (!described) return false;
  const Descriptors& d = described->descriptors;
  const Operands o = operands_of(pass, d, input, weight, output);
  static Choices choices;
  const Choice choice =
      choices.of(key, [&] { return ask(pass, handle, d, o, device, benchmark, deterministic); });
  if (choice.algorithm < 0 || !described->take(choice.math)) return false;
  const Workspace workspace(choice.memory, device);
  const double wide[] = {1, 0};
  const float narrow[] = {1, 0};
  const bool is_wide = shape.dtype == DType::Float64;
  const void* alpha = is_wide ? static_cast<const void*>(wide) : narrow;
  const void* beta = is_wide ? static_cast<const void*>(wide + 1) : narrow + 1;
  if (api().run[static_cast<size_t>(pass)](handle, alpha, o.first, o.first_data, o.second, o.second_data,
                                           d.conv, choice.algorithm, workspace.data(), choice.memory, beta,
                                           o.result, o.result_data) != 0)
    return false;
  backend.launched(device, "convolution");
  return true;
}

int64_t cudnn_version() { return api().library.found() ? static_cast<int64_t>(api().version()) : 0; }

}  // namespace rushlight::cuda
