// Facts about a tensor that its Python class answers in its place (python/answered_facts.cpp).
#pragma once
#include <cstdint>

#include "core/tensor.h"

namespace rushlight {

// Bits of TensorImpl::flags: what the class asked to be asked for. Sizes include strides.
constexpr uint32_t kAnswersStrides = 1u << 22, kAnswersSizes = 1u << 23;
constexpr uint32_t kAnswersDevice = 1u << 26, kAnswersLayout = 1u << 27;

// Filled by the binding; called for tensors with the flag alone.
extern bool (*answered_contiguous)(const Tensor& t, MemoryFormat format);
extern Device (*answered_device)(const Tensor& t);

}  // namespace rushlight
