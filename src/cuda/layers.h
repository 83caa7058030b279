// The loops of layers in this library, as device/layers.h names them.
#pragma once
#include <span>

#include "cpu/cat.h"
#include "cpu/conv.h"
#include "cpu/embedding_bag.h"
#include "cpu/grid_sample.h"
#include "cpu/loss.h"
#include "cpu/norm.h"
#include "cpu/rnn.h"
#include "cpu/softmax.h"

namespace rushlight {
enum class ConvPass : uint8_t;
struct BatchNormConstants;
struct DeviceAttention;
struct DeviceAttentionGradients;
struct DeviceColumns;
struct DeviceDropoutFactors;
struct DeviceFft;
struct DeviceLayers;
struct DeviceLstmSequence;
struct DeviceLstmSequenceGradients;
struct DeviceOptimizer;
struct DevicePool;
struct DeviceResample;
struct DeviceStep;
}  // namespace rushlight

namespace rushlight::cuda {

// All of them.
DeviceLayers layers();

void softmax(int device, const void* in, void* out, cpu::SoftmaxShape shape, bool logarithm, DType dtype);
void softmax_backward(int device, const void* grad, const void* out, void* result, cpu::SoftmaxShape shape,
                      bool logarithm, DType dtype);

void norm(int device, DType dtype, cpu::ChannelShape shape, int64_t groups, const cpu::NormArguments& a,
          bool rms);
void norm_backward(int device, DType dtype, cpu::ChannelShape shape, int64_t groups,
                   const cpu::NormGradients& a, bool rms);
void channel_statistics(int device, DType dtype, cpu::ChannelShape shape, const void* x, void* mean,
                        void* variance);
void batch_norm_constants(int device, DType compute, const BatchNormConstants& a);
void channel_affine(int device, DType dtype, cpu::ChannelShape shape, const void* x, const void* scale,
                    const void* shift, void* y);
void channel_backward(int device, DType dtype, cpu::ChannelShape shape, const cpu::NormGradients& a,
                      bool training);

void nll_each(int device, DType dtype, const cpu::NllPlan& plan, const void* x, void* losses);
void nll_sum(int device, DType dtype, const cpu::NllPlan& plan, const void* x, bool mean, void* loss,
             void* total);
void nll_backward(int device, DType dtype, const cpu::NllPlan& plan, const void* grad, bool grad_each,
                  const void* divisor, void* grad_in);

void max_pool(int device, DType dtype, const DevicePool& pool, const void* in, void* out, int64_t* indices);
void max_pool_backward(int device, DType dtype, const DevicePool& pool, const void* grad,
                       const int64_t* indices, void* grad_in);
void mean_pool(int device, DType dtype, const DevicePool& pool, const void* in, void* out);
void mean_pool_backward(int device, DType dtype, const DevicePool& pool, const void* grad, void* grad_in);

void image_to_columns(int device, DType dtype, const DeviceColumns& shape, const void* image, void* columns);
void columns_to_image(int device, DType dtype, const DeviceColumns& shape, const void* columns, void* image);

bool convolve(int device, ConvPass pass, const cpu::ConvShape& shape, void* input, void* weight,
              void* output);
int64_t cudnn_version();

void resample(int device, DType dtype, const DeviceResample& plan, const void* in, void* out);

void fft(int device, const DeviceFft& transform, void* in, void* out);

void lstm_step(int device, DType dtype, const cpu::LstmStep& step);
void lstm_step_backward(int device, DType dtype, const cpu::LstmStepGradients& step);
bool lstm_sequence(int device, DType dtype, const DeviceLstmSequence& sequence);
bool lstm_sequence_backward(int device, DType dtype, const DeviceLstmSequenceGradients& sequence);
void lstm_whole_step(int device, DType dtype, const cpu::LstmStep& step, const void* state,
                     const void* weight);
void lstm_whole_step_backward(int device, DType dtype, const cpu::LstmStepGradients& step, const void* later,
                              const void* weight);
void gru_step(int device, DType dtype, const cpu::GruStep& step);
void gru_step_backward(int device, DType dtype, const cpu::GruStepGradients& step);

void optimizer_step(int device, DType dtype, const DeviceOptimizer& options,
                    std::span<const DeviceStep> params);
void unscale(int device, DType dtype, std::span<const DeviceStep> grads, const float* inverse,
             float* found_inf);

bool attention(int device, const DeviceAttention& plan);
bool attention_backward(int device, const DeviceAttention& plan, const DeviceAttentionGradients& gradients);
void dropout_factors(int device, DType dtype, const DeviceDropoutFactors& which, void* factors);
void random_place(int device, const uint64_t* base, uint64_t draws, int64_t* seed, int64_t* offset);

void grid_sample(int device, const cpu::SamplePlan& plan, const void* input, const void* grid, void* out);
void embedding_bag(int device, const cpu::BagPlan& plan, const void* table, void* out, int64_t* counts,
                   int64_t* largest);
void join(int device, std::span<const cpu::CatPiece> pieces, int64_t rows, void* out);
void row_distances(int device, DType dtype, int64_t batch, int64_t rows_a, int64_t rows_b, int64_t columns,
                   double p, const void* a, const void* b, void* out);
void grid_sample_backward(int device, const cpu::SamplePlan& plan, const void* grad, const void* input,
                          const void* grid, void* grad_input, void* grad_grid);

}  // namespace rushlight::cuda
