#include "cpu/arg_extreme.h"

#include "cpu/isa_variant.h"

namespace rushlight::cpu {

RL_DECLARE_VARIANTS(ArgExtremeColumns arg_extreme_columns_variant(DType dtype, bool largest);
                    ArgExtremeLine arg_extreme_line_variant(DType dtype, bool largest);)

ArgExtremeColumns arg_extreme_columns(DType dtype, bool largest) {
  if (dtype == DType::Bool) dtype = DType::UInt8;  // truth values are the numbers 0 and 1
  return RL_ISA_VARIANT(arg_extreme_columns_variant(dtype, largest));
}

ArgExtremeLine arg_extreme_line(DType dtype, bool largest) {
  return RL_ISA_VARIANT(arg_extreme_line_variant(dtype, largest));
}

}  // namespace rushlight::cpu
