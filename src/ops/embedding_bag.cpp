// Reductions of a table's rows over bags of indices.
#include "cpu/embedding_bag.h"

#include <cstring>

#include "core/device_math.h"
#include "device/layers.h"
#include "dispatch/table.h"
#include "ops/copy.h"
#include "ops/embedding.h"
#include "ops/factory.h"
#include "ops/index.h"
#include "ops/join.h"
#include "ops/operators.h"
#include "ops/reduction.h"
#include "ops/reference.h"
#include "ops/register.h"
#include "ops/sort.h"
#include "ops/view.h"

namespace rushlight {
namespace {

using namespace ops;
using cpu::BagMode;
using FourTensors = std::tuple<Tensor, Tensor, Tensor, Tensor>;

Fn<FourTensors(const Tensor& weight, const Tensor& indices, const Tensor& offsets, bool scale_grad_by_freq,
               int64_t mode, bool sparse, const Tensor& per_sample_weights, bool include_last_offset,
               int64_t padding_idx)>
    bag_of_rows;
Fn<FourTensors(const Tensor& weight, const Tensor& indices, const Tensor& offsets, bool scale_grad_by_freq,
               int64_t mode, bool sparse, const Tensor& per_sample_weights, bool include_last_offset,
               OptInt padding_idx)>
    bag_with_padding;
Fn<FourTensors(const Tensor& weight, const Tensor& indices, const Tensor& offsets, bool scale_grad_by_freq,
               int64_t mode, bool sparse, const Tensor& per_sample_weights, bool include_last_offset)>
    bag_without_padding;
Fn<std::tuple<Tensor, Tensor>(const Tensor& grad, const Tensor& weight, const Tensor& indices,
                              const Tensor& offsets, const Tensor& bag_size, const Tensor& max_indices,
                              bool scale_grad_by_freq, int64_t mode, const Tensor& per_sample_weights,
                              bool include_last_offset, int64_t padding_idx, int64_t wanted)>
    bag_gradients;

// Positions of two dtypes are both taken to the one that holds them.
std::pair<Tensor, Tensor> of_one_dtype(const Tensor& indices, const Tensor& offsets) {
  const DType common = promote_types(indices.dtype(), offsets.dtype());
  return {to_dtype(indices, common), to_dtype(offsets, common)};
}

void check_index_dtype(const char* what, const Tensor& t) {
  RL_CHECK(t.dtype() == DType::Int64 || t.dtype() == DType::Int32, "embedding_bag: expected ", what,
           " of dtype int64 or int32, got ", describe(t));
}

// What the kernels read, with the tensors that hold it.
struct Bags {
  cpu::BagPlan plan;
  Tensor indices, factors;
  std::vector<int64_t> starts;
};

Bags bags_of(const Tensor& weight, const Tensor& indices, const Tensor& offsets, int64_t mode,
             const Tensor& factors, bool include_last, int64_t padding) {
  Bags b;
  b.indices = as_contiguous(to_dtype(indices, DType::Int64));
  const Tensor begins = as_contiguous(on_cpu(to_dtype(offsets, DType::Int64))), checked = on_cpu(b.indices);
  const int64_t count = indices.numel(), bags = offsets.numel() - (include_last ? 1 : 0);
  const int64_t* data = begins.data<int64_t>();
  b.starts.assign(data, data + bags);
  b.starts.push_back(count);
  int64_t before = 0;
  for (int64_t start : b.starts) {
    RL_CHECK(start >= before && start <= count,
             "embedding_bag: offsets must not decrease nor exceed the number of indices (", count, "), got ",
             start, " after ", before);
    before = start;
  }
  const int64_t rows = weight->sizes[0], *at = checked.data<int64_t>();
  for (int64_t i = 0; i < count; ++i)
    RL_CHECK(at[i] >= 0 && at[i] < rows,
             "embedding_bag: Expected idx >= 0 && idx < num_embeddings but found "
             "idx to be ",
             at[i]);
  if (factors.defined()) b.factors = as_contiguous(factors);
  b.plan = {weight.dtype(),
            static_cast<BagMode>(mode),
            bags,
            rows,
            weight->sizes[1],
            padding,
            static_cast<const int64_t*>(b.indices.data_ptr()),
            b.starts.data(),
            factors.defined() ? b.factors.data_ptr() : nullptr};
  return b;
}

void check_bags(const Tensor& weight, const Tensor& indices, const Tensor& offsets, int64_t mode, bool sparse,
                const Tensor& factors, bool include_last, int64_t padding) {
  RL_CHECK(weight.dim() == 2, "embedding_bag: weight has to be a 2D Tensor, but got ", describe(weight));
  RL_CHECK(indices.dim() == 1, "input has to be a 1D or 2D Tensor, but got Tensor of dimension ",
           indices.dim());
  RL_CHECK(offsets.dim() == 1, "offsets has to be a 1D Tensor, but got Tensor of dimension ", offsets.dim());
  check_index_dtype("indices", indices);
  check_index_dtype("offsets", offsets);
  RL_CHECK(mode >= 0 && mode <= 2, "embedding_bag: mode must be 0 (sum), 1 (mean) or 2 (max), got ", mode);
  RL_CHECK(!sparse, "embedding_bag: sparse gradients are not supported; pass sparse=False");
  RL_CHECK(!include_last || offsets.numel() >= 1,
           "include_last_offset: number of offset should be at least 1");
  RL_CHECK(padding < weight->sizes[0], "padding_idx must be within the number of embeddings, got ", padding);
  if (offsets.is_cpu() && offsets.numel() > 0) {
    const auto first = read_scalar(offsets).to<int64_t>();
    RL_CHECK(first == 0,
             "offsets[0] has to be 0, i.e., the first sequence in the mini-batch has to start from position "
             "0. However, got ",
             first);
  }
  if (!factors.defined()) return;
  RL_CHECK(mode == 0, "embedding_bag: per_sample_weights only supported with mode='sum'");
  RL_CHECK(factors.dtype() == weight.dtype(), "expected weight (", weight.dtype(),
           ") and per_sample_weights (", factors.dtype(), ") to have the same type as each other");
  RL_CHECK(factors.dim() == 1 && factors.numel() == indices.numel(),
           "expected per_sample_weights to be 1D with the shape of indices, got ", describe(factors));
}

// Where bags begin, with the end of the last.
Tensor starts_of_bags(const Tensor& indices, const Tensor& offsets, bool include_last) {
  const int64_t bags = offsets.numel() - (include_last ? 1 : 0);
  const Tensor end =
      full(IntList{1}, Scalar(indices.numel()), DType::Int64, std::nullopt, offsets.device(), std::nullopt);
  return cat({narrow(to_dtype(offsets, DType::Int64), 0, 0, bags), end});
}

// The bag of each index.
Tensor bag_numbers(const Tensor& indices, const Tensor& starts) {
  const Tensor at = arange(Scalar(int64_t{0}), Scalar(indices.numel()), Scalar(int64_t{1}), DType::Int64,
                           std::nullopt, indices.device(), std::nullopt);
  return searchsorted(narrow(starts, 0, 1, starts.numel() - 1), at, false, true, std::nullopt, Tensor());
}

// By operators: each index' share of the gradient, added up by rows of the table.
std::tuple<Tensor, Tensor> bag_gradients_on_device(const Tensor& grad, const Tensor& weight,
                                                   const Tensor& given, const Tensor& offsets,
                                                   const Tensor& counts, const Tensor& places,
                                                   bool by_frequency, int64_t mode, const Tensor& factors,
                                                   bool include_last, int64_t padding, int64_t wanted) {
  const Tensor indices = to_dtype(given, DType::Int64);
  const Tensor bag = bag_numbers(indices, starts_of_bags(given, offsets, include_last));
  const Tensor absent = unsqueeze(rushlight::eq(indices, Scalar(padding)), -1);
  Tensor flow = rushlight::masked_fill(index_select(grad, 0, bag), absent, Scalar(0)), gw, gf;
  if (wanted & 2) gf = sum_dim(flow * index_select(weight, 0, indices), IntList{-1}, false, std::nullopt);
  if (!(wanted & 1)) return {gw, gf};
  Tensor scale;
  if (by_frequency) {
    const Tensor none = zeros(IntList{weight->sizes[0]}, weight.dtype(), std::nullopt, weight.device());
    scale =
        Scalar(1.0) /
        clamp_min(index_add(none, 0, indices, ones_like(indices, weight.dtype()), Scalar(1)), Scalar(1.0));
  }
  const Tensor table = zeros(weight.sizes(), weight.dtype(), std::nullopt, weight.device());
  if (mode == static_cast<int64_t>(BagMode::Max)) {
    const Tensor flows = rushlight::masked_fill(grad, places < Scalar(0), Scalar(0));
    gw = scatter_add(table, 0, clamp_min(places, Scalar(0)), flows);
  } else {
    if (factors.defined()) flow = flow * unsqueeze(factors, -1);
    if (mode == static_cast<int64_t>(BagMode::Mean))
      flow =
          flow / unsqueeze(to_dtype(index_select(clamp_min(counts, Scalar(1)), 0, bag), weight.dtype()), -1);
    gw = index_add(table, 0, indices, flow, Scalar(1));
  }
  return {scale.defined() ? gw * unsqueeze(scale, -1) : gw, gf};
}

FourTensors bag_kernel(const Call&, const Tensor& weight, const Tensor& indices, const Tensor& offsets, bool,
                       int64_t mode, bool sparse, const Tensor& factors, bool include_last, int64_t padding) {
  check_bags(weight, indices, offsets, mode, sparse, factors, include_last, padding);
  const int64_t bags = offsets.numel() - (include_last ? 1 : 0), width = weight->sizes[1];
  const bool largest = mode == static_cast<int64_t>(BagMode::Max);
  Tensor out = empty_tensor(IntList{bags, width}, weight.dtype(), weight.device());
  Tensor counts = empty_tensor(IntList{bags}, DType::Int64, weight.device());
  Tensor places = empty_tensor(largest ? IntList{bags, width} : IntList{0}, DType::Int64, weight.device());
  Tensor numbers = empty_tensor(IntList{0}, DType::Int64, weight.device());
  if (out.device().is_meta()) return {out, numbers, counts, places};
  if (const DeviceLayers* layers = device_layers(out)) {
    const Tensor table = as_contiguous(weight), at = as_contiguous(to_dtype(indices, DType::Int64)),
                 starts = starts_of_bags(indices, offsets, include_last), shares = as_contiguous(factors);
    const cpu::BagPlan plan{weight.dtype(),
                            static_cast<BagMode>(mode),
                            bags,
                            weight->sizes[0],
                            width,
                            padding,
                            at.data<int64_t>(),
                            starts.data<int64_t>(),
                            shares.defined() ? shares.data_ptr() : nullptr};
    if (out.numel() > 0)
      layers->embedding_bag(out.device().index(), plan, table.data_ptr(), out.data_ptr(),
                            counts.data<int64_t>(), largest ? places.data<int64_t>() : nullptr);
    else
      zero_(counts);
    return {out, numbers, counts, places};
  }
  const Bags b = bags_of(weight, indices, offsets, mode, factors, include_last, padding);
  const Tensor table = as_contiguous(weight);
  cpu::embedding_bag(b.plan, table.data_ptr(), out.data_ptr(), counts.data<int64_t>(),
                     largest ? places.data<int64_t>() : nullptr);
  return {out, numbers, counts, places};
}

std::vector<double> inverse_frequencies(const Bags& b) {
  std::vector<double> f(static_cast<size_t>(b.plan.rows));
  for (int64_t i = 0; i < b.indices.numel(); ++i) ++f[static_cast<size_t>(b.plan.indices[i])];
  for (double& v : f) v = v > 0 ? 1 / v : 0;
  return f;
}

// What the forward pass gave, and a gradient shaped as its result.
void check_bag_gradients(const Tensor& grad, const Tensor& weight, const Tensor& offsets,
                         const Tensor& counts, const Tensor& places, int64_t mode, bool include_last) {
  const int64_t bags = offsets.numel() - (include_last ? 1 : 0);
  const Dims shape{bags, weight->sizes[1]};
  const bool largest = mode == static_cast<int64_t>(BagMode::Max);
  RL_CHECK(grad.sizes() == IntList(shape) && grad.dtype() == weight.dtype(),
           "embedding_bag: expected a gradient of shape ", shape, " and dtype ", weight.dtype(), ", got ",
           describe(grad));
  RL_CHECK(counts.dtype() == DType::Int64 && counts.sizes() == IntList({bags}),
           "embedding_bag: expected the numbers of ", bags, " bags, got ", describe(counts));
  RL_CHECK(!largest || (places.dtype() == DType::Int64 && places.sizes() == IntList(shape)),
           "embedding_bag: expected the places of maxima as int64 of shape ", shape, ", got ",
           describe(places));
  if (!largest || places.numel() == 0 || !places.is_cpu()) return;
  const auto [low, high] = aminmax(places, std::nullopt, false);
  RL_CHECK(read_scalar(low).to<int64_t>() >= -1 && read_scalar(high).to<int64_t>() < weight->sizes[0],
           "embedding_bag: a maximum lies outside of ", weight->sizes[0], " embeddings");
}

std::tuple<Tensor, Tensor> bag_gradients_kernel(const Call&, const Tensor& grad, const Tensor& weight,
                                                const Tensor& indices, const Tensor& offsets,
                                                const Tensor& counts, const Tensor& places, bool by_frequency,
                                                int64_t mode, const Tensor& factors, bool include_last,
                                                int64_t padding, int64_t wanted) {
  check_bags(weight, indices, offsets, mode, false, factors, include_last, padding);
  check_bag_gradients(grad, weight, offsets, counts, places, mode, include_last);
  if (weight.device().is_cuda()) {
    if (!device_math().deterministic_algorithms)
      return bag_gradients_on_device(grad, weight, indices, offsets, counts, places, by_frequency, mode,
                                     factors, include_last, padding, wanted);
    auto [w, f] = bag_gradients(on_cpu(grad), on_cpu(weight), on_cpu(indices), on_cpu(offsets),
                                on_cpu(counts), on_cpu(places), by_frequency, mode,
                                factors.defined() ? on_cpu(factors) : factors, include_last, padding, wanted);
    return {w.defined() ? to_device(w, weight.device()) : w, f.defined() ? to_device(f, weight.device()) : f};
  }
  Tensor gw, gf;
  if (wanted & 1) gw = empty_tensor(weight.sizes(), weight.dtype(), weight.device());
  if (wanted & 2) gf = empty_tensor(indices.sizes(), weight.dtype(), weight.device());
  if (!weight.is_cpu()) return {gw, gf};
  const Bags b = bags_of(weight, indices, offsets, mode, factors, include_last, padding);
  const Tensor g = as_contiguous(grad), sizes = as_contiguous(counts), taken = as_contiguous(places);
  if (gw.defined()) {
    if (gw.numel()) std::memset(gw.data_ptr(), 0, gw.nbytes());
    const std::vector<double> inverse = by_frequency ? inverse_frequencies(b) : std::vector<double>();
    cpu::embedding_bag_backward(b.plan, g.data_ptr(), sizes.data<int64_t>(),
                                taken.numel() ? taken.data<int64_t>() : nullptr,
                                by_frequency ? inverse.data() : nullptr, gw.data_ptr());
  }
  if (gf.defined())
    cpu::embedding_bag_factors(b.plan, g.data_ptr(), as_contiguous(weight).data_ptr(), gf.data_ptr());
  return {gw, gf};
}

// The same in public operators. The largest of each bag is taken where the kernel found it.
Tensor bag_reference(const Tensor& weight, const Tensor& given, const Tensor& offsets, int64_t mode,
                     const Tensor& factors, bool include_last, int64_t padding, bool by_frequency,
                     const Tensor& counts, const Tensor& places, bool sparse = false) {
  if (mode == static_cast<int64_t>(BagMode::Max)) {
    const Tensor nobody = places < Scalar(0);
    const Tensor rows = gather(weight, 0, clamp_min(places, Scalar(0)), false);
    return rushlight::masked_fill(rows, nobody, Scalar(0));
  }
  const Tensor indices = to_dtype(given, DType::Int64), starts = starts_of_bags(given, offsets, include_last);
  Tensor rows = embedding(weight, indices, padding, by_frequency, sparse);
  if (factors.defined()) rows = rows * unsqueeze(factors, -1);
  const Tensor absent = unsqueeze(rushlight::eq(indices, Scalar(padding)), -1);
  rows = rushlight::masked_fill(rows, absent, Scalar(0));
  const Tensor zeros = new_zeros(weight, IntList{starts.numel() - 1, weight.size(1)});
  Tensor out = index_add(zeros, 0, bag_numbers(indices, starts), rows, Scalar(1));
  if (mode == static_cast<int64_t>(BagMode::Mean))
    out = out / unsqueeze(to_dtype(clamp_min(counts, Scalar(1)), weight.dtype()), -1);
  return out;
}

// A sparse gradient of the table comes from the reference.
FourTensors bag_or_reference(const Tensor& weight, const Tensor& given, const Tensor& begins,
                             bool by_frequency, int64_t mode, bool sparse, const Tensor& factors,
                             bool include_last, int64_t padding) {
  const auto [indices, offsets] = of_one_dtype(given, begins);
  if (!sparse)
    return bag_of_rows(weight, indices, offsets, by_frequency, mode, false, factors, include_last, padding);
  const Tensor plain = factors.defined() ? ops::detach(factors) : factors;
  auto [out, numbers, counts, places] = bag_of_rows(ops::detach(weight), indices, offsets, by_frequency, mode,
                                                    false, plain, include_last, padding);
  return {bag_reference(weight, indices, offsets, mode, factors, include_last, padding, by_frequency, counts,
                        places, true),
          numbers, counts, places};
}

FourTensors padded_body(const Call&, const Tensor& weight, const Tensor& indices, const Tensor& offsets,
                        bool by_frequency, int64_t mode, bool sparse, const Tensor& factors,
                        bool include_last, OptInt padding) {
  int64_t row = -1;
  if (padding) {
    const int64_t rows = weight.dim() ? weight->sizes[0] : 0;
    row = *padding < 0 ? *padding + rows : *padding;
    RL_CHECK(row >= 0 && row < rows, "padding_idx must be within the number of embeddings, -", rows,
             " through ", rows - 1, ", but got ", *padding);
  }
  return bag_or_reference(weight, indices, offsets, by_frequency, mode, sparse, factors, include_last, row);
}
FourTensors plain_body(const Call&, const Tensor& weight, const Tensor& indices, const Tensor& offsets,
                       bool by_frequency, int64_t mode, bool sparse, const Tensor& factors,
                       bool include_last) {
  return bag_or_reference(weight, indices, offsets, by_frequency, mode, sparse, factors, include_last, -1);
}

FourTensors forward_only_body(const Call&, const Tensor& weight, const Tensor& given, const Tensor& begins,
                              bool by_frequency, int64_t mode, bool sparse, const Tensor& factors,
                              bool include_last, int64_t padding) {
  const GradMode off(false);
  const auto [indices, offsets] = of_one_dtype(given, begins);
  return bag_of_rows(weight, indices, offsets, by_frequency, mode, sparse, factors, include_last, padding);
}

}  // namespace

void register_embedding_bag_operators(Table& t) {
  t.op(bag_of_rows,
       "_embedding_bag(Tensor weight, Tensor indices, Tensor offsets, bool scale_grad_by_freq=False, int "
       "mode=0, bool sparse=False, Tensor? per_sample_weights=None, bool include_last_offset=False, int "
       "padding_idx=-1) -> (Tensor, Tensor, Tensor, Tensor)",
       bag_kernel)
      .function_only()
      .doc("Sums (mode 0), means (1) or maxima (2) of the rows that each bag of indices names.")
      .family(Family::Embedding)
      .on_devices()
      .derivative([](Grad g, In<0, 6> saved, Shape<0> shape, In<1> indices, In<2> offsets,
                     Attr<3, bool> by_frequency, Attr<4, int64_t> mode, In<6> factors, Attr<7, bool> last,
                     Attr<8, int64_t> padding, Out<2> counts, Out<3> places, Needs need) {
        // Its own gradient needs the table's shape alone.
        const Tensor w =
            saved.defined() ? saved : expand(to_dtype(new_zeros(g, IntList{}), shape.dtype()), shape, false);
        if (derivatives_wanted() || dispatch_state.level) {
          const auto reference = [&](const std::vector<Tensor>& x) {
            return bag_reference(x[0], indices, offsets, mode, x[1], last, padding, by_frequency, counts,
                                 places);
          };
          Grads both = gradients_of_reference(reference, {w, factors}, g);
          return Grads{both[0], Tensor(), Tensor(), both[1]};
        }
        auto [gw, gf] = bag_gradients(g, w, indices, offsets, counts, places, by_frequency, mode, factors,
                                      last, padding, (need[0] ? 1 : 0) | (need[6] ? 2 : 0));
        return Grads{gw, Tensor(), Tensor(), gf};
      });
  t.composite(
       "_embedding_bag_forward_only(Tensor weight, Tensor indices, Tensor offsets, bool "
       "scale_grad_by_freq=False, int mode=0, bool sparse=False, Tensor? per_sample_weights=None, bool "
       "include_last_offset=False, int padding_idx=-1) -> (Tensor, Tensor, Tensor, Tensor)",
       forward_only_body)
      .function_only()
      .doc("_embedding_bag, without recording for gradients.");
  t.op(bag_gradients,
       "_embedding_bag_gradients(Tensor grad, Tensor weight, Tensor indices, Tensor offsets, Tensor "
       "bag_size, Tensor maximum_indices, bool scale_grad_by_freq, int mode, Tensor? per_sample_weights, "
       "bool include_last_offset, int padding_idx, int wanted) -> (Tensor, Tensor)",
       bag_gradients_kernel)
      .absent_in_pytorch()
      .doc("Gradients of the table and of per_sample_weights, as far as wanted.")
      .internal()
      .family(Family::Gradient)
      .on_devices()
      .not_differentiable(
          "the rule of _embedding_bag uses its reference implementation when gradients are recorded");
  t.composite(bag_with_padding,
              "embedding_bag.padding_idx(Tensor weight, Tensor indices, Tensor offsets, bool "
              "scale_grad_by_freq, int mode, bool sparse, Tensor? per_sample_weights, bool "
              "include_last_offset, int? padding_idx) -> (Tensor, Tensor, Tensor, Tensor)",
              padded_body)
      .function_only()
      .doc("Sums (mode 0), means (1) or maxima (2) of rows over bags; padding_idx counts as absent.");
  t.composite(bag_without_padding,
              "embedding_bag(Tensor weight, Tensor indices, Tensor offsets, bool scale_grad_by_freq=False, "
              "int mode=0, bool sparse=False, Tensor? per_sample_weights=None, bool "
              "include_last_offset=False) -> (Tensor, Tensor, Tensor, Tensor)",
              plain_body)
      .function_only()
      .doc("Sums (mode 0), means (1) or maxima (2) of the rows that each bag of indices names.");
}

}  // namespace rushlight
