#include "core/crc32.h"

#include <array>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include "core/host/processor.h"
#endif

namespace rushlight {
namespace {

// Bit 31 stands for x^0: multiplying by x is a shift to the right.
constexpr uint32_t kPolynomial = 0xedb88320u;
constexpr uint32_t times_x(uint32_t p) { return (p >> 1) ^ (p & 1 ? kPolynomial : 0); }

// Table k tells what a byte becomes k + 1 bytes later.
constexpr auto kTables = [] {
  std::array<std::array<uint32_t, 256>, 8> t{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t c = byte;
    for (int bit = 0; bit < 8; ++bit) c = times_x(c);
    t[0][byte] = c;
  }
  for (size_t k = 1; k < 8; ++k)
    for (size_t byte = 0; byte < 256; ++byte)
      t[k][byte] = t[0][t[k - 1][byte] & 0xff] ^ (t[k - 1][byte] >> 8);
  return t;
}();

// Eight bytes at a time (Kounavis and Berry, 2005). The register `c` is not inverted here.
uint32_t by_tables(uint32_t c, const uint8_t* p, size_t n) {
  for (; n >= 8; p += 8, n -= 8) {
    const uint32_t low = c ^ (p[0] | uint32_t{p[1]} << 8 | uint32_t{p[2]} << 16 | uint32_t{p[3]} << 24);
    c = kTables[7][low & 0xff] ^ kTables[6][low >> 8 & 0xff] ^ kTables[5][low >> 16 & 0xff] ^
        kTables[4][low >> 24] ^ kTables[3][p[4]] ^ kTables[2][p[5]] ^ kTables[1][p[6]] ^ kTables[0][p[7]];
  }
  for (; n; ++p, --n) c = kTables[0][(c ^ *p) & 0xff] ^ (c >> 8);
  return c;
}

#if defined(__x86_64__)
#define RL_CARRYLESS __attribute__((target("sse4.1,pclmul")))

// x^n modulo the polynomial, as a factor of a carry-less product of reflected numbers.
constexpr int64_t power_of_x(int n) {
  uint32_t p = 1u << 31;
  for (int i = 0; i < n; ++i) p = times_x(p);
  return static_cast<int64_t>(uint64_t{p} << 1);
}

RL_CARRYLESS inline __m128i load(const uint8_t* p) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
}
// A block moved on by as many bits as `factors` are made for, onto the block that stands there.
RL_CARRYLESS inline __m128i folded(__m128i block, __m128i factors, __m128i onto) {
  return _mm_xor_si128(onto, _mm_xor_si128(_mm_clmulepi64_si128(block, factors, 0x00),
                                           _mm_clmulepi64_si128(block, factors, 0x11)));
}

// Four blocks of 128 bits side by side, each folded over 512 bits at a time, then over each other (Gopal et
// al., "Fast CRC Computation for Generic Polynomials Using PCLMULQDQ Instruction", 2009). `n` >= 64.
RL_CARRYLESS uint32_t by_folding(uint32_t c, const uint8_t* p, size_t n) {
  const __m128i far = _mm_set_epi64x(power_of_x(512 - 32), power_of_x(512 + 32));
  const __m128i near = _mm_set_epi64x(power_of_x(128 - 32), power_of_x(128 + 32));
  __m128i b[4] = {_mm_xor_si128(load(p), _mm_cvtsi32_si128(static_cast<int>(c))), load(p + 16), load(p + 32),
                  load(p + 48)};
  for (p += 64, n -= 64; n >= 64; p += 64, n -= 64)
    for (int i = 0; i < 4; ++i) b[i] = folded(b[i], far, load(p + 16 * i));
  for (int i = 1; i < 4; ++i) b[i] = folded(b[i - 1], near, b[i]);
  for (; n >= 16; p += 16, n -= 16) b[3] = folded(b[3], near, load(p));
  // What is left is worth its 16 bytes.
  uint8_t rest[16];
  std::memcpy(rest, &b[3], sizeof rest);
  return by_tables(by_tables(0, rest, sizeof rest), p, n);
}

bool has_carryless() {
  static const bool has = __builtin_cpu_supports("pclmul") && __builtin_cpu_supports("sse4.1");
  return has;
}
#elif defined(__aarch64__)
// By the processor's instruction for this polynomial. In this form no function needs to be compiled for it.
uint32_t by_instruction(uint32_t c, const uint8_t* p, size_t n) {
  for (; n >= 8; p += 8, n -= 8) {
    uint64_t word;
    std::memcpy(&word, p, sizeof word);
    asm(".arch_extension crc\n\tcrc32x %w0, %w0, %x1" : "+r"(c) : "r"(word));
  }
  return by_tables(c, p, n);
}
#endif

}  // namespace

uint32_t crc32(const void* data, size_t size, uint32_t crc) {
  const auto* bytes = static_cast<const uint8_t*>(data);
#if defined(__x86_64__)
  if (size >= 64 && has_carryless()) return ~by_folding(~crc, bytes, size);
#elif defined(__aarch64__)
  static const bool has_instruction = host::has_checksums();
  if (has_instruction) return ~by_instruction(~crc, bytes, size);
#endif
  return ~by_tables(~crc, bytes, size);
}

}  // namespace rushlight
