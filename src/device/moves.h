// The loops that a device's library provides for moving elements to and from computed positions, beside those
// of device/kernels.h.
#pragma once
#include "core/tensor.h"

namespace rushlight {

class Generator;
namespace cpu {
enum class ScatterOp : uint8_t;
}

// All tensors are on one device, except that values of no dimensions may be on the CPU.
struct DeviceMoves {
  // Positions in [0, size), or [-size, size) where they wrap, along a dimension of `stride` elements. A
  // negative size: an index of distances in elements, which nobody checks.
  struct Indexing {
    int64_t size = -1, stride = 1;
    bool wraps = false;
  };
  // Elements of `base`, whose sizes are those of out, each as much further on as `index` (int64) says.
  void (*take)(const Tensor& out, const Tensor& base, const Tensor& index, const Indexing& by) = nullptr;
  // False: not for these dtypes.
  bool (*put)(cpu::ScatterOp op, const Tensor& base, const Tensor& index, const Indexing& by,
              const Tensor& values) = nullptr;
  // Contiguous `out` of the matrices `in`: their triangle, zeros outside.
  void (*triangle)(const Tensor& out, const Tensor& in, int64_t diagonal, bool upper) = nullptr;
  // Contiguous `out`: ones with the probabilities `p`, zeros otherwise. False: not for these dtypes.
  bool (*bernoulli)(const Tensor& out, const Tensor& p, Generator& generator) = nullptr;
  // out = in * mask / keep and the mask (bool), drawn as PyTorch's kernel draws that reads `at_once` elements
  // at a time. All without gaps in one order, in a floating dtype.
  void (*dropout)(const Tensor& out, const Tensor& mask, const Tensor& in, double keep, int64_t at_once,
                  Generator& generator) = nullptr;
};
void register_device_moves(DeviceType type, const DeviceMoves* moves);
// Those of a tensor's device.
const DeviceMoves& device_moves(const Tensor& t);

}  // namespace rushlight
