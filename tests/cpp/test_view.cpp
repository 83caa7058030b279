// Views against a brute-force reading of the same elements.
#include <gtest/gtest.h>

#include <numeric>
#include <random>

#include "dispatch/table.h"
#include "ops/view.h"

namespace rushlight {
namespace {

Tensor counting(IntList sizes) {
  operator_table();
  Tensor t = empty_tensor(sizes, DType::Int64);
  std::iota(t.data<int64_t>(), t.data<int64_t>() + t.numel(), 0);
  return t;
}

// The elements in logical order.
std::vector<int64_t> elements(const Tensor& t) {
  std::vector<int64_t> out;
  Dims index(t.dim());
  for (int64_t i = 0; i < t.numel(); ++i) {
    int64_t at = 0;
    for (int64_t d = 0; d < t.dim(); ++d) at += index[d] * t->strides[d];
    out.push_back(t.data<int64_t>()[at]);
    for (int64_t d = t.dim() - 1; d >= 0; --d) {
      if (++index[d] < t->sizes[d]) break;
      index[d] = 0;
    }
  }
  return out;
}

TEST(View, KeepsTheOrderOfElementsWheneverItSucceeds) {
  std::mt19937 random(1);
  int succeeded = 0;
  for (int trial = 0; trial < 2000; ++trial) {
    Tensor t = counting(IntList{2, 3, 4});
    for (int step = 0; step < 2; ++step) {
      const int64_t d = static_cast<int64_t>(random() % 3);
      if (random() % 2)
        t = ops::transpose(t, d, static_cast<int64_t>(random() % 3));
      else
        t = ops::slice(t, d, std::nullopt, std::nullopt, random() % 2 ? 2 : -1);
    }
    const int64_t n = t.numel();
    Dims target;
    for (int64_t left = n; left > 1;) {
      int64_t factor = 1 + static_cast<int64_t>(random() % left);
      while (left % factor) --factor;
      target.push_back(factor);
      left /= factor;
      if (factor == 1 && target.size() > 4) target.push_back(std::exchange(left, 1));
    }
    const auto strides = view_strides(t, target);
    if (!strides) continue;
    ++succeeded;
    EXPECT_EQ(elements(make_view(t, target, *strides, t.storage_offset())), elements(t))
        << to_string(t.sizes()) << to_string(target);
  }
  EXPECT_GT(succeeded, 200);
}

TEST(View, InfersOneSizeAndRefusesTheRest) {
  EXPECT_EQ(infer_shape(IntList{2, -1}, 6), (Dims{2, 3}));
  EXPECT_EQ(infer_shape(IntList{0, 5}, 0), (Dims{0, 5}));
  EXPECT_THROW(infer_shape(IntList{-1, -1}, 6), Error);
  EXPECT_THROW(infer_shape(IntList{0, -1}, 0), Error);
  EXPECT_THROW(infer_shape(IntList{4, -1}, 6), Error);
  EXPECT_THROW(infer_shape(IntList{-2, 3}, 6), Error);
  EXPECT_THROW(infer_shape(IntList{INT64_MAX, INT64_MAX}, 6), Error);
}

TEST(View, NegativeStepsWalkBackwards) {
  const Tensor t = counting(IntList{5});
  EXPECT_EQ(elements(ops::slice(t, 0, std::nullopt, std::nullopt, -1)),
            (std::vector<int64_t>{4, 3, 2, 1, 0}));
  EXPECT_EQ(elements(ops::slice(t, 0, 3, 0, -2)), (std::vector<int64_t>{3, 1}));
  EXPECT_EQ(elements(ops::slice(t, 0, INT64_MIN + 10, INT64_MAX, 2)), (std::vector<int64_t>{0, 2, 4}));
  EXPECT_EQ(elements(ops::slice(t, 0, 1, INT64_MAX, INT64_MAX)), (std::vector<int64_t>{1}));
  EXPECT_EQ(ops::slice(t, 0, 4, 1, 1).numel(), 0);
  EXPECT_THROW(ops::slice(t, 0, 0, 5, 0), Error);
}

TEST(View, HostileArgumentsAreErrors) {
  const Tensor t = counting(IntList{2, 3});
  EXPECT_THROW(ops::as_strided(t, IntList{4, 4}, IntList{4, 1}, 0), Error);
  EXPECT_THROW(ops::as_strided(t, IntList{2}, IntList{-1}, 0), Error);
  EXPECT_THROW(ops::as_strided(t, IntList{3}, IntList{INT64_MAX}, 0), Error);
  EXPECT_THROW(ops::select(t, 0, 2), Error);
  EXPECT_THROW(ops::select(t, 2, 0), Error);
  EXPECT_THROW(ops::permute(t, IntList{0, 0}), Error);
  EXPECT_THROW(ops::expand(t, IntList{4, 3}), Error);
  EXPECT_THROW(ops::unfold(t, 1, 4, 1), Error);
  EXPECT_THROW(ops::diagonal(t, 0, 1, 1), Error);
  EXPECT_EQ(ops::diagonal(t, INT64_MAX, 0, 1).numel(), 0);
  EXPECT_EQ(ops::diagonal(t, INT64_MIN + 1, 0, 1).numel(), 0);
}

}  // namespace
}  // namespace rushlight
