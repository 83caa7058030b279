// Loops that only move elements know them by their width.
#pragma once
#include "core/dtype.h"

namespace rushlight::cpu {

// Calls f with a value as wide as one element.
template <class F>
void visit_width(size_t itemsize, F&& f) {
  switch (itemsize) {
    case 1:
      return f(uint8_t{});
    case 2:
      return f(uint16_t{});
    case 4:
      return f(uint32_t{});
    case 8:
      return f(uint64_t{});
    default:
      return f(complex128{});
  }
}

}  // namespace rushlight::cpu
