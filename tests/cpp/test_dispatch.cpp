// Schemas, records and the gate, on operators of a private table.
#include <gtest/gtest.h>

#include "dispatch/table.h"

namespace rushlight {
namespace {

TEST(Schema, ParsesPyTorchsGrammar) {
  const Schema s = Schema::parse(
      "nn::thing.over(Tensor(a!) self, Tensor?[] indices, int[2] size=0, *, Scalar alpha=1, float eps=1e-05, "
      "str reduction='mean', "
      "int[] dims=[0,1], ScalarType? dtype=None, bool keep=True) -> (Tensor values, Tensor indices)");
  EXPECT_EQ(s.space, "nn");
  EXPECT_EQ(s.name, "thing");
  EXPECT_EQ(s.overload, "over");
  ASSERT_EQ(s.parameters.size(), 9u);
  EXPECT_TRUE(s.parameters[0].mutated);
  EXPECT_TRUE(s.parameters[1].elements_optional);
  EXPECT_EQ(s.parameters[2].list_length, 2);
  EXPECT_EQ(s.parameters[2].default_value.ints(), (IntList{0, 0}));
  EXPECT_FALSE(s.parameters[2].keyword_only);
  EXPECT_TRUE(s.parameters[3].keyword_only);
  EXPECT_EQ(s.parameters[4].default_value.floating(), 1e-5);
  EXPECT_EQ(s.parameters[5].default_value.string(), "mean");
  EXPECT_EQ(s.parameters[6].default_value.ints(), (IntList{0, 1}));
  EXPECT_TRUE(s.parameters[7].default_value.is_none());
  EXPECT_TRUE(s.parameters[8].default_value.boolean());
  EXPECT_EQ(s.returns[1].name, "indices");
  EXPECT_EQ(s.positional_count(), 3);
}

TEST(Schema, BadGrammarIsAnInternalError) {
  EXPECT_THROW(Schema::parse("f(Tensr self) -> Tensor"), Error);
  EXPECT_THROW(Schema::parse("f(Tensor self) -> Tensor x y"), Error);
}

Fn<Tensor(const Tensor& self, int64_t times, bool negate)> scale;
int calls = 0;
Tensor scale_kernel(const Call& call, const Tensor& self, int64_t times, bool negate) {
  ++calls;
  Tensor result = call.output(self.sizes(), self.dtype());
  for (int64_t i = 0; i < self.numel(); ++i)
    result.data<double>()[i] = self.data<double>()[i] * static_cast<double>(negate ? -times : times);
  return result;
}

class Gate : public testing::Test {
 protected:
  Gate() {
    table_.op(scale, "scale(Tensor self, int times=3, bool negate=False) -> Tensor", scale_kernel)
        .inplace()
        .out()
        .not_differentiable("test");
    calls = 0;
    x_ = empty_tensor(IntList{2}, DType::Float64);
    x_.data<double>()[0] = 1, x_.data<double>()[1] = 2;
  }
  Table table_;
  Tensor x_;
};

TEST_F(Gate, FillsDefaultsFromTheSchema) {
  EXPECT_EQ(scale(x_).data<double>()[1], 6);
  EXPECT_EQ(scale(x_, 5).data<double>()[1], 10);
  EXPECT_EQ(scale(x_, 5, true).data<double>()[1], -10);
}

TEST_F(Gate, BoxedCallsReachTheSameKernel) {
  const Value args[] = {Value(x_), Value(int64_t{2}), Value(true)};
  Results results;
  call_boxed(scale.op(), args, results);
  EXPECT_EQ(results.tensors[0].data<double>()[0], -2);
}

TEST_F(Gate, InPlaceWritesIntoItsInputAndCountsTheVersion) {
  const Tensor& same = scale.inplace(x_, int64_t{4});
  EXPECT_TRUE(same.is_same(x_));
  EXPECT_EQ(x_.data<double>()[1], 8);
  EXPECT_EQ(x_.version(), 1u);
}

TEST_F(Gate, OutIsResizedOnlyWithinItsCategory) {
  const Tensor out = empty_tensor(IntList{0}, DType::Float64);
  scale.out(out, x_);
  EXPECT_EQ(out.sizes(), (IntList{2}));
  EXPECT_EQ(out.data<double>()[1], 6);
  const Tensor ints = empty_tensor(IntList{2}, DType::Int64);
  EXPECT_THROW(scale.out(ints, x_), Error);
}

TEST_F(Gate, ReadOnlyMemoryIsRefused) {
  x_->storage->set_read_only(true);
  EXPECT_THROW(scale.inplace(x_), Error);
  EXPECT_EQ(x_.data<double>()[0], 1);
}

TEST_F(Gate, InterceptorsSeeOnlyWhatConcernsThem) {
  static int seen = 0;
  set_interceptor(kPythonDispatch, [](Frame& f) {
    ++seen;
    f.proceed();
  });
  scale(x_);
  EXPECT_EQ(seen, 0);
  x_->flags |= kPythonDispatch;
  EXPECT_EQ(scale(x_).data<double>()[0], 3);
  EXPECT_EQ(seen, 1);
  set_interceptor(kPythonDispatch, nullptr);
}

TEST_F(Gate, ARecordWithoutDerivativeOrRefusalIsRejected) {
  EXPECT_NO_THROW(table_.freeze());
  Fn<Tensor(const Tensor& self, int64_t times, bool negate)> other;
  table_.op(other, "other(Tensor self, int times, bool negate) -> Tensor", scale_kernel);
  EXPECT_THROW(table_.freeze(), Error);
}

TEST(Operators, TheWholeTableIsComplete) { EXPECT_NO_THROW(mutable_operator_table().freeze()); }

}  // namespace
}  // namespace rushlight
