// Convolutions as cuDNN wants them described, and which of its algorithms to take: everything that needs no
// device.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "cpu/conv.h"
#include "device/layers.h"

namespace rushlight::cuda {

// cuDNN's numbers, under its names without the prefix (cudnn_graph.h, cudnn_cnn.h of version 9).
namespace cudnn {
constexpr int kFloat = 0, kDouble = 1, kHalf = 2, kBFloat16 = 9;
constexpr int kNchw = 0, kNhwc = 1, kCrossCorrelation = 1;
constexpr int kDefaultMath = 0, kTensorMath = 1, kFmaMath = 3;

// All three cudnnConvolution...AlgoPerf_t have this layout.
struct Performance {
  int algorithm, status;
  float milliseconds;
  size_t memory;
  int deterministic, math;
  int reserved[3];
};
}  // namespace cudnn

// Tensors of 4 or 5 dimensions, contiguous; or of 4, all with their channels last.
struct ConvPlan {
  int rank = 4;
  int format = cudnn::kNchw;
  std::array<int, 5> input{}, input_strides{}, weight{}, output{}, output_strides{};
  std::array<int, 3> padding{}, stride{}, dilation{};
  int groups = 1;
  int data_type = cudnn::kFloat, compute_type = cudnn::kFloat;
};

// Nothing where cuDNN has no type for it, or a number does not fit into an int.
std::optional<ConvPlan> conv_plan(const cpu::ConvShape& shape);

// The first that ran, fits the workspace and, if it must, repeats its results; -1: none.
int choose_algorithm(std::span<const cudnn::Performance> found, size_t most_memory, bool deterministic);

// The arithmetic that is asked for. Tensor cores take halves only when told to; in the default they round
// float to TF32.
int math_of(int data_type, bool tf32);

// What the choice depends on: equal keys, equal choices.
std::string conv_key(const ConvPlan& plan, ConvPass pass, int device, bool tf32, bool deterministic,
                     bool benchmark);

}  // namespace rushlight::cuda
