// What one operation is made of: memory, the gate, iteration, recording, the engine, splitting among threads.
#include <benchmark/benchmark.h>

#include <vector>

#include "autograd/engine.h"
#include "core/cpu_allocator.h"
#include "core/parallel.h"
#include "cpu/iterator.h"
#include "dispatch/table.h"
#include "ops/factory.h"
#include "ops/matmul.h"
#include "ops/pointwise.h"
#include "ops/reduction.h"
#include "ops/view.h"

namespace rushlight {
namespace {

using benchmark::DoNotOptimize;
using benchmark::State;

Tensor filled(std::initializer_list<int64_t> sizes) {
  Tensor t = empty_tensor(IntList(sizes.begin(), sizes.size()), DType::Float32);
  std::fill_n(t.data<float>(), t.numel(), 1.0f);
  return t;
}

void allocate(State& state) {
  const auto bytes = static_cast<size_t>(state.range(0));
  for (auto _ : state) {
    void* block = cpu_allocate(bytes);
    DoNotOptimize(block);
    cpu_deallocate(block, bytes);
  }
}
BENCHMARK(allocate)->Name("memory/block of")->Arg(64)->Arg(4 << 10)->Arg(1 << 20)->Arg(64 << 20);

// What came last is freed first in programs, but not always: here each is freed after 16 others came.
void allocate_in_turn(State& state) {
  std::vector<void*> live(16, nullptr);
  size_t at = 0;
  for (auto _ : state) {
    if (live[at]) cpu_deallocate(live[at], 4096);
    live[at] = cpu_allocate(4096);
    at = (at + 1) % live.size();
  }
  for (void* block : live)
    if (block) cpu_deallocate(block, 4096);
}
BENCHMARK(allocate_in_turn)->Name("memory/blocks in turn");

void make_tensor(State& state) {
  const Dims sizes{state.range(0)};
  for (auto _ : state) DoNotOptimize(empty_tensor(sizes, DType::Float32));
}
BENCHMARK(make_tensor)->Name("memory/empty tensor of")->Arg(4)->Arg(1024);

void call_view(State& state) {
  const Tensor t = filled({4, 4});
  for (auto _ : state) DoNotOptimize(ops::t(t));
}
BENCHMARK(call_view)->Name("gate/view");

void call_in_place(State& state) {
  const Tensor a = filled({4}), b = filled({4});
  for (auto _ : state) DoNotOptimize(ops::add.inplace(a, b));
}
BENCHMARK(call_in_place)->Name("gate/add_");

void call_add(State& state) {
  const Tensor a = filled({state.range(0)}), b = filled({state.range(0)});
  for (auto _ : state) DoNotOptimize(ops::add(a, b, 1));
}
BENCHMARK(call_add)->Name("operator/add of")->Arg(1)->Arg(64)->Arg(1024)->Arg(16384);

void call_add_broadcast(State& state) {
  const Tensor a = filled({16, 16}), b = filled({16, 1});
  for (auto _ : state) DoNotOptimize(ops::add(a, b, 1));
}
BENCHMARK(call_add_broadcast)->Name("operator/add broadcast");

void call_sum(State& state) {
  const Tensor a = filled({64});
  for (auto _ : state) DoNotOptimize(ops::sum(a, std::nullopt));
}
BENCHMARK(call_sum)->Name("operator/sum of 64");

void call_matmul(State& state) {
  const Tensor a = filled({state.range(0), state.range(0)});
  for (auto _ : state) DoNotOptimize(ops::mm(a, a));
}
BENCHMARK(call_matmul)->Name("operator/square matrices of")->Arg(8)->Arg(64);

void iterate(State& state) {
  const Tensor a = filled({8, 4, 6}), b = ops::transpose(filled({6, 4, 8}), 0, 2);
  for (auto _ : state) {
    cpu::Iteration it(a.sizes());
    it.add(a);
    it.add(b);
    it.finish();
    DoNotOptimize(it.numel());
  }
}
BENCHMARK(iterate)->Name("iterator/set up for 3 dimensions");

void record(State& state) {
  const Tensor a = filled({4}), b = filled({4});
  set_requires_grad(a, true);
  for (auto _ : state) DoNotOptimize(ops::mul(a, b));
}
BENCHMARK(record)->Name("autograd/record a node");

void run_engine(State& state) {
  const Tensor leaf = filled({4}), factor = filled({4});
  set_requires_grad(leaf, true);
  Tensor y = leaf;
  for (int64_t i = 0; i < state.range(0); ++i) y = ops::mul(y, factor);
  const Tensor seed = filled({4});
  for (auto _ : state) DoNotOptimize(grad({&y, 1}, {&leaf, 1}, {&seed, 1}, false, {.keep_graph = true}));
}
BENCHMARK(run_engine)->Name("autograd/run nodes")->Arg(1)->Arg(10)->Arg(100);

void split(State& state) {
  std::vector<float> data(static_cast<size_t>(state.range(0)), 1.0f);
  for (auto _ : state) {
    parallel_for(0, state.range(0), kGrainSize, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) data[static_cast<size_t>(i)] += 1.0f;
    });
    benchmark::ClobberMemory();
  }
}
BENCHMARK(split)->Name("threads/parallel_for of")->Arg(64)->Arg(1 << 16)->Arg(1 << 20);

}  // namespace
}  // namespace rushlight

int main(int argc, char** argv) {
  (void)rushlight::operator_table();
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  benchmark::RunSpecifiedBenchmarks();
}
