// The checksum of zip archives.
#pragma once
#include <cstddef>
#include <cstdint>

namespace rushlight {

/// CRC-32 of the bytes, or of what came before (whose checksum is `before`) followed by them.
uint32_t crc32(const void* data, size_t bytes, uint32_t before = 0);
/// Whether this processor multiplies polynomials; else zlib is faster.
bool crc32_is_fast();

}  // namespace rushlight
