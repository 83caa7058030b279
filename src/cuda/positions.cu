// Reading and writing at computed positions, by which index, gather, scatter, embeddings and their kin run:
// an offset of its own is added to each element's place.
#include "cuda/elements.h"
#include "cuda/kernels.h"
#include "cuda/shared_add.h"

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
    int32_t at[2];
    g.locate_few(static_cast<uint32_t>(i), at);
    const auto position = load<int64_t>(dtype, index + at[1]);
    device_assert(position < size && position >= (wraps ? -size : 0), "index out of bounds");
    *reinterpret_cast<int64_t*>(offsets + at[0]) += (position < 0 ? position + size : position) * stride;
  }
};

// How far from its place an element lies, in bytes.
struct Offset {
  const char* index;
  int64_t size, step;  // size: negative where the index holds offsets
  bool wraps;
  RL_BOTH int64_t operator()(int32_t at) const {
    const int64_t position = *reinterpret_cast<const int64_t*>(index + at);
    if (size < 0) return position * step;
    device_assert(position < size && position >= (wraps ? -size : 0), "index out of bounds");
    return (position < 0 ? position + size : position) * step;
  }
};
Offset offset_of(const Operand& index, const Indexing& by, DType dtype) {
  const auto item = static_cast<int64_t>(element_size(dtype));
  return {index.data, by.size, by.size < 0 ? item : by.stride * item, by.wraps};
}

// Elements of any dtype as they are: out = base at the offset.
template <class Word>
struct Take {
  using Value = Word;
  char* out;
  const char* base;
  Offset offset;
  RL_BOTH Word read(const int32_t* at) const {
    return *reinterpret_cast<const Word*>(base + at[1] + offset(at[2]));
  }
  RL_BOTH void write(const int32_t* at, Word word) const { *reinterpret_cast<Word*>(out + at[0]) = word; }
};
// And back: base at the offset = value.
template <class V>
struct Shifted {
  V value;
  int64_t shift;
};
template <class Word>
struct PutWords {
  using Value = Shifted<Word>;
  char* base;
  const char* values;
  Offset offset;
  RL_BOTH Value read(const int32_t* at) const {
    return {*reinterpret_cast<const Word*>(values + at[2]), offset(at[1])};
  }
  RL_BOTH void write(const int32_t* at, const Value& v) const {
    *reinterpret_cast<Word*>(base + at[0] + v.shift) = v.value;
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
  using Value = Shifted<A>;
  char* base;
  Source<A> values;
  Offset offset;
  Writing op;
  RL_BOTH Value read(const int32_t* at) const { return {values(at[2]), offset(at[1])}; }
  RL_BOTH void write(const int32_t* at, const Value& v) const {
    auto* address = reinterpret_cast<S*>(base + at[0] + v.shift);
    const A value = v.value;
    if (op == Writing::Assign)
      *address = number<S>(value);
    else if (op == Writing::Add)
      add_shared(address, value);
    else
      update(address, [&](S old) { return number<S>(combined(op, number<A>(old), value)); });
  }
};

// Four neighbours of one row, which the index moves as a whole.
template <class S>
struct AddNeighbours {
  Geometry g;
  char* base;
  const char* values;
  Offset offset;
  RL_BOTH void operator()(int64_t i) const {
    int32_t at[3];
    g.locate_few(static_cast<uint32_t>(i), at);
    add_neighbours(reinterpret_cast<S*>(base + at[0] + offset(at[1])),
                   *reinterpret_cast<const Neighbours<S>*>(values + at[2]));
  }
};

// Adds complex numbers with parts of type S.
template <class S>
struct AddComplex {
  struct Parts {
    S part[2];
  };
  using Value = Shifted<Parts>;
  char* base;
  const char* values;
  Offset offset;
  RL_BOTH Value read(const int32_t* at) const {
    return {*reinterpret_cast<const Parts*>(values + at[2]), offset(at[1])};
  }
  RL_BOTH void write(const int32_t* at, const Value& v) const {
    auto* to = reinterpret_cast<S*>(base + at[0] + v.shift);
    add_to(to, v.value.part[0]), add_to(to + 1, v.value.part[1]);
  }
};

// The geometry of operands moved as words that an index does not part: wider ones where its rows allow.
size_t widen_rows(Geometry* g, const Piece& p, int index, std::initializer_list<int> moved,
                  const Offset& by) {
  if (g->rank == 0 || g->strides[0][index] != 0) return element_size(p.operands[0].dtype);
  Geometry wider = *g;
  const size_t word = widen(&wider, p.operands, moved);
  if (by.step % static_cast<int64_t>(word)) return element_size(p.operands[0].dtype);
  *g = wider;
  return word;
}

void put_words(const Piece& p, const Offset& by, const Launch& launch) {
  Geometry g = p.geometry;
  visit_word(widen_rows(&g, p, 1, {0, 2}, by), [&](auto tag) {
    using Word = typename decltype(tag)::type;
    for_each_element<3>(launch, g, PutWords<Word>{p.operands[0].data, p.operands[2].data, by});
  });
}

template <class S>
void add_complex(const Piece& p, const Offset& by, const Launch& launch) {
  for_each_element<3>(launch, p.geometry, AddComplex<S>{p.operands[0].data, p.operands[2].data, by});
}

// Rows of S that lie in steps of four elements.
template <class S>
bool add_rows(const Piece& p, const Offset& by, const Launch& launch) {
  NeighbourPlan plan;
  if (!plan_neighbours(p, &plan) || plan.step[1] != 0 || !plan.together[2]) return false;
  if (by.step % static_cast<int64_t>(sizeof(Neighbours<S>))) return false;
  for_each_index(launch, plan.g.numel, AddNeighbours<S>{plan.g, p.operands[0].data, p.operands[2].data, by});
  return true;
}

template <class S, class A>
void put_as(Writing op, const Piece& p, const Offset& by, const Launch& launch) {
  const Operand &base = p.operands[0], &values = p.operands[2];
  if constexpr (is_stored_half<S> || std::is_same_v<S, float>)
    if (op == Writing::Add && values.dtype == base.dtype && !values.is_value && add_rows<S>(p, by, launch))
      return;
  for_each_element<3>(launch, p.geometry, Put<S, A>{base.data, source_of<A>(values), by, op});
}

}  // namespace

