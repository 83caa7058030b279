#include "cpu/pointwise.h"

#include <array>
#include <bit>
#include <cstring>
#include <string_view>

#include "core/parallel.h"
#include "cpu/copy.h"
#include "cpu/iterator.h"

namespace rushlight::cpu {
namespace {

constexpr int64_t kChunk = 512;
using Buffer = std::byte[kChunk * 16];

// Arithmetic and comparisons come first in the list of formulas; the others cost several times as much an
// element.
bool is_cheap(Formula f) { return f < Formula::Exp; }
int64_t grain_of(Formula f) { return is_cheap(f) ? kGrainSize : kGrainSize / 8; }
// Whether the loops of a formula compute blocks, as its types tell (formulas/arithmetic.h).
constexpr bool computes_blocks(std::string_view types) {
  return types.ends_with('V') || types.ends_with('H') || types.ends_with("Parts") ||
         types.starts_with("Guessed");
}
constexpr bool kComputesBlocks[] = {
#define RL_BLOCKS(name, inputs, parameters, types, ...) computes_blocks(#types),
    RL_FORALL_FORMULAS(RL_BLOCKS)
#undef RL_BLOCKS
};
// Rows from this length on are computed where they lie, shorter ones gathered first. Of blocks a short row
// would leave much empty.
constexpr int64_t kShortestRow = 64;
int64_t shortest_row(Formula f) {
  return kComputesBlocks[static_cast<int>(f)] ? kShortestRow : kShortestRow / 8;
}

// One operand of the work on a chunk: elements where they lie, or gathered into a buffer in the compute type.
struct Operand {
  enum class Kind { Linear, Rows, RowScalar, Scalar, Gather } kind = Kind::Gather;
  int64_t stored_size = 0, compute_size = 0;
  CastLoop cast = nullptr;

  Operand() = default;
  Operand(const Iteration& it, int index, DType stored, DType compute, int64_t shortest = kShortestRow)
      : stored_size(static_cast<int64_t>(element_size(stored))),
        compute_size(static_cast<int64_t>(element_size(compute))),
        cast(index > 0 ? cast_loop(compute, stored) : cast_loop(stored, compute)) {
    const bool direct = stored == compute;
    if (index > 0 && it.is_scalar(index))
      kind = Kind::Scalar;
    else if (direct && it.is_linear(index, stored_size))
      kind = Kind::Linear;
    else if (direct && it.row() >= shortest && it.strides(index)[0] == stored_size)
      kind = Kind::Rows;
    else if (direct && index > 0 && it.row() >= shortest && it.strides(index)[0] == 0)
      kind = Kind::RowScalar;
  }
};

// Rows below this length are walked side by side: f(address, stride, count, offset in the buffer, its
// stride).
constexpr int64_t kShortRow = 16;
template <class F>
void for_each_line(const Iteration& it, int index, int64_t begin, int64_t n, F&& f) {
  const int64_t row = it.row();
  int64_t at = 0;
  const auto row_by_row = [&](int64_t count) {
    for_each_row(it, index, begin + at, count, [&](char* from, int64_t stride, int64_t length) {
      f(from, stride, length, at, 1);
      at += length;
    });
  };
  if (row >= kShortRow || it.sizes().size() < 2 || it.sizes()[1] < kShortRow) return row_by_row(n);
  row_by_row(std::min(n, (row - begin % row) % row));
  const IntList strides = it.strides(index);
  while (n - at >= row) {
    const int64_t rows = std::min(it.sizes()[1] - (begin + at) / row % it.sizes()[1], (n - at) / row);
    char* from = it.address(index, begin + at);
    for (int64_t k = 0; k < row; ++k) f(from + k * strides[0], strides[1], rows, at + k, row);
    at += rows * row;
  }
  row_by_row(n - at);
}

void gather(const Iteration& it, int index, const Operand& operand, int64_t begin, int64_t n, char* buffer) {
  const int64_t size = operand.compute_size;
  for_each_line(it, index, begin, n,
                [&](char* from, int64_t stride, int64_t count, int64_t at, int64_t step) {
                  operand.cast(buffer + at * size, step * size, from, stride, count);
                });
}

void scatter(const Iteration& it, const Operand& operand, int64_t begin, int64_t n, const char* buffer) {
  const int64_t size = operand.compute_size;
  for_each_line(it, 0, begin, n, [&](char* to, int64_t stride, int64_t count, int64_t at, int64_t step) {
    operand.cast(to, stride, buffer + at * size, step * size, count);
  });
}

// How each operand takes part in a call, once it is known what the others do.
struct Roles {
  Operand::Kind kind[Iteration::kMaxOperands];
  unsigned scalars = 0;  // those that the loop takes as one value
  bool rows = false, gathers = false;

