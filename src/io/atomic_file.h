// A file that appears whole or not at all.
#pragma once
#include <string>
#include <string_view>

namespace rushlight::io {

// Written under another name beside its own, synchronised with the disk and then renamed: after a failure or
// a loss of power there is the former file or the new one. `what` begins the words of an error.
class AtomicFile {
 public:
  AtomicFile(std::string path, std::string what);
  ~AtomicFile();  // removes what was not committed
  AtomicFile(const AtomicFile&) = delete;

  void write(std::string_view bytes);
  size_t written() const { return written_; }
  void commit();

 private:
  void flush();
  void put(std::string_view bytes);
  void remove() const;
  [[noreturn]] void fail() const;

  const std::string path_, what_;
  std::string target_, fresh_;
  std::string buffer_;
  size_t written_ = 0;
  int file_ = -1;
};

}  // namespace rushlight::io
