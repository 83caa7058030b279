// Sums and products of quantised bytes, element by element.
#pragma once
#include <cstdint>

namespace rushlight::cpu {

struct QuantizedOperand {
  const void* integers;
  float scale;
  int32_t zero_point;
};
struct QuantizedBinary {
  int64_t n;
  QuantizedOperand a, b;
  void* out;
  float scale;  // of the result
  int32_t zero_point;
  bool signed_bytes, multiplied, relu;
};
void quantized_binary(const QuantizedBinary& q);

// to[i] = table[from[i]], the table by the byte's bits.
void map_bytes(const uint8_t* table, const uint8_t* from, uint8_t* to, int64_t n);

}  // namespace rushlight::cpu