void run_add_positions(const Piece& p, int64_t size, int64_t stride, bool wraps, int device) {
  const Operand& index = p.operands[1];
  for_each_index({device, "positions"}, p.geometry.numel,
                 AddPositions{p.geometry, p.operands[0].data, index.data, index.dtype, size, stride, wraps});
}

void run_take(const Piece& p, const Indexing& by, int device) {
  const Offset offset = offset_of(p.operands[2], by, p.operands[0].dtype);
  Geometry g = p.geometry;
  visit_word(widen_rows(&g, p, 2, {0, 1}, offset), [&](auto tag) {
    using Word = typename decltype(tag)::type;
    for_each_element<3>({device, "take"}, g, Take<Word>{p.operands[0].data, p.operands[1].data, offset});
  });
}

void run_put(Writing op, const Piece& p, const Indexing& by, int device) {
  const Launch launch{device, "put"};
  const Operand &base = p.operands[0], &values = p.operands[2];
  const Offset offset = offset_of(p.operands[1], by, base.dtype);
  if (op == Writing::Assign && base.dtype == values.dtype && !values.is_value)
    return put_words(p, offset, launch);
  if (base.dtype == DType::Complex128) return add_complex<double>(p, offset, launch);
  if (base.dtype == DType::Complex64) return add_complex<float>(p, offset, launch);
  visit_stored(p.operands[0].dtype, [&](auto tag) {
    using S = typename decltype(tag)::type;
    using A = std::conditional_t<std::is_integral_v<S>, int64_t,
                                 std::conditional_t<std::is_same_v<S, double>, double, float>>;
    put_as<S, A>(op, p, offset, launch);
  });
}

}  // namespace rushlight::cuda
