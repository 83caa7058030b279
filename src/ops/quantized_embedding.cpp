// quantized::embedding_bag_*: tables whose rows are bytes or halves of bytes, with a scale and a bias behind
// each. The tables are plain tensors of uint8, laid out as PyTorch's.
#include <vector>

#include "cpu/affine.h"
#include "ops/copy.h"
#include "ops/operators.h"
#include "ops/register.h"
#include "ops/view.h"

namespace rushlight {
namespace {

using namespace ops;

Fn<Tensor(const Tensor& weight)> pack_bytes, unpack_bytes, unpack_halves;
Fn<Tensor(const Tensor& weight, bool optimized_qparams, int64_t nbins, double ratio)> pack_halves;
using Bag =
    Fn<Tensor(const Tensor& weight, const Tensor& indices, const Tensor& offsets, bool scale_grad_by_freq,
              int64_t mode, bool pruned_weights, const Tensor& per_sample_weights,
              const Tensor& compressed_indices_mapping, bool include_last_offset)>;
Bag bag_bytes, bag_halves;

cpu::RowTable table_of(int bits, const Tensor& packed) {
  RL_CHECK(packed.dim() == 2 && packed.dtype() == DType::UInt8,
           "a packed embedding table must be a uint8 matrix, got ", describe(packed));
  const int64_t settings = bits == 8 ? 8 : 4, numbers = packed->sizes[1] - settings;
  RL_CHECK(numbers >= 0, "a packed embedding table needs ", settings,
           " bytes for a scale and a bias in each row, got ", describe(packed));
  return {bits, packed->sizes[0], bits == 8 ? numbers : 2 * numbers};
}

Tensor pack(int bits, const Tensor& weight) {
  RL_CHECK(weight.dim() == 2 && (weight.dtype() == DType::Float32 || weight.dtype() == DType::Float16),
           "an embedding table to pack must be a matrix of float32 or float16, got ", describe(weight));
  const cpu::RowTable table{bits, weight->sizes[0], weight->sizes[1]};
  RL_CHECK(bits == 8 || table.width % 2 == 0,
           "an embedding table of four bits needs an even number of columns, got ", describe(weight));
  const Tensor out = empty_tensor(IntList{table.rows, table.row_bytes()}, DType::UInt8, weight.device());
  if (!weight.is_cpu()) return out;
  const Tensor x = contiguous(to_dtype(weight, DType::Float32), MemoryFormat::Contiguous);
  cpu::pack_rows(table, static_cast<const float*>(x.data_ptr()), static_cast<uint8_t*>(out.data_ptr()));
  return out;
}
Tensor unpack(int bits, const Tensor& packed) {
  const cpu::RowTable table = table_of(bits, packed);
  const Tensor out = empty_tensor(IntList{table.rows, table.width}, DType::Float32, packed.device());
  if (!packed.is_cpu()) return out;
  const Tensor own = contiguous(packed, MemoryFormat::Contiguous);
  cpu::unpack_rows(table, static_cast<const uint8_t*>(own.data_ptr()), static_cast<float*>(out.data_ptr()));
  return out;
}

std::vector<int64_t> integers(const Tensor& t) {
  const Tensor own = contiguous(to_dtype(t, DType::Int64), MemoryFormat::Contiguous);
  const auto* data = static_cast<const int64_t*>(own.data_ptr());
  return {data, data + own.numel()};
}

// Where bags begin, and where the last one ends.
std::vector<int64_t> starts_of(const Tensor& indices, const Tensor& offsets, bool include_last) {
  std::vector<int64_t> starts;
  if (indices.dim() == 2) {
    RL_CHECK(!offsets.defined(),
             "embedding_bag operator: input is 2D, then offsets has to be None, as input is treated is a "
             "mini-batch of fixed length sequences.");
    for (int64_t b = 0; b <= indices->sizes[0]; ++b) starts.push_back(b * indices->sizes[1]);
    return starts;
  }
  RL_CHECK(indices.dim() == 1, "embedding_bag operator: input has to be 1D or 2D, got ", describe(indices));
  RL_CHECK(offsets.defined(), "embedding_bag operator: input is 1D, then offsets cannot be None");
  starts = integers(offsets);
  if (!include_last || starts.empty()) starts.push_back(indices.numel());
  for (size_t b = 0; b < starts.size(); ++b)
    RL_CHECK(starts[b] >= (b ? starts[b - 1] : 0) && starts[b] <= indices.numel(),
             "embedding_bag operator: offsets must grow from 0 to the number of indices, ", indices.numel(),
             ", got ", starts[b], " at ", b);
  return starts;
}

Tensor bag(int bits, const Tensor& weight, const Tensor& indices, const Tensor& offsets, bool pruned,
           const Tensor& factors, const Tensor& mapping, bool include_last) {
  const cpu::RowTable table = table_of(bits, weight);
  RL_CHECK(indices.dtype() == DType::Int32 || indices.dtype() == DType::Int64,
           "embedding_bag operator: indices must be int32 or int64, got ", describe(indices));
  if (!weight.is_cpu())
    return empty_tensor(
        IntList{indices.dim() == 2 ? indices->sizes[0] : offsets.numel() - (include_last ? 1 : 0),
                table.width},
        DType::Float32, weight.device());
  const std::vector<int64_t> starts = starts_of(indices, offsets, include_last);
  std::vector<int64_t> rows = integers(indices);
  std::vector<int64_t> kept;
  if (pruned && mapping.defined() && mapping.numel() > 1) kept = integers(mapping);
  const int64_t limit = kept.empty() ? table.rows : static_cast<int64_t>(kept.size());
  for (int64_t& row : rows) {
    RL_CHECK(row >= 0 && row < limit, "embedding_bag operator: index ", row, " is out of range for ", limit,
             " rows");
    if (!kept.empty()) row = kept[static_cast<size_t>(row)];
    RL_CHECK(row < table.rows, "embedding_bag operator: the mapping leads to row ", row, " of ", table.rows);
  }
  Tensor own_factors;
  if (factors.defined()) {
    RL_CHECK(factors.numel() == indices.numel(), "embedding_bag operator: as many per_sample_weights as ",
             "indices are wanted, ", indices.numel(), ", got ", describe(factors));
    own_factors = contiguous(to_dtype(factors, DType::Float32), MemoryFormat::Contiguous);
  }
  const Tensor table_bytes = contiguous(weight, MemoryFormat::Contiguous);
  const auto bags = static_cast<int64_t>(starts.size()) - 1;
  const Tensor out = empty_tensor(IntList{bags, table.width}, DType::Float32);
  cpu::sum_rows(table, static_cast<const uint8_t*>(table_bytes.data_ptr()), rows.data(), starts.data(), bags,
                factors.defined() ? static_cast<const float*>(own_factors.data_ptr()) : nullptr,
                static_cast<float*>(out.data_ptr()));
  return out;
}

Tensor pack_bytes_kernel(const Call&, const Tensor& weight) { return pack(8, weight); }
Tensor pack_halves_kernel(const Call&, const Tensor& weight, bool optimized, int64_t, double) {
  RL_CHECK(!optimized,
           "quantized::embedding_bag_4bit_prepack: optimized_qparams=True is not supported, "
           "pass False, which takes each row's least and largest numbers");
  return pack(4, weight);
}
Tensor unpack_bytes_kernel(const Call&, const Tensor& weight) { return unpack(8, weight); }
Tensor unpack_halves_kernel(const Call&, const Tensor& weight) { return unpack(4, weight); }
Tensor bag_bytes_kernel(const Call&, const Tensor& weight, const Tensor& indices, const Tensor& offsets, bool,
                        int64_t, bool pruned, const Tensor& factors, const Tensor& mapping, bool last) {
  return bag(8, weight, indices, offsets, pruned, factors, mapping, last);
}
Tensor bag_halves_kernel(const Call&, const Tensor& weight, const Tensor& indices, const Tensor& offsets,
                         bool, int64_t, bool pruned, const Tensor& factors, const Tensor& mapping,
                         bool last) {
  return bag(4, weight, indices, offsets, pruned, factors, mapping, last);
}

constexpr const char* kFixed = "it serves inference with tables that are fixed";

}  // namespace

void register_quantized_embedding_operators(Table& t) {
#define RL_BAG                                                                                             \
  "(Tensor weight, Tensor indices, Tensor? offsets=None, bool scale_grad_by_freq=False, int mode=0, bool " \
  "pruned_weights=False, Tensor? per_sample_weights=None, Tensor? compressed_indices_mapping=None, bool "  \
  "include_last_offset=False) -> Tensor"
  const auto settle = [](OpBuilder r, const char* doc) {
    r.family(Family::Embedding).internal().not_differentiable(kFixed).doc(doc);
  };
  settle(
      t.op(pack_bytes, "quantized::embedding_bag_byte_prepack(Tensor weight) -> Tensor", pack_bytes_kernel),
      "A table whose rows are bytes, with a scale and a bias behind each.");
  settle(t.op(pack_halves,
              "quantized::embedding_bag_4bit_prepack(Tensor weight, bool optimized_qparams=False, int "
              "nbins=200, float ratio=0.16) -> Tensor",
              pack_halves_kernel),
         "A table whose rows are halves of bytes, with a scale and a bias behind each.");
  settle(t.op(unpack_bytes, "quantized::embedding_bag_byte_unpack(Tensor weight) -> Tensor",
              unpack_bytes_kernel),
         "The floats of a table of bytes.");
  settle(t.op(unpack_halves, "quantized::embedding_bag_4bit_unpack(Tensor weight) -> Tensor",
              unpack_halves_kernel),
         "The floats of a table of halves of bytes.");
  settle(t.op(bag_bytes, "quantized::embedding_bag_byte_rowwise_offsets" RL_BAG, bag_bytes_kernel),
         "Sums of rows of a table of bytes.");
  settle(t.op(bag_halves, "quantized::embedding_bag_4bit_rowwise_offsets" RL_BAG, bag_halves_kernel),
         "Sums of rows of a table of halves of bytes.");
}

}  // namespace rushlight
