// A file that appears whole or not at all.
#pragma once
#include <string>
#include <string_view>
#include <system_error>

#include "core/host/file.h"

namespace rushlight::io {

// A host::FileReplacement with a buffer. `what` begins the words of an error.
class AtomicFile {
 public:
  AtomicFile(std::string path, std::string what);

  void write(std::string_view bytes);
  size_t written() const { return written_; }
  void commit();

 private:
  void flush();
  void check(std::error_code error) const;

  const std::string path_, what_;
  std::string buffer_;
  size_t written_ = 0;
  host::FileReplacement file_;
};

}  // namespace rushlight::io
