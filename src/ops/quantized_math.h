// What operators on quantised tensors of one scale share. Note [Quantised tensors] in core/quantizer.h
#pragma once
#include <functional>
#include <string>

#include "core/quantizer.h"
#include "dispatch/op.h"

namespace rushlight {

// The quantiser of a tensor with one scale for all elements; refuses others.
const Quantizer& one_scale(const Tensor& t, std::string_view op);
// A positive number; refuses others.
Quantizer result_quantizer(std::string_view op, double scale, int64_t zero_point);
// f of each number, quantised anew: bytes by a table of their 256 values.
// PyTorch finds the numbers in one step, integer * scale - zero_point * scale, but for sigmoid's.
Tensor mapped(const Tensor& quantized, const Quantizer& out, const std::function<Tensor(const Tensor&)>& f,
              bool one_step = true);
// The integers that stand for the same numbers under another quantiser.
Tensor integers_under(const Tensor& quantized, const Quantizer& out);

// Text of a schema that lives as long as the records, which point into it.
const char* kept_schema(std::string text);

}  // namespace rushlight
