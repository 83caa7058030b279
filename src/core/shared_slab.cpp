#include "core/shared_slab.h"

#include <algorithm>
#include <random>

#include "core/error.h"
#include "core/host/process.h"
#include "core/host/processor.h"

namespace rushlight::shared {

namespace {

constexpr size_t kPage = 4096;
size_t page_up(size_t n) { return (n + kPage - 1) / kPage * kPage; }

bool lives(const Holder& holder) {
  static const uint64_t our_space = host::process_space();
  if (holder.pid_namespace != our_space) return true;  // its number means nothing here
  return host::process_lives(holder.pid, holder.start_time);
}

void write_place(Holder& holder, int32_t pid) {
  holder.start_time = 0;
  holder.pid_namespace = host::process_space();
  holder.pid = pid;
  holder.start_time = host::process_start(pid);
}

/// Twice what the machine has where pages are taken when they are touched, less where the process is limited.
size_t usual_capacity() {
  constexpr size_t kWhole = size_t{64} << 20;  // where all of it is taken at once
  if (!host::shared_memory_is_sparse()) return kWhole;
  const size_t capacity = page_up(std::max(host::usable_memory(), size_t{1} << 30)) * 2;
  return std::min(capacity, host::most_shared_memory());
}

[[noreturn]] void fail(const char* what, std::error_code error) {
  RL_FAIL("shared memory: ", what, ": ", error.message(), " (error ", error.value(), ")");
}

}  // namespace

Slab* Slab::create(size_t least_bytes) {
  const size_t least = kHeaderBytes + page_up(least_bytes);
  size_t capacity = std::max(usual_capacity(), least);
  host::SharedMemory memory;
  while (const std::error_code error = host::create_shared(capacity, &memory)) {
    if (capacity == least) fail("cannot make or map it", error);
    capacity = std::max(least, page_up(capacity / 2));  // the address space is limited
  }
  auto* slab = new Slab{.memory = memory, .owned = true};
  SlabHeader& header = slab->header();
  std::random_device random;
  for (uint64_t& word : header.id) word = uint64_t{random()} << 32 | random();
  header.capacity = slab->capacity;
  header.magic = SlabHeader::kMagic;
  slab->take_place();
  return slab;
}

Slab* Slab::map(int handle, const SlabId& expected) {
  host::SharedMemory memory;
  if (const std::error_code error = host::map_shared(handle, kHeaderBytes, &memory))
    fail("cannot map the memory of another process", error);
  auto* slab = new Slab{.memory = memory, .owned = false};
  const SlabHeader& header = slab->header();
  if (header.magic != SlabHeader::kMagic || header.id != expected || header.capacity != memory.bytes) {
    delete slab;
    RL_FAIL("shared memory: the descriptor of the sending process is another file by now");
  }
  return slab;
}

Slab::~Slab() {
  leave();
  host::unmap_shared(memory);
}

bool Slab::take_place() {
  if (holder < 0) holder = place_for_child();
  return holder >= 0;
}

int Slab::place_for_child() const {
  for (int i = owned ? 0 : 1; i < kHolders; i++) {
    int32_t nobody = 0;
    if (!header().holders[i].pid.compare_exchange_strong(nobody, host::process_id())) continue;
    write_place(header().holders[i], host::process_id());
    return i;
  }
  return -1;
}

uint64_t Slab::dead_holders() const {
  uint64_t dead = 0;
  for (int i = 0; i < kHolders; i++)
    if (i != holder && header().holders[i].pid != 0 && !lives(header().holders[i])) dead |= uint64_t{1} << i;
  return dead;
}

void Slab::clear_places(uint64_t places) const {
  for (int i = 0; i < kHolders; i++)
    if (places >> i & 1) header().holders[i].pid = 0;
}

void Slab::adopt_place(int index) const { write_place(header().holders[index], host::process_id()); }

void Slab::leave() const {
  if (holder > 0) header().holders[holder].pid = 0;
}

bool Slab::owner_lives() const { return !header().owner_gone && lives(header().holders[0]); }

void Slab::punch(uint64_t begin, uint64_t end) const {
  begin = page_up(begin);
  end = end / kPage * kPage;
  if (begin < end) host::discard_shared(memory, begin, end);
}

void Slab::give_back(uint64_t offset) const {
  if (header().owner_gone) {
    block(offset).magic = 0;
    punch(offset + sizeof(BlockHeader), offset + sizeof(BlockHeader) + block(offset).nbytes);
    return;
  }
  uint64_t first = header().freed;
  do block(offset).next_freed = first;
  while (!header().freed.compare_exchange_weak(first, offset));
}

}  // namespace rushlight::shared
