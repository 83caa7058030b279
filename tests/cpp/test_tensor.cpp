// Shapes, strides, dtypes and promotion of the core.
#include <gtest/gtest.h>

#include "core/tensor.h"

namespace rushlight {
namespace {

TEST(Dims, GrowsBeyondItsInlineSpaceAndMoves) {
  Dims d;
  for (int64_t i = 0; i < 20; ++i) d.push_back(i);
  Dims copy = d, moved = std::move(d);
  EXPECT_EQ(copy, moved);
  moved.erase(3);
  moved.insert(0, -1);
  EXPECT_EQ(moved[0], -1);
  EXPECT_EQ(moved[4], 4);
  EXPECT_EQ(moved.size(), 20u);
}

TEST(Shape, OverflowIsAnError) {
  EXPECT_EQ(checked_numel(IntList{0, INT64_MAX, INT64_MAX}), 0);
  EXPECT_THROW(checked_numel(IntList{INT64_MAX, 2}), Error);
  EXPECT_THROW(checked_numel(IntList{-1}), Error);
  EXPECT_THROW(empty_tensor(IntList{INT64_MAX / 2}, DType::Float64), Error);
}

TEST(Shape, BroadcastNamesBothShapes) {
  EXPECT_EQ(broadcast_shapes(IntList{3, 1}, IntList{4}), (Dims{3, 4}));
  try {
    broadcast_shapes(IntList{3}, IntList{4});
    FAIL();
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("must match the size of tensor b (4) at non-singleton dimension 0"),
              std::string::npos);
    EXPECT_NE(std::string(e.what()).find("[3] and [4]"), std::string::npos);
  }
}

TEST(Tensor, ContiguityFollowsStrides) {
  const Tensor t = empty_tensor(IntList{2, 3}, DType::Float32);
  EXPECT_TRUE(t.is_contiguous());
  const Tensor transposed = make_view(t, IntList{3, 2}, IntList{1, 3}, 0);
  EXPECT_FALSE(transposed.is_contiguous());
  EXPECT_TRUE(is_non_overlapping_and_dense(transposed));
  const Tensor backwards = make_view(t, IntList{6}, IntList{-1}, 5);
  EXPECT_FALSE(backwards.is_contiguous());
  EXPECT_TRUE(is_non_overlapping_and_dense(backwards));
  const Tensor expanded = make_view(t, IntList{4, 6}, IntList{0, 1}, 0);
  EXPECT_TRUE(has_internal_overlap(expanded));
  EXPECT_TRUE(make_view(t, IntList{1, 0, 5}, IntList{7, 9, 2}, 0).is_contiguous());
}

TEST(Tensor, ViewsShareTheVersionCounter) {
  const Tensor t = empty_tensor(IntList{4}, DType::Int64);
  const Tensor v = make_view(t, IntList{2}, IntList{1}, 1);
  EXPECT_TRUE(v->view_base.get() == t.impl());
  v.bump_version();
  EXPECT_EQ(t.version(), 1u);
}

TEST(Tensor, SmallStorageResizesOutOfTheObject) {
  const Tensor t = empty_tensor(IntList{2}, DType::Float64);
  t.data<double>()[0] = 1.5, t.data<double>()[1] = 2.5;
  resize_tensor(t, IntList{1000});
  EXPECT_EQ(t.data<double>()[0], 1.5);
  EXPECT_EQ(t.data<double>()[1], 2.5);
  EXPECT_EQ(t.numel(), 1000);
}

TEST(Tensor, BorrowedMemoryKeepsItsOwnerAndItsReadOnlyBit) {
  static bool freed = false;
  double values[2] = {1, 2};
  {
    const Storage s = StorageImpl::wrap(
        values, sizeof values, {}, [](void*, void*, size_t) { freed = true; }, nullptr, true);
    Tensor t(Ref<TensorImpl>::adopt(new TensorImpl(s, 0, DType::Float64, {})));
    t->set_contiguous(IntList{2});
    EXPECT_THROW(t.check_writable("add_"), Error);
    EXPECT_THROW(resize_tensor(t, IntList{5}), Error);
    EXPECT_FALSE(freed);
  }
  EXPECT_TRUE(freed);
}

TEST(Promotion, DimensionedTensorsBeatScalarsWithinACategory) {
  const Tensor vector = empty_tensor(IntList{2}, DType::Float16),
               scalar = scalar_tensor_of(1.0, DType::Float64);
  EXPECT_EQ(result_type(vector, scalar), DType::Float16);
  EXPECT_EQ(result_type(empty_tensor(IntList{2}, DType::Int32), scalar), DType::Float64);
  EXPECT_EQ(result_type(empty_tensor(IntList{2}, DType::Int32), wrapped_number(2.0)), DType::Float32);
  EXPECT_EQ(result_type(empty_tensor(IntList{2}, DType::Bool), wrapped_number(int64_t{2})), DType::Int64);
  EXPECT_EQ(result_type(vector, wrapped_number(complex128(0, 1))), DType::Complex32);
  EXPECT_EQ(promote_types(DType::UInt8, DType::Int8), DType::Int16);
  EXPECT_EQ(promote_types(DType::Float16, DType::BFloat16), DType::Float32);
  EXPECT_EQ(promote_types(DType::Int64, DType::Float16), DType::Float16);
  EXPECT_THROW(promote_types(DType::UInt64, DType::Int8), Error);
  EXPECT_THROW(promote_types(DType::Float8_e5m2, DType::Float32), Error);
}

TEST(Scalar, OverflowIsNoticed) {
  EXPECT_THROW(Scalar(int64_t{300}).check_fits(DType::UInt8), Error);
  EXPECT_NO_THROW(Scalar(int64_t{-1}).check_fits(DType::UInt8));
  EXPECT_THROW(Scalar(1e300).check_fits(DType::Float32), Error);
  EXPECT_NO_THROW(Scalar(std::numeric_limits<double>::infinity()).check_fits(DType::Float32));
  EXPECT_THROW(Scalar(std::nan("")).check_fits(DType::Int32), Error);
}

template <class T>
void expect_round_trip(int codes) {
  for (int code = 0; code < codes; ++code) {
    T value;
    value.bits = static_cast<decltype(value.bits)>(code);
    const float f = value;
    if (f != f) continue;
    EXPECT_EQ(static_cast<int>(T(f).bits), code) << f;
  }
}
TEST(HalfTypes, EveryNumberSurvivesTheWayThroughFloat) {
  expect_round_trip<Half>(1 << 16);
  expect_round_trip<BFloat16>(1 << 16);
  expect_round_trip<Float8_e5m2>(256);
  expect_round_trip<Float8_e4m3fn>(256);
  expect_round_trip<Float8_e5m2fnuz>(256);
  expect_round_trip<Float8_e4m3fnuz>(256);
}

}  // namespace
}  // namespace rushlight
