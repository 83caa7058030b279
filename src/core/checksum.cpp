#include "core/checksum.h"

#include <array>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace rushlight {
namespace {

// Bits are reflected: the lowest one belongs to the highest power of x.
constexpr uint32_t kPolynomial = 0xEDB88320;

constexpr uint32_t times_x(uint32_t p) { return (p >> 1) ^ (p & 1 ? kPolynomial : 0); }

constexpr auto kTable = [] {
  std::array<uint32_t, 256> table{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    table[byte] = byte;
    for (int bit = 0; bit < 8; ++bit) table[byte] = times_x(table[byte]);
  }
  return table;
}();

uint32_t by_bytes(uint32_t state, const uint8_t* p, size_t n) {
  for (; n; --n) state = kTable[(state ^ *p++) & 0xFF] ^ (state >> 8);
  return state;
}

#if defined(__x86_64__)
#define RL_CLMUL __attribute__((target("pclmul,sse4.1")))

// x^n mod the polynomial, in the place where a carry-less product of reflected numbers expects it.
constexpr uint64_t power_of_x(int n) {
  uint32_t p = 0x80000000;
  for (; n; --n) p = times_x(p);
  return uint64_t{p} << 1;
}

// A remainder of 128 bits, `distance` bits further on: both halves are multiplied by what their power of x
// leaves.
template <int distance>
RL_CLMUL __m128i folded(__m128i x, __m128i next) {
  const __m128i powers = _mm_set_epi64x(power_of_x(distance - 32), power_of_x(distance + 32));
  const __m128i low = _mm_clmulepi64_si128(x, powers, 0x00), high = _mm_clmulepi64_si128(x, powers, 0x11);
  return _mm_xor_si128(_mm_xor_si128(low, high), next);
}

RL_CLMUL __m128i block(const uint8_t* p) { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(p)); }

// At least 64 bytes, four blocks at a time; the last 16 that are left over stand for all before them.
RL_CLMUL uint32_t by_blocks(uint32_t state, const uint8_t* p, size_t n) {
  __m128i x[4];
  for (int i = 0; i < 4; ++i) x[i] = block(p + 16 * i);
  x[0] = _mm_xor_si128(x[0], _mm_cvtsi32_si128(static_cast<int>(state)));
  for (p += 64, n -= 64; n >= 64; p += 64, n -= 64)
    for (int i = 0; i < 4; ++i) x[i] = folded<512>(x[i], block(p + 16 * i));
  __m128i rest = x[0];
  for (int i = 1; i < 4; ++i) rest = folded<128>(rest, x[i]);
  for (; n >= 16; p += 16, n -= 16) rest = folded<128>(rest, block(p));
  uint8_t last[16];
  _mm_storeu_si128(reinterpret_cast<__m128i*>(last), rest);
  return by_bytes(by_bytes(0, last, 16), p, n);
}
#endif

}  // namespace

bool crc32_is_fast() {
#if defined(__x86_64__)
  static const bool fast = __builtin_cpu_supports("pclmul") && __builtin_cpu_supports("sse4.1");
  return fast;
#else
  return false;
#endif
}

uint32_t crc32(const void* data, size_t bytes, uint32_t before) {
  const auto* p = static_cast<const uint8_t*>(data);
#if defined(__x86_64__)
  if (bytes >= 64 && crc32_is_fast()) return ~by_blocks(~before, p, bytes);
#endif
  return ~by_bytes(~before, p, bytes);
}

}  // namespace rushlight
