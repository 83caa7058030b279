#include "io/archive.h"

#include <algorithm>
#include <cstring>

#include "core/crc32.h"
#include "core/error.h"

namespace rushlight::io {
namespace {

constexpr std::string_view kLocal("PK\3\4", 4), kCentral("PK\1\2", 4), kEnd("PK\5\6", 4);
constexpr std::string_view kEnd64("PK\6\6", 4), kLocator64("PK\6\7", 4);
constexpr size_t kLocalSize = 30, kCentralSize = 46, kEndSize = 22, kEnd64Size = 56, kLocator64Size = 20;
constexpr size_t kMostAligned = 32768, kPiece = size_t{1} << 20;
constexpr uint64_t kLimit32 = INT32_MAX;  // from here on numbers stand in a zip64 field

template <class T>
T get(std::string_view bytes, size_t at) {
  T v;
  std::memcpy(&v, bytes.data() + at, sizeof v);
  return v;
}
template <class... T>
void put(std::string& out, T... values) {
  (out.append(reinterpret_cast<const char*>(&values), sizeof values), ...);
}

// Numbers that do not fit 32 bits stand in an extra field, in this order; false if one is missing.
bool read_zip64(std::string_view extra, uint64_t& size, uint64_t& packed_size, uint64_t& offset) {
  const bool wanted = size == UINT32_MAX || packed_size == UINT32_MAX || offset == UINT32_MAX;
  while (wanted && extra.size() >= 4) {
    const size_t length = get<uint16_t>(extra, 2);
    if (length > extra.size() - 4) return false;
    if (get<uint16_t>(extra, 0) == 1) {
      std::string_view field = extra.substr(4, length);
      for (uint64_t* value : {&size, &packed_size, &offset}) {
        if (*value != UINT32_MAX) continue;
        if (field.size() < 8) return false;
        *value = get<uint64_t>(field, 0);
        field.remove_prefix(8);
      }
      return true;
    }
    extra.remove_prefix(4 + length);
  }
  return !wanted;
}

}  // namespace

// --- reading -----------------------------------------------------------------------------------------

Archive::Archive(std::unique_ptr<ByteSource> bytes, std::string name, Holds holds)
    : bytes_(std::move(bytes)), name_(std::move(name)) {
  read_directory();
  find_folder(holds);
}

void Archive::damaged(const std::string& what) const { failed("reading zip archive: " + what); }

void Archive::failed(const std::string& doing) const {
  RL_FAIL(
      "PytorchStreamReader failed ", doing, ": ", name_,
      ". If you are seeing this error, there is a high likelihood that your checkpoint file is corrupted. "
      "This can happen if the checkpoint was not saved properly, was transferred incorrectly, or the file "
      "was modified after saving.");
}

std::string Archive::read_bytes(uint64_t at, uint64_t nbytes) const {
  // Before allocating: a size is only believed once it fits the file.
  if (at > bytes_->size() || nbytes > bytes_->size() - at) damaged("the file ends early");
  std::string bytes(nbytes, '\0');
  if (bytes_->read(at, bytes.data(), bytes.size()) != nbytes) damaged("the file ends early");
  return bytes;
}

void Archive::read_directory() {
  // 1. The end of the directory, behind which a comment may stand.
  uint64_t tail = 0;
  size_t found = std::string::npos;
  std::string end;
  for (const size_t reach : {kEndSize, kEndSize + UINT16_MAX}) {
    if (bytes_->size() < kEndSize || found != std::string::npos) break;
    tail = bytes_->size() - std::min<uint64_t>(bytes_->size(), reach);
    end = read_bytes(tail, bytes_->size() - tail);
    found = end.rfind(kEnd, end.size() - kEndSize);
  }
  if (found == std::string::npos) damaged("failed finding central directory");
  uint64_t size = get<uint32_t>(end, found + 12), begin = get<uint32_t>(end, found + 16);
  uint64_t position = tail + found;
  // 2. Of large archives, a second one before it.
  if (position >= kEnd64Size + kLocator64Size && read_bytes(position - kLocator64Size, 4) == kLocator64) {
    position -= kEnd64Size + kLocator64Size;
    end = read_bytes(position, kEnd64Size);
    if (!end.starts_with(kEnd64)) damaged("failed finding central directory");
    size = get<uint64_t>(end, 40), begin = get<uint64_t>(end, 48);
  }
  // 3. The directory lies just before it: what the archive says of its place tells how far it was moved.
  if (size > position) damaged("failed finding central directory");
  const uint64_t directory = position - size;
  parse_directory(read_bytes(directory, size), directory, directory - begin);
  bound_records(directory);
}

void Archive::parse_directory(std::string_view rest, uint64_t end, uint64_t moved) {
  while (!rest.empty()) {
    if (rest.size() < kCentralSize || !rest.starts_with(kCentral)) damaged("bad directory");
    const size_t name = get<uint16_t>(rest, 28), extra = get<uint16_t>(rest, 30),
                 comment = get<uint16_t>(rest, 32);
    if (rest.size() - kCentralSize < name + extra + comment) damaged("bad directory");
    uint64_t packed_size = get<uint32_t>(rest, 20), size = get<uint32_t>(rest, 24),
             offset = get<uint32_t>(rest, 42);
    if (!read_zip64(rest.substr(kCentralSize + name, extra), size, packed_size, offset))
      damaged("bad directory");
    offset += moved;
    if (offset >= end) damaged("bad directory");
    records_.push_back({std::string(rest.substr(kCentralSize, name)), offset, size, packed_size, 0,
                        get<uint32_t>(rest, 16), get<uint16_t>(rest, 10), get<uint16_t>(rest, 8)});
    rest.remove_prefix(kCentralSize + name + extra + comment);
  }
}

// Each ends where the next one begins.
void Archive::bound_records(uint64_t end) {
  std::vector<Record*> in_place;
  for (Record& r : records_) in_place.push_back(&r);
  std::ranges::sort(in_place, std::greater<>(), &Record::header);
  for (Record* r : in_place) {
    r->limit = end;
    end = r->header;
    if (r->limit - r->header < kLocalSize || r->packed_size > r->limit - r->header - kLocalSize)
      damaged("record " + r->name + " reaches past the end of the file, or into another record");
  }
}

void Archive::find_folder(Holds holds) {
  auto folder_of = [&](std::string_view wanted) {
    for (const Record& r : records_)
      if (r.name == wanted ||
          (r.name.ends_with(wanted) && r.name[r.name.size() - wanted.size() - 1] == '/')) {
        folder_ = r.name.substr(0, r.name.size() - wanted.size());
        return true;
      }
    return false;
  };
  if (!folder_of("data.pkl") && !folder_of("constants.pkl")) {
    const auto inside = [](const Record& r) { return r.name.find('/') != std::string::npos; };
    const auto first = std::ranges::find_if(records_, inside);
    if (holds == Holds::Object || first == records_.end()) damaged("no record data.pkl");
    folder_ = first->name.substr(0, first->name.find('/') + 1);
  }
  std::erase_if(records_,
                [&](const Record& r) { return !r.name.starts_with(folder_) || r.name.ends_with('/'); });
  for (Record& r : records_) {
    r.name.erase(0, folder_.size());
    by_name_[r.name] = &r;
  }
}

const Archive::Record& Archive::record(std::string_view name) const {
  const auto found = by_name_.find(name);
  if (found == by_name_.end()) failed(str("locating file ", name, ": file not found"));
  return *found->second;
}

uint64_t Archive::data_begin(const Record& r) const {
  const std::string head = read_bytes(r.header, kLocalSize);
  if (!head.starts_with(kLocal)) damaged("record " + folder_ + r.name + " has no local header");
  const uint64_t begin = r.header + kLocalSize + get<uint16_t>(head, 26) + get<uint16_t>(head, 28);
  if (begin > r.limit || r.packed_size > r.limit - begin)
    damaged("record " + folder_ + r.name + " reaches past the end of the file, or into another record");
  return begin;
}

uint64_t Archive::offset(const Record& r) const {
  if (r.method || r.flags & 1 || r.size != r.packed_size)
    damaged("record " + folder_ + r.name + " is compressed or encrypted");
  return data_begin(r);
}

uint64_t Archive::check_room(const Record& r, uint64_t nbytes) const {
  const uint64_t begin = offset(r);
  if (nbytes > r.size)
    damaged(str("record ", folder_, r.name, " has ", r.size, " bytes where ", nbytes, " are needed"));
  return begin;
}

void Archive::read(const Record& r, void* to, size_t nbytes) const {
  const uint64_t begin = check_room(r, nbytes);
  uint32_t crc = 0;
  for (size_t done = 0; done < nbytes; done += kPiece) {  // whose checksum is taken while it is in the cache
    char* piece = static_cast<char*>(to) + done;
    const size_t count = std::min(kPiece, nbytes - done);
    if (bytes_->read(begin + done, piece, count) != count)
      damaged("record " + folder_ + r.name + " ends early");
    crc = crc32(piece, count, crc);
  }
  const bool checked = r.crc != 0;  // zero: written without checksums, as `set_crc32_options(False)` asks
  if (checked && nbytes == r.size && crc != r.crc)
    damaged("record " + folder_ + r.name + " fails its checksum");
}

std::string Archive::read(std::string_view name) const {
  const Record& r = record(name);
  check_room(r, r.size);  // before allocating
  std::string bytes(r.size, '\0');
  read(r, bytes.data(), bytes.size());
  return bytes;
}

std::string Archive::read_packed(const Record& r) const {
  if (r.flags & 1) damaged("record " + folder_ + r.name + " is encrypted");
  return read_bytes(data_begin(r), r.packed_size);
}

// --- writing -----------------------------------------------------------------------------------------

ArchiveWriter::ArchiveWriter(std::string folder, size_t alignment)
    : folder_(std::move(folder)), alignment_(alignment) {
  RL_CHECK_VALUE(alignment >= 1 && alignment <= kMostAligned, "records can begin at multiples of 1 to ",
                 kMostAligned, " bytes, not of ", alignment);
}

void ArchiveWriter::append(std::string& out, std::string_view name, std::string_view data) {
  out += header(name, data.size(), crc32(data.data(), data.size()));
  out += data;
}

std::string ArchiveWriter::header(std::string_view name, uint64_t size, uint32_t crc) {
  const std::string path = folder_ + "/" + std::string(name);
  const bool large = size > kLimit32, far = position_ > kLimit32;
  const bool ascii = std::ranges::all_of(path, [](char c) { return static_cast<signed char>(c) >= 0; });
  const uint16_t version = large || far ? 45 : 20, flags = ascii ? 0 : 0x800;  // names are UTF-8
  const auto size32 = large ? UINT32_MAX : static_cast<uint32_t>(size);
  // What local and central headers have in common: version, flags, stored, the earliest date, sizes, name.
  std::string common;
  put(common, version, flags, uint16_t{0}, uint16_t{0}, uint16_t{33}, crc, size32, size32,
      static_cast<uint16_t>(path.size()));
  // The data begins at a multiple of the alignment, behind an extra field that fills the room.
  const size_t extra64 = large ? 20 : 0, before = kLocalSize + path.size() + 4 + extra64;
  const size_t padding = (alignment_ - (position_ + before) % alignment_) % alignment_;
  std::string head(kLocal);
  head += common;
  put(head, static_cast<uint16_t>(4 + padding + extra64));
  head += path;
  put(head, uint16_t{0x4246}, static_cast<uint16_t>(padding));
  head.append(padding, 'Z');
  if (large) put(head, uint16_t{1}, uint16_t{16}, size, size);

  directory_ += kCentral;
  put(directory_, static_cast<uint8_t>(version), uint8_t{3});  // made on Unix
  directory_ += common;
  std::string extra;
  if (large) put(extra, size, size);
  if (far) put(extra, position_);
  if (!extra.empty()) extra = std::string("\1\0", 2) + static_cast<char>(extra.size()) + '\0' + extra;
  put(directory_, static_cast<uint16_t>(extra.size()), uint16_t{0}, uint16_t{0}, uint16_t{0},
      uint32_t{0600} << 16, far ? UINT32_MAX : static_cast<uint32_t>(position_));
  directory_ += path + extra;
  ++count_;
  position_ += head.size() + size;
  return head;
}

std::string ArchiveWriter::end() {
  std::string out = directory_;
  const uint64_t size = directory_.size();
  const bool large = count_ >= UINT16_MAX || size > kLimit32 || position_ > kLimit32;
  if (large) {
    out += kEnd64;
    put(out, uint64_t{kEnd64Size - 12}, uint16_t{45}, uint16_t{45}, uint32_t{0}, uint32_t{0}, count_, count_,
        size, position_);
    out += kLocator64;
    put(out, uint32_t{0}, position_ + size, uint32_t{1});
  }
  const auto count = static_cast<uint16_t>(std::min<uint64_t>(count_, UINT16_MAX));
  out += kEnd;
  put(out, uint32_t{0}, count, count, static_cast<uint32_t>(std::min<uint64_t>(size, UINT32_MAX)),
      large ? UINT32_MAX : static_cast<uint32_t>(position_), uint16_t{0});
  return out;
}

}  // namespace rushlight::io
