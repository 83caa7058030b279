// Copies between layouts and dtypes, and selection by a condition.
#include "cuda/elements.h"
#include "cuda/float8.h"
#include "cuda/kernels.h"
#include "cuda/transpose.h"

namespace rushlight::cuda {
namespace {

// Elements of one size, moved as they are.
template <class Word>
struct Move {
  using Value = Word;
  char* out;
  const char* in;
  RL_BOTH Word read(const int32_t* at) const { return *reinterpret_cast<const Word*>(in + at[1]); }
  RL_BOTH void write(const int32_t* at, Word value) const { *reinterpret_cast<Word*>(out + at[0]) = value; }
};
template <class Word>
struct MoveNeighbours {
  NeighbourPlan plan;
  char* out;
  const char* in;
  RL_BOTH void operator()(int64_t i) const {
    int32_t at[2];
    plan.g.locate_few(static_cast<uint32_t>(i), at);
    *reinterpret_cast<Neighbours<Word>*>(out + at[0]) =
        read_neighbours<Word>(in + at[1], plan.step[1], plan.together[1]);
  }
};

// One element for all.
template <class Word>
struct Fill {
  using Value = Word;
  char* out;
  Word value;
  RL_BOTH Word read(const int32_t*) const { return value; }
  RL_BOTH void write(const int32_t* at, Word word) const { *reinterpret_cast<Word*>(out + at[0]) = word; }
};

// By way of T, which holds what both dtypes can.
template <class T>
struct Convert {
  using Value = T;
  char* out;
  DType out_dtype;
  Source<T> in;
  RL_BOTH T read(const int32_t* at) const { return in(at[1]); }
  RL_BOTH void write(const int32_t* at, T value) const { store(out_dtype, out + at[0], value); }
};
template <class T>
struct ConvertNeighbours {
  NeighbourPlan plan;
  char* out;
  DType out_dtype;
  Source<T> in;
  RL_BOTH void operator()(int64_t i) const {
    int32_t at[2];
    plan.g.locate_few(static_cast<uint32_t>(i), at);
    T values[kAtOnce];
    read_neighbours(in, at[1], plan.step[1], plan.together[1], values);
    write_neighbours(out_dtype, out + at[0], values);
  }
};

// By way of float where one side, or both, has eight bits.
struct ConvertFloat8 {
  using Value = float;
  char* out;
  const char* in;
  DType out_dtype, in_dtype;
  bool out_small, in_small;
  Float8Kind out_kind, in_kind;
  RL_BOTH float read(const int32_t* at) const {
    const char* from = in + at[1];
    return in_small ? widened(in_kind, *reinterpret_cast<const uint8_t*>(from)) : load<float>(in_dtype, from);
  }
  RL_BOTH void write(const int32_t* at, float value) const {
    if (out_small)
      *reinterpret_cast<uint8_t*>(out + at[0]) = narrowed(out_kind, value);
    else
      store(out_dtype, out + at[0], value);
  }
};

// The same where one side is complex: T by T, the imaginary parts dropped or zero.
template <class Out, class In>
struct ConvertComplex {
  Geometry g;
  char* out;
  DType out_dtype, in_dtype;  // of the parts
  const char* in;
  bool out_complex, in_complex;
  RL_BOTH void operator()(int64_t i) const {
    int32_t at[kMaxOperands];
    g.locate(static_cast<uint32_t>(i), at);
    const char* from = in + at[1];
    store(out_dtype, out + at[0], load<double>(in_dtype, from));
    if (!out_complex) return;
    const double imaginary = in_complex ? load<double>(in_dtype, from + sizeof(In)) : 0.0;
    store(out_dtype, out + at[0] + sizeof(Out), imaginary);
  }
};

template <class T>
struct Where {
  using Value = T;
  char* out;
  DType out_dtype;
  Source<bool> condition;
  Source<T> a, b;
  RL_BOTH T read(const int32_t* at) const { return condition(at[1]) ? a(at[2]) : b(at[3]); }
  RL_BOTH void write(const int32_t* at, T value) const { store(out_dtype, out + at[0], value); }
};

// Of elements that are moved as they are.
template <class Word>
struct WhereWords {
  using Value = Word;
  char* out;
  Source<bool> condition;
  const char *a, *b;
  Word a_value, b_value;  // where there is no memory
  RL_BOTH Word read(const int32_t* at) const {
    const bool first = condition(at[1]);
    const char* from = first ? a : b;
    const int32_t a_at = at[2], b_at = at[3];  // an index that depends on the condition would spill them
    return from ? *reinterpret_cast<const Word*>(from + (first ? a_at : b_at)) : first ? a_value : b_value;
  }
  RL_BOTH void write(const int32_t* at, Word value) const { *reinterpret_cast<Word*>(out + at[0]) = value; }
};
template <class Word>
struct WhereNeighbours {
  NeighbourPlan plan;
  WhereWords<Word> where;
  RL_BOTH Neighbours<Word> operand(const char* data, int which, const int32_t* at, Word value) const {
    if (data) return read_neighbours<Word>(data + at[which], plan.step[which], plan.together[which]);
    Neighbours<Word> all;
    for (Word& word : all.item) word = value;
    return all;
  }
  RL_BOTH void operator()(int64_t i) const {
    int32_t at[4];
    plan.g.locate_few(static_cast<uint32_t>(i), at);
    bool first[kAtOnce];
    read_neighbours(where.condition, at[1], plan.step[1], plan.together[1], first);
    const Neighbours<Word> a = operand(where.a, 2, at, where.a_value);
    Neighbours<Word> result = operand(where.b, 3, at, where.b_value);
    for (int k = 0; k < kAtOnce; ++k)
      if (first[k]) result.item[k] = a.item[k];
    *reinterpret_cast<Neighbours<Word>*>(where.out + at[0]) = result;
  }
};

// The value of an operand that has one, in `dtype`.
template <class Word>
Word word_of(const Operand& operand, DType dtype) {
  alignas(16) unsigned char bytes[16] = {};
  if (operand.dtype == dtype)
    std::memcpy(bytes, operand.value, sizeof bytes);
  else if (is_integral_or_bool(dtype) && is_integral_or_bool(operand.dtype))
    store(dtype, bytes, source_of<int64_t>(operand).value);
  else
    store(dtype, bytes, source_of<double>(operand).value);
  Word word;
  std::memcpy(&word, bytes, sizeof word);
  return word;
}

// Words as wide as memory allows, of the value's repeated bytes.
void fill(const Piece& piece, const Launch& launch) {
  const Operand& out = piece.operands[0];
  Geometry g = piece.geometry;
  const size_t item = element_size(out.dtype), word = widen(&g, piece.operands, {0});
  const auto value = word_of<SixteenBytes>(piece.operands[1], out.dtype);
  unsigned char bytes[16];
  for (size_t i = 0; i < sizeof bytes; ++i)
    bytes[i] = reinterpret_cast<const unsigned char*>(&value)[i % item];
  visit_word(word, [&](auto tag) {
    Fill<typename decltype(tag)::type> kernel{out.data, {}};
    std::memcpy(&kernel.value, bytes, sizeof kernel.value);
    for_each_element<1>(launch, g, kernel);
  });
}

void move_words(const Piece& piece, const Launch& launch) {
  const Operand &out = piece.operands[0], &in = piece.operands[1];
  if (in.is_value) return fill(piece, launch);
  Geometry g = piece.geometry;
  const size_t item = element_size(out.dtype), word = widen(&g, piece.operands, {0, 1});
  NeighbourPlan plan;
  const bool neighbours = word == item && item < 16 && plan_neighbours(piece, &plan);
  visit_word(word, [&](auto tag) {
    using Word = typename decltype(tag)::type;
    if constexpr (sizeof(Word) < 16)
      if (neighbours)
        return for_each_index(launch, plan.g.numel, MoveNeighbours<Word>{plan, out.data, in.data});
    if (word == item && run_transpose<Word>(piece, launch)) return;
    for_each_element<2>(launch, g, Move<Word>{out.data, in.data});
  });
}

template <class T>
void convert(const Piece& piece, const Launch& launch) {
  const Operand& out = piece.operands[0];
  const Source<T> in = source_of<T>(piece.operands[1]);
  if (NeighbourPlan plan; plan_neighbours(piece, &plan))
    return for_each_index(launch, plan.g.numel, ConvertNeighbours<T>{plan, out.data, out.dtype, in});
  for_each_element<2>(launch, piece.geometry, Convert<T>{out.data, out.dtype, in});
}

void convert_float8(const Piece& piece, const Launch& launch) {
  const Operand &out = piece.operands[0], &in = piece.operands[1];
  for_each_element<2>(launch, piece.geometry,
                      ConvertFloat8{out.data, in.data, out.dtype, in.dtype, is_float8(out.dtype),
                                    is_float8(in.dtype), float8_kind(out.dtype), float8_kind(in.dtype)});
}

template <class Out, class In>
void convert_complex(const Piece& piece, const Launch& launch) {
  const Operand &out = piece.operands[0], &in = piece.operands[1];
  auto part = [](DType t) { return is_complex(t) ? real_dtype(t) : t; };
  for_each_index(launch, piece.geometry.numel,
                 ConvertComplex<Out, In>{piece.geometry, out.data, part(out.dtype), part(in.dtype), in.data,
                                         is_complex(out.dtype), is_complex(in.dtype)});
}

void convert_complex(const Piece& piece, const Launch& launch) {
  const DType to = piece.operands[0].dtype, from = piece.operands[1].dtype;
  const bool wide_out = to == DType::Complex128, wide_in = from == DType::Complex128;
  if (wide_out)
    wide_in ? convert_complex<double, double>(piece, launch) : convert_complex<double, float>(piece, launch);
  else
    wide_in ? convert_complex<float, double>(piece, launch) : convert_complex<float, float>(piece, launch);
}

template <class T>
void select(const Piece& piece, const Launch& launch) {
  const Operand* o = piece.operands;
  for_each_element<4>(
      launch, piece.geometry,
      Where<T>{o[0].data, o[0].dtype, source_of<bool>(o[1]), source_of<T>(o[2]), source_of<T>(o[3])});
}

void select_words(const Piece& piece, const Launch& launch) {
  const Operand* o = piece.operands;
  NeighbourPlan plan;
  const bool neighbours = plan_neighbours(piece, &plan);
  visit_word(element_size(o[0].dtype), [&](auto tag) {
    using Word = typename decltype(tag)::type;
    WhereWords<Word> where{o[0].data, source_of<bool>(o[1]), o[2].data, o[3].data, {}, {}};
    if (o[2].is_value) where.a_value = word_of<Word>(o[2], o[0].dtype);
    if (o[3].is_value) where.b_value = word_of<Word>(o[3], o[0].dtype);
    if constexpr (sizeof(Word) < 16)
      if (neighbours) return for_each_index(launch, plan.g.numel, WhereNeighbours<Word>{plan, where});
    for_each_element<4>(launch, piece.geometry, where);
  });
}

// What float holds exactly, of the numbers that it takes and gives.
bool is_narrow(DType t) {
  switch (t) {
    case DType::Bool:
    case DType::UInt8:
    case DType::Int8:
    case DType::Int16:
    case DType::UInt16:
    case DType::Float16:
    case DType::BFloat16:
    case DType::Float32:
      return true;
    default:
      return false;
  }
}

}  // namespace

void run_copy(const Piece& piece, int device) {
  const Launch launch{device, "copy"};
  const Operand &out = piece.operands[0], &in = piece.operands[1];
  if (out.dtype == in.dtype || (in.is_value && loads(in.dtype) && loads(out.dtype)))
    return move_words(piece, launch);
  RL_CHECK_AS(NotImplemented, !in.is_value, "a number of ", dtype_name(in.dtype), " as one of ",
              dtype_name(out.dtype), " on CUDA");
  if (is_complex(out.dtype) || is_complex(in.dtype)) return convert_complex(piece, launch);
  if (is_float8(out.dtype) || is_float8(in.dtype)) return convert_float8(piece, launch);
  if (is_integral_or_bool(in.dtype) && is_integral_or_bool(out.dtype)) return convert<int64_t>(piece, launch);
  if (is_narrow(in.dtype) && is_narrow(out.dtype)) return convert<float>(piece, launch);
  convert<double>(piece, launch);
}

void run_where(const Piece& piece, int device) {
  const Launch launch{device, "where"};
  const Operand* o = piece.operands;
  auto moves = [&](const Operand& x) { return x.is_value || x.dtype == o[0].dtype; };
  if (is_complex(o[0].dtype) || (moves(o[2]) && moves(o[3]))) return select_words(piece, launch);
  is_integral_or_bool(o[0].dtype) ? select<int64_t>(piece, launch) : select<double>(piece, launch);
}

}  // namespace rushlight::cuda
