// Reading and writing at computed positions, by which index, gather, scatter, embeddings and their kin run:
// an offset of its own is added to each element's place.
#include "cuda/kernels.h"
#include "cuda/launch.h"
#include "cuda/memory.h"
#include "cuda/update.h"

namespace rushlight::cuda {
namespace {

// offsets += position * stride; negative positions count from the end.
struct AddPositions {
  Geometry g;
  char* offsets;
  const char* index;
  DType dtype;
  int64_t size, stride;
  bool wraps;
  RL_BOTH void operator()(int64_t i) const {
    int32_t at[kMaxOperands];
    g.locate(static_cast<uint32_t>(i), at);
    const auto position = load<int64_t>(dtype, index + at[1]);
    device_assert(position < size && position >= (wraps ? -size : 0), "index out of bounds");
    *reinterpret_cast<int64_t*>(offsets + at[0]) += (position < 0 ? position + size : position) * stride;
  }
};

// Elements of any dtype as they are: out = base at the offset, or base at the offset = value.
template <class Word, bool writes_base>
struct MoveWords {
  Geometry g;
  char* to;
  const char *from, *offsets;
  RL_BOTH void operator()(int64_t i) const {
    constexpr int kFrom = writes_base ? 2 : 1, kOffsets = writes_base ? 1 : 2;
    int32_t at[kMaxOperands];
    g.locate(static_cast<uint32_t>(i), at);
    const int64_t shift =
        *reinterpret_cast<const int64_t*>(offsets + at[kOffsets]) * static_cast<int64_t>(sizeof(Word));
    *reinterpret_cast<Word*>(to + at[0] + (writes_base ? shift : 0)) =
        *reinterpret_cast<const Word*>(from + at[kFrom] + (writes_base ? 0 : shift));
  }
};

template <class T>
RL_BOTH T combined(Writing op, T old, T value) {
  switch (op) {
    case Writing::Add:
      return old + value;
    case Writing::Multiply:
      return old * value;
    case Writing::Max:
      return old != old || (value == value && old >= value) ? old : value;
    case Writing::Min:
      return old != old || (value == value && old <= value) ? old : value;
    default:
      return value;
  }
}

// A is what S computes in.
template <class S, class A>
struct Put {
  Geometry g;
  char* base;
  const char* offsets;
  Source<A> values;
  Writing op;
  RL_BOTH void operator()(int64_t i) const {
    int32_t at[kMaxOperands];
    g.locate(static_cast<uint32_t>(i), at);
    const int64_t offset = *reinterpret_cast<const int64_t*>(offsets + at[1]);
    auto* address = reinterpret_cast<S*>(base + at[0] + offset * static_cast<int64_t>(sizeof(S)));
    const A value = values(at[2]);
    if (op == Writing::Assign)
      *address = number<S>(value);
    else
      update(address, [&](S old) { return number<S>(combined(op, number<A>(old), value)); });
  }
};

// Adds complex numbers with parts of type S.
template <class S>
struct AddComplex {
  Geometry g;
  char* base;
  const char *offsets, *values;
  RL_BOTH void operator()(int64_t i) const {
    int32_t at[kMaxOperands];
    g.locate(static_cast<uint32_t>(i), at);
    const int64_t offset = *reinterpret_cast<const int64_t*>(offsets + at[1]);
    auto* to = reinterpret_cast<S*>(base + at[0]) + 2 * offset;
    const auto* from = reinterpret_cast<const S*>(values + at[2]);
    for (int part = 0; part < 2; ++part) {
      const S value = from[part];
      update(to + part, [&](S old) { return old + value; });
    }
  }
};

template <bool writes_base>
void move_words(const Piece& p, const Launch& launch) {
  constexpr int kFrom = writes_base ? 2 : 1, kOffsets = writes_base ? 1 : 2;
  visit_word(element_size(p.operands[0].dtype), [&](auto tag) {
    for_each_index(launch, p.geometry.numel,
                   MoveWords<typename decltype(tag)::type, writes_base>{
                       p.geometry, p.operands[0].data, p.operands[kFrom].data, p.operands[kOffsets].data});
  });
}

template <class S>
void add_complex(const Piece& p, const Launch& launch) {
  for_each_index(launch, p.geometry.numel,
                 AddComplex<S>{p.geometry, p.operands[0].data, p.operands[1].data, p.operands[2].data});
}

template <class S, class A>
void put_as(Writing op, const Piece& p, const Launch& launch) {
  for_each_index(
      launch, p.geometry.numel,
      Put<S, A>{p.geometry, p.operands[0].data, p.operands[1].data, source_of<A>(p.operands[2]), op});
}

}  // namespace

void run_add_positions(const Piece& p, int64_t size, int64_t stride, bool wraps, int device) {
  const Operand& index = p.operands[1];
  for_each_index({device, "positions"}, p.geometry.numel,
                 AddPositions{p.geometry, p.operands[0].data, index.data, index.dtype, size, stride, wraps});
}

void run_take(const Piece& p, int device) { move_words<false>(p, {device, "take"}); }

void run_put(Writing op, const Piece& p, int device) {
  const Launch launch{device, "put"};
  const Operand &base = p.operands[0], &values = p.operands[2];
  if (op == Writing::Assign && base.dtype == values.dtype && !values.is_value)
    return move_words<true>(p, launch);
  if (base.dtype == DType::Complex128) return add_complex<double>(p, launch);
  if (base.dtype == DType::Complex64) return add_complex<float>(p, launch);
  visit_stored(p.operands[0].dtype, [&](auto tag) {
    using S = typename decltype(tag)::type;
    using A = std::conditional_t<std::is_integral_v<S>, int64_t,
                                 std::conditional_t<std::is_same_v<S, double>, double, float>>;
    put_as<S, A>(op, p, launch);
  });
}

}  // namespace rushlight::cuda
