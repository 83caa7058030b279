// The zip container of a .pt file: named records, stored as they are, each beginning at a multiple of 64
// bytes.
#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "io/byte_source.h"

namespace rushlight::io {

// Reads records by name. Nothing that the archive says is believed: each fault is a RuntimeError that names
// the file.
class Archive {
 public:
  enum class Holds { Object, Records };  // of Object, there must be a data.pkl or constants.pkl
  struct Record {
    std::string name;                           // without the archive's folder
    uint64_t header, size, packed_size, limit;  // `limit`: where the next record begins
    uint32_t crc;
    uint16_t method, flags;
  };

  // `name` is for errors.
  Archive(std::unique_ptr<ByteSource> bytes, std::string name, Holds holds = Holds::Object);

  const std::vector<Record>& records() const { return records_; }
  bool has(std::string_view name) const { return by_name_.contains(name); }
  const Record& record(std::string_view name) const;
  // Where a record's data begins. It lies inside the file, and is not compressed.
  uint64_t offset(const Record& record) const;
  // The same; fails where the record has fewer bytes. To call before memory is allocated for them.
  uint64_t check_room(const Record& record, uint64_t nbytes) const;
  // Fills memory from the beginning of a record; the checksum is checked when all of it is read.
  void read(const Record& record, void* to, size_t nbytes) const;
  std::string read(std::string_view name) const;
  // What is in the file for a record that may be compressed.
  std::string read_packed(const Record& record) const;

 private:
  [[noreturn]] void damaged(const std::string& what) const;
  [[noreturn]] void failed(const std::string& doing) const;
  std::string read_bytes(uint64_t at, uint64_t nbytes) const;
  uint64_t data_begin(const Record& record) const;
  void read_directory();
  void parse_directory(std::string_view rest, uint64_t end, uint64_t moved);
  void bound_records(uint64_t end);
  void find_folder(Holds holds);

  std::unique_ptr<ByteSource> bytes_;
  std::string name_, folder_;
  std::vector<Record> records_;
  std::unordered_map<std::string_view, const Record*> by_name_;
};

// What stands around the records of an archive. A record is `header` and then its bytes; `end` closes the
// file.
class ArchiveWriter {
 public:
  // The bytes of records begin at multiples of `alignment`, at most 32768.
  explicit ArchiveWriter(std::string folder, size_t alignment = 64);
  std::string header(std::string_view name, uint64_t size, uint32_t crc);
  // A whole record at the end of `out`.
  void append(std::string& out, std::string_view name, std::string_view data);
  std::string end();

 private:
  std::string folder_, directory_;
  size_t alignment_;
  uint64_t position_ = 0, count_ = 0;
};

}  // namespace rushlight::io
