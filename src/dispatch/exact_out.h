// Family data of operators whose out= must have exactly the result's dtype: t.op(...).out().data(&exact_out).
// same_category_out: another precision will do, but not a complex tensor for real numbers. Others convert
// within PyTorch's casting rule.
#pragma once

namespace rushlight {

extern const char exact_out, same_category_out;
// As exact_out, but the output may be an operand, as in addmm(c, a, b, out=c).
extern const char exact_dtype_out;

}  // namespace rushlight
