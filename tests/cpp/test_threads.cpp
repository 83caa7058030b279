// Eight threads on the same tensors and graphs: what reading changes behind the scenes is made once, sums are
// whole. The thread sanitizer looks at these (./dev sanitize thread).
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <barrier>
#include <chrono>
#include <functional>
#include <set>
#include <thread>

#include "autograd/accumulate.h"
#include "autograd/engine.h"
#include "core/generator.h"
#include "core/prepared_weight.h"
#include "dispatch/table.h"
#include "ops/copy.h"
#include "ops/factory.h"
#include "ops/operators.h"
#include "ops/reduction.h"
#include "ops/view.h"

namespace rushlight {
namespace {

constexpr int kThreads = 8, kRounds = 100;

void hammer(const std::function<void(int)>& job) {
  std::barrier start(kThreads);
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i)
    threads.emplace_back([&, i] {
      start.arrive_and_wait();
      job(i);
    });
  for (std::thread& t : threads) t.join();
}

Tensor leaf_of(std::initializer_list<double> values) {
  Tensor t = empty_tensor(IntList{static_cast<int64_t>(values.size())}, DType::Float64);
  std::copy(values.begin(), values.end(), t.data<double>());
  set_requires_grad(t, true);
  return t;
}

class Threads : public ::testing::Test {
 protected:
  void SetUp() override { (void)operator_table(); }
};

TEST_F(Threads, GradientsOfOneLeafAddUp) {
  const Tensor x = leaf_of({1, 2});
  hammer([&](int) {
    for (int k = 0; k < kRounds; ++k) {
      const Tensor y = ops::sum(x * x);  // the accumulator is found and dropped all the time
      backward({&y, 1}, {}, {});
    }
  });
  EXPECT_EQ(grad_of(x).data<double>()[0], 2.0 * kThreads * kRounds);
}

TEST_F(Threads, GradientsAreReplacedAndReadMeanwhile) {
  const Tensor x = leaf_of({1, 2, 3});
  hammer([&](int i) {
    for (int k = 0; k < kRounds; ++k) {
      if (i % 3 == 0) {
        const Tensor y = ops::sum(x * x);
        backward({&y, 1}, {}, {});
      } else if (i % 3 == 1) {
        set_grad(x, Tensor());
      } else if (const Tensor grad = grad_of(x); grad.defined()) {
        EXPECT_EQ(grad.numel(), 3);
      }
    }
  });
}

TEST_F(Threads, OneMetaAndOneAccumulatorForALeaf) {
  for (int round = 0; round < kRounds; ++round) {
    const Tensor x = leaf_of({1});
    std::vector<Ref<Node>> found(kThreads);
    hammer([&](int i) { found[static_cast<size_t>(i)] = grad_accumulator(x); });
    EXPECT_EQ(std::set<Node*>({found[0].get()}).size(), 1u);
    for (const Ref<Node>& node : found) EXPECT_EQ(node.get(), found[0].get());
  }
}

TEST_F(Threads, ARenewedViewHasOneNode) {
  for (int round = 0; round < kRounds; ++round) {
    const Tensor base = leaf_of({1, 2, 3, 4}) * wrapped_number(2.0);
    const Tensor view = ops::narrow(base, 0, 1, 2);
    ops::mul.inplace(base, wrapped_number(3.0));
    std::vector<Ref<Node>> found(kThreads);
    hammer([&](int i) { found[static_cast<size_t>(i)] = grad_fn(view); });
    for (const Ref<Node>& node : found) EXPECT_EQ(node.get(), found[0].get());
  }
}

TEST_F(Threads, HooksComeAndGoWhileTheGraphIsWalked) {
  const Tensor x = leaf_of({1, 2});
  const Tensor y = x * wrapped_number(3.0), loss = ops::sum(y);
  hammer([&](int i) {
    for (int k = 0; k < kRounds; ++k) {
      if (i % 2 == 0) {
        const auto same = [](const Tensor& g) { return g; };
        const auto remove = register_tensor_hook(y, make_ref<TensorFunctionHook>(same));
        const auto remove_leaf = register_tensor_hook(x, make_ref<TensorFunctionHook>(same));
        remove();
        remove_leaf();
      } else {
        backward({&loss, 1}, {}, {.keep_graph = true});
      }
    }
  });
  EXPECT_EQ(grad_of(x).data<double>()[0], 3.0 * kThreads / 2 * kRounds);
}

TEST_F(Threads, AGraphIsFreedWhileOthersReadIt) {
  for (int round = 0; round < kRounds; ++round) {
    const Tensor x = leaf_of({1, 2});
    const Tensor y = ops::sum(ops::exp(x) * x);
    std::atomic<int> refused{0};
    hammer([&](int) {
      try {
        backward({&y, 1}, {}, {});
      } catch (const Error& e) {
        EXPECT_NE(std::string(e.what()).find("second time"), std::string::npos) << e.what();
        ++refused;
      }
    });
    EXPECT_LT(refused, kThreads);
  }
}

TEST_F(Threads, VersionsCountEveryWrite) {
  const Tensor x = empty_tensor(IntList{64}, DType::Float32);
  ops::zero_(x);
  const uint32_t before = x.version();
  std::vector<Tensor> parts;
  for (int64_t i = 0; i < kThreads; ++i) parts.push_back(ops::narrow(x, 0, 8 * i, 8));
  hammer([&](int i) {
    for (int k = 0; k < kRounds; ++k) ops::add.inplace(parts[static_cast<size_t>(i)], wrapped_number(1.0));
  });
  EXPECT_EQ(x.version() - before, static_cast<uint32_t>(kThreads * kRounds));
  for (int64_t i = 0; i < 64; ++i) EXPECT_EQ(x.data<float>()[i], kRounds);
}

TEST_F(Threads, PutWeightsInOrderWhileOthersFork) {
  // A weight that is put in order anew takes a lock of its own, in an order in which a fork takes them, too.
  std::atomic<bool> stop{false};
  std::thread busy([&] {
    while (!stop) {
      const Tensor weight = empty_tensor({64, 64}, DType::Float32);
      for (int i = 0; i < 4; ++i) PreparedWeight prepared(weight);
    }
  });
  alarm(100);  // ends the process where both wait for each other
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(1);
  for (int i = 0; i < 20 || std::chrono::steady_clock::now() < until; i++) {
    const pid_t child = fork();
    if (child == 0) _exit(7);
    int status = 0;
    waitpid(child, &status, 0);
    ASSERT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 7);
  }
  alarm(0);
  stop = true;
  busy.join();
}

}  // namespace
}  // namespace rushlight
