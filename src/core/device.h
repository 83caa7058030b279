// Device, memory format, layout and the stream interface.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "core/error.h"

namespace rushlight {

enum class DeviceType : uint8_t { CPU, CUDA, Meta };
constexpr int kDeviceTypeCount = 3;

struct Device {
  DeviceType type = DeviceType::CPU;
  int8_t index = -1;  // -1: the current device of that type

  Device() = default;
  Device(DeviceType type, int index = -1) : type(type), index(static_cast<int8_t>(index)) {}
  Device(const std::string& text) : Device(parse(text)) {}
  bool is_cpu() const { return type == DeviceType::CPU; }
  bool is_meta() const { return type == DeviceType::Meta; }
  bool is_cuda() const { return type == DeviceType::CUDA; }
  friend bool operator==(const Device&, const Device&) = default;
  // "cpu", "cuda:1"; fails with PyTorch's message on anything else.
  static Device parse(std::string_view text);
};
std::string_view device_type_name(DeviceType t);
std::string to_string(const Device& device);

enum class Layout : uint8_t { Strided, SparseCoo, SparseCsr, SparseCsc, SparseBsr, SparseBsc };
enum class MemoryFormat : uint8_t { Contiguous, Preserve, ChannelsLast, ChannelsLast3d };
std::string_view memory_format_name(MemoryFormat f);  // "torch.contiguous_format"

// An ordered queue of work on a device. The CPU has one, on which everything has completed when the call
// returns.
struct Stream {
  Device device;
  int64_t id = 0;
  friend bool operator==(const Stream&, const Stream&) = default;
};

}  // namespace rushlight
