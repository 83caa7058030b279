#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <random>
#include <vector>

#include "core/error.h"
#include "core/generator.h"

namespace rushlight {
namespace {

using State = std::array<std::byte, Generator::kStateBytes>;

State state_of(Generator& g) {
  State s;
  g.get_state(s);
  return s;
}

uint64_t fnv(const State& bytes) {
  uint64_t h = 0xcbf29ce484222325u;
  for (std::byte b : bytes) h = (h ^ static_cast<uint64_t>(b)) * 0x100000001b3u;
  return h;
}

TEST(Generator, IsTheStandardTwister) {
  for (uint32_t seed : {0u, 1u, 4294967295u}) {
    Generator g({}, seed);
    std::mt19937 reference(seed);
    for (int i = 0; i < 2000; i++) ASSERT_EQ(g.random(), reference());
  }
}

TEST(Generator, SixtyFourBitsAreHighWordFirst) {
  Generator g({}, 7);
  std::mt19937 reference(7);
  const uint64_t high = reference(), low = reference();
  EXPECT_EQ(g.random64(), high << 32 | low);
}

TEST(Generator, FillEqualsSingleDraws) {
  std::mt19937 sizes(3);
  Generator bulk({}, 9), single({}, 9);
  for (int round = 0; round < 200; round++) {
    std::vector<uint32_t> values(sizes() % 2000);
    bulk.fill(values);
    for (uint32_t v : values) ASSERT_EQ(v, single.random());
    ASSERT_EQ(state_of(bulk), state_of(single));
    ASSERT_EQ(bulk.random(), single.random());
  }
}

// Hashes of torch.Generator().manual_seed(42).get_state() before and after draws.
TEST(Generator, StatesArePyTorchs) {
  Generator g;
  g.manual_seed(42);
  EXPECT_EQ(fnv(state_of(g)), 0x54d354babfe0cddeu);
  for (int i = 0; i < 701; i++) g.random();
  EXPECT_EQ(fnv(state_of(g)), 0xebdeacd209bce7feu);
}

TEST(Generator, SavesAndRestores) {
  Generator g({}, 11);
  for (int i = 0; i < 1000; i++) g.random();
  g.next_double_normal = 0.25;
  g.next_float_normal = -3.5f;
  const State saved = state_of(g);
  Ref<Generator> copy = g.clone();
  const uint32_t following = g.random();
  Generator other;
  other.set_state(saved);
  EXPECT_EQ(other.next_double_normal, 0.25);
  EXPECT_EQ(other.next_float_normal, -3.5f);
  EXPECT_EQ(other.initial_seed(), 11u);
  EXPECT_EQ(other.random(), following);
  EXPECT_EQ(copy->random(), following);
  other.manual_seed(1);
  EXPECT_EQ(other.next_double_normal, std::nullopt);
}

TEST(Generator, RefusesDamagedStates) {
  Generator g;
  State s = state_of(g);
  EXPECT_THROW(g.set_state(std::span(s).first(5048)), Error);
  State zeros{};
  EXPECT_THROW(g.set_state(zeros), Error);
  const int32_t left = 500;  // would let the next reads leave the state
  const uint64_t next = 600;
  std::memcpy(s.data() + 8, &left, sizeof left);
  std::memcpy(s.data() + 16, &next, sizeof next);
  EXPECT_THROW(g.set_state(s), Error);
}

TEST(Generator, SeedsFromEntropy) {
  Generator g;
  const uint64_t a = g.seed(), b = g.seed();
  EXPECT_NE(a, b);
  EXPECT_EQ(g.initial_seed(), b);
  EXPECT_LT(b, uint64_t{1} << 53);
  EXPECT_EQ(default_generator().device(), Device{});
}

}  // namespace
}  // namespace rushlight
