#include "cpu/transpose.h"

#include "cpu/isa_variant.h"

namespace rushlight::cpu {

RL_DECLARE_VARIANTS(TransposeTile transpose_tile_variant(size_t itemsize);
                    Weave weave_variant(size_t itemsize, size_t count);)

TransposeTile transpose_tile(size_t itemsize) { return RL_ISA_VARIANT(transpose_tile_variant(itemsize)); }
Weave weave_kernel(size_t itemsize, size_t count) { return RL_ISA_VARIANT(weave_variant(itemsize, count)); }

}  // namespace rushlight::cpu
