#include "core/device_backend.h"

#include <dlfcn.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <mutex>
#include <string>

namespace rushlight {
namespace {

std::array<DeviceBackend*, kDeviceTypeCount> backends{};
std::string load_failure;

// The library of a device lies beside this one.
std::string library_path() {
  if (const char* given = std::getenv("RUSHLIGHT_CUDA_LIBRARY")) return given;
  Dl_info here;
  if (!dladdr(reinterpret_cast<const void*>(&library_path), &here) || !here.dli_fname) return {};
  const std::string own = here.dli_fname;
  return own.substr(0, own.rfind('/') + 1) + "librushlight_cuda.so";
}

void load_library() {
  const std::string path = library_path();
  if (path.empty() || access(path.c_str(), F_OK) != 0) return;  // a build for the CPU alone
  if (dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) return;
  load_failure = std::string("; its library does not load: ") + dlerror();
}

}  // namespace

void register_device_backend(DeviceType type, DeviceBackend* backend) {
  backends[static_cast<int>(type)] = backend;
}

DeviceBackend* find_device_backend(DeviceType type) {
  static std::once_flag once;
  if (type == DeviceType::CUDA) std::call_once(once, load_library);
  return backends[static_cast<int>(type)];
}

DeviceBackend& device_backend(DeviceType type) {
  DeviceBackend* backend = find_device_backend(type);
  if (!backend) RL_FAIL_AS(Assertion, "Torch not compiled with CUDA enabled", load_failure);
  return *backend;
}

Device numbered(Device device) {
  if (device.is_cpu() || device.is_meta()) return Device{device.type};
  DeviceBackend& backend = device_backend(device.type);
  if (device.index < 0) device.index = static_cast<int8_t>(backend.current_device());
  RL_CHECK(device.index < backend.device_count(), "CUDA error: invalid device ordinal (device ", device,
           ", of ", backend.device_count(), ")");
  return device;
}

}  // namespace rushlight
