#include <gtest/gtest.h>

#include <bit>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <random>
#include <string>

#include "core/real_number.h"

namespace rushlight {

#if defined(__cpp_lib_to_chars)
static void same(const std::string& text) {
  double plain = 7, standard = 7;
  const char *begin = text.data(), *end = begin + text.size();
  const auto a = real_from_chars_plainly(begin, end, plain);
  const auto b = std::from_chars(begin, end, standard);
  EXPECT_EQ(a.ec, b.ec) << text;
  EXPECT_EQ(a.ptr - begin, b.ptr - begin) << text;
  if (std::isnan(standard))
    EXPECT_TRUE(std::isnan(plain)) << text;
  else
    EXPECT_EQ(std::bit_cast<uint64_t>(plain), std::bit_cast<uint64_t>(standard)) << text;
}

TEST(RealNumber, IsWhatTheStandardLibraryReads) {
  for (const char* text : {"0",
                           "-0",
                           "1",
                           "-1.5",
                           "1.",
                           ".5",
                           ".",
                           "-",
                           "",
                           "+1",
                           " 1",
                           "1e5",
                           "1e",
                           "1e+",
                           "1e-",
                           "1E-3x",
                           "e5",
                           "1e400",
                           "-1e400",
                           "1e-400",
                           "0e999",
                           "0.0e-999",
                           "4.9e-324",
                           "2.2250738585072011e-308",
                           "1e-310",
                           "1.7976931348623157e308",
                           "1.7976931348623159e308",
                           "inf",
                           "-inf",
                           "Infinity",
                           "infinit",
                           "NaN",
                           "-nan",
                           "nanx",
                           "in",
                           "0x10",
                           "1,5",
                           "1_000",
                           "12..5",
                           "1.5.2",
                           "--1",
                           "1e5.5",
                           "00012",
                           "1e0000000005"})
    same(text);
  std::mt19937_64 random(0);
  for (int i = 0; i < 2000; ++i) {
    const auto number = std::bit_cast<double>(random());
    char text[64];
    const auto written = std::to_chars(text, text + sizeof text, number);
    if (std::isfinite(number)) same(std::string(text, written.ptr));
  }
}
#endif

TEST(RealNumber, LeavesTheValueWhereThereIsNone) {
  const std::string text = "x1";
  double value = 7;
  EXPECT_EQ(real_from_chars(text.data(), text.data() + 2, value).ec, std::errc::invalid_argument);
  EXPECT_EQ(real_from_chars(text.data() + 1, text.data() + 2, value).ec, std::errc());
  EXPECT_EQ(value, 1);
}

}  // namespace rushlight
