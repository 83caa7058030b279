// Batch-invariant mode by C++.
#include <gtest/gtest.h>
#include <torch/torch.h>

namespace {

using torch::Tensor;

TEST(ApiDeterminism, RowsDoNotDependOnTheBatch) {
  torch::manual_seed(0);
  torch::nn::Linear layer(300, 40);
  const Tensor rows = torch::randn({70, 300});
  ASSERT_FALSE(torch::is_batch_invariant_enabled());
  {
    const torch::BatchInvariantGuard guard;
    ASSERT_TRUE(torch::is_batch_invariant_enabled());
    const Tensor all = layer(rows);
    for (const int64_t n : {1, 2, 7, 33, 64})
      EXPECT_TRUE(layer(rows.slice(0, 0, n)).equal(all.slice(0, 0, n))) << n;
    const torch::BatchInvariantGuard off(false);
    EXPECT_FALSE(torch::is_batch_invariant_enabled());
  }
  EXPECT_FALSE(torch::is_batch_invariant_enabled());
  torch::use_batch_invariant(true);
  EXPECT_TRUE(torch::is_batch_invariant_enabled());
  torch::use_batch_invariant(false);
}

}  // namespace
