// What a program allows the libraries, most of them devices': the switches of torch.backends.
#pragma once
#include <atomic>
#include <string_view>

namespace rushlight {

struct DeviceMath {
  std::atomic<bool> matmul_tf32{false};  // products of float32 rounded to 10 bits of mantissa
  // Products of halves: parts of a sum joined in the half type; sums of float16 kept in it.
  std::atomic<bool> half_sums{true}, bfloat16_sums{true}, half_accumulation{false};
  std::atomic<bool> convolution_tf32{true};           // the same in convolutions, as PyTorch has it
  std::atomic<bool> direct_convolutions{false};       // on the CPU: none by transforms, which lose a bit
  std::atomic<bool> cudnn{true};                      // use it where it is found
  std::atomic<bool> benchmark{false};                 // convolutions: try all algorithms on each new shape
  std::atomic<bool> deterministic{false};             // and take only those that repeat their results
  std::atomic<bool> deterministic_algorithms{false};  // of torch.use_deterministic_algorithms
  std::atomic<bool> deterministic_warn_only{false};   // warn where these are missing
  std::atomic<bool> batch_invariant{false};           // a row's result has the same bits in any batch
  std::atomic<bool> fill_uninitialized{true};  // with these: new memory holds NaN or the largest integer
};
DeviceMath& device_math();
// By name, null for an unknown one.
std::atomic<bool>* device_switch(std::string_view name);

}  // namespace rushlight
