// Where a reader's bytes come from: memory, or an object of another language.
#pragma once
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace rushlight::io {

class ByteSource {
 public:
  explicit ByteSource(uint64_t size) : size_(size) {}
  virtual ~ByteSource() = default;
  ByteSource(const ByteSource&) = delete;
  uint64_t size() const { return size_; }
  // Fills `to` from a position on; returns how many bytes there were, fewer than `nbytes` only at the end.
  virtual size_t read(uint64_t at, void* to, size_t nbytes) = 0;

 protected:
  uint64_t size_;
};

class MemorySource final : public ByteSource {
 public:
  explicit MemorySource(std::string_view bytes) : ByteSource(bytes.size()), bytes_(bytes) {}
  size_t read(uint64_t at, void* to, size_t nbytes) override {
    const size_t count = at < bytes_.size() ? std::min<size_t>(nbytes, bytes_.size() - at) : 0;
    if (count) std::memcpy(to, bytes_.data() + at, count);
    return count;
  }

 private:
  std::string_view bytes_;
};

}  // namespace rushlight::io
