// Products with a bias and an activation in one pass, by cuBLASLt. What it does not take goes the way
// without.
#include <array>
#include <map>
#include <mutex>
#include <optional>
#include <tuple>

#include "cuda/check.h"
#include "cuda/gemm_plan.h"
#include "cuda/kernels.h"
#include "cuda/launch.h"
#include "cuda/library.h"
#include "cuda/operands.h"
#include "cuda/workspace.h"

namespace rushlight::cuda {
namespace {

using Handle = void*;
using Object = void*;  // descriptions of operations, matrices and preferences
enum Attribute { kLeft = 3, kRight = 4, kEpilogue = 7, kBiasPointer = 8 };
enum Preference { kMostWorkspace = 1, kReductions = 3, kAlignments = 5 };

struct Algorithm {
  uint64_t data[8];
};
struct Found {
  Algorithm algorithm;
  size_t workspace;
  int state;
  float waves;
  int reserved[4];
};

struct CublasLt {
  Library library{
      "cuBLASLt", {"cu13", "cublas"}, {"libcublasLt.so.13", "libcublasLt.so.12"}, "nvidia-cublas"};
  int (*create)(Handle*) = nullptr;
  int (*make_operation)(Object*, int compute, int scale) = nullptr;
  int (*drop_operation)(Object) = nullptr;
  int (*set_operation)(Object, int, const void*, size_t) = nullptr;
  int (*make_layout)(Object*, int type, uint64_t rows, uint64_t columns, int64_t leading) = nullptr;
  int (*drop_layout)(Object) = nullptr;
  int (*make_preference)(Object*) = nullptr;
  int (*drop_preference)(Object) = nullptr;
  int (*set_preference)(Object, int, const void*, size_t) = nullptr;
  int (*choose)(Handle, Object, Object, Object, Object, Object, Object, int, Found*, int*) = nullptr;
  int (*run)(Handle, Object, const void* alpha, const void*, Object, const void*, Object, const void* beta,
             const void*, Object, void*, Object, const Algorithm*, void* workspace, size_t,
             cudaStream_t) = nullptr;

  CublasLt() {
    library.entry("cublasLtCreate", &create);
    library.entry("cublasLtMatmulDescCreate", &make_operation);
    library.entry("cublasLtMatmulDescDestroy", &drop_operation);
    library.entry("cublasLtMatmulDescSetAttribute", &set_operation);
    library.entry("cublasLtMatrixLayoutCreate", &make_layout);
    library.entry("cublasLtMatrixLayoutDestroy", &drop_layout);
    library.entry("cublasLtMatmulPreferenceCreate", &make_preference);
    library.entry("cublasLtMatmulPreferenceDestroy", &drop_preference);
    library.entry("cublasLtMatmulPreferenceSetAttribute", &set_preference);
    library.entry("cublasLtMatmulAlgoGetHeuristic", &choose);
    library.entry("cublasLtMatmul", &run);
  }
};

const CublasLt& api() {
  static const CublasLt one;
  return one;
}

// One handle a device; unlike cuBLAS's, it may serve many callers.
Handle handle_of(int device) {
  static std::mutex mutex;
  static std::array<Handle, DeviceBackend::kMaxDevices> handles{};
  const std::lock_guard lock(mutex);
  Handle& handle = handles[static_cast<size_t>(device)];
  if (!handle && api().create(&handle) != 0) handle = nullptr;
  return handle;
}

int epilogue_number(Epilogue epilogue) {
  return epilogue == Epilogue::Relu   ? cublas::kEpilogueReluBias
         : epilogue == Epilogue::Gelu ? cublas::kEpilogueGeluBias
                                      : cublas::kEpilogueBias;
}

// The descriptions of one product, freed with it.
class Operation {
 public:
  Operation(const GemmPlan& p, const void* bias, Epilogue epilogue) {
    const CublasLt& c = api();
    const int number = epilogue_number(epilogue);
    auto set = [&](int attribute, const auto& value) {
      return c.set_operation(operation, attribute, &value, sizeof value) == 0;
    };
    // Stored sizes, by columns: the row-major operand transposed.
    auto layout = [&](Object* made, bool transposed, int rows, int columns, int leading) {
      return c.make_layout(made, p.type, static_cast<uint64_t>(transposed ? columns : rows),
                           static_cast<uint64_t>(transposed ? rows : columns), leading) == 0;
    };
    valid_ = c.make_operation(&operation, p.compute, p.scale_type) == 0 && set(kLeft, p.right_operation) &&
             set(kRight, p.left_operation) && set(kEpilogue, number) && set(kBiasPointer, bias) &&
             layout(&left, p.right_operation != 0, p.n, p.k, p.right_leading) &&
             layout(&right, p.left_operation != 0, p.k, p.m, p.left_leading) &&
             layout(&out, false, p.n, p.m, p.n);
  }
  ~Operation() {
    const CublasLt& c = api();
    if (operation) c.drop_operation(operation);
    for (Object o : {left, right, out})
      if (o) c.drop_layout(o);
  }
  Operation(const Operation&) = delete;
  bool valid() const { return valid_; }

