#include <gtest/gtest.h>

#include <string>

#include "core/crc32.h"

namespace rushlight {
namespace {

// One bit after the other, as the definition says.
uint32_t by_bits(const std::string& text) {
  uint32_t c = ~0u;
  for (const char byte : text) {
    c ^= static_cast<uint8_t>(byte);
    for (int bit = 0; bit < 8; ++bit) c = (c >> 1) ^ (c & 1 ? 0xedb88320u : 0);
  }
  return ~c;
}

TEST(Crc32, FollowsItsDefinitionAtEveryLength) {
  EXPECT_EQ(crc32("123456789", 9), 0xcbf43926u);
  std::string text;
  for (int n = 0; n < 300; ++n) {
    EXPECT_EQ(crc32(text.data(), text.size()), by_bits(text)) << n;
    text.push_back(static_cast<char>(n * 37 + n / 7));
  }
}

TEST(Crc32, GoesOnFromAnEarlierPart) {
  std::string text(1000, '\0');
  for (size_t i = 0; i < text.size(); ++i) text[i] = static_cast<char>(i * i);
  for (size_t cut : {0, 1, 63, 64, 500, 1000})
    EXPECT_EQ(crc32(text.data() + cut, text.size() - cut, crc32(text.data(), cut)), by_bits(text)) << cut;
}

}  // namespace
}  // namespace rushlight
