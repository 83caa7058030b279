// The checksum of zip records and model files.
#pragma once
#include <cstddef>
#include <cstdint>

namespace rushlight {

// CRC-32 as in zip (polynomial 0xedb88320, reflected). `crc` is that of the bytes before, to go on from.
uint32_t crc32(const void* data, size_t size, uint32_t crc = 0);

}  // namespace rushlight
