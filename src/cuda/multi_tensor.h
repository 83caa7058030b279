// Many tensors in one launch: each has some blocks of the grid, one after the other.
#pragma once
#include "cuda/geometry.h"

namespace rushlight::cuda {

// As many tensors as fit into the 4096 bytes that a kernel's arguments may have everywhere are `most`.
template <int most>
struct TensorBlocks {
  int count = 0;
  int32_t first_block[most + 1] = {};

  bool is_full() const { return count == most; }
  int32_t blocks() const { return first_block[count]; }
  void add(int64_t blocks) {
    first_block[count + 1] = first_block[count] + static_cast<int32_t>(blocks);
    ++count;
  }
  // The tensor of a block.
  RL_BOTH int owner(int64_t block) const {
    int low = 0, high = count - 1;
    while (low < high) {
      const int middle = (low + high + 1) / 2;
      if (first_block[middle] <= block)
        low = middle;
      else
        high = middle - 1;
    }
    return low;
  }
};

}  // namespace rushlight::cuda
