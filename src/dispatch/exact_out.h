// Family data of operators whose out= must have exactly the result's dtype: t.op(...).out().data(&exact_out).
// same_category_out: another precision will do, but not a complex tensor for real numbers. Others convert within
// PyTorch's casting rule.
#pragma once

namespace rushlight {

extern const char exact_out, same_category_out;

}  // namespace rushlight
