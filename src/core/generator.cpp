#include "core/generator.h"

#include <algorithm>
#include <cstring>
#include <random>
#include <utility>

#include "core/error.h"
#include "core/host/process.h"

// Vector code for the twister's loops makes every random fill two to three times as fast.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("O3")
#endif

namespace rushlight {

Mt19937::Mt19937(uint64_t seed) : seed(seed) {
  state[0] = static_cast<uint32_t>(seed);
  for (uint32_t i = 1; i < kWords; i++) state[i] = 1812433253u * (state[i - 1] ^ (state[i - 1] >> 30)) + i;
}

void Mt19937::next_state() {
  constexpr int kShift = 397;
  auto twist = [](uint32_t u, uint32_t v) {
    return (((u & 0x80000000u) | (v & 0x7fffffffu)) >> 1) ^ (v & 1 ? 0x9908b0dfu : 0);
  };
  uint32_t* s = state.data();
  for (int i = 0; i < kWords - kShift; i++) s[i] = s[i + kShift] ^ twist(s[i], s[i + 1]);
  for (int i = kWords - kShift; i < kWords - 1; i++) s[i] = s[i + kShift - kWords] ^ twist(s[i], s[i + 1]);
  s[kWords - 1] = s[kShift - 1] ^ twist(s[kWords - 1], s[0]);
  left = kWords;
  next = 0;
}

void Mt19937::fill(std::span<uint32_t> out) {
  while (!out.empty()) {
    if (left == 1) {
      next_state();
      left++;  // operator() counts down before it reads, a fresh block is at its start
    }
    const size_t n = std::min(out.size(), static_cast<size_t>(left - 1));
    const uint32_t* s = state.data() + next;
    for (size_t i = 0; i < n; i++) out[i] = temper(s[i]);
    left -= static_cast<int>(n);
    next += static_cast<uint32_t>(n);
    out = out.subspan(n);
  }
}

namespace {

// PyTorch's CPUGeneratorImplState, which starts with the struct of its first C releases.
struct SavedState {
  uint64_t seed;
  int32_t left, seeded;
  uint64_t next;
  uint64_t state[Mt19937::kWords];
  double normal_x, normal_y, normal_rho;
  int32_t normal_is_valid, padding;
  float next_float_normal;
  uint8_t next_float_normal_is_valid, end[3];
};
static_assert(sizeof(SavedState) == Generator::kStateBytes);

}  // namespace

Generator::Generator(Device device, uint64_t seed) : device_(device), engine_(seed) {}

void Generator::manual_seed(uint64_t seed) {
  std::lock_guard guard(mutex_);
  device_seed_ = seed, offset_ = 0;
  if (!device_.is_cpu()) return;
  engine_ = Mt19937(seed);
  next_float_normal.reset();
  next_double_normal.reset();
}

uint64_t Generator::seed() {
  std::random_device entropy;
  // 53 bits, so that the seed survives a trip through a double.
  const uint64_t high = entropy(), seed = (high << 32 | entropy()) & 0x1fffffffffffffu;
  manual_seed(seed);
  return seed;
}

uint64_t Generator::initial_seed() {
  std::lock_guard guard(mutex_);
  return device_.is_cpu() ? engine_.seed : device_seed_;
}

void Generator::get_state(std::span<std::byte> out) {
  std::lock_guard guard(mutex_);
  RL_ASSERT(out.size() == state_bytes(), "a state of another size");
  if (!device_.is_cpu()) {
    std::memcpy(out.data(), &device_seed_, 8);
    std::memcpy(out.data() + 8, &offset_, 8);
    return;
  }
  SavedState saved{};
  saved.seed = engine_.seed;
  saved.left = engine_.left;
  saved.seeded = engine_.seeded;
  saved.next = engine_.next;
  std::copy(engine_.state.begin(), engine_.state.end(), saved.state);
  saved.normal_is_valid = next_double_normal.has_value();
  saved.normal_y = next_double_normal.value_or(0);
  saved.next_float_normal_is_valid = next_float_normal.has_value();
  saved.next_float_normal = next_float_normal.value_or(0);
  std::memcpy(out.data(), &saved, sizeof saved);
}

void Generator::set_state(std::span<const std::byte> state) {
  if (!device_.is_cpu()) {
    RL_CHECK(state.size() == kDeviceStateBytes || state.size() == 8, "RNG state is wrong size");
    std::lock_guard guard(mutex_);
    offset_ = 0;
    std::memcpy(&device_seed_, state.data(), 8);
    if (state.size() > 8) std::memcpy(&offset_, state.data() + 8, 8);
    return;
  }
  RL_CHECK(state.size() == kStateBytes, "Expected a CPUGeneratorImplState of size ", kStateBytes,
           " but found the input RNG state size to be ", state.size());
  SavedState saved;
  std::memcpy(&saved, state.data(), sizeof saved);
  Mt19937 engine(saved.seed);
  engine.left = saved.left;
  engine.seeded = saved.seeded != 0;
  engine.next = static_cast<uint32_t>(std::min<uint64_t>(saved.next, UINT32_MAX));
  for (int i = 0; i < Mt19937::kWords; i++) engine.state[i] = static_cast<uint32_t>(saved.state[i]);
  // What is left and where to read must agree, or a damaged state would make reads run past its end.
  const bool agrees = engine.next + static_cast<uint32_t>(engine.left) <= Mt19937::kWords + 1u;
  RL_CHECK(engine.valid() && agrees, "Invalid mt19937 state");
  std::lock_guard guard(mutex_);
  engine_ = engine;
  next_double_normal = saved.normal_is_valid ? std::optional(saved.normal_y) : std::nullopt;
  next_float_normal =
      saved.next_float_normal_is_valid ? std::optional(saved.next_float_normal) : std::nullopt;
}

Ref<Generator> Generator::clone() {
  std::lock_guard guard(mutex_);
  auto copy = make_ref<Generator>(device_);
  copy->engine_ = engine_;
  copy->device_seed_ = device_seed_, copy->offset_ = offset_;
  copy->next_float_normal = next_float_normal;
  copy->next_double_normal = next_double_normal;
  return copy;
}

Generator::Place Generator::take(uint64_t draws) {
  std::lock_guard guard(mutex_);
  draws = (draws + 3) / 4 * 4;
  if (graph_base_) return {0, std::exchange(graph_offset_, graph_offset_ + draws), graph_base_};
  return {device_seed_, std::exchange(offset_, offset_ + draws)};
}

uint64_t Generator::offset() {
  std::lock_guard guard(mutex_);
  return offset_;
}
void Generator::set_offset(uint64_t offset) {
  RL_CHECK(offset % 4 == 0, "offset must be a multiple of 4");
  std::lock_guard guard(mutex_);
  offset_ = offset;
}
void Generator::begin_graph(const uint64_t* base) {
  std::lock_guard guard(mutex_);
  graph_base_ = base, graph_offset_ = 0;
}
uint64_t Generator::end_graph() {
  std::lock_guard guard(mutex_);
  graph_base_ = nullptr;
  return graph_offset_;
}

namespace {
struct DeviceGenerators {
  std::mutex mutex;
  std::array<Generator*, 128> all{};  // never destroyed
  std::optional<uint64_t> seed;
};
DeviceGenerators& device_generators() {
  static auto* one = new DeviceGenerators;
  return *one;
}
}  // namespace

Generator& device_generator(int device) {
  DeviceGenerators& generators = device_generators();
  std::lock_guard guard(generators.mutex);
  Generator*& found = generators.all[static_cast<size_t>(device)];
  if (!found) {
    found = new Generator(Device{DeviceType::CUDA, static_cast<int8_t>(device)});
    if (generators.seed) found->manual_seed(*generators.seed);
  }
  return *found;
}

void seed_device_generators(uint64_t seed) {
  DeviceGenerators& generators = device_generators();
  std::lock_guard guard(generators.mutex);
  generators.seed = seed;
  for (Generator* g : generators.all)
    if (g) g->manual_seed(seed);
}

Generator& process_generator() {
  // Never destroyed, and its lock survives a fork while another thread draws.
  static Generator& instance = *[] {
    host::around_fork([] { process_generator().mutex().lock(); },
                      [] { process_generator().mutex().unlock(); },
                      [] { process_generator().mutex().unlock(); });
    return new Generator;
  }();
  return instance;
}

static thread_local Ref<Generator> own_generator;

void set_thread_generator(Ref<Generator> generator) { own_generator = std::move(generator); }

Generator& default_generator() { return own_generator ? *own_generator : process_generator(); }

}  // namespace rushlight
