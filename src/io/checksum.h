// XXH64, the checksum of model files: several bytes a cycle, so that checking costs less than reading.
#pragma once
#include <cstddef>
#include <cstdint>

namespace rushlight::io {

uint64_t xxh64(const void* data, size_t nbytes);

// The same of bytes that come in parts. Every part but the last is a multiple of 32 long.
class Xxh64 {
 public:
  Xxh64();
  void add(const void* part, size_t nbytes);
  uint64_t finish() const;

 private:
  uint64_t lanes_[4];
  size_t nbytes_ = 0;
  std::byte rest_[32] = {};
};

}  // namespace rushlight::io
