#include "cuda/conv_plan.h"

#include <climits>

namespace rushlight::cuda {
namespace {

// Strides of the first `rank` sizes in a format; false when they do not fit.
bool lay_out(const std::array<int64_t, 5>& sizes, int rank, int format, std::array<int, 5>& dims,
             std::array<int, 5>* strides) {
  int64_t step = 1;
  for (int i = rank - 1; i >= 0; --i) {
    // The channels last: 1, then from the end to 2, then 0.
    const int d = format == cudnn::kNchw || i == 0 ? i : i == rank - 1 ? 1 : i + 1;
    const auto at = static_cast<size_t>(d);
    if (sizes[at] <= 0 || sizes[at] > INT_MAX || step > INT_MAX) return false;
    dims[at] = static_cast<int>(sizes[at]);
    if (strides) (*strides)[at] = static_cast<int>(step);
    step *= sizes[at];
  }
  return step <= INT_MAX;
}

}  // namespace

std::optional<ConvPlan> conv_plan(const cpu::ConvShape& s) {
  ConvPlan p;
  switch (s.dtype) {
    case DType::Float32:
      break;
    case DType::Float16:
      p.data_type = cudnn::kHalf;
      break;
    case DType::BFloat16:
      p.data_type = cudnn::kBFloat16;
      break;
    case DType::Float64:
      p.data_type = p.compute_type = cudnn::kDouble;
      break;
    default:
      return std::nullopt;
  }
  // cuDNN has no convolution of one dimension: those have a height of 1.
  const int spatial = s.spatial == 3 ? 3 : 2;
  p.format = s.channels_last && s.spatial == 2 ? cudnn::kNhwc : cudnn::kNchw;
  p.rank = spatial + 2;
  std::array<int64_t, 5> input{s.batch, s.in_channels}, output{s.batch, s.out_channels},
      weight{s.out_channels, s.groups ? s.in_channels / s.groups : 0};
  for (int i = 0; i < spatial; ++i) {
    const auto to = static_cast<size_t>(i), from = static_cast<size_t>(3 - spatial + i);
    input[to + 2] = s.input[from], output[to + 2] = s.output[from], weight[to + 2] = s.kernel[from];
    for (int64_t number : {s.padding[from], s.stride[from], s.dilation[from]})
      if (number > INT_MAX) return std::nullopt;
    p.padding[to] = static_cast<int>(s.padding[from]);
    p.stride[to] = static_cast<int>(s.stride[from]);
    p.dilation[to] = static_cast<int>(s.dilation[from]);
  }
  if (!lay_out(input, p.rank, p.format, p.input, &p.input_strides) ||
      !lay_out(output, p.rank, p.format, p.output, &p.output_strides) ||
      !lay_out(weight, p.rank, p.format, p.weight, nullptr) || s.groups > INT_MAX)
    return std::nullopt;
  p.groups = static_cast<int>(s.groups);
  return p;
}

int choose_algorithm(std::span<const cudnn::Performance> found, size_t most_memory, bool deterministic) {
  for (size_t i = 0; i < found.size(); ++i)
    if (found[i].status == 0 && found[i].memory <= most_memory && (!deterministic || found[i].deterministic))
      return static_cast<int>(i);
  return -1;
}

int math_of(int data_type, bool tf32) {
  if (data_type == cudnn::kHalf || data_type == cudnn::kBFloat16) return cudnn::kTensorMath;
  return data_type == cudnn::kFloat && !tf32 ? cudnn::kFmaMath : cudnn::kDefaultMath;
}

std::string conv_key(const ConvPlan& p, ConvPass pass, int device, bool tf32, bool deterministic,
                     bool benchmark) {
  std::string key;
  auto put = [&](int number) { key.append(reinterpret_cast<const char*>(&number), sizeof number); };
  for (const auto* list : {&p.input, &p.weight, &p.output})
    for (int number : *list) put(number);
  for (const auto* list : {&p.padding, &p.stride, &p.dilation})
    for (int number : *list) put(number);
  for (int number : {p.groups, p.data_type, static_cast<int>(pass), device}) put(number);
  put(tf32 | deterministic << 1 | benchmark << 2 | p.format << 3);
  return key;
}

}  // namespace rushlight::cuda
