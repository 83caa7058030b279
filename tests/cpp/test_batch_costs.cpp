// The server's choice of how many rows it computes together.
#include <gtest/gtest.h>

#include <functional>
#include <map>

#include "serve/batch_costs.h"

namespace rushlight::serve {
namespace {

// How often each size was chosen, of `rounds` batches while `waiting` rows wait, where a batch takes
// `seconds(rows)`.
std::map<int64_t, int> chosen(BatchCosts& costs, int64_t waiting, int rounds,
                              const std::function<double(int64_t)>& seconds) {
  std::map<int64_t, int> counts;
  for (int i = 0; i < rounds; ++i) {
    const int64_t rows = costs.choose(waiting);
    ++counts[rows];
    costs.add(rows, seconds(rows));
  }
  return counts;
}

TEST(BatchCosts, CheapRowsAreComputedTogether) {
  BatchCosts costs;
  auto counts = chosen(costs, 23, 320, [](int64_t rows) { return 1e-3 + 1e-5 * static_cast<double>(rows); });
  EXPECT_GE(counts[16], 290);  // the powers of two below are tried in turn
  EXPECT_EQ(counts.rbegin()->first, 16);
}

TEST(BatchCosts, RowsThatGainNothingAreComputedAlone) {
  BatchCosts costs;
  auto counts = chosen(costs, 16, 320,
                       [](int64_t rows) { return rows == 1 ? 0.078 : 0.102 * static_cast<double>(rows); });
  EXPECT_GE(counts[1], 290);
}

TEST(BatchCosts, TheBestSizeLiesBetween) {
  BatchCosts costs;
  auto counts = chosen(costs, 64, 650, [](int64_t rows) {
    const auto n = static_cast<double>(rows);
    return 0.004 + 0.001 * n + (rows > 4 ? 0.003 * n : 0);
  });
  EXPECT_GE(counts[4], 400);
  EXPECT_EQ(costs.choose(3), 2);  // no more than wait
}

TEST(BatchCosts, WhatWasSlowOnceIsTriedAgain) {
  BatchCosts costs;
  chosen(costs, 8, 200, [](int64_t rows) { return rows == 1 ? 1e-3 : 5e-3 * static_cast<double>(rows); });
  auto later = chosen(costs, 8, 2000, [](int64_t rows) { return 1e-3 + 1e-5 * static_cast<double>(rows); });
  EXPECT_GE(later[8], 1500);
}

}  // namespace
}  // namespace rushlight::serve
