// How random kernels write into any tensor.
#pragma once
#include "core/generator.h"
#include "cpu/random.h"
#include "device/kernels.h"
#include "dispatch/op.h"

namespace rushlight {

// `t` with its dimensions sorted so that memory is walked forwards: PyTorch draws in this order.
Tensor in_memory_order(const Tensor& t, Dims* order = nullptr);
// A complex tensor as twice as many reals; others unchanged.
Tensor as_reals(const Tensor& t);

// Fills `self` from its device's generator; false on the CPU, and where nothing is to be filled with.
bool draw_on_device(DeviceKernels::Random kind, const Tensor& self, double a, double b, uint64_t range,
                    Generator* generator);

// Each element is drawn once, so each needs memory of its own.
inline void check_elements_apart(const Tensor& self) {
  RL_CHECK(!has_internal_overlap(self),
           "unsupported operation: more than one element of the written-to tensor refers to a single memory "
           "location. Please clone() the tensor before performing the operation.");
}

// The same by `fill(target, generator)`, which gets contiguous memory and says whether it knows the dtype.
template <class Fill>
bool draw_on_device(const Tensor& self, Generator* generator, Fill fill) {
  if (!self.device().is_cuda()) return false;
  check_elements_apart(self);
  Generator& g = generator ? *generator : device_generator(self.device().index());
  RL_CHECK(g.device().is_cuda(), "Expected a 'cuda' device type for generator but found 'cpu'");
  if (self.numel() == 0) return true;
  const Tensor ordered = self.is_contiguous() ? self : in_memory_order(self);
  const Tensor target =
      ordered.is_contiguous() ? ordered : empty_tensor(ordered.sizes(), self.dtype(), self.device());
  RL_CHECK_AS(NotImplemented, fill(target, g), "random numbers of dtype ", dtype_name(self.dtype()),
              " on a device");
  if (!ordered.is_contiguous()) copy_result(ordered, target, false);
  return true;
}

template <class Fill>
void write_random(const Tensor& self, Fill fill) {
  check_elements_apart(self);
  if (!self.is_cpu() || self.numel() == 0) return;
  auto run = [&](const Tensor& t) { fill(cpu::RandomOut{t.dtype(), t.data_ptr(), t.numel()}); };
  if (self.is_contiguous()) return run(self);
  const Tensor ordered = in_memory_order(self);
  if (ordered.is_contiguous()) return run(ordered);
  const Tensor values = empty_tensor(ordered.sizes(), self.dtype());
  run(values);
  copy_result(ordered, values, false);
}

}  // namespace rushlight
