// Family data of operators whose out= must have exactly the result's dtype: t.op(...).out().data(&exact_out).
// Others convert within PyTorch's casting rule.
#pragma once

namespace rushlight {

extern const char exact_out;

}  // namespace rushlight
