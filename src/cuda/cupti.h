// What devices did and when, by CUPTI, which is found at run time; DeviceDriver says what each does.
#pragma once
#include <cstdint>
#include <vector>

#include "core/device_driver.h"

namespace rushlight::cuda {

// False where there is no CUPTI, or another tool uses it.
bool cupti_start();
std::vector<DeviceActivity> cupti_stop();
void cupti_push(uint64_t cause);
void cupti_pop();

}  // namespace rushlight::cuda
