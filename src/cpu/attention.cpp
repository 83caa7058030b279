#include "cpu/attention.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "core/parallel.h"
#include "cpu/gemm.h"
#include "cpu/isa_variant.h"
#include "cpu/loops.h"

namespace rushlight::cpu {

RL_DECLARE_VARIANTS(void softmax_tile(DType compute, const ScoreTile& tile);
                    void softmax_gradient_tile(DType compute, const ScoreTile& tile, const void* logsumexp,
                                               const void* delta, void* grad, double scale);)

namespace {

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
  // How many keys the queries before `stop` look at.
  int64_t visible(int64_t stop) const { return p.causal ? std::min(stop, p.keys) : p.keys; }
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

  struct Workspace {
    Rows<T> query, key, value;
    std::vector<C> scores, out, largest, total;
  };
  void forward_block(Workspace& space, int64_t b, int64_t row) const {
    const int64_t rows = std::min(query_block_, p.queries - row), head = b / p.group;
    auto& [q_rows, k_rows, v_rows, scores, out, largest, total] = space;
    const MatrixView q = q_rows.load(p.query, b, row, rows, p.width);
    scores.resize(static_cast<size_t>(rows * std::min(kKeyBlock, p.keys)));
    C* sums;  // in the result where it has the compute type
    int64_t stride = p.value_width;
    if constexpr (std::is_same_v<T, C>) {
      sums = static_cast<C*>(p.out.data) + p.out.start[static_cast<size_t>(b)] + row * p.out.row;
      stride = p.out.row;
    } else {
      out.resize(static_cast<size_t>(rows * p.value_width));
      sums = out.data();
    }
    largest.assign(static_cast<size_t>(rows), -std::numeric_limits<C>::infinity());
    total.assign(static_cast<size_t>(rows), 0);
    const int64_t keys = visible(row + rows);
    for (int64_t column = 0; column < keys; column += kKeyBlock) {
      const int64_t columns = std::min(kKeyBlock, keys - column);
      const MatrixView k = k_rows.load(p.key, head, column, columns, p.width);
      product(rows, columns, p.width, p.scale, q, flipped(k), 0, scores.data(), columns);
      ScoreTile t = tile(b, scores.data(), row, rows, column, columns);
      t.largest = largest.data(), t.total = total.data(), t.out = sums;
      t.out_columns = column > 0 ? p.value_width : 0, t.out_stride = stride;
      RL_ISA_VARIANT(softmax_tile(kCompute, t));
      const MatrixView v = v_rows.load(p.value, head, column, columns, p.value_width);
      product(rows, p.value_width, columns, 1, {scores.data(), columns, 1}, v, column > 0, sums, stride);
    }
    C* logsumexp = static_cast<C*>(p.logsumexp) + b * p.queries + row;
    for (int64_t i = 0; i < rows; ++i) {
      const auto at = static_cast<size_t>(i);
      const bool nothing = total[at] == 0;  // a query that may look at nothing gets zeros, not NaN
      const C inverse = 1 / total[at];
      C* line = sums + i * stride;
      for (int64_t k = 0; k < p.value_width; ++k) line[k] = nothing ? C(0) : line[k] * inverse;
      logsumexp[i] = nothing ? std::numeric_limits<C>::infinity() : largest[at] + std::log(total[at]);
    }
    if constexpr (!std::is_same_v<T, C>) store<T>(p.out, b, row, rows, p.value_width, sums);
  }

  void forward() const {
    const int64_t blocks = (p.queries + query_block_ - 1) / query_block_;
    const int64_t work = std::min(query_block_, p.queries) * p.keys * (p.width + p.value_width + 16);
    parallel_for(0, p.batch * blocks, std::max<int64_t>(1, 8 * kGrainSize / std::max<int64_t>(1, work)),
                 [&](int64_t begin, int64_t end) {
                   Workspace space;
                   for (int64_t i = begin; i < end; ++i)
                     forward_block(space, i / blocks, i % blocks * query_block_);
                 });
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

}  // namespace

void attention(const AttentionPlan& plan) {
  visit_dtype(FloatTypes{}, plan.dtype, "scaled_dot_product_attention",
              [&](auto tag) { Kernel<decltype(tag)>{plan}.forward(); });
}
void attention_backward(const AttentionPlan& plan, const AttentionGradients& gradients) {
  visit_dtype(FloatTypes{}, plan.dtype, "scaled_dot_product_attention_backward",
              [&](auto tag) { Kernel<decltype(tag)>{plan}.backward(gradients); });
}

}  // namespace rushlight::cpu
