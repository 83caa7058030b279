#include "cuda/conv_graph.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "core/caching_allocator.h"
#include "cuda/check.h"
#include "cuda/launch.h"
#include "cuda/library.h"
#include "cuda/workspace.h"

namespace rushlight::cuda {
namespace {

// cuDNN's numbers, under its names without the prefix (cudnn_graph.h of version 9).
enum Kind : int {
  kConvolution = 1,
  kEngine = 2,
  kEngineConfiguration = 3,
  kHeuristic = 4,
  kExecutionPlan = 5,
  kForward = 10,
  kBackwardFilter = 11,
  kBackwardData = 12,
  kOperationGraph = 15,
  kVariantPack = 16,
  kTensor = 17
};
enum Type : int {
  kHandleType = 0,
  kDataType = 1,
  kInt64 = 3,
  kFloatType = 4,
  kPointer = 6,
  kConvolutionMode = 7,
  kHeuristicMode = 8,
  kNoteType = 11,
  kDescriptor = 15
};
enum Attribute : int {
  kConvolutionType = 100,
  kConvolutionModeOf = 101,
  kDilations = 102,
  kStrides = 103,
  kPostPaddings = 104,
  kPrePaddings = 105,
  kSpatialDimensions = 106,
  kHeuristicModeOf = 200,
  kHeuristicGraph = 201,
  kHeuristicResults = 202,
  kEngineOf = 300,
  kPlanHandle = 400,
  kPlanConfiguration = 401,
  kPlanWorkspace = 402,
  kGraphHandle = 800,
  kGraphOperations = 801,
  kAlignment = 900,
  kTensorType = 901,
  kDimensions = 902,
  kTensorStrides = 903,
  kUniqueId = 906,
  kPackIds = 1000,
  kPackPointers = 1001,
  kPackWorkspace = 1003,
  kNote = 1303
};
enum Note : int { kTensorCore = 0, kDownConvertInputs = 1, kNondeterministic = 4 };
enum Mode : int { kInstant = 0, kFallback = 2 };

// Of an operation of a pass, by number: alpha, beta, convolution, weight, input, output.
struct Operation {
  Kind kind;
  int alpha, beta, convolution, weight, input, output;
};
Operation operation_of(ConvPass pass) {
  switch (pass) {
    case ConvPass::Forward:
      return {kForward, 700, 701, 702, 703, 704, 705};
    case ConvPass::InputGradient:
      return {kBackwardData, 706, 707, 708, 709, 710, 711};
    default:
      return {kBackwardFilter, 712, 713, 714, 715, 716, 717};
  }
}
constexpr int64_t kInputId = 1, kWeightId = 2, kOutputId = 3;

struct Api {
  Library library{"cuDNN 9", {"cudnn"}, {"libcudnn.so.9"}, "nvidia-cudnn-cu13"};
  Entry<int(int kind, void** out)> create{library, "cudnnBackendCreateDescriptor"};
  Entry<int(void*)> destroy{library, "cudnnBackendDestroyDescriptor"};
  Entry<int(void*)> finish{library, "cudnnBackendFinalize"};
  Entry<int(void*, int attribute, int type, int64_t count, const void* values)> set{
      library, "cudnnBackendSetAttribute"};
  Entry<int(void*, int attribute, int type, int64_t most, int64_t* count, void* values)> get{
      library, "cudnnBackendGetAttribute"};
  Entry<int(void* handle, void* plan, void* pack)> execute{library, "cudnnBackendExecute"};
};
const Api& api() {
  static const Api one;
  return one;
}

// A descriptor. What fails leaves it invalid, and so do invalid ones that it is told of.
class Described {
 public:
  explicit Described(Kind kind) { valid_ = api().create(kind, &descriptor_) == 0; }
  ~Described() {
    if (descriptor_) api().destroy(descriptor_);
  }
  Described(Described&& other) noexcept
      : descriptor_(std::exchange(other.descriptor_, nullptr)), valid_(other.valid_) {}
  Described& operator=(Described&& other) noexcept {
    std::swap(descriptor_, other.descriptor_), std::swap(valid_, other.valid_);
    return *this;
  }

  template <class T>
  Described& set(int attribute, Type type, const T* values, int64_t count) {
    valid_ = valid_ && api().set(descriptor_, attribute, type, count, values) == 0;
    return *this;
  }
  template <class T>
  Described& set(int attribute, Type type, const T& value) {
    return set(attribute, type, &value, 1);
  }
  Described& set(int attribute, const Described& other) {
    valid_ = valid_ && other.valid_;
    return set(attribute, kDescriptor, &other.descriptor_, 1);
  }
  bool finish() { return valid_ = valid_ && api().finish(descriptor_) == 0; }

