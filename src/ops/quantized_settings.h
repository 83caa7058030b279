// What operators on quantized tensors share: settings of weights, and what follows a product of bytes.
#pragma once
#include <vector>

#include "cpu/byte_product.h"
#include "cpu/fake_quantize.h"
#include "dispatch/op.h"

namespace rushlight {

// The scale and zero point whose integers from `lowest` to `highest` cover n floats and zero; by half the
// range where `reduce_range` says so.
cpu::ScaleAndZero choose_quantization_of(const float* x, int64_t n, int lowest, int highest,
                                         bool reduce_range);

// The only number of a tensor.
double read_scale(const Tensor& t);
int64_t read_zero_point(const Tensor& t);

// uint8 or int8, with a scale that is a positive number.
void check_quantized_input(const char* who, const Tensor& x, double scale);

// Scales, zero points and bias of a weight's n rows, one for each.
class WeightSettings {
 public:
  // Scales and zero points may be one for all; zero points and bias may be undefined.
  WeightSettings(int64_t n, const Tensor& scales, const Tensor& zero_points, const Tensor& bias);
  const std::vector<float>& scales() const { return scales_; }
  const int32_t* zero_points() const { return zero_points_.empty() ? nullptr : zero_points_.data(); }
  const float* bias() const { return bias_.empty() ? nullptr : bias_.data(); }

 private:
  std::vector<float> scales_, bias_;
  std::vector<int32_t> zero_points_;
};

// What follows the sums: a sum with another tensor, an activation, and the type of the result.
struct QuantizedOutput {
  double scale;
  int64_t zero_point;
  DType dtype;  // uint8 and int8 are quantized by scale and zero point
  std::string_view activation;
  ScalarList arguments;
  std::string_view algorithm;
  Tensor other{};
  bool into_other = false;
  double other_scale = 1, alpha = 1;
  int64_t other_zero = 0;

  // `how`: none, add, or sum, which writes into the other tensor.
  void add(const Tensor& other, double other_scale, int64_t other_zero, std::string_view how, double alpha);
  bool is_quantized() const { return dtype == DType::UInt8 || dtype == DType::Int8; }
  // Whether the product of bytes computes all of it; it computes floats otherwise.
  bool fused() const;
  DType computed_dtype() const { return fused() ? dtype : DType::Float32; }
  // The result, from what the product computed.
  Tensor finish(const Tensor& computed) const;
};

// The factors by which a product of bytes turns sums into its result.
class Requantization {
 public:
  Requantization(double x_scale, const WeightSettings& weight, const QuantizedOutput& out);
  void describe(cpu::ByteProduct& p) const;

 private:
  std::vector<float> scales_, bias_;
  cpu::ByteResult result_;
  float low_, high_;
  int32_t zero_;
};

}  // namespace rushlight
