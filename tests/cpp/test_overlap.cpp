// Whether two views of one storage share a byte, against looking at every pair of elements.
#include <gtest/gtest.h>

#include <random>
#include <set>

#include "core/tensor.h"

namespace rushlight {
namespace {

constexpr int64_t kElements = 60;

std::set<int64_t> bytes_of(const Tensor& t) {
  std::set<int64_t> bytes;
  const auto item = static_cast<int64_t>(t.itemsize());
  for (int64_t i = 0; i < t.numel(); ++i) {
    int64_t at = t.storage_offset(), rest = i;
    for (int64_t d = t.dim(); d-- > 0; rest /= t->sizes[d]) at += rest % t->sizes[d] * t->strides[d];
    for (int64_t b = 0; b < item; ++b) bytes.insert(at * item + b);
  }
  return bytes;
}

Tensor random_view(const Tensor& base, std::mt19937& random) {
  auto below = [&](int64_t n) { return static_cast<int64_t>(random() % static_cast<uint64_t>(n)); };
  while (true) {
    Dims sizes, strides;
    int64_t low = 0, high = 0;
    for (int64_t d = 1 + below(3); d > 0; --d) {
      sizes.push_back(1 + below(4));
      strides.push_back(below(25) - 8);
      const int64_t reach = (sizes.back() - 1) * strides.back();
      (reach < 0 ? low : high) += reach;
    }
    if (high - low < kElements)
      return make_view(base, sizes, strides, -low + below(kElements - (high - low)));
  }
}

TEST(Overlap, IsFoundExactly) {
  const Tensor base = empty_tensor(IntList{kElements}, DType::Int32);
  const Tensor shorts = make_view(base, IntList{kElements}, IntList{1}, 0);
  shorts->dtype = DType::Int16;
  std::mt19937 random(0);
  int64_t apart = 0;
  for (int i = 0; i < 4000; ++i) {
    const Tensor a = random_view(base, random), b = random_view(i % 2 ? base : shorts, random);
    const std::set<int64_t> left = bytes_of(a), right = bytes_of(b);
    const bool meet = std::any_of(left.begin(), left.end(), [&](int64_t x) { return right.count(x) > 0; });
    EXPECT_EQ(memory_overlap(a, b) != Overlap::No, meet) << str(
        describe(a), a.strides(), a.storage_offset(), " ", describe(b), b.strides(), b.storage_offset());
    apart += !meet;
  }
  EXPECT_GT(apart, 400);
}

TEST(Overlap, KnowsTheSameElements) {
  const Tensor base = empty_tensor(IntList{4, 6}, DType::Float32);
  EXPECT_EQ(memory_overlap(base, base), Overlap::Full);
  const Tensor left = make_view(base, IntList{4, 3}, IntList{6, 1}, 0);
  EXPECT_EQ(memory_overlap(left, make_view(base, IntList{4, 3}, IntList{6, 1}, 0)), Overlap::Full);
  EXPECT_EQ(memory_overlap(left, make_view(base, IntList{4, 3}, IntList{6, 1}, 3)), Overlap::No);
  EXPECT_EQ(memory_overlap(left, make_view(base, IntList{4, 3}, IntList{6, 1}, 2)), Overlap::Partial);
  EXPECT_EQ(memory_overlap(left, make_view(base, IntList{4, 0}, IntList{6, 1}, 2)), Overlap::No);
}

}  // namespace
}  // namespace rushlight
