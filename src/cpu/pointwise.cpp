#include "cpu/pointwise.h"

#include <array>
#include <bit>
#include <cstring>

#include "core/parallel.h"
#include "cpu/copy.h"
#include "cpu/iterator.h"

namespace rushlight::cpu {
namespace {

constexpr int64_t kChunk = 512;
using Buffer = std::byte[kChunk * 16];

// Arithmetic and comparisons come first in the list of formulas; the others cost several times as much an
// element.
int64_t grain_of(Formula f) { return f < Formula::Exp ? kGrainSize : kGrainSize / 8; }

// One operand of the work on a chunk: elements where they lie, or gathered into a buffer in the compute type.
struct Operand {
  enum class Kind { Linear, Rows, RowScalar, Scalar, Gather } kind = Kind::Gather;
  int64_t stored_size = 0, compute_size = 0;
  CastLoop cast = nullptr;

  Operand() = default;
  Operand(const Iteration& it, int index, DType stored, DType compute)
      : stored_size(static_cast<int64_t>(element_size(stored))),
        compute_size(static_cast<int64_t>(element_size(compute))),
        cast(index > 0 ? cast_loop(compute, stored) : cast_loop(stored, compute)) {
    const bool direct = stored == compute;
    if (index > 0 && it.is_scalar(index))
      kind = Kind::Scalar;
    else if (direct && it.is_linear(index, stored_size))
      kind = Kind::Linear;
    else if (direct && it.row() >= 64 && it.strides(index)[0] == stored_size)
      kind = Kind::Rows;
    else if (direct && index > 0 && it.row() >= 64 && it.strides(index)[0] == 0)
      kind = Kind::RowScalar;
  }
};

void gather(const Iteration& it, int index, const Operand& operand, int64_t begin, int64_t n, char* buffer) {
  for_each_row(it, index, begin, n, [&](char* from, int64_t stride, int64_t count) {
    operand.cast(buffer, operand.compute_size, from, stride, count);
    buffer += count * operand.compute_size;
  });
}

void scatter(const Iteration& it, const Operand& operand, int64_t begin, int64_t n, const char* buffer) {
  for_each_row(it, 0, begin, n, [&](char* to, int64_t stride, int64_t count) {
    operand.cast(to, stride, buffer, operand.compute_size, count);
    buffer += count * operand.compute_size;
  });
}

// Elements [begin, end) of the iteration, chunk by chunk. `apply(data, scalars, n)` computes one.
template <class Apply>
void run_range(const Iteration& it, const Operand* operands, bool takes_scalars, int64_t begin, int64_t end,
               Apply&& apply) {
  alignas(64) Buffer buffers[Iteration::kMaxOperands];
  char* data[Iteration::kMaxOperands];
  Operand::Kind kinds[Iteration::kMaxOperands];
  unsigned scalars = 0;
  bool whole_rows = false, chunked = false;
  for (int i = 0; i < it.count(); ++i) {
    const Operand& operand = operands[i];
    kinds[i] = operand.kind;
    if (kinds[i] == Operand::Kind::RowScalar) {
      if (takes_scalars && scalars == 0)
        scalars |= 1u << (i - 1);
      else
        kinds[i] = Operand::Kind::Gather;
    }
    whole_rows |= kinds[i] == Operand::Kind::Rows || kinds[i] == Operand::Kind::RowScalar;
    chunked |= kinds[i] == Operand::Kind::Gather;
    data[i] = reinterpret_cast<char*>(buffers[i]);
    if (kinds[i] != Operand::Kind::Scalar) continue;
    // One value: converted once, and spread over the buffer where the loop wants a value for each element.
    const bool spread = !takes_scalars || scalars != 0;
    operand.cast(data[i], operand.compute_size, it.data(i), 0, spread ? std::min(kChunk, end - begin) : 1);
    if (spread)
      chunked = true;
    else
      scalars |= 1u << (i - 1);
  }
  const int64_t limit = chunked ? kChunk : end - begin;
  for (int64_t at = begin; at < end;) {
    int64_t n = std::min(limit, end - at);
    if (whole_rows) n = std::min(n, it.row() - at % it.row());
    for (int i = 0; i < it.count(); ++i) {
      const Operand& operand = operands[i];
      if (kinds[i] == Operand::Kind::Linear)
        data[i] = it.data(i) + at * operand.stored_size;
      else if (kinds[i] == Operand::Kind::Rows || kinds[i] == Operand::Kind::RowScalar)
        data[i] = it.address(i, at);
      else if (kinds[i] == Operand::Kind::Gather && i > 0)
        gather(it, i, operand, at, n, data[i]);
    }
    apply(data, scalars, n);
    if (operands[0].kind == Operand::Kind::Gather) scatter(it, operands[0], at, n, data[0]);
    at += n;
  }
}

}  // namespace

bool contains_zero(const Tensor& t) {
  Iteration it(t.sizes());
  it.add(t);
  it.finish();
  bool found = false;
  visit_dtype(StorageTypes{}, t.dtype(), "division", [&](auto tag) {
    using T = decltype(tag);
    for_each_row(it, 0, 0, it.numel(), [&](char* row, int64_t stride, int64_t n) {
      for (int64_t i = 0; i < n; ++i)
        found |= convert<compute_type<T>>(*reinterpret_cast<T*>(row + i * stride)) == compute_type<T>(0);
    });
  });
  return found;
}

bool all_true(const Tensor& t) { return t.numel() == 0 || !contains_zero(t); }

PackedParameters::PackedParameters(std::span<const Scalar> scalars, DType compute) {
  if (scalars.empty()) return;
  if (is_reduced_float(compute)) compute = DType::Float32;
  visit_dtype(AllTypes{}, compute, "parameters", [&](auto tag) {
    using T = decltype(tag);
    for (size_t i = 0; i < scalars.size() && i < 4; ++i) {
      const T value = scalars[i].to<T>();
      std::memcpy(bytes_ + i * sizeof(T), &value, sizeof(T));
    }
  });
}

void run_linear(Formula f, DType compute, char* const* data, unsigned scalars, int64_t n,
                const void* parameters) {
  const Loop loop = row(f).loop[static_cast<int>(compute)];
  const int64_t grain = grain_of(f);
  if (n <= grain) return loop(data, scalars, n, parameters);
  const int inputs = kFormulaInfo[static_cast<int>(f)].inputs;
  const auto item = static_cast<int64_t>(element_size(compute));
  const auto result_item = static_cast<int64_t>(element_size(result_type_of(f, compute)));
  // Pieces start at multiples of a cache line's elements.
  parallel_for(0, (n + 63) / 64, grain / 64, [&](int64_t b, int64_t e) {
    char* piece[4] = {data[0] + b * 64 * result_item};
    for (int i = 0; i < inputs; ++i) piece[i + 1] = data[i + 1] + (scalars >> i & 1 ? 0 : b * 64 * item);
    loop(piece, scalars, std::min(n, e * 64) - b * 64, parameters);
  });
}

namespace {

// Halves that have a loop of their own need no conversions around the one for float.
DType loop_type(Formula f, DType compute, const Tensor& out, std::span<const Tensor* const> inputs) {
  const DType stored = inputs[0]->dtype();
  bool own = is_reduced_float(stored) && compute == DType::Float32 && row(f).loop[static_cast<int>(stored)];
  own &= out.dtype() == result_type_of(f, stored);
  for (const Tensor* t : inputs) own &= t->dtype() == stored;
  return own ? stored : compute;
}

}  // namespace

namespace {

// Whether walking in the order of `out` jumps through the memory of a large operand: transposing it first is
// then cheaper.
bool lies_across(const Tensor& t, const Tensor& out) {
  constexpr int64_t kLarge = 1 << 16, kShort = 16;
  if (t.numel() < kLarge || t.dim() < 2 || t.sizes() != out.sizes() || !out.is_contiguous() ||
      !is_non_overlapping_and_dense(t))
    return false;
  const int64_t last = t.dim() - 1;
  if (t->sizes[last] < kShort || t->strides[last] < kShort) return false;
  for (int64_t d = 0; d < last; ++d)
    if (t->strides[d] == 1) return t->sizes[d] >= kShort;
  return false;
}

Tensor laid_out_as(const Tensor& out, const Tensor& t) {
  Tensor plain = empty_strided_tensor(t.sizes(), out.strides(), t.dtype(), t.device());
  copy(plain, t);
  return plain;
}

}  // namespace

void run_formula(Formula f, DType wanted, const Tensor& out, std::span<const Tensor* const> inputs,
                 std::span<const Scalar> parameters) {
  for (size_t i = 0; i < inputs.size(); ++i)
    if (lies_across(*inputs[i], out)) [[unlikely]] {
      const Tensor plain = laid_out_as(out, *inputs[i]);
      std::array<const Tensor*, Iteration::kMaxOperands> turned;
      std::copy(inputs.begin(), inputs.end(), turned.begin());
      turned[i] = &plain;
      return run_formula(f, wanted, out, {turned.data(), inputs.size()}, parameters);
    }
  const DType compute = loop_type(f, wanted, out, inputs);
  const Loop loop = row(f).loop[static_cast<int>(compute)];
  Iteration it(out.sizes());
  it.add(out);
  for (const Tensor* t : inputs) it.add(*t);
  it.finish();
  if (it.numel() == 0) return;
  Operand operands[Iteration::kMaxOperands];
  operands[0] = Operand(it, 0, out.dtype(), result_type_of(f, compute));
  for (int i = 1; i < it.count(); ++i) operands[i] = Operand(it, i, inputs[i - 1]->dtype(), compute);
  const PackedParameters packed(parameters, compute);
  parallel_for(0, it.numel(), grain_of(f), [&](int64_t b, int64_t e) {
    run_range(it, operands, inputs.size() == 2, b, e,
              [&](char* const* data, unsigned scalars, int64_t n) { loop(data, scalars, n, packed.data()); });
  });
}

void run_where(const Tensor& out, const Tensor& condition, const Tensor& a, const Tensor& b) {
  Iteration it(out.sizes());
  for (const Tensor* t : {&out, &condition, &a, &b}) it.add(*t);
  it.finish();
  if (it.numel() == 0) return;
  const DType type = out.dtype();
  const WhereLoop loop = where_loops[std::countr_zero(element_size(type))];
  const Operand operands[]{{it, 0, type, type},
                           {it, 1, DType::Bool, DType::Bool},
                           {it, 2, a.dtype(), type},
                           {it, 3, b.dtype(), type}};
  parallel_for(0, it.numel(), kGrainSize, [&](int64_t begin, int64_t end) {
    run_range(it, operands, false, begin, end, [&](char* const* data, unsigned, int64_t n) {
      loop(data[0], reinterpret_cast<const bool*>(data[1]), data[2], 1, data[3], 1, n);
    });
  });
}

}  // namespace rushlight::cpu
