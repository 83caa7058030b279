// XXH64, the checksum of model files: several bytes a cycle, so that checking costs less than reading.
#pragma once
#include <cstddef>
#include <cstdint>

namespace rushlight::io {

uint64_t xxh64(const void* data, size_t nbytes);

}  // namespace rushlight::io
