#include "core/device.h"

namespace rushlight {

std::string_view device_type_name(DeviceType t) {
  static constexpr std::string_view names[kDeviceTypeCount] = {"cpu", "cuda", "meta"};
  return names[static_cast<int>(t)];
}

std::string to_string(const Device& device) {
  std::string out(device_type_name(device.type));
  return device.index < 0 ? out : str(out, ":", static_cast<int>(device.index));
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
    device.type = static_cast<DeviceType>(i);
    known = true;
  }
  if (!known) {
    static constexpr std::string_view others[] = {
        "ipu",  "xpu", "mkldnn", "opengl", "opencl", "ideep", "hip",  "ve",           "fpga",
        "maia", "xla", "lazy",   "vulkan", "mps",    "hpu",   "mtia", "privateuseone"};
    for (std::string_view other : others)
      RL_CHECK(name != other, "device '", text, "': Rushlight is not built for ", other, "; use cpu or cuda");
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
  device.index = static_cast<int8_t>(index);
  return device;
}

}  // namespace rushlight
