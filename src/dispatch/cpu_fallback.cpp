#include "dispatch/cpu_fallback.h"

#include <bit>
#include <cstdlib>
#include <mutex>
#include <set>
#include <vector>

#include "core/device_backend.h"
#include "core/quantizer.h"
#include "core/sparse.h"
#include "dispatch/op.h"

namespace rushlight {
namespace {

void report(const Op& op, Device device) {
  static const std::string_view wish = [] {
    const char* given = std::getenv("RUSHLIGHT_CUDA_FALLBACK");
    return std::string_view(given ? given : "warn");
  }();
  if (wish == "silent") return;
  if (wish == "error")
    RL_NOT_IMPLEMENTED("Could not run '", op.name(), "' on device ", device_type_name(device.type()),
                       ": this build has no kernel for it; move the operands with .cpu()");
  static std::mutex mutex;
  static std::set<const Op*> known;
  {
    const std::lock_guard lock(mutex);
    if (!known.insert(&op).second) return;
  }
  show_warning(str(op.name(), ": no kernel for ", device_type_name(device.type()),
                   " yet; it runs on the CPU, with copies there and back (said once for each operator)"));
}

// The copies of one call. Arguments that are the same tensor have the same copy.
class Copies {
 public:
  Tensor of(const Tensor& t) {
    if (!t.defined() || t.is_cpu()) return t;
    for (const auto& [original, copy] : pairs_)
      if (original.is_same(t)) return copy;
    const Tensor copy = is_non_overlapping_and_dense(t) && !t.is_contiguous()
                            ? empty_strided_tensor(t.sizes(), absolute(t.strides()), t.dtype())
                            : empty_tensor(t.sizes(), t.dtype());
    copy_result(copy, t, false);
    if (t.is_wrapped_number()) copy->flags |= kWrappedNumber;
    pairs_.emplace_back(t, copy);
    return copy;
  }
  void write_back(const Tensor& t) const {
    for (const auto& [original, copy] : pairs_)
      if (original.is_same(t)) {
        if (copy.sizes() != original.sizes()) resize_tensor(original, copy.sizes());
        copy_result(original, copy, false);
      }
  }
  Tensor back(const Tensor& result, Device device) const {
    if (!result.defined()) return result;
    for (const auto& [original, copy] : pairs_)
      if (copy.is_same(result)) return original;
    if (is_sparse(result))
      RL_NOT_IMPLEMENTED(
          "sparse tensors live on the CPU: make them of operands there (.cpu()), and move what they "
          "compute");
    if (result->quantizer) check_quantized_place(device);
    const Tensor moved =
        is_non_overlapping_and_dense(result) && !result.is_contiguous()
            ? empty_strided_tensor(result.sizes(), absolute(result.strides()), result.dtype(), device)
            : empty_tensor(result.sizes(), result.dtype(), device);
    copy_result(moved, result, false);
    return moved;
  }

 private:
  static Dims absolute(IntList strides) {
    Dims result = strides.dims();
    for (int64_t& s : result) s = std::abs(s);
    return result;
  }
  std::vector<std::pair<Tensor, Tensor>> pairs_;
};

}  // namespace

void run_on_cpu(const Op& op, const Value* args, Results& results, Device device) {
  report(op, device);
  device = numbered(device);
  const size_t count = op.schema.parameters.size();
  Copies copies;
  std::vector<std::vector<Tensor>> lists(count);
  std::vector<Tensor> tensors(count);
  std::vector<Value> moved(args, args + count);
  for (size_t i = 0; i < count; ++i) {
    if (args[i].tag() == Tag::Tensor) {
      tensors[i] = copies.of(args[i].tensor());
      moved[i] = Value(tensors[i]);
    } else if (args[i].tag() == Tag::TensorList) {
      for (const Tensor& t : args[i].tensors()) lists[i].push_back(copies.of(t));
      moved[i] = Value(TensorList(lists[i]));
    } else if (args[i].tag() == Tag::Device) {
      moved[i] = Value(Device{});
    }
  }
  op.trampoline(op.kernel[0], Call{op}, moved.data(), results);
  for (uint64_t bits = op.mutated; bits; bits &= bits - 1) {
    const Value& v = args[std::countr_zero(bits)];
    if (v.tag() == Tag::Tensor && v.tensor().defined()) copies.write_back(v.tensor());
    if (v.tag() == Tag::TensorList)
      for (const Tensor& t : v.tensors()) copies.write_back(t);
  }
  for (int i = 0; i < results.count; ++i) results.tensors[i] = copies.back(results.tensors[i], device);
  for (Tensor& t : results.list) t = copies.back(t, device);
}

}  // namespace rushlight
