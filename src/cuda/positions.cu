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

template <class Word>
struct Take {
  Geometry g;
  char* out;
  const char *base, *offsets;
  RL_BOTH void operator()(int64_t i) const {
    int32_t at[kMaxOperands];
    g.locate(static_cast<uint32_t>(i), at);
    const int64_t offset = *reinterpret_cast<const int64_t*>(offsets + at[2]);
    *reinterpret_cast<Word*>(out + at[0]) =
        *reinterpret_cast<const Word*>(base + at[1] + offset * static_cast<int64_t>(sizeof(Word)));
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

// Assigns elements of any dtype as they are.
template <class Word>
struct PutWords {
  Geometry g;
  char* base;
  const char *offsets, *values;
  RL_BOTH void operator()(int64_t i) const {
    int32_t at[kMaxOperands];
    g.locate(static_cast<uint32_t>(i), at);
    const int64_t offset = *reinterpret_cast<const int64_t*>(offsets + at[1]);
    *reinterpret_cast<Word*>(base + at[0] + offset * static_cast<int64_t>(sizeof(Word))) =
        *reinterpret_cast<const Word*>(values + at[2]);
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

struct alignas(16) SixteenBytes {
  uint64_t half[2];
};

template <class F>
void for_each_element(const Piece& p, const Launch& launch) {
  for_each_index(launch, p.geometry.numel,
                 F{p.geometry, p.operands[0].data, p.operands[1].data, p.operands[2].data});
}

template <class Word>
void take_words(const Piece& p, const Launch& launch) {
  for_each_index(launch, p.geometry.numel,
                 Take<Word>{p.geometry, p.operands[0].data, p.operands[1].data, p.operands[2].data});
}

void take_piece(const Piece& p, const Launch& launch) {
  switch (element_size(p.operands[0].dtype)) {
    case 1:
      return take_words<uint8_t>(p, launch);
    case 2:
      return take_words<uint16_t>(p, launch);
    case 4:
      return take_words<uint32_t>(p, launch);
    case 8:
      return take_words<uint64_t>(p, launch);
    default:
      return take_words<SixteenBytes>(p, launch);
  }
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

void run_take(const Piece& p, int device) { take_piece(p, {device, "take"}); }

void run_put(Writing op, const Piece& p, int device) {
  if (is_complex(p.operands[0].dtype)) {
    const Launch launch{device, "put"};
    const bool wide = p.operands[0].dtype == DType::Complex128;
    if (op == Writing::Add)
      return wide ? for_each_element<AddComplex<double>>(p, launch)
                  : for_each_element<AddComplex<float>>(p, launch);
    return wide ? for_each_element<PutWords<SixteenBytes>>(p, launch)
                : for_each_element<PutWords<uint64_t>>(p, launch);
  }
  visit_stored(p.operands[0].dtype, [&](auto tag) {
    using S = typename decltype(tag)::type;
    using A = std::conditional_t<std::is_integral_v<S>, int64_t,
                                 std::conditional_t<std::is_same_v<S, double>, double, float>>;
    put_as<S, A>(op, p, {device, "put"});
  });
}

}  // namespace rushlight::cuda
