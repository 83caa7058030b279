// cuDNN's convolutions of images whose channels come last, by what it would be told (cuda/conv_plan.h), in
// double. Others are left to columns and products, so that these are tested too.
#include "core/tensor.h"
#include "cuda/conv_plan.h"
#include "emulated_driver.h"

namespace rushlight::emulated {
namespace {

// f(place in the input, in the weight, in the output) for every product of the convolution.
template <class F>
void each_product(const cuda::ConvPlan& p, F&& f) {
  const int in_group = p.weight[1], out_group = p.weight[0] / p.groups;
  for (int n = 0; n < p.output[0]; ++n)
    for (int k = 0; k < p.output[1]; ++k)
      for (int y = 0; y < p.output[2]; ++y)
        for (int x = 0; x < p.output[3]; ++x)
          for (int c = 0; c < in_group; ++c)
            for (int i = 0; i < p.weight[2]; ++i)
              for (int j = 0; j < p.weight[3]; ++j) {
                const int row = y * p.stride[0] - p.padding[0] + i * p.dilation[0],
                          column = x * p.stride[1] - p.padding[1] + j * p.dilation[1];
                if (row < 0 || row >= p.input[2] || column < 0 || column >= p.input[3]) continue;
                const int channel = k / out_group * in_group + c;
                const auto &s = p.input_strides, &t = p.output_strides;
                f(n * s[0] + channel * s[1] + row * s[2] + column * s[3],
                  ((k * p.weight[2] + i) * p.weight[3] + j) * in_group + c,
                  n * t[0] + k * t[1] + y * t[2] + x * t[3]);
              }
}

template <class T>
void run(const cuda::ConvPlan& p, ConvPass pass, T* input, T* weight, T* output) {
  const size_t counts[] = {static_cast<size_t>(p.output[0] * p.output[1] * p.output[2] * p.output[3]),
                           static_cast<size_t>(p.input[0] * p.input[1] * p.input[2] * p.input[3]),
                           static_cast<size_t>(p.weight[0] * p.weight[1] * p.weight[2] * p.weight[3])};
  std::vector<double> sums(counts[static_cast<size_t>(pass)]);
  auto number = [](T x) { return static_cast<double>(static_cast<float>(x)); };
  each_product(p, [&](int i, int w, int o) {
    if (pass == ConvPass::Forward)
      sums[static_cast<size_t>(o)] += number(input[i]) * number(weight[w]);
    else if (pass == ConvPass::InputGradient)
      sums[static_cast<size_t>(i)] += number(output[o]) * number(weight[w]);
    else
      sums[static_cast<size_t>(w)] += number(output[o]) * number(input[i]);
  });
  T* const result = pass == ConvPass::Forward ? output : pass == ConvPass::InputGradient ? input : weight;
  for (size_t i = 0; i < sums.size(); ++i) result[i] = static_cast<T>(static_cast<float>(sums[i]));
}

}  // namespace

bool convolve(int device, ConvPass pass, const cpu::ConvShape& shape, void* input, void* weight,
              void* output) {
  const auto plan = cuda::conv_plan(shape);
  if (!plan || plan->format != cuda::cudnn::kNhwc) return false;
  const bool known = shape.dtype == DType::Float32 || shape.dtype == DType::BFloat16;
  if (!known) return false;
  enqueue(device, "convolution", [=, p = *plan] {
    if (shape.dtype == DType::Float32)
      run(p, pass, static_cast<float*>(input), static_cast<float*>(weight), static_cast<float*>(output));
    else
      run(p, pass, static_cast<BFloat16*>(input), static_cast<BFloat16*>(weight),
          static_cast<BFloat16*>(output));
  });
  return true;
}

}  // namespace rushlight::emulated
