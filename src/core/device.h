// Device, memory format, layout and the stream interface.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "core/error.h"

namespace rushlight {

enum class DeviceType : uint8_t { CPU, CUDA, Meta };
constexpr int kDeviceTypeCount = 3;

class Device {
 public:
  using Type = DeviceType;
  Device() = default;
  Device(DeviceType type, int index = -1) : type_(type), index_(static_cast<int8_t>(index)) {}
  Device(const std::string& text) : Device(parse(text)) {}
  // "cpu", "cuda:1"; fails with PyTorch's message on anything else.
  static Device parse(std::string_view text);

  DeviceType type() const { return type_; }
  int8_t index() const { return index_; }  // -1: the current device of that type
  bool has_index() const { return index_ >= 0; }
  void set_index(int index) { index_ = static_cast<int8_t>(index); }
  bool is_cpu() const { return type_ == DeviceType::CPU; }
  bool is_meta() const { return type_ == DeviceType::Meta; }
  bool is_cuda() const { return type_ == DeviceType::CUDA; }
  std::string str() const;  // "cuda:1"
  friend bool operator==(const Device&, const Device&) = default;

 private:
  DeviceType type_ = DeviceType::CPU;
  int8_t index_ = -1;
};
std::string_view device_type_name(DeviceType t);
std::string to_string(const Device& device);
inline std::string Device::str() const { return to_string(*this); }

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