  Roles(const Iteration& it, const Operand* operands, bool takes_scalars) {
    using enum Operand::Kind;
    for (int i = 0; i < it.count(); ++i) {
      kind[i] = operands[i].kind;
      if (kind[i] == RowScalar && takes_scalars && scalars == 0)
        scalars |= 1u << (i - 1);
      else if (kind[i] == RowScalar)
        kind[i] = Gather;
      rows |= kind[i] == Rows || kind[i] == RowScalar;
      gathers |= kind[i] == Gather;
    }
    if (!rows || !gathers || it.row() >= kShortestRow) return;
    for (int i = 0; i < it.count(); ++i)  // one that is gathered makes chunks, which short rows would cut
      if (kind[i] == Rows || kind[i] == RowScalar) kind[i] = Gather;
    rows = false, scalars = 0;
  }
};

// Elements [begin, end) row by row: `data` holds the addresses of the first ones, or of scalars.
template <class Apply>
void run_rows(const Iteration& it, const Roles& roles, int64_t begin, int64_t end, char** data,
              Apply&& apply) {
  const IntList sizes = it.sizes();
  const int64_t row = sizes[0];
  const int count = it.count();
  Dims at(sizes.size());
  int64_t rest = begin;
  for (size_t d = 0; d < sizes.size(); ++d) {
    at[d] = rest % sizes[d];
    rest /= sizes[d];
  }
  const auto move = [&](size_t d, int64_t n) {
    for (int i = 0; i < count; ++i)
      if (roles.kind[i] != Operand::Kind::Scalar) data[i] += n * it.strides(i)[d];
  };
  const auto carry = [&](size_t d) {
    for (; d < sizes.size() && at[d] == sizes[d]; ++d) {
      move(d, -sizes[d]);
      at[d] = 0;
      if (d + 1 == sizes.size()) return;
      move(d + 1, 1);
      ++at[d + 1];
    }
  };
  int64_t left = end - begin;
  const auto part = [&](int64_t n) {
    apply(data, roles.scalars, n);
    move(0, n);
    at[0] += n, left -= n;
    carry(0);
  };
  if (at[0] != 0) part(std::min(left, row - at[0]));
  int64_t steps[Iteration::kMaxOperands] = {};
  for (int i = 0; i < count && sizes.size() > 1; ++i)
    if (roles.kind[i] != Operand::Kind::Scalar) steps[i] = it.strides(i)[1];
  while (left >= row && sizes.size() > 1) {
    const int64_t rows = std::min(sizes[1] - at[1], left / row);
    for (int64_t k = 0; k < rows; ++k) {
      apply(data, roles.scalars, row);
      for (int i = 0; i < count; ++i) data[i] += steps[i];
    }
    at[1] += rows, left -= rows * row;
    carry(1);
  }
  if (left > 0) part(left);
}

// Elements [begin, end) of the iteration, chunk by chunk. `apply(data, scalars, n)` computes one.
template <class Apply>
void run_range(const Iteration& it, const Operand* operands, bool takes_scalars, int64_t begin, int64_t end,
               Apply&& apply) {
  using enum Operand::Kind;
  alignas(64) Buffer buffers[Iteration::kMaxOperands];
  char* data[Iteration::kMaxOperands];
  Roles roles(it, operands, takes_scalars);
  bool chunked = roles.gathers;
  for (int i = 0; i < it.count(); ++i) {
    const Operand& operand = operands[i];
    data[i] = roles.kind[i] == Gather || roles.kind[i] == Scalar ? reinterpret_cast<char*>(buffers[i])
                                                                 : it.address(i, begin);
    if (roles.kind[i] != Scalar) continue;
    // One value: converted once, and spread over the buffer where the loop wants a value for each element.
    const bool spread = !takes_scalars || roles.scalars != 0;
    operand.cast(data[i], operand.compute_size, it.data(i), 0, spread ? std::min(kChunk, end - begin) : 1);
    if (spread)
      chunked = true;
    else
      roles.scalars |= 1u << (i - 1);
  }
  if (roles.rows && !roles.gathers && (!chunked || it.row() <= kChunk))
    return run_rows(it, roles, begin, end, data, apply);
  // Buffers of 2 KB: larger ones leave the first cache no room for what they are gathered from.
  int64_t widest = 4;
  for (int i = 0; i < it.count(); ++i) widest = std::max(widest, operands[i].compute_size);
  const int64_t limit = chunked ? std::min(kChunk, 4 * kChunk / widest) : end - begin;
  for (int64_t at = begin; at < end;) {
    int64_t n = std::min(limit, end - at);
    if (roles.rows) n = std::min(n, it.row() - at % it.row());
    for (int i = 0; i < it.count(); ++i) {
      if (roles.kind[i] == Linear)
        data[i] = it.data(i) + at * operands[i].stored_size;
      else if (roles.kind[i] == Rows || roles.kind[i] == RowScalar)
        data[i] = it.address(i, at);
      else if (roles.kind[i] == Gather && i > 0)
        gather(it, i, operands[i], at, n, data[i]);
    }
    apply(data, roles.scalars, n);
    if (roles.kind[0] == Gather) scatter(it, operands[0], at, n, data[0]);
    at += n;
  }
}

}  // namespace

bool contains_zero(const Tensor& t) {
  if (t.itemsize() == 1 && is_integral_or_bool(t.dtype()) && t.is_contiguous())
    return t.numel() > 0 && std::memchr(t.data_ptr(), 0, static_cast<size_t>(t.numel())) != nullptr;
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

// Whether a number loses nothing in halves: most that programs write have few digits.
bool is_number_of(const Tensor& t, DType half) {
  if (t.dim() != 0 || !is_floating(t.dtype()) || !t.is_cpu()) return false;
  const auto value = read_scalar(t).to_double();
  const auto wide = static_cast<float>(value);
  return (half == DType::Float16 ? float(Half(wide)) : float(BFloat16(wide))) == value;
}

// Halves that have a loop of their own need no conversions around the one for float.
DType loop_type(Formula f, DType compute, const Tensor& out, std::span<const Tensor* const> inputs) {
  const DType stored = inputs[0]->dtype();
  bool own = is_reduced_float(stored) && compute == DType::Float32 && row(f).loop[static_cast<int>(stored)];
  own &= out.dtype() == result_type_of(f, stored);
  for (const Tensor* t : inputs) own &= t->dtype() == stored || is_number_of(*t, stored);
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

// Where the elements of an operand repeat, each is computed once, and the results are copied.
bool run_repeated(Formula f, DType wanted, const Tensor& out, const Tensor& in,
                  std::span<const Scalar> parameters) {
  constexpr int64_t kSmall = 1 << 10, kTimes = 4;
  if (out.numel() < kSmall || in.sizes() != out.sizes()) return false;
  Dims sizes = in->sizes;
  int64_t distinct = 1;
  for (size_t d = 0; d < sizes.size(); ++d) {
    if (in->strides[d] == 0) sizes[d] = 1;
    distinct *= sizes[d];
  }
  if (distinct * kTimes > out.numel()) return false;
  const Tensor once = make_view(in, sizes, in.strides(), in.storage_offset(), false);
  const Tensor results = empty_strided_tensor(sizes, contiguous_strides(sizes), out.dtype(), out.device());
  const Tensor* const operand = &once;
  run_formula(f, wanted, results, {&operand, 1}, parameters);
  copy(out, results);
  return true;
}

}  // namespace

void run_formula(Formula f, DType wanted, const Tensor& out, std::span<const Tensor* const> inputs,
                 std::span<const Scalar> parameters) {
  if (inputs.size() == 1 && run_repeated(f, wanted, out, *inputs[0], parameters)) return;
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
  const int64_t shortest = shortest_row(f);
  operands[0] = Operand(it, 0, out.dtype(), result_type_of(f, compute), shortest);
  for (int i = 1; i < it.count(); ++i)
    operands[i] = Operand(it, i, inputs[i - 1]->dtype(), compute, shortest);
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
