// Which numbers of a stream attention's dropout takes for which weights, on the host.
#include <gtest/gtest.h>

#include <map>

#include "cuda/attention_plan.h"

namespace rushlight::cuda {
namespace {

float number(uint64_t seed, uint64_t n) {
  uint32_t x[4];
  Philox(seed, 0, n / 4).draw(x);
  return uniform(x[n % 4]);
}

// All keys of a tile, each of them in the hands of one sharer, and each with the number of its place.
template <int keys, int sharers>
void check_tile(const AttentionPlan& plan, int64_t b, int64_t query, int64_t from, uint64_t seed,
                uint64_t offset) {
  std::map<int, bool> seen;
  for (int sharer = 0; sharer < sharers; ++sharer)
    plan.for_own<keys, sharers>(sharer, b, query, from, [&](int j, bool kept) {
      EXPECT_TRUE(seen.emplace(j, kept).second) << "key " << j << " twice";
    });
  ASSERT_EQ(seen.size(), static_cast<size_t>(keys));
  const DeviceAttention& p = plan.p;
  for (const auto& [j, kept] : seen) {
    const auto place = offset + static_cast<uint64_t>((b * p.queries + query) * p.keys + from + j);
    const bool stays = p.dropout.p == 0 || number(seed, place) > static_cast<float>(p.dropout.p);
    EXPECT_EQ(kept, stays) << "query " << query << ", key " << from + j;
  }
}

TEST(CudaAttention, DropsByTheNumberOfAWeight) {
  AttentionPlan plan;
  plan.p.queries = 7, plan.p.keys = 101;  // rows begin at all places within four numbers
  for (double p : {0.0, 0.3}) {
    plan.p.dropout = {p, 11, 8};
    for (int64_t query = 0; query < 7; ++query)
      for (int64_t from : {0, 32, 64}) {
        check_tile<32, 8>(plan, 3, query, from, 11, 8);
        check_tile<64, 4>(plan, 2, query, from, 11, 8);
        check_tile<32, 4>(plan, 0, query, from, 11, 8);
      }
  }
}

TEST(CudaAttention, ReadsWhereAGraphIsWhenItRuns) {
  const int64_t seed = -5, offset = (int64_t{1} << 33) + 4;  // above what 32 bits count
  AttentionPlan plan;
  plan.p.queries = 2, plan.p.keys = 66;
  plan.p.dropout = {0.5, 0, 0, &seed, &offset};
  check_tile<32, 8>(plan, 1, 1, 32, static_cast<uint64_t>(seed), static_cast<uint64_t>(offset));
}

// A tile of scores, of which some lie beyond the ends, and what each element of a mask gets of it.
TEST(CudaAttention, AddsUpWhatAMaskServes) {
  constexpr int kRows = 8, kColumns = 4, kStep = 5;
  DeviceAttention p;
  p.queries = 10, p.keys = 7;
  const int64_t first = 4, from = 4;
  double tile[kRows * kStep] = {};
  for (int r = 0; r < kRows && first + r < p.queries; ++r)
    for (int c = 0; c < kColumns && from + c < p.keys; ++c)
      tile[r * kStep + c] = 100 * (first + r) + from + c;
  for (const bool one_row : {false, true})
    for (const bool one_column : {false, true}) {
      std::vector<double> found(70, 0.5), wanted(70, 0.5);
      DeviceAttentionGradients g;
      g.mask.data = found.data();
      g.mask.row = one_row ? 0 : one_column ? 1 : 7;
      g.mask_column = one_column ? 0 : 1;
      g.mask_adds = one_row || one_column;
      for (uint32_t t = 0; t < kTeamThreads; ++t)
        put_mask_gradient<kRows, kColumns>(t, p, g, 0, first, from, tile, kStep);
      if (!g.mask_adds)
        for (int64_t q = first; q < p.queries; ++q)
          for (int64_t k = from; k < p.keys; ++k) wanted[static_cast<size_t>(q * 7 + k)] = 0;
      for (int64_t q = first; q < p.queries; ++q)
        for (int64_t k = from; k < p.keys; ++k)
          wanted[static_cast<size_t>(q * g.mask.row + k * g.mask_column)] += static_cast<double>(100 * q + k);
      EXPECT_EQ(found, wanted) << one_row << one_column;
    }
}

}  // namespace
}  // namespace rushlight::cuda
