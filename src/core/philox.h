// Philox 4x32-10 (Salmon et al., 2011), the generator of random numbers on devices: a function of a key and a
// counter, so that every thread draws from a stream of its own without a state in memory.
#pragma once
#include <cstdint>

#ifdef __CUDACC__
#define RL_PHILOX __host__ __device__
#else
#define RL_PHILOX
#endif

namespace rushlight {

struct Philox {
  uint32_t key[2], counter[4];

  // The numbers 4 * offset and on of one of 2^64 streams.
  RL_PHILOX Philox(uint64_t seed, uint64_t stream, uint64_t offset)
      : key{static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)},
        counter{static_cast<uint32_t>(offset), static_cast<uint32_t>(offset >> 32),
                static_cast<uint32_t>(stream), static_cast<uint32_t>(stream >> 32)} {}

  // Four numbers; the counter stays.
  RL_PHILOX void draw(uint32_t* out) const {
    uint32_t k0 = key[0], k1 = key[1], c0 = counter[0], c1 = counter[1], c2 = counter[2], c3 = counter[3];
    for (int round = 0; round < 10; ++round) {
      if (round > 0) k0 += 0x9E3779B9u, k1 += 0xBB67AE85u;
      const uint64_t p0 = uint64_t{0xD2511F53u} * c0, p1 = uint64_t{0xCD9E8D57u} * c2;
      const auto high0 = static_cast<uint32_t>(p0 >> 32), high1 = static_cast<uint32_t>(p1 >> 32);
      c0 = high1 ^ c1 ^ k0, c1 = static_cast<uint32_t>(p1);
      c2 = high0 ^ c3 ^ k1, c3 = static_cast<uint32_t>(p0);
    }
    out[0] = c0, out[1] = c1, out[2] = c2, out[3] = c3;
  }
};

}  // namespace rushlight
