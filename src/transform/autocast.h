// Autocasting: inside a region, operators choose the precision of their floating-point operands.
#pragma once
#include "core/dtype.h"

namespace rushlight {

class Table;

// One thread's region. Note [Autocast]
struct AutocastState {
  DType dtype = DType::BFloat16;  // of matrix products, convolutions, attention
  bool cache = true;              // keep the casts of leaves until the outermost region ends
  int nesting = 0;
};
extern thread_local AutocastState autocast_state;

bool autocast_enabled();
void set_autocast_enabled(bool on);
void clear_autocast_cache();
// Takes the operators off the straight path that take part, and sets the interceptor.
void install_autocast(Table& table);

}  // namespace rushlight
