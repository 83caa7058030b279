// One formula over many tensors in one launch.
#pragma once
#include <cstring>
#include <span>

#include "cuda/memory.h"
#include "cuda/multi_tensor.h"

namespace rushlight {
class Scalar;
}

namespace rushlight::cuda {

// What a launch is told. An operand is adjacent elements, one element for all or a number, and of one dtype
// in all tensors. Longer tensors gain nothing by company: their own kernels read 16 bytes at a time.
struct FormulaMultiTensor {
  static constexpr int kMost = 64, kMostInputs = kMaxOperands - 1, kMostParameters = 2;
  static constexpr uint32_t kMostElements = 1 << 20, kPerBlock = 1024;

  struct Entry {
    char* out;
    uint64_t inputs[kMostInputs];  // an address, or the bytes of a number of the compute type
    uint64_t parameters[kMostParameters];
    uint32_t numel;
    uint8_t steps[kMostInputs];  // bytes from one element to the next: 0 for one element for all
    uint8_t numbers;             // a bit for each input that is a number
  };

  TensorBlocks<kMost> tensor_blocks;
  DType dtypes[kMaxOperands] = {};
  Entry entries[kMost];

  static bool fits(const Piece& piece);      // in any launch
  bool goes_with(const Piece& piece) const;  // with those that are there
  // T: the compute type.
  template <class T>
  void add(const Piece& piece, DType compute, std::span<const Scalar> parameters);

  template <class T>
  RL_BOTH static T number_of(uint64_t bytes) {
    T value;
    memcpy(&value, &bytes, sizeof(T));
    return value;
  }
  // Input i of an element.
  template <class T>
  RL_BOTH T input(const Entry& entry, int i, uint32_t element) const {
    if (entry.numbers >> i & 1) return number_of<T>(entry.inputs[i]);
    return load<T>(dtypes[i + 1],
                   reinterpret_cast<const char*>(entry.inputs[i]) + uint64_t{element} * entry.steps[i]);
  }
};
static_assert(sizeof(FormulaMultiTensor) <= 4096);

}  // namespace rushlight::cuda
