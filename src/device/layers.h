// The loops of layers that a device's library provides: as their counterparts in src/cpu, on contiguous
// memory of `device`. Elements are floating; what a layer computes in is float for halves.
#pragma once
#include <span>

#include "core/device.h"
#include "core/dtype.h"
#include "cpu/conv.h"
#include "cpu/embedding_bag.h"
#include "cpu/fft.h"
#include "cpu/grid_sample.h"
#include "cpu/loss.h"
#include "cpu/norm.h"
#include "cpu/rnn.h"
#include "cpu/softmax.h"
#include "device/order.h"
#include "formulas/pool_window.h"

namespace rushlight {

class Tensor;
namespace cpu {
struct CatPiece;
}
struct DeviceAttention;
struct DeviceAttentionGradients;
struct DeviceDropoutFactors;
struct DeviceLstmSequence;
struct DeviceLstmSequenceGradients;
struct DeviceOptimizer;
struct DeviceStep;

// One channel's constants of batch norm. Statistics, weights, scale and shift: in the compute type.
struct BatchNormConstants {
  int64_t channels = 0;
  void *mean = nullptr, *variance = nullptr;  // given in training, else read from the running ones
  const void *weight = nullptr, *bias = nullptr;
  void *scale = nullptr, *shift = nullptr;                    // y = x * scale + shift
  void *running_mean = nullptr, *running_variance = nullptr;  // or null; of dtypes and steps of their own
  DType mean_dtype = DType::Float32, variance_dtype = DType::Float32;
  int64_t mean_step = 1, variance_step = 1;  // in elements
  bool training = false;
  double momentum = 0, eps = 0, count = 1;  // count: elements of a channel
};

// Planes of [axes..., inner], where inner are channels that come last.
struct DevicePool {
  int64_t planes = 0, inner = 1;
  formulas::PoolRule axis[3];
  double divisor = 0;  // replaces the counts unless 0
};

// Blocks of an image [batch, channels, input] as columns [channels, kernel, batch, output], all contiguous.
struct DeviceColumns {
  int64_t batch = 0, channels = 0;
  int64_t input[3] = {1, 1, 1}, output[3] = {1, 1, 1}, kernel[3] = {1, 1, 1};
  int64_t stride[3] = {1, 1, 1}, padding[3] = {}, dilation[3] = {1, 1, 1};
  bool batch_first = false;  // [batch, channels, kernel, output] instead
};

// As cpu::ResamplePlan, with tables on the device.
struct DeviceResample {
  struct Axis {
    int64_t in = 1, out = 1, taps = 1;
    const int32_t* index = nullptr;
    const double* weight = nullptr;
  };
  int64_t batch = 1, inner = 1;
  Axis axis[3];
  bool skip_zeros = false;
};

// Transforms along the last axes of contiguous operands, without scale. Back to real numbers the input is
// overwritten.
struct DeviceFft {
  cpu::FftKind kind = cpu::FftKind::Complex;
  bool double_precision = false, forward = true;
  int rank = 1;
  int64_t batch = 1, sizes[3] = {1, 1, 1};  // points of the longer side
};

// A convolution and its adjoints: each writes one of input, weight and output from the other two.
enum class ConvPass : uint8_t { Forward, InputGradient, WeightGradient };

struct DeviceLayers {
  void (*softmax)(int device, const void* in, void* out, cpu::SoftmaxShape shape, bool logarithm,
                  DType dtype) = nullptr;
  void (*softmax_backward)(int device, const void* grad, const void* out, void* result,
                           cpu::SoftmaxShape shape, bool logarithm, DType dtype) = nullptr;

  // Rows are groups of channels, `groups` for each of the outer indices: one group without inner dimension is
  // layer norm.
  void (*norm)(int device, DType dtype, cpu::ChannelShape shape, int64_t groups,
               const cpu::NormArguments& arguments, bool rms) = nullptr;
  void (*norm_backward)(int device, DType dtype, cpu::ChannelShape shape, int64_t groups,
                        const cpu::NormGradients& gradients, bool rms) = nullptr;
  void (*channel_statistics)(int device, DType dtype, cpu::ChannelShape shape, const void* x, void* mean,
                             void* variance) = nullptr;
  // Leaves 1 / deviation in `variance`.
  void (*batch_norm_constants)(int device, DType compute, const BatchNormConstants& constants) = nullptr;
  void (*channel_affine)(int device, DType dtype, cpu::ChannelShape shape, const void* x, const void* scale,
                         const void* shift, void* y) = nullptr;
  void (*channel_backward)(int device, DType dtype, cpu::ChannelShape shape,
                           const cpu::NormGradients& gradients, bool training) = nullptr;

  // losses[batch, inner]; or, reduced, one loss and the total weight. Targets out of range stop the kernel.
  void (*nll_each)(int device, DType dtype, const cpu::NllPlan& plan, const void* log_probabilities,
                   void* losses) = nullptr;
  void (*nll_sum)(int device, DType dtype, const cpu::NllPlan& plan, const void* log_probabilities, bool mean,
                  void* loss, void* total_weight) = nullptr;
  // `divisor`: one element on the device, or null.
  void (*nll_backward)(int device, DType dtype, const cpu::NllPlan& plan, const void* grad, bool grad_each,
                       const void* divisor, void* grad_in) = nullptr;

