#include "cpu/transpose.h"

#include "cpu/isa_variant.h"

namespace rushlight::cpu {

RL_DECLARE_VARIANTS(TransposeTile transpose_tile_variant(size_t itemsize);)

TransposeTile transpose_tile(size_t itemsize) { return RL_ISA_VARIANT(transpose_tile_variant(itemsize)); }

}  // namespace rushlight::cpu
