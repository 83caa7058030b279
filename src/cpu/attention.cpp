#include "cpu/attention.h"

#include <algorithm>

#include "core/parallel.h"
#include "cpu/buffer.h"
#include "cpu/isa_variant.h"

namespace rushlight::cpu {

RL_DECLARE_VARIANTS(AttentionKernels attention_kernels();)
AttentionKernels attention_kernels() { return RL_ISA_VARIANT(attention_kernels()); }

namespace {

constexpr int64_t kTaskQueries = 96;  // queries of a task

const char* matrix_at(const AttentionOperand& o, int64_t matrix, DType dtype) {
  return static_cast<const char*>(o.data) +
         o.start[static_cast<size_t>(matrix)] * static_cast<int64_t>(element_size(dtype));
}

AttentionHead head_of(const AttentionPlan& p, int64_t b) {
  const int64_t head = b / p.group;
  AttentionHead h{};
  h.dtype = p.dtype;
  h.queries = p.queries, h.keys = p.keys, h.width = p.width, h.value_width = p.value_width;
  h.scale = p.scale, h.causal = p.causal;
  h.query = matrix_at(p.query, b, p.dtype), h.query_row = p.query.row;
  h.key = matrix_at(p.key, head, p.dtype), h.key_row = p.key.row;
  h.value = matrix_at(p.value, head, p.dtype), h.value_row = p.value.row;
  h.out = const_cast<char*>(matrix_at(p.out, b, p.dtype)), h.out_row = p.out.row;
  if (p.mask.data) {
    h.mask = static_cast<const char*>(p.mask.data) +
             p.mask.start[static_cast<size_t>(b)] * static_cast<int64_t>(element_size(p.mask.dtype));
    h.mask_dtype = p.mask.dtype, h.mask_row = p.mask.row, h.mask_column = p.mask.column;
  }
  const DType compute = p.dtype == DType::Float64 ? DType::Float64 : DType::Float32;
  h.logsumexp = static_cast<char*>(p.logsumexp) + b * p.queries * static_cast<int64_t>(element_size(compute));
  return h;
}

AttentionHeadGradients gradients_of(const AttentionPlan& p, const AttentionGradients& g, int64_t b) {
  const int64_t head = b / p.group;
  const auto at = [&](const AttentionOperand& o, int64_t matrix) {
    return const_cast<char*>(matrix_at(o, matrix, p.dtype));
  };
  return {at(g.grad_out, b), g.grad_out.row, at(g.query, b), at(g.key, head),
          at(g.value, head), g.query.row,    g.key.row,      g.value.row};
}

}  // namespace

void attention(const AttentionPlan& p) {
  const AttentionKernels f = attention_kernels();
  const int64_t blocks = (p.queries + kTaskQueries - 1) / kTaskQueries;
  const int64_t work = std::min(kTaskQueries, p.queries) * p.keys * (p.width + p.value_width + 16);
  parallel_for(0, p.batch * blocks, std::max<int64_t>(1, 8 * kGrainSize / std::max<int64_t>(1, work)),
               [&](int64_t begin, int64_t end) {
                 AttentionHead head = head_of(p, begin / blocks);
                 const Buffer packed(f.packed_bytes(head)), scratch(f.scratch_bytes(head));
                 int64_t held = -1;  // whose keys and values are laid out
                 for (int64_t i = begin; i < end; ++i) {
                   const int64_t matrix = i / blocks, first = i % blocks * kTaskQueries;
                   head = head_of(p, matrix);
                   if (held != matrix / p.group) f.pack(head, packed.as<void>());
                   held = matrix / p.group;
                   f.forward(head, packed.as<void>(), scratch.as<void>(),
                             {first, std::min(first + kTaskQueries, p.queries)});
                 }
               });
}
void attention_backward(const AttentionPlan& p, const AttentionGradients& g) {
  const AttentionKernels f = attention_kernels();
  const int64_t work = p.group * p.queries * p.keys * (p.width + p.value_width);
  parallel_for(0, p.batch / p.group, std::max<int64_t>(1, 4 * kGrainSize / std::max<int64_t>(1, work)),
               [&](int64_t begin, int64_t end) {
                 const Buffer memory(f.backward_bytes(head_of(p, begin * p.group)));
                 for (int64_t b = begin * p.group; b < end * p.group; ++b)
                   f.backward(head_of(p, b), gradients_of(p, g, b), memory.as<void>(), b % p.group == 0,
                              (b + 1) % p.group == 0);
               });
}

}  // namespace rushlight::cpu
