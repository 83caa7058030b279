#include "io/mapped_file.h"

#include "core/host/memory.h"

namespace rushlight::io {

Ref<MappedFile> MappedFile::open(const std::string& path) {
  return Ref<MappedFile>::adopt(new MappedFile(host::map_file(path)));
}

Ref<MappedFile> MappedFile::in_memory(std::span<const std::byte> bytes, std::shared_ptr<const void> owner) {
  RL_CHECK_VALUE(owner, "memory without an owner");
  return Ref<MappedFile>::adopt(new MappedFile({bytes.data(), bytes.size()}, std::move(owner)));
}

void MappedFile::fetch(std::span<const std::byte> part) { host::fetch_pages(part.data(), part.size()); }

MappedFile::~MappedFile() {
  if (is_mapped()) host::unmap_file(bytes_);
}

Storage MappedFile::storage(size_t offset, size_t nbytes) {
  retain();
  auto* start = const_cast<std::byte*>(data() + offset);
  const auto release = [](void* file, void*, size_t) {
    Ref<MappedFile>::adopt(static_cast<MappedFile*>(file));
  };
  return StorageImpl::wrap(start, nbytes, {}, release, this, true);
}

}  // namespace rushlight::io
