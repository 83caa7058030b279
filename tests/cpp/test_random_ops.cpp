#include <gtest/gtest.h>

#include "core/generator.h"
#include "ops/random.h"
#include "ops/register.h"
#include "ops/view.h"

namespace rushlight {
namespace {

using namespace ops;

class RandomOps : public testing::Test {
 protected:
  void SetUp() override {
    operator_table();
    default_generator().manual_seed(7);
  }
};

Ref<Generator> seeded() { return make_ref<Generator>(Device{}, 7); }

std::vector<double> values(const Tensor& t) {
  std::vector<double> result;
  visit_dtype(AllTypes{}, t.dtype(), "values", [&](auto tag) {
    using T = decltype(tag);
    for (int64_t i = 0; i < t.numel(); i++) result.push_back(convert<double>(t.data<T>()[i]));
  });
  return result;
}

TEST_F(RandomOps, FactoriesFollowTheirArguments) {
  EXPECT_EQ(rand({2, 3}).sizes(), IntList({2, 3}));
  EXPECT_EQ(rand({2}).dtype(), DType::Float32);
  EXPECT_EQ(randn({2}, nullptr, DType::Float64).dtype(), DType::Float64);
  EXPECT_EQ(randint(5, {3}).dtype(), DType::Int64);
  EXPECT_EQ(randperm(4).numel(), 4);
  EXPECT_EQ(rand({0, 3}).numel(), 0);
  EXPECT_THROW(rand({-1}), Error);
  EXPECT_THROW(randint(0, {2}), Error);
  EXPECT_THROW(rand({2}, nullptr, DType::Int32), Error);
}

TEST_F(RandomOps, AGeneratorArgumentReplacesTheDefault) {
  auto g = seeded();
  const Tensor a = rand({5}, g.get());
  const Tensor b = rand({5});
  EXPECT_EQ(values(a), values(b));
  EXPECT_NE(values(rand({5}, g.get())), values(a));
}

TEST_F(RandomOps, StridedTensorsAreFilledInMemoryOrder) {
  const Tensor plain = rand({3, 4});
  auto g = seeded();
  const Tensor turned = empty_tensor({3, 4}, DType::Float32);
  uniform_(transpose(turned, 0, 1), 0, 1, g.get());
  EXPECT_EQ(values(turned), values(plain));
  // With gaps: the same numbers, and nothing written between them.
  auto h = seeded();
  const Tensor wide = empty_tensor({3, 8}, DType::Float32);
  std::fill_n(wide.data<float>(), 24, -1.0f);
  uniform_(slice(wide, 1, 0, 8, 2), 0, 1, h.get());
  for (int64_t i = 0; i < 24; i++)
    EXPECT_EQ(wide.data<float>()[i], i % 2 ? -1.0f : plain.data<float>()[i / 2]);
}

TEST_F(RandomOps, OverlappingMemoryIsRefused) {
  EXPECT_THROW(uniform_(expand(rand({1, 3}), {2, 3}, false), 0, 1, nullptr), Error);
}

TEST_F(RandomOps, ComplexNumbersTakeTwoDraws) {
  const Tensor c = rand({3}, nullptr, DType::Complex64);
  auto g = seeded();
  const Tensor r = rand({6}, g.get());
  for (int i = 0; i < 6; i++) EXPECT_EQ(reinterpret_cast<float*>(c.data_ptr())[i], r.data<float>()[i]);
}

TEST_F(RandomOps, DropoutNoiseIsZeroOrScaled) {
  const Tensor x = empty_tensor({1000}, DType::Float32);
  const Tensor noise = dropout_noise(x, x.sizes(), 0.75, true);
  int kept = 0;
  for (double v : values(noise)) {
    EXPECT_TRUE(v == 0 || v == static_cast<double>(1.0f / 0.75f));
    kept += v != 0;
  }
  EXPECT_NEAR(kept, 750, 60);
  EXPECT_TRUE(dropout(x, 0.5, false).is_same(x));
  EXPECT_THROW(dropout(x, 1.5, true), Error);
}

}  // namespace
}  // namespace rushlight
