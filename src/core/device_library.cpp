// Which devices there are: the library of a device is loaded when one is first asked for.
#include <array>
#include <cstdlib>
#include <string>

#include "core/device_backend.h"
#include "core/host/file.h"
#include "core/host/library.h"
#include "core/host/process.h"

namespace rushlight {
namespace {

struct Known {
  DeviceDriver* driver = nullptr;
  std::once_flag once;
  DeviceBackend* backend = nullptr;  // outlives every tensor
};
Known known[kDeviceTypeCount];
std::string load_failure;
std::atomic<bool> used{false}, forked{false};

// The library of a device lies beside this one.
std::string library_path() {
  if (const char* given = std::getenv("RUSHLIGHT_CUDA_LIBRARY")) return given;
  const std::string folder = host::folder_of(reinterpret_cast<const void*>(&library_path));
  return folder.empty() ? folder : folder + host::library_file("rushlight_cuda");
}

void load_library() {
  const std::string path = library_path();
  if (path.empty() || !host::file_exists(path)) return;  // a build for the CPU alone
  std::string failure;
  if (!host::load_library(path, &failure)) load_failure = "; its library does not load: " + failure;
}

void note_use() {
  if (used.load(std::memory_order_relaxed)) return;
  static std::once_flag once;
  std::call_once(once, [] { host::around_fork(nullptr, nullptr, [] { forked = used.load(); }); });
  used = true;
}

}  // namespace

void register_device_driver(DeviceType type, DeviceDriver* driver) {
  known[static_cast<size_t>(type)].driver = driver;
}

DeviceBackend* find_device_backend(DeviceType type) {
  static std::once_flag once;
  if (type == DeviceType::CUDA) std::call_once(once, load_library);
  Known& found = known[static_cast<size_t>(type)];
  if (!found.driver) return nullptr;
  std::call_once(found.once, [&] { found.backend = new DeviceBackend(*found.driver); });
  return found.backend;
}

DeviceBackend& device_backend(DeviceType type) {
  DeviceBackend* backend = find_device_backend(type);
  if (!backend) RL_FAIL_AS(Assertion, "Torch not compiled with CUDA enabled", load_failure);
  RL_CHECK(
      !in_bad_fork(),
      "Cannot re-initialize CUDA in forked subprocess. To use CUDA with multiprocessing, you must use the "
      "'spawn' start method");
  note_use();
  return *backend;
}

bool in_bad_fork() { return forked.load(std::memory_order_relaxed); }
bool device_in_use() { return used.load(std::memory_order_relaxed); }

Device numbered(Device device) {
  if (device.is_cpu() || device.is_meta()) return Device{device.type()};
  DeviceBackend& backend = device_backend(device.type());
  if (device.index() < 0) device.set_index(backend.current_device());
  RL_CHECK(device.index() < backend.device_count(), "CUDA error: invalid device ordinal (device ", device,
           ", of ", backend.device_count(), ")");
  return device;
}

}  // namespace rushlight