  void* get() const { return descriptor_; }
  bool valid() const { return valid_; }

 private:
  void* descriptor_ = nullptr;
  bool valid_ = false;
};

Described tensor_of(const std::array<int, 5>& sizes, const std::array<int, 5>& strides, const ConvPlan& plan,
                    int64_t id, int64_t alignment) {
  std::array<int64_t, 5> dims{}, steps{};
  std::copy(sizes.begin(), sizes.end(), dims.begin()),
      std::copy(strides.begin(), strides.end(), steps.begin());
  Described tensor(kTensor);
  tensor.set(kTensorType, kDataType, plan.data_type)
      .set(kDimensions, kInt64, dims.data(), plan.rank)
      .set(kTensorStrides, kInt64, steps.data(), plan.rank)
      .set(kUniqueId, kInt64, id)
      .set(kAlignment, kInt64, alignment)
      .finish();
  return tensor;
}

Described convolution_of(const ConvPlan& plan) {
  const int64_t spatial = plan.rank - 2;
  std::array<int64_t, 3> padding{}, stride{}, dilation{};
  for (size_t i = 0; i < 3; ++i)
    padding[i] = plan.padding[i], stride[i] = plan.stride[i], dilation[i] = plan.dilation[i];
  Described convolution(kConvolution);
  convolution.set(kConvolutionType, kDataType, plan.compute_type)
      .set(kConvolutionModeOf, kConvolutionMode, cudnn::kCrossCorrelation)
      .set(kSpatialDimensions, kInt64, spatial)
      .set(kPrePaddings, kInt64, padding.data(), spatial)
      .set(kPostPaddings, kInt64, padding.data(), spatial)
      .set(kStrides, kInt64, stride.data(), spatial)
      .set(kDilations, kInt64, dilation.data(), spatial)
      .finish();
  return convolution;
}

// Strides of the weight in the plan's format.
std::array<int, 5> weight_strides(const ConvPlan& p) {
  std::array<int, 5> strides{};
  int step = 1;
  for (int i = p.rank - 1; i >= 0; --i) {
    const int d = p.format == cudnn::kNchw || i == 0 ? i : i == p.rank - 1 ? 1 : i + 1;
    strides[static_cast<size_t>(d)] = step;
    step *= p.weight[static_cast<size_t>(d)];
  }
  return strides;
}

bool suits(const Described& configuration, const ConvPlan& plan, const ConvWishes& wishes) {
  Described engine(kEngine);
  void* of = engine.get();
  int64_t count = 0;
  if (!engine.valid() || api().get(configuration.get(), kEngineOf, kDescriptor, 1, &count, &of) != 0)
    return false;
  std::array<int, 32> notes{};
  if (api().get(engine.get(), kNote, kNoteType, notes.size(), &count, notes.data()) != 0) return false;
  const bool exact = plan.data_type == cudnn::kFloat && !wishes.tf32;
  return std::none_of(notes.begin(), notes.begin() + std::min<int64_t>(count, notes.size()), [&](int note) {
    return (exact && (note == kTensorCore || note == kDownConvertInputs)) ||
           (wishes.deterministic && note == kNondeterministic);
  });
}

std::vector<Described> configurations_of(const Described& graph, Mode mode) {
  Described heuristic(kHeuristic);
  heuristic.set(kHeuristicGraph, graph).set(kHeuristicModeOf, kHeuristicMode, mode);
  int64_t count = 0;
  std::vector<Described> found;
  if (!heuristic.finish() ||
      api().get(heuristic.get(), kHeuristicResults, kDescriptor, 0, &count, nullptr) != 0)
    return found;
  std::vector<void*> pointers;
  for (int64_t i = 0; i < count; ++i) {
    found.emplace_back(kEngineConfiguration);
    pointers.push_back(found.back().get());
  }
  if (api().get(heuristic.get(), kHeuristicResults, kDescriptor, count, &count, pointers.data()) != 0)
    count = 0;
  while (static_cast<int64_t>(found.size()) > count) found.pop_back();
  return found;
}

class Plan final : public ConvGraph {
 public:
  Plan(void* handle, const Described& configuration) : handle_(handle), plan_(kExecutionPlan) {
    plan_.set(kPlanHandle, kHandleType, handle).set(kPlanConfiguration, configuration);
    int64_t bytes = 0, count = 0;
    valid_ = plan_.finish() && api().get(plan_.get(), kPlanWorkspace, kInt64, 1, &count, &bytes) == 0;
    bytes_ = static_cast<size_t>(bytes);
  }
  bool valid() const { return valid_; }
  size_t bytes() const { return bytes_; }

