// The loops of sorting, selecting, searching and counting that a device's library provides, on contiguous
// memory. Dtypes are real ones.
#pragma once
#include <cstddef>
#include <cstdint>

#include "core/dtype.h"

namespace rushlight {

// Lines of n elements. Their order is ascending or descending and stable; NaN is the greatest, -0 equal to 0.
struct DeviceLines {
  int device = 0;
  DType dtype = DType::Float32;
  const void* in = nullptr;
  int64_t lines = 0, n = 0;
};

enum class LineSelect : uint8_t { Kth, Median, NanMedian, Mode };

// As cpu::search_sorted, of one dtype.
struct DeviceSearch {
  int device = 0;
  DType dtype = DType::Float32;
  const void *boundaries = nullptr, *values = nullptr;
  const int64_t* sorter = nullptr;
  int64_t lines = 1, boundaries_per_line = 0, values_per_line = 0;
  bool shared = true, right = false;
  bool narrow = false;  // of out: int32 in place of int64
  void* out = nullptr;
};

// counts[bin of in[i]] += weights[i], or 1. Bins are integers' own values, or of equal width from low to
// high, both included; what lies in no bin is left out.
struct DeviceBins {
  int device = 0;
  DType dtype = DType::Int64;
  const void* in = nullptr;
  int64_t n = 0, bins = 0;
  bool between = false;
  double low = 0, high = 0;
  const void* weights = nullptr;  // float32 or float64
  DType counts_dtype = DType::Int64;
  void* counts = nullptr;
};

// What is true in a vector is counted in parts, and its places written when the count is known: `starts` has
// flag_parts(n) + 1 elements, of which the last is the count.
constexpr int64_t flag_parts(int64_t n) {
  constexpr int64_t kMost = 2048, kLeast = 4096;
  const int64_t parts = (n + kLeast - 1) / kLeast;
  return parts < 1 ? 1 : parts < kMost ? parts : kMost;
}
constexpr int kMostCoordinates = 12;
struct DeviceFlags {
  int device = 0;
  DType dtype = DType::Bool;
  const void* in = nullptr;  // what is not 0; or sorted values, of which each that differs from the last
  int64_t n = 0;
  int64_t* starts = nullptr;
};
// The groups of equal neighbours. Null: not wanted.
struct DeviceGroups {
  const int64_t* order = nullptr;  // where the sorted values come from, null: from their own place
  void* values = nullptr;
  int64_t *inverse = nullptr, *counts = nullptr;
  int64_t* begins = nullptr;  // where each begins; there for counts
};

struct DeviceOrder {
  // values, order: each may be null.
  void (*sort)(const DeviceLines& lines, bool descending, void* values, int64_t* order) = nullptr;
  // The k first of each line in that order.
  void (*top)(const DeviceLines& lines, int64_t k, bool descending, void* values, int64_t* order) = nullptr;
  // One element of each line, of equal ones the first; k counts from 0.
  void (*select)(const DeviceLines& lines, LineSelect what, int64_t k, void* values,
                 int64_t* positions) = nullptr;
  // The extreme of each element and those before it, of equal ones the last, and its place.
  void (*running_extreme)(const DeviceLines& lines, bool largest, void* values, int64_t* places) = nullptr;
  void (*search)(const DeviceSearch& search) = nullptr;

  // The least and the greatest of n > 0 elements, NaN where there is one; both of `dtype`.
  void (*extremes)(int device, DType dtype, const void* in, int64_t n, void* both) = nullptr;
  void (*count)(const DeviceBins& bins) = nullptr;

  void (*count_flags)(const DeviceFlags& flags, bool changes) = nullptr;
  // Coordinates [count, rank] in a tensor of these sizes.
  void (*places)(const DeviceFlags& flags, const int64_t* sizes, int rank, int64_t* out) = nullptr;
  // The elements of `size` bytes whose flag is set.
  void (*pick)(const DeviceFlags& flags, const void* from, size_t size, void* out) = nullptr;
  // The inverse: elements one after the other to where flags are set.
  void (*spread)(const DeviceFlags& flags, const void* from, size_t size, void* out) = nullptr;
  void (*groups)(const DeviceFlags& sorted, int64_t count, const DeviceGroups& groups) = nullptr;

  // The numbers from 0 to n - 1 in the order of the lowest `bits` of random keys, int32 or `wide` ones, which
  // are written over; equal keys are shuffled with the generator's numbers from this place on.
  void (*permutation)(int device, void* keys, bool wide, int bits, int64_t n, uint64_t seed, uint64_t offset,
                      const uint64_t* base, int64_t* out) = nullptr;
};

}  // namespace rushlight
