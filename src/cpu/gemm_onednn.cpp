#include "cpu/gemm_onednn.h"

#ifdef RUSHLIGHT_WITH_ONEDNN
#include <bit>

#include "core/constant_memory.h"
#include "core/host/processor.h"
#include "core/parallel.h"
#include "cpu/buffer.h"
#include "cpu/onednn_cache.h"

namespace rushlight::cpu {
namespace {

using dnnl::memory;

struct Plan {
  dnnl::matmul primitive;
  memory::desc a, b, bias, c, scratch;
};

memory::data_type data_type(DType t) {
  return t == DType::BFloat16 ? memory::data_type::bf16 : memory::data_type::f32;
}

// Strides of dimensions of size 1 say nothing; oneDNN wants them as if dense.
memory::desc matrices(DType dtype, int64_t batch, int64_t step, int64_t rows, int64_t columns,
                      const MatrixView& m) {
  const auto type = data_type(dtype);
  const int64_t row = rows == 1 && m.column_stride == 1 ? columns : m.row_stride,
                column = columns == 1 && m.row_stride == 1 ? rows : m.column_stride;
  if (batch == 1) return {{rows, columns}, type, {row, column}};
  // One matrix for all: of a batch whose stride is 0, oneDNN has only its reference code.
  if (step == 0) return {{1, rows, columns}, type, {std::max(rows * row, columns * column), row, column}};
  return {{batch, rows, columns}, type, {step, row, column}};
}

Plan make_plan(const GemmShape& s, float alpha, float beta, bool biased, bool packed) {
  const memory::desc a = matrices(s.dtype, s.batch, s.a_step, s.m, s.k, s.a),
                     b = packed ? memory::desc({s.k, s.n}, data_type(s.dtype), memory::format_tag::any)
                                : matrices(s.dtype, s.batch, s.b_step, s.k, s.n, s.b),
                     c = matrices(s.dtype, s.batch, s.c_step, s.m, s.n, {nullptr, s.ldc, 1}),
                     bias = biased ? memory::desc({1, s.n}, data_type(s.dtype), memory::format_tag::ab)
                                   : memory::desc();
  dnnl::primitive_attr attr;
  attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  dnnl::post_ops after;
  if (alpha != 1) after.append_eltwise(dnnl::algorithm::eltwise_linear, alpha, 0);
  if (beta != 0) after.append_sum(beta);
  attr.set_post_ops(after);
  const dnnl::matmul::primitive_desc pd(onednn_engine(), a, b, bias, c, attr);
  return {dnnl::matmul(pd), a, pd.weights_desc(), bias, c, pd.scratchpad_desc()};
}

// A product with a vector, turned so that the vector is a row: oneDNN has only slow code for columns.
GemmShape by_rows(GemmShape s) {
  if (s.n != 1 || s.ldc != 1) return s;
  auto transposed = [](const MatrixView& m) { return MatrixView{m.data, m.column_stride, m.row_stride}; };
  const MatrixView a = s.a;
  s.a = transposed(s.b), s.b = transposed(a);
  std::swap(s.a_step, s.b_step);
  std::swap(s.m, s.n);
  s.ldc = s.n;
  return s;
}

PlanCache<Plan, 19>& plans() {
  static PlanCache<Plan, 19> cache;
  return cache;
}

// A constant factor in the order that a plan likes. Of many rows, bringing it there each time costs little.
struct PackedFactor final : ConstantMemory::Made {
  PackedFactor(const memory::desc& from, const memory::desc& layout)
      : from(from), layout(layout), data(static_cast<int64_t>(layout.get_size())) {}
  size_t nbytes() const override { return layout.get_size(); }
  const memory::desc from, layout;
  const Buffer data;
};

constexpr int64_t kMostPackedRows = 512;
bool packs(const GemmShape& s) {
  return s.batch == 1 && s.m > 1 && s.m <= kMostPackedRows && ConstantMemory::contains(s.b.data);
}

std::shared_ptr<const PackedFactor> packed_factor(const GemmShape& s, const memory::desc& layout) {
  const memory::desc plain = matrices(s.dtype, 1, 0, s.k, s.n, s.b);
  const auto same = [&](const PackedFactor& f) { return f.from == plain && f.layout == layout; };
  if (auto found = ConstantMemory::find<PackedFactor>(s.b.data, same)) return found;
  auto made = std::make_shared<const PackedFactor>(plain, layout);
  dnnl::stream stream(onednn_engine());
  memory from(plain, onednn_engine(), const_cast<void*>(s.b.data)),
      to(layout, onednn_engine(), made->data.as<void>());
  dnnl::reorder(from, to).execute(stream, from, to);
  stream.wait();
  ConstantMemory::keep(s.b.data, made);
  return made;
}

}  // namespace

bool onednn_multiplies(const GemmShape& s) {
  if (s.k <= 0) return false;
  // Elsewhere MKL runs code for AVX2, which reaches nine tenths of this. On Intel's processors it is ahead
  // but for a constant matrix, which it would pack in each call: a quarter of a product of 128 rows.
  const bool ahead_of_blas = !host::is_intel();
  constexpr int64_t kLeastWork = int64_t{1} << 21;  // multiplications that pay for looking up a plan
  if (s.dtype == DType::Float32)
    return (ahead_of_blas || packs(s)) && std::min(s.m, s.n) > 1 && s.batch * s.m * s.n * s.k >= kLeastWork &&
           onednn_has_avx512();
  // Of a small product, calling oneDNN is most of the time: widening it to float takes less. A vector's
  // product is as fast as memory where the matrix is read as it lies, and half as fast by oneDNN.
  constexpr int64_t kLeastHalfWork = int64_t{1} << 14;
  return s.dtype == DType::BFloat16 && std::min(s.m, s.n) > 1 &&
         s.batch * s.m * s.n * s.k >= kLeastHalfWork && onednn_has_avx512();
}

void onednn_gemm(const GemmShape& shape, float alpha, float beta, void* c, const void* bias) {
  // One matrix for all on both sides: it has no such batch, as none of its factors would say how many there
  // are.
  if (shape.batch > 1 && shape.a_step == 0 && shape.b_step == 0) {
    GemmShape one = shape;
    one.batch = 1;
    const auto step = shape.c_step * static_cast<int64_t>(element_size(shape.dtype));
    for (int64_t i = 0; i < shape.batch; i++)
      onednn_gemm(one, alpha, beta, static_cast<char*>(c) + i * step, bias);
    return;
  }
  const GemmShape s = by_rows(shape);
  const bool packed = packs(s);
  run_in_pool([&] {
    try {
      const std::array<int64_t, 19> key{s.batch,
                                        s.m,
                                        s.n,
                                        s.k,
                                        s.a.row_stride,
                                        s.a.column_stride,
                                        s.b.row_stride,
                                        s.b.column_stride,
                                        s.a_step,
                                        s.b_step,
                                        s.ldc,
                                        s.c_step,
                                        std::bit_cast<int32_t>(alpha),
                                        std::bit_cast<int32_t>(beta),
                                        static_cast<int64_t>(s.dtype),
                                        get_num_threads(),
                                        in_parallel_region(),
                                        bias != nullptr,
                                        packed};
      const auto plan = plans().get(key, [&] { return make_plan(s, alpha, beta, bias != nullptr, packed); });
      const auto factor = packed ? packed_factor(s, plan->b) : nullptr;
      const Buffer scratch(static_cast<int64_t>(plan->scratch.get_size()));
      dnnl::engine& engine = onednn_engine();
      dnnl::stream stream(engine);
      std::unordered_map<int, memory> arguments{
          {DNNL_ARG_SRC, memory(plan->a, engine, const_cast<void*>(s.a.data))},
          {DNNL_ARG_WEIGHTS,
           memory(plan->b, engine, factor ? factor->data.as<void>() : const_cast<void*>(s.b.data))},
          {DNNL_ARG_DST, memory(plan->c, engine, c)},
          {DNNL_ARG_SCRATCHPAD, memory(plan->scratch, engine, scratch.as<void>())}};
      if (bias) arguments.insert({DNNL_ARG_BIAS, memory(plan->bias, engine, const_cast<void*>(bias))});
      plan->primitive.execute(stream, arguments);
      stream.wait();
    } catch (const dnnl::error& e) {
      RL_FAIL("matrix product: oneDNN failed: ", e.what());
    }
  });
}

}  // namespace rushlight::cpu

#else

namespace rushlight::cpu {
bool onednn_multiplies(const GemmShape&) { return false; }
void onednn_gemm(const GemmShape&, float, float, void*, const void*) { RL_ASSERT(false); }
}  // namespace rushlight::cpu

#endif