  // Of any real dtype for maxima, else floating or int64. max_pool_backward adds to what is there.
  void (*max_pool)(int device, DType dtype, const DevicePool& pool, const void* in, void* out,
                   int64_t* indices) = nullptr;
  void (*max_pool_backward)(int device, DType dtype, const DevicePool& pool, const void* grad,
                            const int64_t* indices, void* grad_in) = nullptr;
  void (*mean_pool)(int device, DType dtype, const DevicePool& pool, const void* in, void* out) = nullptr;
  void (*mean_pool_backward)(int device, DType dtype, const DevicePool& pool, const void* grad,
                             void* grad_in) = nullptr;

  // Any dtype; back, what overlaps is added up.
  void (*image_to_columns)(int device, DType dtype, const DeviceColumns& shape, const void* image,
                           void* columns) = nullptr;
  void (*columns_to_image)(int device, DType dtype, const DeviceColumns& shape, const void* columns,
                           void* image) = nullptr;

  // False, or null: not here; there are columns and products. All operands contiguous, the weight's and the
  // images' channels last where the shape says so.
  bool (*convolve)(int device, ConvPass pass, const cpu::ConvShape& shape, void* input, void* weight,
                   void* output) = nullptr;
  int64_t (*cudnn_version)() = nullptr;  // 0: not found

  // Floating dtypes or uint8.
  void (*resample)(int device, DType dtype, const DeviceResample& plan, const void* in, void* out) = nullptr;

  void (*fft)(int device, const DeviceFft& transform, void* in, void* out) = nullptr;

  // The pointwise part of a step of an LSTM or GRU.
  void (*lstm_step)(int device, DType dtype, const cpu::LstmStep& step) = nullptr;
  void (*lstm_step_backward)(int device, DType dtype, const cpu::LstmStepGradients& step) = nullptr;
  // The same with their products, for few rows, in place of `hidden_gates` and beside `grad_hidden`: of the
  // state before, [batch, hidden], or of the gradients of the gates of the step that follows (null: none),
  // with the weight, [4 hidden, hidden].
  static constexpr int64_t kFewRows = 32;
  void (*lstm_whole_step)(int device, DType dtype, const cpu::LstmStep& step, const void* state,
                          const void* weight) = nullptr;
  void (*lstm_whole_step_backward)(int device, DType dtype, const cpu::LstmStepGradients& step,
                                   const void* later, const void* weight) = nullptr;
  // All steps (device/lstm.h). False, or null: not of this size or dtype; there are steps.
  bool (*lstm_sequence)(int device, DType dtype, const DeviceLstmSequence& sequence) = nullptr;
  bool (*lstm_sequence_backward)(int device, DType dtype,
                                 const DeviceLstmSequenceGradients& sequence) = nullptr;
  void (*gru_step)(int device, DType dtype, const cpu::GruStep& step) = nullptr;
  void (*gru_step_backward)(int device, DType dtype, const cpu::GruStepGradients& step) = nullptr;

  // Steps of an optimizer (device/optimizer.h). `unscale` multiplies gradients by *inverse, on the
  // device, and sets *found_inf to 1 where one of them was not finite.
  void (*optimizer_step)(int device, DType dtype, const DeviceOptimizer& options,
                         std::span<const DeviceStep> params) = nullptr;
  void (*unscale)(int device, DType dtype, std::span<const DeviceStep> grads, const float* inverse,
                  float* found_inf) = nullptr;

  // Attention in tiles (device/attention.h). False: not of these sizes.
  bool (*attention)(int device, const DeviceAttention& plan) = nullptr;
  bool (*attention_backward)(int device, const DeviceAttention& plan,
                             const DeviceAttentionGradients& gradients) = nullptr;
  void (*dropout_factors)(int device, DType dtype, const DeviceDropoutFactors& which,
                          void* factors) = nullptr;
  // Of a graph that is recorded: where in the generator's stream it is when it runs.
  void (*random_place)(int device, const uint64_t* base, uint64_t draws, int64_t* seed,
                       int64_t* offset) = nullptr;

  // Sampling at the points of a grid. grad_input, in the compute type, starts as zeros; either gradient may
  // be null.
  void (*grid_sample)(int device, const cpu::SamplePlan& plan, const void* input, const void* grid,
                      void* out) = nullptr;
  void (*grid_sample_backward)(int device, const cpu::SamplePlan& plan, const void* grad, const void* input,
                               const void* grid, void* grad_input, void* grad_grid) = nullptr;

  DeviceOrder order;

  // As cpu::embedding_bag; all of the plan is on the device, rows have a width.
  void (*embedding_bag)(int device, const cpu::BagPlan& plan, const void* table, void* out, int64_t* counts,
                        int64_t* largest) = nullptr;

  // As cpu::cat: rows of the pieces side by side.
  void (*join)(int device, std::span<const cpu::CatPiece> pieces, int64_t rows, void* out) = nullptr;

  // out[b, i, j]: the p-norm of a[b, i] - b[b, j]; float32 or float64.
  void (*row_distances)(int device, DType dtype, int64_t batch, int64_t rows_a, int64_t rows_b,
                        int64_t columns, double p, const void* a, const void* b, void* out) = nullptr;
};
void register_device_layers(DeviceType type, const DeviceLayers* layers);

// Of a tensor: those of the device it is on, or null on the CPU and the meta device.
#ifdef RUSHLIGHT_INFERENCE  // the small runtime knows no device, and drops what depends on one
static inline const DeviceLayers* device_layers(DeviceType) { return nullptr; }
static inline const DeviceLayers* device_layers(const Tensor&) { return nullptr; }
#else
const DeviceLayers* device_layers(DeviceType type);  // null: none
const DeviceLayers* device_layers(const Tensor& t);
#endif

}  // namespace rushlight