  Object operation = nullptr, left = nullptr, right = nullptr, out = nullptr;

 private:
  bool valid_ = false;
};

constexpr size_t kWorkspace = size_t{32} << 20;
using Alignments = std::array<uint32_t, 3>;  // of the operands in cuBLASLt's order

std::optional<Found> ask(Handle handle, const Operation& o, const GemmPlan& p, const Alignments& aligned) {
  const CublasLt& c = api();
  Object preference = nullptr;
  if (c.make_preference(&preference) != 0) return std::nullopt;
  auto set = [&](int attribute, const auto& value) {
    return c.set_preference(preference, attribute, &value, sizeof value) == 0;
  };
  const uint32_t reductions = p.exact_sums ? cublas::kExactReductions : cublas::kAllReductions;
  bool valid = set(kMostWorkspace, uint64_t{kWorkspace}) && set(kReductions, reductions);
  const uint32_t all[] = {aligned[0], aligned[1], aligned[2], aligned[2]};
  for (int i = 0; i < 4; ++i) valid = valid && set(kAlignments + i, all[i]);
  Found found{};
  int count = 0;
  valid = valid &&
          c.choose(handle, o.operation, o.left, o.right, o.out, o.out, preference, 1, &found, &count) == 0;
  c.drop_preference(preference);
  if (!valid || count == 0 || found.state != 0) return std::nullopt;
  return found;
}

// What was chosen so far, for all threads.
class Choices {
 public:
  template <class F>
  std::optional<Found> of(const GemmPlan& p, const Alignments& aligned, Epilogue epilogue, int device,
                          F&& ask) {
    const Key key{p, aligned, epilogue, device};
    const std::lock_guard lock(mutex_);
    if (const auto known = known_.find(key); known != known_.end()) return known->second;
    if (known_.size() >= kMost) known_.clear();
    return known_[key] = ask();
  }

 private:
  using Key = std::tuple<GemmPlan, Alignments, Epilogue, int>;
  static constexpr size_t kMost = 4096;
  std::mutex mutex_;
  std::map<Key, std::optional<Found>> known_;
};

}  // namespace

bool run_product_bias(const View& out, const View& a, const View& b, const void* bias, Epilogue epilogue,
                      const GemmSwitches& allowed) {
  if (!is_floating(out.dtype) || out.rank != 2 || !api().library.found()) return false;
  const GemmPlan p = gemm_plan(out, a, b, allowed);
  if (p.compute == cublas::kCompute16) return false;  // whose bias would be added in float16
  DeviceBackend& backend = device_backend(DeviceType::CUDA);
  const DeviceScope scope(backend.driver(), out.device);
  const Handle handle = handle_of(out.device);
  if (!handle) return false;
  const Operation o(p, bias, epilogue);
  if (!o.valid()) return false;
  static Choices choices;
  const Alignments aligned{alignment_of(b.data), alignment_of(a.data), alignment_of(out.data)};
  const auto found = choices.of(p, aligned, epilogue, out.device, [&] { return ask(handle, o, p, aligned); });
  if (!found) return false;
  const Workspace workspace(found->workspace, out.device);
  const double wide[] = {1, 0};
  const float narrow[] = {1, 0};
  const void* one = p.wide ? static_cast<const void*>(wide) : narrow;
  const void* zero = p.wide ? static_cast<const void*>(wide + 1) : narrow + 1;
  const StreamInfo stream = backend.stream(backend.current_stream(out.device));
  if (api().run(handle, o.operation, one, b.data, o.left, a.data, o.right, zero, out.data, o.out, out.data,
                o.out, &found->algorithm, workspace.data(), found->workspace,
                static_cast<cudaStream_t>(stream.handle)) != 0)
    return false;
  backend.launched(out.device, "product_bias");
  return true;
}

}  // namespace rushlight::cuda
