// Generator: a source of random numbers with PyTorch's stream, value for value: mt19937 on the CPU, Philox
// (core/philox.h) on devices.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <span>

#include "core/device.h"
#include "core/ref.h"

namespace rushlight {

// The 32-bit Mersenne twister, in the variables PyTorch's saved states are made of.
class Mt19937 {
 public:
  static constexpr int kWords = 624;
  explicit Mt19937(uint64_t seed);

  uint32_t operator()() {
    if (--left == 0) next_state();
    return temper(state[next++]);
  }
  // As many calls of operator() as `out` is long, in bulk.
  void fill(std::span<uint32_t> out);
  bool valid() const { return seeded && left > 0 && left <= kWords && next <= kWords; }

  uint64_t seed;
  int left = 1;
  bool seeded = true;
  uint32_t next = 0;
  std::array<uint32_t, kWords> state;

 private:
  void next_state();
  static uint32_t temper(uint32_t y) {
    y ^= y >> 11;
    y ^= (y << 7) & 0x9d2c5680u;
    y ^= (y << 15) & 0xefc60000u;
    return y ^ (y >> 18);
  }
};

// Callers that draw hold mutex(); the functions that seed, save and restore take it themselves.
class Generator final : public RefCounted {
 public:
  static constexpr uint64_t kDefaultSeed = 67280421310721;
  static constexpr size_t kStateBytes = 5056;
  static constexpr size_t kDeviceStateBytes = 16;  // seed and offset

  explicit Generator(Device device = {}, uint64_t seed = kDefaultSeed);
  static void destroy(Generator* g) { delete g; }

  Device device() const { return device_; }
  std::mutex& mutex() { return mutex_; }

  void manual_seed(uint64_t seed);
  uint64_t seed();  // seeds from the system's entropy and returns the new seed
  uint64_t initial_seed();
  // The layout of torch.get_rng_state(): states may be exchanged with PyTorch.
  size_t state_bytes() const { return device_.is_cpu() ? kStateBytes : kDeviceStateBytes; }
  void get_state(std::span<std::byte> out);
  void set_state(std::span<const std::byte> state);
  Ref<Generator> clone();

  uint32_t random() { return engine_(); }
  uint64_t random64() {
    const uint64_t high = engine_();
    return high << 32 | engine_();
  }
  void fill(std::span<uint32_t> out) { engine_.fill(out); }

  // Of generators for devices. A kernel whose threads draw up to `draws` numbers each takes its place in the
  // stream; places are multiples of 4.
  struct Place {
    uint64_t seed, offset;
    const uint64_t* base =
        nullptr;  // on the device: seed and offset to start from, where a graph is recorded
  };
  Place take(uint64_t draws);
  uint64_t offset();
  void set_offset(uint64_t offset);
  // While a graph is recorded, places count from what lies at `base` when it runs. Returns what it drew.
  void begin_graph(const uint64_t* base);
  uint64_t end_graph();

  // The second value of a Box-Muller pair waits here for the next single draw.
  std::optional<float> next_float_normal;
  std::optional<double> next_double_normal;

 private:
  Device device_;
  Mt19937 engine_;
  uint64_t device_seed_ = kDefaultSeed, offset_ = 0, graph_offset_ = 0;
  const uint64_t* graph_base_ = nullptr;
  std::mutex mutex_;
};

// The one that all threads share which have none of their own.
Generator& process_generator();
// From now on the calling thread draws from this one by default; null for the shared one.
void set_thread_generator(Ref<Generator> generator);
Generator& default_generator();
Generator& device_generator(int device);
// Those of all devices start anew, also those that nobody has used yet.
void seed_device_generators(uint64_t seed);
// What an operator got as its generator= argument, or the default one.
inline Generator& generator_or_default(Generator* g) { return g ? *g : default_generator(); }

}  // namespace rushlight
