// Columns as in arithmetic.h.
#pragma once

#define RL_COMPARISON_FORMULAS(_)                              \
  _(Eq, 2, 0, Comparable, Bool, x == y)                        \
  _(Ne, 2, 0, Comparable, Bool, x != y)                        \
  _(Lt, 2, 0, Ordered, Bool, x < y)                            \
  _(Le, 2, 0, Ordered, Bool, x <= y)                           \
  _(LogicalAnd, 2, 0, Boolean, Bool, x& y)                     \
  _(LogicalOr, 2, 0, Boolean, Bool, x | y)                     \
  _(LogicalXor, 2, 0, Boolean, Bool, x ^ y)                    \
  _(LogicalNot, 1, 0, Comparable, Bool, x == T(0))             \
  _(IsNan, 1, 0, Fields, Bool, is_nan(x))                      \
  _(IsInf, 1, 0, Fields, Bool, is_inf(x))                      \
  _(IsFinite, 1, 0, Fields, Bool, is_finite(x))                \
  _(IsPosInf, 1, 0, Floating, Bool, x == kInf<T>)              \
  _(IsNegInf, 1, 0, Floating, Bool, x == -kInf<T>)             \
  _(SignBit, 1, 0, Floating, Bool, std::copysign(T(1), x) < 0) \
  _(IsNegative, 1, 0, Wide, Bool, x < 0)                       \
  _(BitwiseAnd, 2, 0, Integers, Same, T(x& y))                 \
  _(BitwiseOr, 2, 0, Integers, Same, T(x | y))                 \
  _(BitwiseXor, 2, 0, Integers, Same, T(x ^ y))                \
  _(BitwiseNot, 1, 0, Shiftable, Same, T(~x))                  \
  _(ShiftLeft, 2, 0, Shiftable, Same, shift_left(x, y))        \
  _(ShiftRight, 2, 0, Shiftable, Same, shift_right(x, y))
