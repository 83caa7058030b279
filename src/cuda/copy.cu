// Copies between layouts and dtypes, and selection by a condition.
#include "cuda/kernels.h"
#include "cuda/launch.h"
#include "cuda/memory.h"

namespace rushlight::cuda {
namespace {

// Elements of one size, moved as they are.
template <class Word>
struct Move {
  Geometry g;
  char* out;
  const char* in;
  RL_BOTH void operator()(int64_t i) const {
    int32_t at[kMaxOperands];
    g.locate(static_cast<uint32_t>(i), at);
    *reinterpret_cast<Word*>(out + at[0]) = *reinterpret_cast<const Word*>(in + at[1]);
  }
};

// One element for all.
template <class Word>
struct Fill {
  Geometry g;
  char* out;
  Word value;
  RL_BOTH void operator()(int64_t i) const {
    int32_t at[kMaxOperands];
    g.locate(static_cast<uint32_t>(i), at);
    *reinterpret_cast<Word*>(out + at[0]) = value;
  }
};

// By way of T, which holds what both dtypes can.
template <class T>
struct Convert {
  Geometry g;
  char* out;
  DType out_dtype;
  Source<T> in;
  RL_BOTH void operator()(int64_t i) const {
    int32_t at[kMaxOperands];
    g.locate(static_cast<uint32_t>(i), at);
    store(out_dtype, out + at[0], in(at[1]));
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
  Geometry g;
  char* out;
  DType out_dtype;
  Source<bool> condition;
  Source<T> a, b;
  RL_BOTH void operator()(int64_t i) const {
    int32_t at[kMaxOperands];
    g.locate(static_cast<uint32_t>(i), at);
    store(out_dtype, out + at[0], condition(at[1]) ? a(at[2]) : b(at[3]));
  }
};

// Of elements that are moved as they are.
template <class Word>
struct WhereWords {
  Geometry g;
  char* out;
  Source<bool> condition;
  const char *a, *b;
  Word a_value, b_value;  // where there is no memory
  RL_BOTH void operator()(int64_t i) const {
    int32_t at[kMaxOperands];
    g.locate(static_cast<uint32_t>(i), at);
    const bool first = condition(at[1]);
    const char* from = first ? a : b;
    *reinterpret_cast<Word*>(out + at[0]) = from    ? *reinterpret_cast<const Word*>(from + at[first ? 2 : 3])
                                            : first ? a_value
                                                    : b_value;
  }
};

template <class Word>
void move(const Piece& piece, const Launch& launch) {
  if (piece.operands[1].is_value) {
    Word value;
    std::memcpy(&value, piece.operands[1].value, sizeof value);
    return for_each_index(launch, piece.geometry.numel,
                          Fill<Word>{piece.geometry, piece.operands[0].data, value});
  }
  for_each_index(launch, piece.geometry.numel,
                 Move<Word>{piece.geometry, piece.operands[0].data, piece.operands[1].data});
}

template <class T>
void convert(const Piece& piece, const Launch& launch) {
  const Operand& out = piece.operands[0];
  for_each_index(launch, piece.geometry.numel,
                 Convert<T>{piece.geometry, out.data, out.dtype, source_of<T>(piece.operands[1])});
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
  RL_CHECK_AS(NotImplemented,
              to != DType::Complex32 && from != DType::Complex32 && !piece.operands[1].is_value,
              "copies between ", dtype_name(from), " and ", dtype_name(to), " on CUDA");
  const bool wide_out = to == DType::Complex128, wide_in = from == DType::Complex128;
  if (wide_out)
    wide_in ? convert_complex<double, double>(piece, launch) : convert_complex<double, float>(piece, launch);
  else
    wide_in ? convert_complex<float, double>(piece, launch) : convert_complex<float, float>(piece, launch);
}

template <class T>
void select(const Piece& piece, const Launch& launch) {
  const Operand* o = piece.operands;
  for_each_index(launch, piece.geometry.numel,
                 Where<T>{piece.geometry, o[0].data, o[0].dtype, source_of<bool>(o[1]), source_of<T>(o[2]),
                          source_of<T>(o[3])});
}

void select_words(const Piece& piece, const Launch& launch) {
  const Operand* o = piece.operands;
  visit_word(element_size(o[0].dtype), [&](auto tag) {
    using Word = typename decltype(tag)::type;
    WhereWords<Word> where{piece.geometry, o[0].data, source_of<bool>(o[1]), o[2].data, o[3].data, {}, {}};
    std::memcpy(&where.a_value, o[2].value, sizeof(Word));
    std::memcpy(&where.b_value, o[3].value, sizeof(Word));
    for_each_index(launch, piece.geometry.numel, where);
  });
}

void move_words(const Piece& piece, const Launch& launch) {
  visit_word(element_size(piece.operands[0].dtype),
             [&](auto tag) { move<typename decltype(tag)::type>(piece, launch); });
}

}  // namespace

void run_copy(const Piece& piece, int device) {
  const Launch launch{device, "copy"};
  const Operand &out = piece.operands[0], &in = piece.operands[1];
  if (out.dtype == in.dtype) return move_words(piece, launch);
  if (is_complex(out.dtype) || is_complex(in.dtype)) return convert_complex(piece, launch);
  if (is_integral_or_bool(in.dtype) && is_integral_or_bool(out.dtype)) return convert<int64_t>(piece, launch);
  convert<double>(piece, launch);
}

void run_where(const Piece& piece, int device) {
  const Launch launch{device, "where"};
  if (is_complex(piece.operands[0].dtype)) return select_words(piece, launch);
  is_integral_or_bool(piece.operands[0].dtype) ? select<int64_t>(piece, launch)
                                               : select<double>(piece, launch);
}

}  // namespace rushlight::cuda
