// Layers of an LSTM a launch a step, where one launch for all steps is not for them.
#pragma once
#include "core/dtype.h"
#include "device/lstm.h"

namespace rushlight::cuda {

bool lstm_steps(int device, DType dtype, const DeviceLstmSequence& sequence);  // false: not for these

}  // namespace rushlight::cuda
