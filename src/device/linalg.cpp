#include "device/linalg.h"

#include <array>

#include "core/error.h"

namespace rushlight {
namespace {

std::array<const DeviceLinalg*, kDeviceTypeCount> all{};

}  // namespace

void register_device_linalg(DeviceType type, const DeviceLinalg* linalg) {
  all[static_cast<size_t>(type)] = linalg;
}

const DeviceLinalg& device_linalg(DeviceType type) {
  const DeviceLinalg* linalg = all[static_cast<size_t>(type)];
  RL_ASSERT(linalg, "no linear algebra is registered for ", device_type_name(type));
  return *linalg;
}

}  // namespace rushlight
