// Elements that one index names, read and written without a tensor of their offsets.
#pragma once
#include "device/moves.h"
#include "ops/device_loops.h"

namespace rushlight::loops {

// The moves of a tensor's device, after what waits to be launched there.
const DeviceMoves& moves_on(const Tensor& t);

struct IndexedPositions {
  Positions at;  // the index in place of offsets
  DeviceMoves::Indexing by = {};
};
// Of whole slices along `dim`; `index` has one dimension, or none.
IndexedPositions indexed_slices(const Tensor& self, int64_t dim, const Tensor& index, bool wraps);
void take(const Tensor& out, const Tensor& self, const IndexedPositions& at);
void put(cpu::ScatterOp op, const Tensor& self, const IndexedPositions& at, const Tensor& values);

}  // namespace rushlight::loops
