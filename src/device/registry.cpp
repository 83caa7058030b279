// What devices' libraries registered when they were loaded.
#include <array>

#include "core/error.h"
#include "device/kernels.h"
#include "device/layers.h"
#include "device/moves.h"

namespace rushlight {
namespace {

std::array<const DeviceKernels*, kDeviceTypeCount> all_kernels{};
std::array<const DeviceLayers*, kDeviceTypeCount> all_layers{};
std::array<const DeviceMoves*, kDeviceTypeCount> all_moves{};

}  // namespace

void register_device_kernels(DeviceType type, const DeviceKernels* kernels) {
  all_kernels[static_cast<int>(type)] = kernels;
}

const DeviceKernels& device_kernels(DeviceType type) {
  const DeviceKernels* kernels = all_kernels[static_cast<int>(type)];
  RL_ASSERT(kernels && kernels->copy, "no loops are registered for ", device_type_name(type));
  return *kernels;
}

void register_device_moves(DeviceType type, const DeviceMoves* moves) {
  all_moves[static_cast<int>(type)] = moves;
}

const DeviceMoves& device_moves(const Tensor& t) {
  const DeviceMoves* moves = all_moves[static_cast<int>(t.device().type())];
  RL_ASSERT(moves, "no moves are registered for ", device_type_name(t.device().type()));
  return *moves;
}

void register_device_layers(DeviceType type, const DeviceLayers* layers) {
  all_layers[static_cast<int>(type)] = layers;
}

const DeviceLayers* device_layers(DeviceType type) { return all_layers[static_cast<int>(type)]; }

const DeviceLayers* device_layers(const Tensor& t) {
  if (t.is_cpu() || t.device().is_meta()) return nullptr;
  const DeviceLayers* layers = all_layers[static_cast<int>(t.device().type())];
  RL_ASSERT(layers, "no layers are registered for ", device_type_name(t.device().type()));
  return layers;
}

}  // namespace rushlight
