#include "core/device.h"

#include <charconv>

namespace rushlight {

std::string_view device_type_name(DeviceType t) {
  // Types beyond those of this build only have names: torch.device("mps") is something to compare with.
  static constexpr std::string_view names[] = {
      "cpu", "cuda", "meta", "ipu", "xpu",  "mkldnn", "opengl", "opencl", "ideep", "hip",
      "ve",  "fpga", "maia", "xla", "lazy", "vulkan", "mps",    "hpu",    "mtia",  "privateuseone"};
  const auto i = static_cast<size_t>(t);
  return i < std::size(names) ? names[i] : std::string_view();
}

std::string to_string(const Device& device) {
  std::string out(device_type_name(device.type()));
  return device.index() < 0 ? out : str(out, ":", static_cast<int>(device.index()));
}

std::string_view memory_format_name(MemoryFormat f) {
  static constexpr std::string_view names[] = {"torch.contiguous_format", "torch.preserve_format",
                                               "torch.channels_last", "torch.channels_last_3d"};
  return names[static_cast<int>(f)];
}

Device Device::parse(std::string_view text) {
  RL_CHECK(!text.empty(), "Device string must not be empty");
  const auto colon = text.find(':');
  const std::string_view name = text.substr(0, colon);
  Device device;
  bool known = false;
  for (int i = 0; i < kDeviceTypeCount; ++i) {
    if (name != device_type_name(static_cast<DeviceType>(i))) continue;
    device = Device(static_cast<DeviceType>(i));
    known = true;
  }
  if (!known) {
    for (const char c : name)
      RL_CHECK(c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'), "Invalid device string: '", text,
               "'");
    for (int i = kDeviceTypeCount; !device_type_name(static_cast<DeviceType>(i)).empty(); ++i)
      RL_CHECK(name != device_type_name(static_cast<DeviceType>(i)), "device '", text,
               "': Rushlight is not built for ", name, "; use cpu or cuda");
    RL_FAIL(
        "Expected one of cpu, cuda, ipu, xpu, mkldnn, opengl, opencl, ideep, hip, ve, fpga, maia, xla, lazy, "
        "vulkan, "
        "mps, meta, hpu, mtia, privateuseone device type at start of device string: ",
        name);
  }
  if (colon == std::string_view::npos) return device;
  const std::string_view digits = text.substr(colon + 1);
  int index = -1;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), index);
  const bool valid = error == std::errc{} && end == digits.data() + digits.size() && index >= 0 &&
                     index < 128 && !(digits.size() > 1 && digits[0] == '0');
  RL_CHECK(valid, "Invalid device string: '", text, "'");
  device.set_index(index);
  return device;
}

}  // namespace rushlight
