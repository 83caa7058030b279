// Reading and writing at computed positions. Two forms: blocks (index, index_put_, index_select), where a
// list of offsets addresses runs of memory, and lines (gather, scatter), where each element of an index
// tensor addresses one element.
#pragma once
#include <vector>

#include "core/parallel.h"
#include "core/tensor.h"

namespace rushlight::cpu {

// Element offsets of an indexed tensor seen as [before, indexed, after, run]: `run` adjacent elements start
// at before[b] + indexed[k] + after[a].
struct IndexBlocks {
  std::vector<int64_t> before, indexed, after;
  int64_t run = 1;
  int64_t numel() const { return static_cast<int64_t>(before.size() * indexed.size() * after.size()) * run; }
};
// Offsets of all positions in row-major order.
std::vector<int64_t> all_offsets(IntList sizes, IntList strides);

void index_read(const IndexBlocks& at, const void* in, void* out, size_t itemsize);
// `values` in the order of index_read's result; one value for all positions with `single`.
void index_write(const IndexBlocks& at, void* self, const void* values, bool single, size_t itemsize);
void index_accumulate(const IndexBlocks& at, void* self, const void* values, bool single, DType dtype);

enum class ScatterOp : uint8_t { Assign, Add, Multiply, Max, Min };

// Whether all of n positions are from 0 to below `size`.
bool all_within(const int64_t* positions, int64_t n, int64_t size);

// For each element of `index` (int64): out[...] = self[..., index at dim, ...]. `out` has index's sizes.
// False where a position lies outside; `out` is worth nothing then.
bool gather(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& out);
// self[..., index at dim, ...] = op(that, src[...]), in the row-major order of `index`. With `check`, false
// where a position lies outside; `self` is worth nothing then.
bool scatter(ScatterOp op, const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src,
             bool check);

// Coordinates of the elements that are not zero, in order, int64 [dims, count], to where make_out(count)
// says; returns the count.
int64_t nonzero(const Tensor& t, detail::FunctionRef<int64_t*(int64_t)> make_out);
// The elements of t where `mask` (bool) is true; both contiguous and of one shape.
void masked_select(const Tensor& t, const Tensor& mask, detail::FunctionRef<void*(int64_t)> make_out);

// self's elements where `mask` (bool) is true become those of `source`, in order; returns how many were
// needed.
int64_t count_true(const Tensor& mask);
void masked_scatter(const Tensor& self, const Tensor& mask, const void* source);

}  // namespace rushlight::cpu
