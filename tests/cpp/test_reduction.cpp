#include <cmath>

#include "dispatch/table.h"
#include "gtest/gtest.h"
#include "ops/index.h"
#include "ops/join.h"
#include "ops/reduction.h"
#include "ops/view.h"

namespace rushlight {
namespace {

Tensor ramp(IntList sizes, DType dtype = DType::Float32) {
  const Tensor t = empty_tensor(sizes, dtype);
  for (int64_t i = 0; i < t.numel(); ++i) {
    if (dtype == DType::Float32)
      t.data<float>()[i] = static_cast<float>(i);
    else if (dtype == DType::Int64)
      t.data<int64_t>()[i] = i;
  }
  return t;
}

class ReductionTest : public testing::Test {
 protected:
  void SetUp() override { operator_table(); }  // binds the handles
};

TEST_F(ReductionTest, SumsOverEveryPairOfDimensions) {
  const Tensor x = ops::transpose(ramp({5, 40, 33}), 0, 1);  // 40, 5, 33
  const int64_t sizes[] = {40, 5, 33};
  for (int64_t a = 0; a < 3; ++a) {
    for (int64_t b = a + 1; b < 3; ++b) {
      const int64_t kept = 3 - a - b;
      const Tensor s = ops::sum_dim(x, IntList{a, b});
      ASSERT_EQ(s.sizes(), IntList({sizes[kept]}));
      for (int64_t k = 0; k < sizes[kept]; ++k) {
        double want = 0;
        int64_t at[3];
        for (at[0] = 0; at[0] < 40; ++at[0])
          for (at[1] = 0; at[1] < 5; ++at[1])
            for (at[2] = 0; at[2] < 33; ++at[2])
              if (at[kept] == k) want += x.data<float>()[at[0] * 33 + at[1] * 40 * 33 + at[2]];
        EXPECT_NEAR(s.data<float>()[k], want, 1e-6 * want);
      }
    }
  }
}

TEST_F(ReductionTest, LargeSumsSplitTheSameWay) {
  const Tensor x = empty_tensor({1 << 21}, DType::Float32);
  std::fill_n(x.data<float>(), x.numel(), 0.1f);
  const float total = ops::sum(x).data<float>()[0];
  EXPECT_NEAR(total, 0.1f * (1 << 21), 1e-6 * total);
  EXPECT_EQ(total, ops::sum(x).data<float>()[0]);
}

TEST_F(ReductionTest, EmptyAndScalar) {
  EXPECT_EQ(ops::sum(empty_tensor({0, 3}, DType::Float32)).data<float>()[0], 0);
  EXPECT_TRUE(std::isnan(ops::mean(empty_tensor({0}, DType::Float32)).data<float>()[0]));
  EXPECT_EQ(ops::sum_dim(empty_tensor({0, 3}, DType::Int64), IntList{0}).sizes(), IntList({3}));
  EXPECT_EQ(ops::sum(ramp({4}, DType::Int64)).data<int64_t>()[0], 6);
}

TEST_F(ReductionTest, CatAndStack) {
  const Tensor a = ramp({2, 3}), b = ramp({2, 1});
  const Tensor c = ops::cat({a, b}, 1);
  ASSERT_EQ(c.sizes(), IntList({2, 4}));
  EXPECT_EQ(c.data<float>()[3], 0);
  EXPECT_EQ(c.data<float>()[7], 1);
  EXPECT_EQ(ops::stack({a, a}, -1).sizes(), IntList({2, 3, 2}));
  EXPECT_EQ(ops::stack({a, a}, -1).data<float>()[3], 1);
  EXPECT_THROW(ops::cat({a, b}, 0), Error);
}

TEST_F(ReductionTest, IndexReadsAndWrites) {
  const Tensor x = ramp({3, 4}), at = empty_tensor({2}, DType::Int64);
  at.data<int64_t>()[0] = -1, at.data<int64_t>()[1] = 0;
  const Tensor columns = ops::index(x, {Tensor(), at});
  ASSERT_EQ(columns.sizes(), IntList({3, 2}));
  EXPECT_EQ(columns.data<float>()[2], 7);
  const Tensor rows = ops::index(x, {at});
  ASSERT_EQ(rows.sizes(), IntList({2, 4}));
  EXPECT_EQ(rows.data<float>()[0], 8);
  ops::index_put_(x, {at}, ramp({2, 4}), true);
  EXPECT_EQ(x.data<float>()[11], 14);
  EXPECT_EQ(x.data<float>()[3], 10);
  at.data<int64_t>()[1] = 3;
  EXPECT_THROW(ops::index(x, {at}), Error);
}

TEST_F(ReductionTest, GatherIsUndoneByScatter) {
  const Tensor x = ramp({3, 4}), at = empty_tensor({2, 4}, DType::Int64);
  for (int i = 0; i < 8; ++i) at.data<int64_t>()[i] = i % 3;
  const Tensor g = ops::gather(x, 0, at);
  for (int i = 0; i < 8; ++i) EXPECT_EQ(g.data<float>()[i], (i % 3) * 4 + i % 4);
  const Tensor s = ops::scatter_src(x, 0, at, g);
  for (int i = 0; i < 12; ++i) EXPECT_EQ(s.data<float>()[i], i);
}

}  // namespace
}  // namespace rushlight