  bool run(const ConvMemory& memory, int device) const override {
    try {
      const Workspace workspace(bytes_, device);
      return run_with(memory, workspace.data());
    } catch (const OutOfMemory&) {
      return false;  // another way needs less
    }
  }

 private:
  bool run_with(const ConvMemory& memory, void* space) const {
    const int64_t ids[] = {kInputId, kWeightId, kOutputId};
    void* const pointers[] = {memory.input, memory.weight, memory.output};
    Described pack(kVariantPack);
    pack.set(kPackIds, kInt64, ids, 3).set(kPackPointers, kPointer, pointers, 3);
    pack.set(kPackWorkspace, kPointer, space);
    return pack.finish() && api().execute(handle_, plan_.get(), pack.get()) == 0;
  }

  void* handle_;
  Described plan_;
  size_t bytes_ = 0;
  bool valid_ = false;
};

// The milliseconds of a run, or a negative number where it fails.
float tried(const Plan& plan, const ConvMemory& memory, int device) {
  if (!plan.run(memory, device)) return -1;
  DeviceBackend& backend = device_backend(DeviceType::CUDA);
  const auto stream = static_cast<cudaStream_t>(backend.stream(backend.current_stream(device)).handle);
  cudaEvent_t begin = nullptr, end = nullptr;
  check(cudaEventCreate(&begin), "convolution"), check(cudaEventCreate(&end), "convolution");
  check(cudaEventRecord(begin, stream), "convolution");
  const bool good = plan.run(memory, device);
  check(cudaEventRecord(end, stream), "convolution"), check(cudaEventSynchronize(end), "convolution");
  float milliseconds = 0;
  check(cudaEventElapsedTime(&milliseconds, begin, end), "convolution");
  check(cudaEventDestroy(begin), "convolution"), check(cudaEventDestroy(end), "convolution");
  return good ? milliseconds : -1;
}

}  // namespace

int ConvMemory::alignment() const {
  uintptr_t bits = 16;
  for (const void* p : {input, weight, output}) bits |= reinterpret_cast<uintptr_t>(p);
  return static_cast<int>(bits & -bits);
}

std::unique_ptr<ConvGraph> ConvGraph::make(void* handle, int device, const ConvPlan& plan, ConvPass pass,
                                           const ConvMemory& memory, const ConvWishes& wishes) {
  if (!api().library.found()) return nullptr;
  const int64_t alignment = memory.alignment();
  const Described input = tensor_of(plan.input, plan.input_strides, plan, kInputId, alignment),
                  weight = tensor_of(plan.weight, weight_strides(plan), plan, kWeightId, alignment),
                  output = tensor_of(plan.output, plan.output_strides, plan, kOutputId, alignment),
                  convolution = convolution_of(plan);
  const Operation o = operation_of(pass);
  const float one = 1, zero = 0;
  Described operation(o.kind), graph(kOperationGraph);
  operation.set(o.convolution, convolution)
      .set(o.input, input)
      .set(o.weight, weight)
      .set(o.output, output)
      .set(o.alpha, kFloatType, one)
      .set(o.beta, kFloatType, zero)
      .finish();
  graph.set(kGraphOperations, operation).set(kGraphHandle, kHandleType, handle);
  if (!graph.finish()) return nullptr;

  constexpr int kMostTried = 8;
  std::unique_ptr<Plan> best;
  float shortest = 0;
  int left = wishes.benchmark ? kMostTried : 1;
  for (const Mode mode : {kInstant, kFallback}) {
    for (const Described& configuration : configurations_of(graph, mode)) {
      if (!suits(configuration, plan, wishes)) continue;
      auto made = std::make_unique<Plan>(handle, configuration);
      if (!made->valid() || made->bytes() > wishes.most_memory) continue;
      const float time = wishes.benchmark ? tried(*made, memory, device) : 0;
      if (time < 0) continue;
      if (!best || time < shortest) best = std::move(made), shortest = time;
      if (--left == 0) return best;
    }
    if (best) return best;
  }
  return best;
}

}  // namespace rushlight::cuda
