// Many small calls on a device as few launches.
#pragma once
#include <vector>

#include "core/tensor.h"
#include "device/kernels.h"
#include "dispatch/value.h"

namespace rushlight::loops {

// Note [Multi-tensor launches]
// While one lives, formulas and whole reductions that this thread asks of a device wait, and their tensors
// with them. They are launched as one by the first call that is of another kind or touches what they write
// (or writes what they read), by anything else that loops are asked for, and at the end. So an operator over
// a list opens such a scope, and stays a loop of calls.
class MultiTensorLaunch {
 public:
  // For an operator on each of these. Nothing waits where Python, a transform or the CPU computes some of it.
  explicit MultiTensorLaunch(TensorList list);
  // Launches what waits. Errors are lost here: `launch` comes first where nothing else failed.
  ~MultiTensorLaunch();
  MultiTensorLaunch(const MultiTensorLaunch&) = delete;

  void launch();

  // Whether the call waits now. False: the caller launches it.
  static bool hold(Formula f, DType compute, const Tensor& out, std::span<const Tensor* const> inputs,
                   std::span<const Scalar> parameters);
  static bool hold(const ReduceCall& call);
  static void launch_waiting() {
    if (current_) current_->launch();
  }

 private:
  // The memory of a tensor that waits: [begin, end).
  struct Extent {
    const char *begin, *end;
    bool overlaps(const Extent& other) const { return begin < other.end && other.begin < end; }
  };
  static Extent extent_of(const Tensor& t);
  // Launches what waits unless the call goes with it.
  void make_room(bool same_kind, const Tensor& out, std::span<const Tensor* const> inputs);

  static thread_local MultiTensorLaunch* current_;
  MultiTensorLaunch* outer_;
  std::vector<FormulaCall> formulas_;
  std::vector<ReduceCall> reductions_;  // one of the two is empty
  std::vector<Extent> read_, written_;
};

// The loops of a tensor's device, after all that waits there.
const DeviceKernels& kernels_on(const Tensor& t);

}  // namespace rushlight::loops
