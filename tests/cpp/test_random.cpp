// Values drawn by torch 2.13 after manual_seed(2024). Hashes are over the exact bytes; where the last bit
// depends on the instruction set (see cpu/isa/random.cpp) single values are compared instead.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "core/host/processor.h"
#include "cpu/random.h"

namespace rushlight {
namespace {

using cpu::RandomOut;

template <class T>
uint64_t fnv(const std::vector<T>& values) {
  uint64_t h = 0xcbf29ce484222325u;
  auto* bytes = reinterpret_cast<const unsigned char*>(values.data());
  for (size_t i = 0; i < values.size() * sizeof(T); i++) h = (h ^ bytes[i]) * 0x100000001b3u;
  return h;
}

template <class T, class F>
std::vector<T> draw(size_t n, F f) {
  std::vector<T> values(n);
  Generator g({}, 2024);
  f(RandomOut{dtype_of<T>, values.data(), static_cast<int64_t>(n)}, g);
  return values;
}

template <class T>
void expect_starts(const std::vector<T>& values, std::initializer_list<double> expected, double tolerance) {
  size_t i = 0;
  for (double e : expected) EXPECT_NEAR(static_cast<double>(values[i++]), e, tolerance);
}

bool fuses() { return host::isa() != host::Isa::kBaseline; }

template <class T>
std::vector<T> unit(size_t n) {
  return draw<T>(n, [](RandomOut out, Generator& g) { cpu::fill_uniform(out, 0, 1, g); });
}

TEST(Random, Uniform) {
  EXPECT_EQ(fnv(unit<float>(1000)), 0xbeb59babb7b9f075u);
  EXPECT_EQ(fnv(unit<double>(1000)), 0x4e767c65236d4320u);
  EXPECT_EQ(fnv(unit<Half>(1000)), 0xb9f5c38edbaaf160u);
  EXPECT_EQ(fnv(unit<BFloat16>(1000)), 0x8b01f5ae81d638d7u);
  auto range = draw<float>(1000, [](RandomOut out, Generator& g) { cpu::fill_uniform(out, -0.3, 2.7, g); });
  expect_starts(range, {1.2951476573944092, 2.1938037872314453, 2.615514039993286, 0.057902514934539795},
                1e-6);
  if (fuses()) {
    EXPECT_EQ(fnv(range), 0xcfe14a8bbc8af2fbu);
  }
}

TEST(Random, UniformNeverReachesItsEnd) {
  auto values =
      draw<float>(1000, [](RandomOut out, Generator& g) { cpu::fill_uniform(out, 1e7, 1e7 + 2, g); });
  for (float v : values) ASSERT_TRUE(v == 1e7f || v == 1e7f + 1);
  for (Half v : unit<Half>(100000)) ASSERT_LT(static_cast<float>(v), 1.0f);
}

template <class T>
std::vector<T> normal(size_t n, double mean = 0, double std = 1) {
  return draw<T>(n, [=](RandomOut out, Generator& g) { cpu::fill_normal(out, mean, std, true, g); });
}

TEST(Random, Normal) {
  expect_starts(normal<float>(1003), {-1.2262355089187622, -0.009314819239079952, 1.541957974433899}, 1e-6);
  expect_starts(normal<double>(1003), {-0.7040247420378066, 1.3312587303505539, 0.6143000993844849}, 1e-14);
  expect_starts(normal<Half>(1003), {-1.2265625, -0.00931549072265625, 1.5419921875, -0.465576171875}, 1e-3);
  expect_starts(normal<float>(15), {-0.040429167449474335, 1.7259920835494995, -0.8140387535095215}, 1e-6);
  if (!fuses()) GTEST_SKIP() << "the last bits are those of another build of PyTorch";
  EXPECT_EQ(fnv(normal<float>(1003)), 0xbe20de9de388b84cu);
  EXPECT_EQ(fnv(normal<Half>(1003)), 0x8eb5d6c51146dd14u);
  EXPECT_EQ(fnv(normal<float>(1000, 0.3, 1.7)), 0x9937bf2144591e67u);
}

template <class T>
uint64_t integers(int64_t base, uint64_t range) {
  return fnv(draw<T>(1000, [=](RandomOut out, Generator& g) { cpu::fill_integers(out, base, range, g); }));
}

TEST(Random, Integers) {
  EXPECT_EQ(integers<int64_t>(-5, 1005), 0xfe164b81b50d372du);
  EXPECT_EQ(integers<int8_t>(-5, 105), 0xa259366ab9ae2u);
  EXPECT_EQ(integers<int64_t>(0, uint64_t{1} << 28), 0xecd985dad8c267b1u);
  auto any = [](RandomOut out, Generator& g) { cpu::fill_integers(out, g); };
  EXPECT_EQ(fnv(draw<int64_t>(1000, any)), 0xd0e08819dd0ae180u);
  EXPECT_EQ(fnv(draw<float>(1000, any)), 0xda520addd3cf4bbbu);
  std::vector<uint8_t> bools(1000);
  Generator g({}, 2024);
  cpu::fill_integers(RandomOut{DType::Bool, bools.data(), 1000}, g);
  EXPECT_EQ(fnv(bools), 0x1b5e72aaaa15a1du);
  auto full = [](RandomOut out, Generator& g) { cpu::fill_integers64(out, g); };
  EXPECT_EQ(fnv(draw<int64_t>(1000, full)), 0x984a0cd7a680a800u);
}

TEST(Random, Distributions) {
  EXPECT_EQ(fnv(draw<float>(1000, [](RandomOut out, Generator& g) { cpu::fill_bernoulli(out, 0.3, g); })),
            0x1ba0d2ccadbabd68u);
  EXPECT_EQ(fnv(draw<int64_t>(1000, [](RandomOut out, Generator& g) { cpu::fill_permutation(out, g); })),
            0x9c04408a27747b35u);
  EXPECT_EQ(fnv(draw<int64_t>(1000, [](RandomOut out, Generator& g) { cpu::fill_geometric(out, 0.2, g); })),
            0x58452a53fc37f9f9u);
  expect_starts(draw<double>(1000, [](RandomOut out, Generator& g) { cpu::fill_exponential(out, 1.5, g); }),
                {0.19510948209043244, 0.9935611055565264, 0.2721976449182651}, 1e-14);
  expect_starts(draw<double>(1000, [](RandomOut out, Generator& g) { cpu::fill_cauchy(out, 1, 2, g); }),
                {-0.9537011427193081, 3.337299424994604, -0.13896322986027054}, 1e-13);
  expect_starts(draw<double>(1000, [](RandomOut out, Generator& g) { cpu::fill_log_normal(out, 1, 2, g); }),
                {2.5071375029058496, 85.79701712610897, 0.5336166783657664}, 1e-12);
}

TEST(Random, RefusesOtherTypes) {
  int32_t value;
  Generator g;
  EXPECT_THROW(cpu::fill_uniform({DType::Int32, &value, 1}, 0, 1, g), Error);
  EXPECT_THROW(cpu::fill_normal({DType::Int32, &value, 1}, 0, 1, true, g), Error);
  const float p = 1.5f;
  EXPECT_THROW(cpu::fill_bernoulli({DType::Int32, &value, 1}, DType::Float32, &p, g), Error);
  const float rate = -1;
  float result;
  EXPECT_THROW(cpu::draw_poisson({DType::Float32, &result, 1}, &rate, g), Error);
}

TEST(Random, WeightedDrawsFollowTheWeights) {
  const float weights[] = {1, 0, 3};
  std::vector<int64_t> drawn(40000);
  Generator g({}, 1);
  cpu::draw_with_replacement(DType::Float32, weights, 1, 3, 40000, drawn.data(), g);
  EXPECT_NEAR(std::count(drawn.begin(), drawn.end(), 0), 10000, 300);
  EXPECT_EQ(std::count(drawn.begin(), drawn.end(), 1), 0);
}

}  // namespace
}  // namespace rushlight
