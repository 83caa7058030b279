#include "cpu/attention.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "core/parallel.h"
#include "cpu/buffer.h"
#include "cpu/gemm.h"
#include "cpu/isa_variant.h"
#include "cpu/loops.h"

namespace rushlight::cpu {

RL_DECLARE_VARIANTS(AttentionKernels attention_kernels();
                    void softmax_gradient_tile(DType compute, const ScoreTile& tile, const void* logsumexp,
                                               const void* delta, void* grad, double scale);)

AttentionKernels attention_kernels() { return RL_ISA_VARIANT(attention_kernels()); }

namespace {

constexpr int64_t kTaskQueries = 96;  // queries of a task
constexpr int64_t kKeyBlock = 512;
// Large tiles read the keys less often; small ones waste less beside the diagonal.
int64_t query_block(int64_t queries) { return queries >= 768 ? 256 : queries >= 192 ? 128 : 64; }

// Rows of an operand in the compute type: in place where they have it, else copied into `space`.
template <class T>
struct Rows {
  using C = compute_type<T>;
  std::vector<C> space;
  MatrixView load(const AttentionOperand& o, int64_t matrix, int64_t first, int64_t count, int64_t width) {
    const T* from = static_cast<const T*>(o.data) + o.start[static_cast<size_t>(matrix)] + first * o.row;
    if constexpr (std::is_same_v<T, C>) return {from, std::max(o.row, width), 1};
    space.resize(static_cast<size_t>(count * width));
    const CastLoop cast = cast_loop(dtype_of<C>, dtype_of<T>);
    for (int64_t i = 0; i < count; ++i)
      cast(reinterpret_cast<char*>(space.data() + i * width), sizeof(C),
           reinterpret_cast<const char*>(from + i * o.row), sizeof(T), width);
    return {space.data(), width, 1};
  }
};

template <class T>
void store(const AttentionOperand& o, int64_t matrix, int64_t first, int64_t count, int64_t width,
           const compute_type<T>* from) {
  T* to = static_cast<T*>(o.data) + o.start[static_cast<size_t>(matrix)] + first * o.row;
  const CastLoop cast = cast_loop(dtype_of<T>, dtype_of<compute_type<T>>);
  for (int64_t i = 0; i < count; ++i)
    cast(reinterpret_cast<char*>(to + i * o.row), sizeof(T), reinterpret_cast<const char*>(from + i * width),
         sizeof(compute_type<T>), width);
}

MatrixView flipped(const MatrixView& m) { return {m.data, m.column_stride, m.row_stride}; }

template <class T>
struct Kernel {
  using C = compute_type<T>;
  static constexpr DType kCompute = dtype_of<C>;
  const AttentionPlan& p;
  const int64_t query_block_ = query_block(p.queries);

  static void product(int64_t m, int64_t n, int64_t k, double alpha, MatrixView a, MatrixView b, double beta,
                      C* c, int64_t ldc) {
    gemm(kCompute, m, n, k, Scalar(alpha), a, b, Scalar(beta), c, ldc);
  }
  ScoreTile tile(int64_t b, C* scores, int64_t row, int64_t rows, int64_t column, int64_t columns) const {
    ScoreTile t;
    t.scores = scores, t.rows = rows, t.columns = columns, t.stride = columns;
    t.first_row = row, t.first_column = column, t.causal = p.causal;
    if (p.mask.data) {
      t.mask = &p.mask;
      t.mask_start = p.mask.start[static_cast<size_t>(b)] + row * p.mask.row + column * p.mask.column;
    }
    return t;
  }

  // The sums over each row of out * grad_out.
  void row_products(const AttentionGradients& g, int64_t b, C* delta) const {
    const T* out = static_cast<const T*>(p.out.data) + p.out.start[static_cast<size_t>(b)];
    const T* grad = static_cast<const T*>(g.grad_out.data) + g.grad_out.start[static_cast<size_t>(b)];
    for (int64_t i = 0; i < p.queries; ++i) {
      C sum = 0;
      for (int64_t k = 0; k < p.value_width; ++k)
        sum += static_cast<C>(out[i * p.out.row + k]) * static_cast<C>(grad[i * g.grad_out.row + k]);
      delta[i] = sum;
    }
  }

