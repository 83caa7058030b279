// One slab of shared memory: its layout, its mapping, and who holds which block.
#pragma once
#include <atomic>
#include <unordered_map>

#include "core/host/memory.h"
#include "core/shared_memory.h"

namespace rushlight::shared {

/// The state word: 40 holders, and above them the number of messages on their way. A process that found no
/// place among the holders counts as a message.
inline constexpr int kHolders = 40;
inline constexpr uint64_t kMessage = uint64_t{1} << kHolders;

inline uint64_t messages(uint64_t state) { return state >> kHolders; }

/// In front of each block.
struct alignas(64) BlockHeader {
  static constexpr uint64_t kMagic = 0x52755368426c6f63;

  std::atomic<uint64_t> state;
  std::atomic<uint64_t> next_freed;  ///< offset of the next header on the list of freed blocks
  uint64_t magic, generation, nbytes;
};
static_assert(sizeof(BlockHeader) == 64);

struct Holder {
  std::atomic<int32_t> pid;  ///< 0: the place is free
  std::atomic<uint64_t> start_time, pid_namespace;
};

/// At the slab's start.
struct SlabHeader {
  static constexpr uint64_t kMagic = 0x527553686c61623a;

  uint64_t magic;
  SlabId id;
  uint64_t capacity;
  uint64_t generation;               ///< of the block allocated last
  std::atomic<uint64_t> freed;       ///< offset of the first freed header; 0: none
  std::atomic<uint32_t> owner_gone;  ///< nobody will reuse blocks
  Holder holders[kHolders];          ///< the first one is the owner
};
inline constexpr size_t kHeaderBytes = 4096;
static_assert(sizeof(SlabHeader) <= kHeaderBytes);

/// What this process knows of a block that its storages look into.
struct LocalBlock {
  int storages = 0;
  bool counted = false;            ///< held as a message, for want of a place
  StorageImpl* storage = nullptr;  ///< one of them, if it still lives
  Storage former;                  ///< memory it had before, where others may keep the address
};

struct Slab {
  const host::SharedMemory memory;
  bool owned;
  std::byte* const base = memory.base;
  const size_t capacity = memory.bytes;
  int holder = -1;        ///< our place among the holders; -1: none yet, or none free
  int child_holder = -1;  ///< while forking
  std::unordered_map<uint64_t, LocalBlock> local = {};

  static Slab* create(size_t least_bytes);
  /// Takes the descriptor over; fails if it is not the slab.
  static Slab* map(int handle, const SlabId& expected);
  ~Slab();

  SlabHeader& header() const { return *reinterpret_cast<SlabHeader*>(base); }
  BlockHeader& block(uint64_t offset) const { return *reinterpret_cast<BlockHeader*>(base + offset); }
  bool contains(const void* p) const { return p >= base && p < base + capacity; }
  uint64_t offset_of(const void* data) const {
    return static_cast<uint64_t>(static_cast<const std::byte*>(data) - base) - sizeof(BlockHeader);
  }
  std::byte* data(uint64_t offset) const { return base + offset + sizeof(BlockHeader); }

  /// Enters this process among the holders; false if there is no place.
  bool take_place();
  /// Our bit, or 0 without a place.
  uint64_t bit() { return take_place() ? uint64_t{1} << holder : 0; }
  bool nearly_full() const { return header().holders[kHolders - 4].pid != 0; }
  /// A place for a process that is about to be forked.
  int place_for_child() const;
  void adopt_place(int index) const;
  void leave() const;
  /// Places of processes that are dead, as a mask.
  uint64_t dead_holders() const;
  void clear_places(uint64_t places) const;
  bool owner_lives() const;
  /// Adds a block that nobody holds to the list for the owner, or frees its pages if there is none.
  void give_back(uint64_t offset) const;
  void punch(uint64_t begin, uint64_t end) const;
};

}  // namespace rushlight::shared
