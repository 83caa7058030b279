// What an optimizer's step for many parameters on a device is told.
#pragma once
#include <span>

#include "cpu/optimizer.h"

namespace rushlight {

struct DeviceStep {
  cpu::StepArrays arrays;       // without factors and corrections
  double factors[3] = {};       // of the parameter; Adam: its two corrections, unless there is
  const float* step = nullptr;  // the number of the step, on the device
};

struct DeviceOptimizer {
  enum class Kind : uint8_t { Sgd, Adam, Update };
  Kind kind = Kind::Sgd;
  cpu::SgdOptions sgd = {};
  cpu::AdamOptions adam = {};
  cpu::UpdateOptions update = {};
  const float* grad_scale = nullptr;  // on the device: gradients are divided by it
  const float* found_inf = nullptr;   // on the device: not zero means that nothing moves
};

}  // namespace rushlight
