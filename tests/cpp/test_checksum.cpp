#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/checksum.h"

namespace rushlight {
namespace {

// Bit by bit, as the definition goes.
uint32_t by_definition(const std::vector<uint8_t>& bytes, size_t from, size_t count) {
  uint32_t state = 0xFFFFFFFF;
  for (size_t i = from; i < from + count; ++i) {
    state ^= bytes[i];
    for (int bit = 0; bit < 8; ++bit) state = (state >> 1) ^ (state & 1 ? 0xEDB88320 : 0);
  }
  return ~state;
}

TEST(Checksum, HasTheStandardsCheckValue) {
  const std::string digits = "123456789";
  EXPECT_EQ(crc32(digits.data(), digits.size()), 0xCBF43926);
  EXPECT_EQ(crc32(nullptr, 0), 0u);
}

TEST(Checksum, AllLengthsAndPlaces) {
  std::vector<uint8_t> bytes(1100);
  uint32_t random = 1;
  for (uint8_t& byte : bytes) byte = static_cast<uint8_t>((random = random * 1664525 + 1013904223) >> 24);
  for (size_t from : {0, 1, 7, 33})
    for (size_t count = 0; count < 300; ++count)
      ASSERT_EQ(crc32(bytes.data() + from, count), by_definition(bytes, from, count)) << from << " " << count;
  const uint32_t whole = by_definition(bytes, 0, 1000);
  for (size_t cut : {1, 63, 64, 500, 999})
    EXPECT_EQ(crc32(bytes.data() + cut, 1000 - cut, crc32(bytes.data(), cut)), whole);
}

}  // namespace
}  // namespace rushlight
