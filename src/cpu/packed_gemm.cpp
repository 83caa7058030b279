#include "cpu/packed_gemm.h"

#include "core/cpu_allocator.h"
#include "core/parallel.h"

#ifdef RUSHLIGHT_WITH_ONEDNN
#include <unordered_map>

#include "cpu/onednn_cache.h"
#endif

namespace rushlight::cpu {

#ifdef RUSHLIGHT_WITH_ONEDNN
namespace {

using dnnl::memory;

class Buffer {
 public:
  explicit Buffer(const memory::desc& d)
      : bytes_(d.get_size()), data_(cpu_allocate(bytes_)), view_(d, onednn_engine(), data_) {}
  ~Buffer() { cpu_deallocate(data_, bytes_); }
  Buffer(const Buffer&) = delete;
  const memory& view() const { return view_; }

 private:
  size_t bytes_;
  void* data_;
  memory view_;
};

dnnl::matmul::primitive_desc describe_product(int64_t m, int64_t n, int64_t k, bool accumulate) {
  using tag = memory::format_tag;
  dnnl::primitive_attr attr;
  attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  if (accumulate) {
    dnnl::post_ops sum;
    sum.append_sum(1.0f);
    attr.set_post_ops(sum);
  }
  const auto type = memory::data_type::f32;
  return {onednn_engine(), memory::desc({m, k}, type, tag::ab), memory::desc({k, n}, type, tag::any),
          memory::desc({m, n}, type, tag::ab), attr};
}

}  // namespace

struct PackedGemm::Packed {
  dnnl::matmul::primitive_desc description;
  dnnl::matmul product;
  Buffer weight, scratch;

  Packed(int64_t m, int64_t n, int64_t k, bool accumulate, const MatrixView& b)
      : description(describe_product(m, n, k, accumulate)),
        product(description),
        weight(description.weights_desc()),
        scratch(description.scratchpad_desc()) {
    memory::desc plain({k, n}, memory::data_type::f32, memory::dims{b.row_stride, b.column_stride});
    memory from(plain, onednn_engine(), const_cast<void*>(b.data)), to = weight.view();
    dnnl::stream stream(onednn_engine());
    dnnl::reorder(from, to).execute(stream, from, to);
    stream.wait();
  }
};

PackedGemm::PackedGemm(DType dtype, int64_t m, int64_t n, int64_t k, MatrixView b, bool accumulate)
    : dtype_(dtype), m_(m), n_(n), k_(k), b_(b), accumulate_(accumulate) {
  if (dtype != DType::Float32 || m == 0 || n == 0 || k == 0) return;
  run_in_pool([&] {
    try {
      packed_ = std::make_unique<Packed>(m, n, k, accumulate, b);
    } catch (const dnnl::error&) {  // a shape it does not take
    }
  });
}

void PackedGemm::run(const void* a, void* c) const {
  if (!packed_) return gemm(dtype_, m_, n_, k_, 1, {a, k_, 1}, b_, accumulate_ ? 1 : 0, c, n_);
  run_in_pool([&] {
    dnnl::stream stream(onednn_engine());
    const auto& d = packed_->description;
    packed_->product.execute(stream,
                             {{DNNL_ARG_SRC, memory(d.src_desc(), onednn_engine(), const_cast<void*>(a))},
                              {DNNL_ARG_WEIGHTS, packed_->weight.view()},
                              {DNNL_ARG_DST, memory(d.dst_desc(), onednn_engine(), c)},
                              {DNNL_ARG_SCRATCHPAD, packed_->scratch.view()}});
    stream.wait();
  });
}

#else

struct PackedGemm::Packed {};

PackedGemm::PackedGemm(DType dtype, int64_t m, int64_t n, int64_t k, MatrixView b, bool accumulate)
    : dtype_(dtype), m_(m), n_(n), k_(k), b_(b), accumulate_(accumulate) {}
void PackedGemm::run(const void* a, void* c) const {
  gemm(dtype_, m_, n_, k_, 1, {a, k_, 1}, b_, accumulate_ ? 1 : 0, c, n_);
}

#endif

PackedGemm::~PackedGemm() = default;

}  // namespace rushlight::cpu
