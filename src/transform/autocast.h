// Autocasting: inside a region, operators choose the precision of their floating-point operands.
#pragma once
#include "core/device.h"
#include "core/dtype.h"

namespace rushlight {

struct Frame;

// One thread's region. Note [Autocast]
struct AutocastState {
  struct Region {
    bool enabled;
    DType dtype;  // of matrix products, convolutions, attention
    bool operator==(const Region&) const = default;
  };
  Region cpu{false, DType::BFloat16}, cuda{false, DType::Float16};
  bool cache = true;  // keep the casts of leaves until the outermost region ends

  Region& on(DeviceType type) { return type == DeviceType::CPU ? cpu : cuda; }
  int nesting = 0;
};
extern thread_local AutocastState autocast_state;

void set_autocast_enabled(DeviceType type, bool on);
void clear_autocast_cache();
// Runs what the program registered for its own operator on this device; false where it registered nothing.
extern bool (*autocast_custom_call)(Frame& frame, DeviceType device);
void install_autocast();

}  // namespace rushlight
