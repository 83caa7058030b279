#include <cstring>

#include "core/crc32.h"
#include "frontend/archive.h"

namespace rushlight::frontend {

namespace {

constexpr uint32_t kLocal = 0x04034b50, kCentral = 0x02014b50, kEnd = 0x06054b50;
constexpr size_t kAlignment = 64;

uint32_t checksum(std::string_view bytes) { return crc32(bytes.data(), bytes.size()); }

template <class T>
void put(std::string& out, T v) {
  out.append(reinterpret_cast<const char*>(&v), sizeof v);
}
template <class T>
T get(std::string_view bytes, size_t at) {
  RL_CHECK(at <= bytes.size() && bytes.size() - at >= sizeof(T), "load: the archive is truncated");
  T v;
  std::memcpy(&v, bytes.data() + at, sizeof v);
  return v;
}

// What local and central headers have in common, from the version needed on.
void put_common(std::string& out, uint32_t crc, size_t size, size_t name_size, size_t extra_size) {
  put<uint16_t>(out, 0), put<uint16_t>(out, 0), put<uint16_t>(out, 0);  // version, flags, stored
  put<uint32_t>(out, 0);                                                // time and date
  put<uint32_t>(out, crc);
  put<uint32_t>(out, static_cast<uint32_t>(size)), put<uint32_t>(out, static_cast<uint32_t>(size));
  put<uint16_t>(out, static_cast<uint16_t>(name_size)), put<uint16_t>(out, static_cast<uint16_t>(extra_size));
}

}  // namespace

std::string write_zip(const std::vector<std::pair<std::string, std::string>>& records) {
  std::string out, directory;
  for (const auto& [name, data] : records) {
    const uint32_t crc = checksum(data);
    const size_t start = out.size(), head = start + 30 + name.size() + 4;
    const size_t padding = (kAlignment - head % kAlignment) % kAlignment;
    RL_CHECK(head + padding + data.size() < UINT32_MAX,
             "save: archives are limited to 4 GiB here; save as .safetensors or in parts");
    put(out, kLocal);
    put_common(out, crc, data.size(), name.size(), 4 + padding);
    out += name;
    put<uint16_t>(out, 0x4246), put<uint16_t>(out, static_cast<uint16_t>(padding));
    out.append(padding, 'Z');
    out += data;
    put(directory, kCentral);
    put<uint16_t>(directory, 0);
    put_common(directory, crc, data.size(), name.size(), 0);
    put<uint16_t>(directory, 0), put<uint16_t>(directory, 0),
        put<uint16_t>(directory, 0);  // comment, disk, kind
    put<uint32_t>(directory, 0), put<uint32_t>(directory, static_cast<uint32_t>(start));
    directory += name;
  }
  const size_t at = out.size();
  RL_CHECK(at + directory.size() < UINT32_MAX && records.size() < UINT16_MAX,
           "save: archives are limited to 4 GiB and 65534 tensors here; save as .safetensors or in parts");
  out += directory;
  put(out, kEnd), put<uint32_t>(out, 0);
  put<uint16_t>(out, static_cast<uint16_t>(records.size())),
      put<uint16_t>(out, static_cast<uint16_t>(records.size()));
  put<uint32_t>(out, static_cast<uint32_t>(directory.size())), put<uint32_t>(out, static_cast<uint32_t>(at));
  put<uint16_t>(out, 0);
  return out;
}

Records read_zip(std::string_view bytes) {
  // 1. The end of the directory, behind which a comment may stand.
  size_t end = std::string_view::npos;
  for (size_t back = 22; back <= std::min<size_t>(bytes.size(), 22 + 65535); ++back)
    if (get<uint32_t>(bytes, bytes.size() - back) == kEnd) {
      end = bytes.size() - back;
      break;
    }
  RL_CHECK(end != std::string_view::npos,
           "load: this is not an archive that torch.save wrote, or it is truncated");
  const size_t count = get<uint16_t>(bytes, end + 10);
  size_t at = get<uint32_t>(bytes, end + 16);
  // 2. The records.
  Records records;
  for (size_t i = 0; i < count; ++i) {
    RL_CHECK(get<uint32_t>(bytes, at) == kCentral, "load: the archive's directory is damaged");
    const auto method = get<uint16_t>(bytes, at + 10);
    uint64_t size = get<uint32_t>(bytes, at + 24), offset = get<uint32_t>(bytes, at + 42);
    const uint32_t crc = get<uint32_t>(bytes, at + 16);
    const size_t name_size = get<uint16_t>(bytes, at + 28), extra = get<uint16_t>(bytes, at + 30),
                 comment = get<uint16_t>(bytes, at + 32);
    RL_CHECK(bytes.size() - at >= 46 + name_size + extra, "load: the archive is truncated");
    const std::string name(bytes.substr(at + 46, name_size));
    // Sizes beyond 4 GiB stand in an extra field.
    for (size_t e = at + 46 + name_size; e + 4 <= at + 46 + name_size + extra;) {
      const auto kind = get<uint16_t>(bytes, e), length = get<uint16_t>(bytes, e + 2);
      size_t field = e + 4;
      if (kind == 1) {
        if (get<uint32_t>(bytes, at + 24) == UINT32_MAX) size = get<uint64_t>(bytes, field), field += 8;
        if (get<uint32_t>(bytes, at + 20) == UINT32_MAX) field += 8;
        if (offset == UINT32_MAX) offset = get<uint64_t>(bytes, field);
      }
      e += 4u + length;
    }
    at += 46 + name_size + extra + comment;
    if (name.ends_with('/')) continue;
    RL_CHECK(method == 0, "load: the record ", name, " is compressed; torch.save stores records as they are");
    RL_CHECK(offset < bytes.size() && get<uint32_t>(bytes, offset) == kLocal, "load: the record ", name,
             " is damaged");
    const size_t data = offset + 30 + get<uint16_t>(bytes, offset + 26) + get<uint16_t>(bytes, offset + 28);
    RL_CHECK(data <= bytes.size() && size <= bytes.size() - data, "load: the record ", name, " is truncated");
    const std::string_view content = bytes.substr(data, size);
    RL_CHECK(checksum(content) == crc, "load: the record ", name, " is damaged: its checksum differs");
    const size_t slash = name.find('/');
    records[slash == std::string::npos ? name : name.substr(slash + 1)] = content;
  }
  return records;
}

}  // namespace rushlight::frontend
