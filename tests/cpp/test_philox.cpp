#include <gtest/gtest.h>

#include "core/philox.h"

namespace rushlight {
namespace {

// The answers that the authors publish with the generator.
TEST(Philox, KnownAnswers) {
  struct Case {
    uint32_t counter[4], key[2], expected[4];
  };
  const Case cases[] = {
      {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
      {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
       {0xffffffff, 0xffffffff},
       {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
      {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
       {0xa4093822, 0x299f31d0},
       {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
  };
  for (const Case& c : cases) {
    auto pair = [](uint32_t low, uint32_t high) { return uint64_t{high} << 32 | low; };
    const Philox philox(pair(c.key[0], c.key[1]), pair(c.counter[2], c.counter[3]),
                        pair(c.counter[0], c.counter[1]));
    uint32_t drawn[4];
    philox.draw(drawn);
    for (int i = 0; i < 4; ++i) EXPECT_EQ(drawn[i], c.expected[i]);
  }
}

}  // namespace
}  // namespace rushlight
