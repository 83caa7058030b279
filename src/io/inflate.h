// The compression of zip files (deflate, RFC 1951), reading.
#pragma once
#include <string>
#include <string_view>

namespace rushlight::io {

// What `packed` stands for; a ValueError unless that is exactly `size` bytes.
std::string inflate(std::string_view packed, size_t size);

}  // namespace rushlight::io
