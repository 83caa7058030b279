#include <gtest/gtest.h>

#include <map>

#include "core/crc32.h"
#include "core/error.h"
#include "io/archive.h"

namespace rushlight::io {
namespace {

std::string archive_of(const std::map<std::string, std::string>& records) {
  ArchiveWriter writer("top");
  std::string out;
  for (const auto& [name, data] : records)
    out += writer.header(name, data.size(), crc32(data.data(), data.size())) + data;
  return out + writer.end();
}
Archive opened(const std::string& bytes) { return {std::make_unique<MemorySource>(bytes), "test"}; }

std::string error_of(const auto& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

// Of gigabytes, of which only what is not zero is kept.
class SparseSource final : public ByteSource {
 public:
  SparseSource() : ByteSource(0) {}
  void append(std::string bytes) {
    const uint64_t end = size_ + bytes.size();
    parts_.emplace(size_, std::move(bytes));
    size_ = end;
  }
  void append_zeros(uint64_t n) { size_ += n; }
  size_t read(uint64_t at, void* to, size_t nbytes) override {
    const size_t count = at < size_ ? std::min<uint64_t>(nbytes, size_ - at) : 0;
    for (size_t i = 0; i < count; ++i) static_cast<char*>(to)[i] = byte(at + i);
    return count;
  }

 private:
  char byte(uint64_t at) const {
    auto part = parts_.upper_bound(at);
    if (part == parts_.begin()) return 0;
    --part;
    return at - part->first < part->second.size() ? part->second[at - part->first] : '\0';
  }
  std::map<uint64_t, std::string> parts_;
};

TEST(Archive, GivesBackWhatWasWritten) {
  const std::string bytes =
      archive_of({{"data.pkl", "N."}, {"data/0", std::string(100, 'x')}, {"empty", ""}});
  const Archive archive = opened(bytes);
  EXPECT_EQ(archive.read("data.pkl"), "N.");
  EXPECT_EQ(archive.read("data/0"), std::string(100, 'x'));
  EXPECT_EQ(archive.read("empty"), "");
  EXPECT_EQ(archive.offset(archive.record("data/0")) % 64, 0u);
  EXPECT_EQ(archive.records().size(), 3u);
  EXPECT_FALSE(archive.has("data/1"));
  EXPECT_NE(error_of([&] { archive.read("data/1"); }).find("locating file data/1: file not found"),
            std::string::npos);
}

TEST(Archive, MayBeMovedAndHaveAComment) {
  const std::string bytes = archive_of({{"data.pkl", "N."}});
  std::string with_comment = bytes;
  with_comment[with_comment.size() - 2] = 7;
  EXPECT_EQ(opened("#!/bin/sh\n" + bytes).read("data.pkl"), "N.");
  EXPECT_EQ(opened(with_comment + "comment").read("data.pkl"), "N.");
}

TEST(Archive, HoldsMoreThanFourGibibytes) {
  constexpr uint64_t kLarge = (uint64_t{5} << 30) + 3;
  ArchiveWriter writer("top");
  auto source = std::make_unique<SparseSource>();
  source->append(writer.header("large", kLarge, 0));
  source->append_zeros(kLarge);
  const std::string pickle = "N.";
  source->append(writer.header("data.pkl", pickle.size(), crc32(pickle.data(), pickle.size())));
  source->append(pickle);
  source->append(writer.end());
  const Archive archive(std::move(source), "test");
  EXPECT_EQ(archive.read("data.pkl"), "N.");
  EXPECT_EQ(archive.record("large").size, kLarge);
  EXPECT_EQ(archive.offset(archive.record("large")) % 64, 0u);
  EXPECT_GT(archive.offset(archive.record("data.pkl")), kLarge);
}

TEST(Archive, RefusesRecordsThatShareBytes) {
  const std::string good = archive_of({{"data.pkl", "N."}, {"data/0", std::string(64, 'x')}});
  const size_t first = good.find("PK\1\2"), second = good.find("PK\1\2", first + 1);
  std::string same = good, longer = good;
  same.replace(second + 42, 4, good.substr(first + 42, 4));  // both begin with the first one
  longer[first + 20] = longer[first + 24] = 100;             // the first one reaches into the second
  for (const std::string& bad : {same, longer})
    EXPECT_NE(error_of([&] { opened(bad).read("data.pkl"); }).find("into another record"), std::string::npos);
}

TEST(Archive, RefusesWhatIsCompressedOrDamaged) {
  const std::string good = archive_of({{"data.pkl", "N."}});
  std::string compressed = good, changed = good;
  compressed[good.find("PK\1\2") + 10] = 8;
  changed[good.find("N.")] = 'M';
  EXPECT_NE(error_of([&] { opened(compressed).read("data.pkl"); }).find("compressed"), std::string::npos);
  EXPECT_NE(error_of([&] { opened(changed).read("data.pkl"); }).find("checksum"), std::string::npos);
  for (size_t length = 0; length < good.size(); ++length)
    EXPECT_NE(error_of([&] { opened(good.substr(0, length)).read("data.pkl"); }), "") << length;
}

}  // namespace
}  // namespace rushlight::io
