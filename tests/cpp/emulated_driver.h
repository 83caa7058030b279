// A CUDA device made of host memory, for machines without one: loaded through RUSHLIGHT_CUDA_LIBRARY. Its
// memory can be touched only while one of its copies or loops runs, so that code which takes device memory
// for its own ends in a segmentation fault. Streams are queues: work runs when somebody waits for it, as late
// as may be, so that a missing wait or record_stream shows as wrong numbers.
#pragma once
#include <functional>
#include <span>
#include <string>

#include "core/device_driver.h"
#include "cpu/fused.h"
#include "device/layers.h"

namespace rushlight::emulated {

constexpr int kDevices = 2;

DeviceDriver& driver();
// Puts work at the end of the current stream of a device.
void enqueue(int device, std::string_view what, std::function<void()> work);
// Puts work at the end of a stream that goes on only when `ready` says so. `ready` may not touch its memory.
void enqueue_when(DeviceDriver::Stream stream, std::function<bool()> ready, std::function<void()> work);

// Fused programs by the text that NVRTC gets, compiled for the host; and by NVRTC too where EMULATED_NVRTC
// names it, to see that it takes the text.
bool fused(const cpu::FusedProgram& program, std::span<const Tensor> inputs, std::span<const Tensor> outputs);
bool fuses();

// Of images whose channels come last (emulated_conv.cpp).
bool convolve(int device, ConvPass pass, const cpu::ConvShape& shape, void* input, void* weight,
              void* output);

}  // namespace rushlight::emulated
