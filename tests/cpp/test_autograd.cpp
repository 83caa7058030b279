// Recording, the engine, views under in-place writes, saved tensors and hooks, over the registered operators.
#include <gtest/gtest.h>

#include <thread>

#include "autograd/accumulate.h"
#include "autograd/engine.h"
#include "autograd/op_node.h"
#include "dispatch/table.h"
#include "ops/copy.h"
#include "ops/factory.h"
#include "ops/operators.h"
#include "ops/reduction.h"
#include "ops/view.h"

namespace rushlight {
namespace {

class Autograd : public ::testing::Test {
 protected:
  void SetUp() override { (void)operator_table(); }
};

Tensor vector_of(std::initializer_list<double> values, bool wants_grad = true) {
  Tensor t = empty_tensor(IntList{static_cast<int64_t>(values.size())}, DType::Float64);
  std::copy(values.begin(), values.end(), t.data<double>());
  if (wants_grad) set_requires_grad(t, true);
  return t;
}

std::vector<double> values_of(const Tensor& t) {
  const Tensor dense = ops::contiguous(detach(t));
  return {dense.data<double>(), dense.data<double>() + dense.numel()};
}
using Values = std::vector<double>;

void run(const Tensor& output, BackwardOptions options = {}) { backward({&output, 1}, {}, options); }

std::vector<Tensor> grad_of_one(const Tensor& output, const Tensor& input, BackwardOptions options = {}) {
  return grad({&output, 1}, {&input, 1}, {}, false, options);
}

template <class F>
void expect_error(F&& f, const std::string& text) {
  try {
    f();
    ADD_FAILURE() << "no error; expected: " << text;
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find(text), std::string::npos) << e.what();
  }
}

TEST_F(Autograd, MultipliesAndAccumulates) {
  const Tensor x = vector_of({1, 2, 3}), y = vector_of({4, 5, 6});
  run(ops::sum(x * y + x));
  EXPECT_EQ(values_of(grad_of(x)), (Values{5, 6, 7}));
  EXPECT_EQ(values_of(grad_of(y)), (Values{1, 2, 3}));
  run(ops::sum(x * y));
  EXPECT_EQ(values_of(grad_of(x)), (Values{9, 11, 13}));
}

TEST_F(Autograd, NamesNodesAndEdges) {
  const Tensor x = vector_of({1}), y = vector_of({2}, false);
  const Tensor z = x * y;
  const Ref<Node> node = grad_fn(z);
  EXPECT_EQ(node->name(), "MulBackward0");
  ASSERT_EQ(node->edges().size(), 2u);
  EXPECT_EQ(node->edges()[0].node->name(), "AccumulateGrad");
  EXPECT_FALSE(node->edges()[1]);
  EXPECT_FALSE(grad_fn(y * y));
}

TEST_F(Autograd, SumsGradientsOfBroadcastInputs) {
  const Tensor x = vector_of({1, 2}), scalar = ops::sum(vector_of({3}));
  retain_grad(scalar);
  run(ops::sum(x * scalar));
  EXPECT_EQ(values_of(grad_of(scalar)), (Values{3}));
  const Tensor m = ops::ones(IntList{3, 2}, DType::Float64);
  run(ops::sum(m * x));
  EXPECT_EQ(values_of(grad_of(x)), (Values{6, 6}));
}

TEST_F(Autograd, DifferentiatesTwice) {
  const Tensor x = vector_of({2, 3});
  const Tensor first = grad_of_one(ops::sum(x * x * x), x, {.create_graph = true})[0];
  EXPECT_EQ(values_of(first), (Values{12, 27}));
  EXPECT_EQ(values_of(grad_of_one(ops::sum(first), x)[0]), (Values{12, 18}));
}

TEST_F(Autograd, RefusesAFreedGraph) {
  const Tensor x = vector_of({2});
  const Tensor y = ops::sum(x * x);
  run(y, {.keep_graph = true});
  run(y);
  expect_error([&] { run(y); }, "Trying to backward through the graph a second time");
}

TEST_F(Autograd, NoticesOverwrittenSavedTensors) {
  const Tensor x = vector_of({1, 2, 3});
  const Tensor y = ops::exp(x);
  ops::add.inplace(y, wrapped_number(1));
  expect_error([&] { run(ops::sum(y)); },
               "modified by an inplace operation: [torch.DoubleTensor [3]], which is output 0 of Exp, is at "
               "version 1; expected "
               "version 0 instead. It was last written by add().");
}

TEST_F(Autograd, RecordsInPlaceWrites) {
  const Tensor x = vector_of({1, 2});
  const Tensor y = x * wrapped_number(3);
  ops::mul.inplace(y, y * wrapped_number(1));
  run(ops::sum(y));
  EXPECT_EQ(values_of(grad_of(x)), (Values{18, 36}));
  expect_error([&] { ops::mul.inplace(x, wrapped_number(2)); },
               "a leaf Variable that requires grad is being used in an in-place operation.");
  expect_error([&] { ops::mul.inplace(ops::select(x, 0, 0), wrapped_number(2)); },
               "a view of a leaf Variable that requires grad is being used in an in-place operation.");
}

TEST_F(Autograd, WritesThroughViews) {
  const Tensor x = vector_of({1, 2, 3}), w = vector_of({5});
  const Tensor y = x * wrapped_number(1);
  const Tensor head = ops::slice(y, 0, 0, 1, 1);
  ops::mul.inplace(head, w);
  EXPECT_EQ(grad_fn(y)->name(), "CopySlices");
  EXPECT_EQ(grad_fn(head)->name(), "AsStridedBackward0");
  run(ops::sum(y * y));  // (w x0)^2 + x1^2 + x2^2
  EXPECT_EQ(values_of(grad_of(x)), (Values{50, 4, 6}));
  EXPECT_EQ(values_of(grad_of(w)), (Values{10}));
}

TEST_F(Autograd, ViewsFollowTheirBase) {
  const Tensor buffer = vector_of({0, 0}, false), w = vector_of({3, 4});
  const Tensor view = ops::view(buffer, IntList{2, 1});
  ops::add.inplace(buffer, w);
  EXPECT_TRUE(requires_grad(view));
  run(ops::sum(view * view));
  EXPECT_EQ(values_of(grad_of(w)), (Values{6, 8}));
}

TEST_F(Autograd, RefusesAmbiguousViews) {
  const Tensor x = vector_of({1, 2});
  const Tensor y = x * wrapped_number(1);
  const std::vector<Tensor> rows = ops::unbind(y, 0);
  expect_error([&] { ops::mul.inplace(rows[0], wrapped_number(2)); },
               "Output 0 of Unbind is a view and is being modified inplace.");
  Tensor quiet;
  {
    GradMode off(false);
    quiet = ops::select(y, 0, 0);
  }
  expect_error([&] { ops::mul.inplace(quiet, wrapped_number(2)); }, "A view was created in no_grad mode");
}

TEST_F(Autograd, RefusesOut) {
  const Tensor x = vector_of({1}), out = vector_of({0}, false);
  expect_error([&] { ops::mul.out(out, x, x); },
               "mul(): functions with out=... arguments don't support automatic differentiation");
}

TEST_F(Autograd, RunsOnlyWhatInputsNeed) {
  const Tensor x = vector_of({1}), y = vector_of({2});
  const Tensor a = x * x, b = y * y;
  bool ran = false;
  register_tensor_hook(b, make_ref<TensorFunctionHook>([&](const Tensor&) {
                         ran = true;
                         return Tensor();
                       }));
  EXPECT_EQ(values_of(grad_of_one(ops::sum(a + b), x)[0]), (Values{2}));
  EXPECT_FALSE(ran);
  EXPECT_FALSE(grad_of(x).defined());
  expect_error([&] { grad_of_one(ops::sum(x * x), y); }, "appears to not have been used in the graph");
}

TEST_F(Autograd, GivesGradientsOfIntermediates) {
  const Tensor x = vector_of({3});
  const Tensor middle = x * x;
  const Tensor inputs[] = {middle, x};
  const Tensor output = ops::sum(middle * middle);
  const auto grads = grad({&output, 1}, inputs);
  EXPECT_EQ(values_of(grads[0]), (Values{18}));
  EXPECT_EQ(values_of(grads[1]), (Values{108}));
}

TEST_F(Autograd, CallsHooksInOrder) {
  const Tensor x = vector_of({1});
  const Tensor y = x * x;
  retain_grad(y);
  const auto remove = register_tensor_hook(
      y, make_ref<TensorFunctionHook>([](const Tensor& g) { return g * wrapped_number(2); }));
  register_tensor_hook(y,
                       make_ref<TensorFunctionHook>([](const Tensor& g) { return g + wrapped_number(1); }));
  run(ops::sum(y), {.keep_graph = true});
  EXPECT_EQ(values_of(grad_of(y)), (Values{3}));
  EXPECT_EQ(values_of(grad_of(x)), (Values{6}));
  remove();
  set_grad(x, {});
  run(ops::sum(y));
  EXPECT_EQ(values_of(grad_of(x)), (Values{4}));
}

TEST_F(Autograd, KeepsLeafGradientsApart) {
  const Tensor x = vector_of({1}), y = vector_of({2});
  run(ops::sum(x + y));  // one gradient arrives at both
  ops::mul.inplace(grad_of(x), wrapped_number(5));
  EXPECT_EQ(values_of(grad_of(y)), (Values{1}));
}

TEST_F(Autograd, FreesDeepGraphs) {
  const Tensor x = vector_of({1});
  Tensor y = x + x;
  for (int i = 0; i < 300'000; ++i) y = y + wrapped_number(0);
  run(ops::sum(y));
  EXPECT_EQ(values_of(grad_of(x)), (Values{2}));
  y.reset();
}

TEST_F(Autograd, SharesGraphsBetweenThreads) {
  const Tensor x = vector_of({1, 2});
  const Tensor y = ops::exp(x) * x;
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i)
    threads.emplace_back([&] {
      for (int k = 0; k < 50; ++k) run(ops::sum(y), {.keep_graph = true});
    });
  for (auto& t : threads) t.join();
  EXPECT_NEAR(values_of(grad_of(x))[0], 400 * 2 * std::exp(1.0), 1e-6);
}

TEST_F(Autograd, RunsBackwardInsideBackward) {
  const Tensor x = vector_of({2});
  int depth = 0;
  std::function<Tensor(const Tensor&)> again = [&](const Tensor& g) {
    if (++depth < 200) {
      GradMode on(true);
      const Tensor y = vector_of({1});
      const Tensor z = y * y;
      register_tensor_hook(z, make_ref<TensorFunctionHook>(again));
      run(ops::sum(z));
    }
    return g;
  };
  const Tensor start = x * x;
  register_tensor_hook(start, make_ref<TensorFunctionHook>([&](const Tensor& g) { return again(g); }));
  run(ops::sum(start));
  EXPECT_EQ(depth, 200);
  EXPECT_EQ(values_of(grad_of(x)), (Values{4}));
}

TEST_F(Autograd, NamesTheFunctionThatMadeNan) {
  const Tensor x = vector_of({-1});
  anomaly_state.enabled = true;
  expect_error([&] { run(ops::sum(ops::sqrt(x) * wrapped_number(0))); },
               "returned nan values in its 0th output.");
  anomaly_state.enabled = false;
}

TEST_F(Autograd, DetachedTensorsLeaveTheGraph) {
  const Tensor x = vector_of({1});
  const Tensor y = x * x;
  EXPECT_FALSE(requires_grad(detach(y)));
  detach_in_place(y);
  EXPECT_TRUE(is_leaf(y));
  expect_error([&] { set_requires_grad(x * x, false); },
               "you can only change requires_grad flags of leaf variables.");
}

}  // namespace
}  // namespace rushlight
