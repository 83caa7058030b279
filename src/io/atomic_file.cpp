#include "io/atomic_file.h"

#include <utility>

#include "core/error.h"

namespace rushlight::io {

static constexpr size_t kBuffered = size_t{1} << 16;

AtomicFile::AtomicFile(std::string path, std::string what) : path_(std::move(path)), what_(std::move(what)) {
  check(file_.open(path_));
}

void AtomicFile::write(std::string_view bytes) {
  written_ += bytes.size();
  if (buffer_.size() + bytes.size() > kBuffered) flush();
  if (bytes.size() > kBuffered)
    check(file_.write(bytes));
  else
    buffer_ += bytes;
}

void AtomicFile::flush() {
  check(file_.write(buffer_));
  buffer_.clear();
}

void AtomicFile::commit() {
  flush();
  check(file_.commit());
}

void AtomicFile::check(std::error_code error) const {
  RL_CHECK(!error, what_, " '", path_, "': ", error.message());
}

}  // namespace rushlight::io
