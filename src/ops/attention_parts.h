// Attention's operands, and what its kernels on the CPU (attention.cpp) and on devices (attention_device.cpp)
// share.
#pragma once
#include <array>

#include "device/attention.h"
#include "dispatch/derivative.h"
#include "ops/attention.h"

namespace rushlight::attention {

struct Operands {
  Tensor query, key, value, mask;  // mask: undefined, or what broadcasts to all scores
  bool causal = false;
  double scale = 1;
};

double scale_of(const Tensor& query, std::optional<double> scale);
void check(const Operands& a);
// Whether the tiles serve these operands; the leading dimensions must agree, but for groups of heads.
bool tiled(const Operands& a, bool grouped);
// Of an operator in tiles, which reads its operands without asking further: that they fit each other, and for
// gradients that what came out of the forward operator fits them.
void check_tiled(const char* who, const Operands& a);
void check_results(const char* who, const Operands& a, const Tensor& grad, const Tensor& out,
                   const Tensor& logsumexp);

Tensor minus_infinity_where_not(const Tensor& mask, DType dtype);
// Grouped queries: each head of keys and values serves several heads of queries. Gradients of heads that were
// repeated are added up.
Tensor repeat_heads(const Tensor& t, const Tensor& query);
Tensor sum_heads(const Tensor& t, const Tensor& like);

// The gradients of query, key, value and, where it wants one, mask, from all scores at once. `factors`: what
// dropout makes of the weights, or undefined.
Grads gradients_reference(const Tensor& grad, const Operands& a, const Tensor& factors, bool mask_wanted);

Dims lead_of(const Tensor& t);
Dims joined(IntList lead, int64_t rows, int64_t columns);
Tensor with_dense_rows(const Tensor& t);
// In the layout of t where its heads are next to each other.
Tensor empty_as(const Tensor& t, IntList sizes);

// On devices, whose layers are registered (device/layers.h). logsumexp may be undefined.
using Dropout = DeviceAttention::Dropout;
void run_on_device(const Operands& a, const Dropout& dropout, const Tensor& out, const Tensor& logsumexp);
std::array<Tensor, 4> gradients_on_device(const Tensor& grad, const Operands& a, const Dropout& dropout,
                                          const Tensor& out, const Tensor& logsumexp, bool mask_wanted);

}  // namespace rushlight::attention
