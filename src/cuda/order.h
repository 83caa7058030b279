// The loops of sorting, selecting, searching and counting in this library, as device/order.h names them.
#pragma once
#include "device/order.h"

namespace rushlight::cuda {

void sort_in_order(const DeviceLines& lines, bool descending, void* values, int64_t* order);
void top(const DeviceLines& lines, int64_t k, bool descending, void* values, int64_t* order);
void select_of_lines(const DeviceLines& lines, LineSelect what, int64_t k, void* values, int64_t* positions);
void running_extreme(const DeviceLines& lines, bool largest, void* values, int64_t* places);
void search_sorted(const DeviceSearch& search);

void extremes(int device, DType dtype, const void* in, int64_t n, void* both);
void count_bins(const DeviceBins& bins);

void count_flags(const DeviceFlags& flags, bool changes);
void places_of_flags(const DeviceFlags& flags, const int64_t* sizes, int rank, int64_t* out);
void pick_flagged(const DeviceFlags& flags, const void* from, size_t size, void* out);
void spread_flagged(const DeviceFlags& flags, const void* from, size_t size, void* out);
void groups_of_sorted(const DeviceFlags& sorted, int64_t count, const DeviceGroups& groups);

void permutation(int device, void* keys, bool wide, int bits, int64_t n, uint64_t seed, uint64_t offset,
                 const uint64_t* base, int64_t* out);

}  // namespace rushlight::cuda
