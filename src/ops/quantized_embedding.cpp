// quantized::embedding_bag_*: tables whose rows are bytes, halves or quarters of bytes, with a scale and a
// bias behind each. The tables are plain tensors of uint8, laid out as PyTorch's.
#include <vector>

#include "core/long_work.h"
#include "cpu/affine.h"
#include "ops/copy.h"
#include "ops/operators.h"
#include "ops/quantized_math.h"
#include "ops/register.h"
#include "ops/view.h"

namespace rushlight {
namespace {

using namespace ops;

using Pack = Fn<Tensor(const Tensor& weight)>;
using PackInRanges = Fn<Tensor(const Tensor& weight, const Tensor& rowwise_min_max)>;
using Search = Fn<Tensor(const Tensor& weight, bool optimized_qparams, int64_t nbins, double ratio)>;
using SearchInRanges = Fn<Tensor(const Tensor& weight, const Tensor& rowwise_min_max, bool optimized_qparams,
                                 int64_t nbins, double ratio)>;
using TwoTensors = std::tuple<Tensor, Tensor>;
Fn<TwoTensors(const Tensor& input, int64_t numel, int64_t n_bins, double ratio, int64_t bit_width)>
    choose_qparams_optimized;
using Bag =
    Fn<Tensor(const Tensor& weight, const Tensor& indices, const Tensor& offsets, bool scale_grad_by_freq,
              int64_t mode, bool pruned_weights, const Tensor& per_sample_weights,
              const Tensor& compressed_indices_mapping, bool include_last_offset)>;

cpu::RowTable table_of(int bits, const Tensor& packed) {
  RL_CHECK(packed.dim() == 2 && packed.dtype() == DType::UInt8,
           "a packed embedding table must be a uint8 matrix, got ", describe(packed));
  const int64_t settings = bits == 8 ? 8 : 4, bytes = packed->sizes[1] - settings;
  RL_CHECK(bytes >= 0, "a packed embedding table needs ", settings,
           " bytes for a scale and a bias in each row, got ", describe(packed));
  return {bits, packed->sizes[0], bytes * (8 / bits)};
}

// A search for the range of numbers whose rounding loses least.
struct RangeSearch {
  int64_t steps;
  double ratio;
};
void check_search(const char* who, const RangeSearch& search) {
  RL_CHECK(search.steps > 0, who, ": the number of bins must be positive, got ", search.steps);
  RL_CHECK(search.ratio >= 0 && search.ratio <= 1, who, ": the ratio must be between 0 and 1, got ",
           search.ratio);
}

// What each row's integers cover: the range that is given, or that is found; empty for that of its numbers.
std::vector<cpu::RowRange> row_ranges(const cpu::RowTable& table, const float* x, const Tensor& given,
                                      const RangeSearch* search) {
  std::vector<cpu::RowRange> ranges;
  if (search) {
    check_search("embedding_bag_prepack", *search);
    for (int64_t r = 0; r < table.rows; ++r)
      ranges.push_back(cpu::narrowed_range(x + r * table.width, table.width, search->steps,
                                           static_cast<float>(search->ratio), table.bits));
  } else if (given.defined()) {
    RL_CHECK(given.dim() == 2 && given->sizes[0] == table.rows && given->sizes[1] == 2,
             "embedding_bag_prepack: rowwise_min_max must have two numbers for each row, got ",
             describe(given));
    const Tensor own = contiguous(to_dtype(given, DType::Float32), MemoryFormat::Contiguous);
    const auto* pairs = static_cast<const float*>(own.data_ptr());
    for (int64_t r = 0; r < table.rows; ++r) ranges.push_back({pairs[2 * r], pairs[2 * r + 1]});
  }
  return ranges;
}

Tensor pack(int bits, const Tensor& weight, const Tensor& given = {}, const RangeSearch* search = nullptr) {
  RL_CHECK(weight.dim() == 2 && (weight.dtype() == DType::Float32 || weight.dtype() == DType::Float16),
           "an embedding table to pack must be a matrix of float32 or float16, got ", describe(weight));
  const cpu::RowTable table{bits, weight->sizes[0], weight->sizes[1]};
  RL_CHECK(table.width % table.each() == 0, "an embedding table of ", bits, " bits needs a multiple of ",
           table.each(), " columns, got ", describe(weight));
  const Tensor out = empty_tensor(IntList{table.rows, table.row_bytes()}, DType::UInt8, weight.device());
  if (!weight.is_cpu()) return out;
  const Tensor x = contiguous(to_dtype(weight, DType::Float32), MemoryFormat::Contiguous);
  const auto* numbers = static_cast<const float*>(x.data_ptr());
  const std::vector<cpu::RowRange> ranges = row_ranges(table, numbers, given, search);
  cpu::pack_rows(table, numbers, ranges.empty() ? nullptr : ranges.data(),
                 static_cast<uint8_t*>(out.data_ptr()));
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
    check_memory_for(indices->sizes[0], sizeof(int64_t));  // rows without indices take no memory themselves
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

Tensor pack_kernel(const Call&, const Tensor& weight) { return pack(8, weight); }
Tensor pack_in_ranges_kernel(const Call&, const Tensor& weight, const Tensor& ranges) {
  return pack(8, weight, ranges);
}
template <int kBits>
Tensor search_in_ranges_kernel(const Call&, const Tensor& weight, const Tensor& ranges, bool optimized,
                               int64_t steps, double ratio) {
  const RangeSearch search{steps, ratio};
  return pack(kBits, weight, ranges, optimized ? &search : nullptr);
}
template <int kBits>
Tensor search_kernel(const Call& call, const Tensor& weight, bool optimized, int64_t steps, double ratio) {
  return search_in_ranges_kernel<kBits>(call, weight, Tensor(), optimized, steps, ratio);
}
template <int kBits>
Tensor unpack_kernel(const Call&, const Tensor& weight) {
  return unpack(kBits, weight);
}
template <int kBits>
Tensor bag_kernel(const Call&, const Tensor& weight, const Tensor& indices, const Tensor& offsets, bool,
                  int64_t, bool pruned, const Tensor& factors, const Tensor& mapping, bool last) {
  return bag(kBits, weight, indices, offsets, pruned, factors, mapping, last);
}

TwoTensors choose_kernel(const Call&, const Tensor& input, int64_t numel, int64_t steps, double ratio,
                         int64_t bits) {
  constexpr const char* kWho = "choose_qparams_optimized";
  RL_CHECK(numel >= 0 && numel <= input.numel(), "numel is out of the bound of input tensor: ", numel, " of ",
           input.numel(), " elements");
  RL_CHECK(bits > 0 && bits <= 16, kWho, ": the width must be 1 to 16 bits, got ", bits);
  RL_CHECK(input.dtype() == DType::Float32, kWho, ": the input must be float32, got ", describe(input));
  check_search(kWho, {steps, ratio});
  const Tensor own = contiguous(input, MemoryFormat::Contiguous),
               most = empty_tensor(IntList{1}, DType::Float32),
               least = empty_tensor(IntList{1}, DType::Float32);
  const cpu::RowRange found = cpu::narrowed_range(static_cast<const float*>(own.data_ptr()), numel, steps,
                                                  static_cast<float>(ratio), static_cast<int>(bits));
  *static_cast<float*>(most.data_ptr()) = found.most;
  *static_cast<float*>(least.data_ptr()) = found.least;
  return {most, least};
}

constexpr const char* kFixed = "it serves inference with tables that are fixed";

template <class R, class... A>
void record(Table& t, Fn<R(A...)>& handle, const std::string& schema,
            std::type_identity_t<R (*)(const Call&, A...)> kernel, const char* doc) {
  t.op(handle, kept_schema("quantized::embedding_bag_" + schema), kernel)
      .family(Family::Embedding)
      .internal()
      .not_differentiable(kFixed)
      .doc(doc);
}

template <int kBits>
void table_records(Table& t) {
  static Pack unpacked;
  static Bag summed;
  const std::string name = kBits == 8 ? "byte" : std::to_string(kBits) + "bit";
  record(t, unpacked, name + "_unpack(Tensor weight) -> Tensor", unpack_kernel<kBits>,
         "The floats of a packed table.");
  record(t, summed,
         name +
             "_rowwise_offsets(Tensor weight, Tensor indices, Tensor? offsets=None, bool "
             "scale_grad_by_freq=False, int mode=0, bool pruned_weights=False, Tensor? "
             "per_sample_weights=None, Tensor? compressed_indices_mapping=None, bool "
             "include_last_offset=False) -> Tensor",
         bag_kernel<kBits>, "Sums of rows of a packed table.");
  constexpr const char* kDoc = "A table whose rows are small integers, with a scale and a bias behind each.";
  constexpr const char* kRangesDoc = "Likewise, with the least and the largest number that each row covers.";
  if constexpr (kBits == 8) {
    static Pack packed;
    static PackInRanges in_ranges;
    record(t, packed, name + "_prepack(Tensor weight) -> Tensor", pack_kernel, kDoc);
    record(t, in_ranges,
           name + "_prepack_with_rowwise_min_max(Tensor weight, Tensor rowwise_min_max) -> Tensor",
           pack_in_ranges_kernel, kRangesDoc);
  } else {
    static Search packed;
    static SearchInRanges in_ranges;
    const std::string search = "bool optimized_qparams=False, int nbins=200, float ratio=0.16) -> Tensor";
    record(t, packed, name + "_prepack(Tensor weight, " + search, search_kernel<kBits>, kDoc);
    record(t, in_ranges,
           name + "_prepack_with_rowwise_min_max(Tensor weight, Tensor rowwise_min_max, " + search,
           search_in_ranges_kernel<kBits>, kRangesDoc);
  }
}

}  // namespace

void register_quantized_embedding_operators(Table& t) {
  table_records<8>(t), table_records<4>(t), table_records<2>(t);
  t.op(choose_qparams_optimized,
       "choose_qparams_optimized(Tensor input, int numel, int n_bins, float ratio, int bit_width) -> "
       "(Tensor, "
       "Tensor)",
       choose_kernel)
      .family(Family::Embedding)
      .function_only()
      .not_differentiable(kFixed)
      .doc(
          "The largest and the least number of the range whose rounding to bit_width bits loses least of the "
          "first numel elements. Of n_bins steps at most the share ratio is given up at the ends.");
}

}  // namespace rushlight
