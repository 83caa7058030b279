#include "io/checksum.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace rushlight::io {
namespace {

static_assert(std::endian::native == std::endian::little);
constexpr uint64_t kPrime1 = 0x9E3779B185EBCA87, kPrime2 = 0xC2B2AE3D27D4EB4F, kPrime3 = 0x165667B19E3779F9,
                   kPrime4 = 0x85EBCA77C2B2AE63, kPrime5 = 0x27D4EB2F165667C5;

template <class T>
T read(const std::byte* p) {
  T value;
  std::memcpy(&value, p, sizeof value);
  return value;
}
uint64_t round(uint64_t lane, uint64_t input) { return std::rotl(lane + input * kPrime2, 31) * kPrime1; }
uint64_t merge(uint64_t hash, uint64_t lane) { return (hash ^ round(0, lane)) * kPrime1 + kPrime4; }

}  // namespace

Xxh64::Xxh64() : lanes_{kPrime1 + kPrime2, kPrime2, 0, uint64_t{0} - kPrime1} {}

void Xxh64::add(const void* part, size_t nbytes) {
  const auto* p = static_cast<const std::byte*>(part);
  const std::byte* end = p + nbytes;
  for (; end - p >= 32; p += 32)
    for (int i = 0; i < 4; ++i) lanes_[i] = round(lanes_[i], read<uint64_t>(p + 8 * i));
  std::copy(p, end, rest_);
  nbytes_ += nbytes;
}

uint64_t Xxh64::finish() const {
  uint64_t hash = kPrime5;
  if (nbytes_ >= 32) {
    hash = std::rotl(lanes_[0], 1) + std::rotl(lanes_[1], 7) + std::rotl(lanes_[2], 12) +
           std::rotl(lanes_[3], 18);
    for (const uint64_t lane : lanes_) hash = merge(hash, lane);
  }
  hash += nbytes_;
  const std::byte *p = rest_, *end = rest_ + nbytes_ % 32;
  for (; end - p >= 8; p += 8) hash = std::rotl(hash ^ round(0, read<uint64_t>(p)), 27) * kPrime1 + kPrime4;
  if (end - p >= 4) {
    hash = std::rotl(hash ^ read<uint32_t>(p) * kPrime1, 23) * kPrime2 + kPrime3;
    p += 4;
  }
  for (; p < end; ++p) hash = std::rotl(hash ^ static_cast<uint64_t>(*p) * kPrime5, 11) * kPrime1;
  hash = (hash ^ hash >> 33) * kPrime2;
  hash = (hash ^ hash >> 29) * kPrime3;
  return hash ^ hash >> 32;
}

uint64_t xxh64(const void* data, size_t nbytes) {
  Xxh64 sum;
  sum.add(data, nbytes);
  return sum.finish();
}

}  // namespace rushlight::io