  // All queries of one matrix against one block of keys.
  struct Sums {
    std::vector<C> query, key, value, delta, scores, grads;
    Rows<T> q, k, v, g;
  };
  void backward_tile(const AttentionGradients& g, Sums& s, int64_t b, int64_t row, int64_t column,
                     int64_t columns, MatrixView k, MatrixView v) const {
    const int64_t rows = std::min(query_block_, p.queries - row);
    const MatrixView q = s.q.load(p.query, b, row, rows, p.width),
                     grad = s.g.load(g.grad_out, b, row, rows, p.value_width);
    const MatrixView scores{s.scores.data(), columns, 1}, grads{s.grads.data(), columns, 1};
    product(rows, columns, p.width, p.scale, q, flipped(k), 0, s.scores.data(), columns);
    product(rows, columns, p.value_width, 1, grad, flipped(v), 0, s.grads.data(), columns);
    const ScoreTile t = tile(b, s.scores.data(), row, rows, column, columns);
    const C* logsumexp = static_cast<const C*>(p.logsumexp) + b * p.queries + row;
    RL_ISA_VARIANT(
        softmax_gradient_tile(kCompute, t, logsumexp, s.delta.data() + row, s.grads.data(), p.scale));
    product(columns, p.value_width, rows, 1, flipped(scores), grad, 1, s.value.data(), p.value_width);
    product(rows, p.width, columns, 1, grads, k, 1, s.query.data() + row * p.width, p.width);
    product(columns, p.width, rows, 1, flipped(grads), q, 1, s.key.data(), p.width);
  }

  void backward_head(const AttentionGradients& g, Sums& s, int64_t head) const {
    s.delta.resize(static_cast<size_t>(p.group * p.queries));
    s.query.assign(static_cast<size_t>(p.queries * p.width), 0);
    s.scores.resize(static_cast<size_t>(query_block_ * std::min(kKeyBlock, p.keys)));
    s.grads.resize(s.scores.size());
    std::vector<C> keys(static_cast<size_t>(p.keys * p.width)),
        values(static_cast<size_t>(p.keys * p.value_width));
    for (int64_t b = head * p.group; b < (head + 1) * p.group; ++b) {
      row_products(g, b, s.delta.data());
      std::fill(s.query.begin(), s.query.end(), C(0));
      for (int64_t column = 0; column < p.keys; column += kKeyBlock) {
        const int64_t columns = std::min(kKeyBlock, p.keys - column);
        const MatrixView k = s.k.load(p.key, head, column, columns, p.width),
                         v = s.v.load(p.value, head, column, columns, p.value_width);
        s.key.assign(static_cast<size_t>(columns * p.width), 0);
        s.value.assign(static_cast<size_t>(columns * p.value_width), 0);
        const int64_t first = p.causal ? column / query_block_ * query_block_ : 0;
        for (int64_t row = first; row < p.queries; row += query_block_)
          backward_tile(g, s, b, row, column, columns, k, v);
        for (size_t i = 0; i < s.key.size(); ++i) keys[static_cast<size_t>(column * p.width) + i] += s.key[i];
        for (size_t i = 0; i < s.value.size(); ++i)
          values[static_cast<size_t>(column * p.value_width) + i] += s.value[i];
      }
      store<T>(g.query, b, 0, p.queries, p.width, s.query.data());
    }
    store<T>(g.key, head, 0, p.keys, p.width, keys.data());
    store<T>(g.value, head, 0, p.keys, p.value_width, values.data());
  }

  void backward(const AttentionGradients& g) const {
    const int64_t work = p.group * p.queries * p.keys * (p.width + p.value_width);
    parallel_for(0, p.batch / p.group, std::max<int64_t>(1, 4 * kGrainSize / std::max<int64_t>(1, work)),
                 [&](int64_t begin, int64_t end) {
                   Sums sums;
                   for (int64_t i = begin; i < end; ++i) backward_head(g, sums, i);
                 });
  }
};

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
void attention_backward(const AttentionPlan& plan, const AttentionGradients& gradients) {
  visit_dtype(FloatTypes{}, plan.dtype, "scaled_dot_product_attention_backward",
              [&](auto tag) { Kernel<decltype(tag)>{plan}.backward(gradients); });
}

}  // namespace rushlight::cpu
